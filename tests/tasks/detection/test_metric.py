"""COCO's figures and their resamples, against pycocotools called on files as its users call it."""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from simulator.data.truth import Boxes
from simulator.errors import DataError
from simulator.tasks.detection.boxes import Detections
from simulator.tasks.detection.metric import METRICS, Ranking, evaluate

STATS = (0, 1, 2, 3, 4, 5, 8)
CLASSES = 4
LABELS = [f"c{index}" for index in range(CLASSES)]


class IgnoringDifficult(COCOeval):
    """pycocotools with the ``ignore`` flag that its ``_prepare`` overwrites."""

    def _prepare(self):
        super()._prepare()
        for objects in self._gts.values():
            for one in objects:
                one["ignore"] = one["iscrowd"] or one["difficult"]


def pycocotools(found, truths):
    """``COCOeval.stats`` and the precision array, by JSON files and loadRes; ids with holes."""
    annotations = [
        {
            "image_id": 10 * image + 5, "category_id": 3 * index + 7, "bbox": xywh, "area": area,
            "iscrowd": int(crowd), "difficult": bool(difficult),
        }
        for image, one in enumerate(truths)
        for xywh, index, area, crowd, difficult in zip(
            one.xywh.tolist(), one.classes.tolist(), one.area.tolist(), one.crowd, one.difficult,
            strict=True,
        )
    ]  # fmt: skip
    results = [
        {
            "image_id": 10 * image + 5, "category_id": 3 * index + 7, "score": score,
            "bbox": [x1, y1, x2 - x1, y2 - y1],
        }
        for image, one in enumerate(found)
        for (x1, y1, x2, y2), index, score in zip(
            one.boxes.tolist(), one.classes.tolist(), one.scores.tolist(), strict=True
        )
    ]  # fmt: skip
    document = {
        "images": [{"id": 10 * image + 5} for image in range(len(truths))],
        "categories": [{"id": 3 * index + 7} for index in range(CLASSES)],
        "annotations": [one | {"id": number} for number, one in enumerate(annotations, 1)],
    }
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        for name, content in (("truth.json", document), ("results.json", results)):
            (Path(folder) / name).write_text(json.dumps(content))
        truth = COCO(f"{folder}/truth.json")
        evaluation = IgnoringDifficult(truth, truth.loadRes(f"{folder}/results.json"), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return evaluation.stats, evaluation.eval["precision"][..., 0, 2]


def no_objects():
    none = np.empty(0)
    return Boxes(
        np.empty((0, 4)), none.astype(int), none.astype(bool), none, none.astype(bool)
    )  # fmt: skip


def nothing_found():
    return Detections(np.empty((0, 4)), np.empty(0), np.empty(0, np.int64))


def data_set(seed, images=4, levels=10, objects=5):
    """Random objects, and detections that jitter them, with few score levels so that many tie.

    The last class has no object; the last but one detection or so is of another class.
    """
    rng = np.random.default_rng(seed)
    truths, found = [], []
    for _ in range(images):
        n = int(rng.integers(0, objects + 1))
        corner, sides = rng.uniform(0, 300, (n, 2)), rng.uniform(5, 130, (n, 2))
        truth = Boxes(
            np.hstack([corner, sides]), rng.integers(0, CLASSES - 1, n), rng.random(n) < 0.15,
            sides.prod(axis=1) * rng.uniform(0.5, 1, n), rng.random(n) < 0.15,
        )  # fmt: skip
        pick = np.repeat(np.arange(n), rng.integers(0, 4, n))
        m, extra = len(pick), int(rng.integers(0, 3))
        corners = np.hstack([corner, corner + sides])[pick]
        corners += rng.normal(0, 0.06, (m, 4)) * np.tile(sides, 2)[pick]
        corners = np.vstack([corners, rng.uniform([0, 0, 60, 60], [60, 60, 120, 120], (extra, 4))])
        classes = np.concatenate([truth.classes[pick], rng.integers(0, CLASSES, extra)])
        scores = rng.integers(1, levels + 1, m + extra) / levels
        best = np.argsort(-scores, kind="stable")
        truths.append(truth)
        found.append(Detections(corners[best], scores[best], classes[best]))
    found[0] = Detections(
        np.vstack([found[0].boxes, [[1, 1, 9, 9]]]), np.append(found[0].scores, 0.01),
        np.append(found[0].classes, CLASSES - 1),
    )  # fmt: skip
    return found, truths


seeds = st.integers(0, 2**32 - 1)


@settings(max_examples=60, deadline=None)
@given(seeds, st.sampled_from([2, 5, 1000]))
def test_figures_are_those_of_pycocotools(seed, levels):
    found, truths = data_set(seed, levels=levels)
    stats, precision = pycocotools(found, truths)
    figures = evaluate(found, truths, LABELS)
    per_class = [precision[..., index].mean() for index in range(CLASSES)]
    got = [-1 if value is None else value for value in figures.values()]
    assert list(figures) == [*METRICS, *(f"AP {name}" for name in LABELS)]
    np.testing.assert_allclose(got, [*stats[list(STATS)], *per_class], rtol=0, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(seeds, st.sampled_from([2, 5, 1000]), st.lists(st.integers(0, 4), min_size=4, max_size=4))
def test_a_resample_is_worth_what_pycocotools_gives_for_copied_images(seed, levels, counts):
    found, truths = data_set(seed, levels=levels)
    rows = np.array([[1, 1, 1, 1], counts, [2, 0, 1, 3]])
    expected = []
    for row in rows:
        drawn = np.repeat(np.arange(4), row)
        copies = [found[i] for i in drawn], [truths[i] for i in drawn]
        # loadRes refuses an empty list, and the precision array holds -1 for want of objects.
        empty = not sum(len(one) for one in copies[0])
        value = -1 if empty else pycocotools(*copies)[0][0]
        present = any((~one.crowd & ~one.difficult).any() for one in copies[1])
        expected.append(value if value > -1 else 0 if present else np.nan)
    values = Ranking.of(found, truths, CLASSES).resampled(rows)
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(seeds, st.sampled_from(["AP50", "AP75"]))
def test_one_threshold_is_resampled_as_pycocotools_measures_it(seed, at):
    found, truths = data_set(seed, levels=5)
    wanted = evaluate(found, truths, LABELS)[at]
    assume(wanted is not None)  # nothing but crowds and difficult objects: nothing is measured
    (value,) = Ranking.of(found, truths, CLASSES).resampled(np.ones((1, len(found)), int), at)
    assert value == pytest.approx(wanted, abs=1e-12)


def test_more_than_a_hundred_detections_of_a_class_are_cut_as_by_pycocotools():
    rng = np.random.default_rng(3)
    corner = rng.uniform(0, 600, (150, 2))
    zeros = np.zeros(150, np.int64)
    truth = Boxes(
        np.hstack([corner, np.full((150, 2), 20)]), zeros, zeros > 0, zeros + 400.0, zeros > 0
    )
    scores = np.linspace(1, 0.1, 150)
    found = Detections(np.hstack([corner, corner + rng.uniform(14, 26, (150, 2))]), scores, zeros)
    expected = pycocotools([found], [truth])[0]
    figures = evaluate([found], [truth], LABELS)
    assert [figures["mAP"], figures["AR100"]] == pytest.approx(list(expected[[0, 8]]), abs=1e-12)
    assert expected[8] < 100 / 150
    values = Ranking.of([found], [truth], CLASSES).resampled(np.array([[1], [2]]))
    twice = pycocotools([found] * 2, [truth] * 2)[0][0]
    assert list(values) == pytest.approx([expected[0], twice], abs=1e-12)


def test_batches_do_not_change_a_resample():
    found, truths = data_set(5, images=30, objects=60, levels=7)
    ranking = Ranking.of(found, truths, CLASSES)
    counts = np.random.default_rng(0).multinomial(30, np.full(30, 1 / 30), size=1200)
    together = ranking.resampled(counts)
    alone = [ranking.resampled(one[None])[0] for one in counts[::200]]
    np.testing.assert_allclose(together[::200], alone, rtol=0, atol=1e-12)


def test_nothing_found_scores_0_where_there_are_objects():
    _, truths = data_set(1, objects=9)
    figures = evaluate([nothing_found()] * 4, truths, LABELS)
    assert (figures["mAP"], figures["AR100"], figures["AP c3"]) == (0, 0, None)
    ranking = Ranking.of([nothing_found()] * 4, truths, CLASSES)
    assert ranking.resampled(np.ones((2, 4), int)).tolist() == [0, 0]


@pytest.mark.parametrize("images", [0, 3])
def test_without_objects_nothing_can_be_measured(images):
    found, truths = [data_set(1)[0][0]] * images, [no_objects()] * images
    assert set(evaluate(found, truths, LABELS).values()) == {None}
    values = Ranking.of(found, truths, CLASSES).resampled(np.ones((2, images), int))
    assert np.isnan(values).all()


def test_the_truth_as_detections_scores_1_and_permuted_images_change_nothing():
    _, truths = data_set(2, objects=9)
    truths = [replace(one, crowd=np.zeros(len(one), bool)) for one in truths]
    perfect = [
        Detections(
            np.hstack([one.xywh[:, :2], one.xywh[:, :2] + one.xywh[:, 2:]]),
            np.linspace(1, 0.5, len(one)), one.classes,
        )
        for one in truths
    ]  # fmt: skip
    assert evaluate(perfect, truths, LABELS)["mAP"] == pytest.approx(1, abs=1e-12)
    found, truths = data_set(4, levels=10**9)
    assert evaluate(found, truths, LABELS) == evaluate(found[::-1], truths[::-1], LABELS)


def test_zero_area_and_huge_boxes_are_false_positives_at_most():
    found, truths = data_set(6, objects=9)
    odd = np.array([[5, 5, 5, 5], [9, 9, 3, 3], [-1e6, -1e6, 1e6, 1e6], [0, 0, 1e4, 1e4]])
    extra = Detections(odd, np.full(4, 0.01), np.zeros(4, np.int64))
    worse = [
        Detections(*(np.concatenate([getattr(a, name), getattr(extra, name)])
                     for name in ("boxes", "scores", "classes")))
        for a in found
    ]  # fmt: skip
    assert evaluate(worse, truths, LABELS) == pytest.approx(evaluate(found, truths, LABELS))


def test_classes_of_one_name_are_told_apart_by_their_index():
    found, truths = data_set(1)
    figures = evaluate(found, truths, ["crane", "dog", "crane", "cat"])
    assert list(figures)[len(METRICS) :] == ["AP crane (0)", "AP dog", "AP crane (2)", "AP cat"]


def test_a_class_without_a_label_is_refused():
    found, truths = data_set(1)
    with pytest.raises(DataError, match="image 1 has a box of class 3, but there are 3 labels"):
        evaluate(found, truths, LABELS[:3])


def test_nothing_is_printed(capsys):
    evaluate(*data_set(1), LABELS)
    Ranking.of(*data_set(1), CLASSES)
    assert capsys.readouterr() == ("", "")
