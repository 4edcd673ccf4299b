"""What became of each object between two stacks."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.tasks.detection import specimen
from simulator.tasks.detection.boxes import Detections
from simulator.tasks.detection.matching import FATES, change, fates

BOX = (0, 0, 100, 100)
FAR = (500, 500, 600, 600)


def found(*boxes):
    """Detections (x1, y1, x2, y2), class, score; best score first."""
    return specimen.found(*((*box, score, index) for box, index, score in boxes))


def counts(iou=None, **fates):
    """How many objects met which fate."""
    changed = fates.get("lost", 0) + fates.get("gained", 0)
    units = changed + fates.get("kept", 0)
    told = {**dict.fromkeys(FATES, 0), **fates}
    return {**told, "changed": changed, "units": units, "mean_iou": iou}


@pytest.mark.parametrize(
    ("after", "expected", "iou"),
    [
        pytest.param((BOX, 0, 0.8), "kept", 1, id="the same"),
        pytest.param(((0, 0, 91, 100), 0, 0.75), "kept", 0.91, id="a little smaller"),
        pytest.param(((0, 0, 89, 100), 0, 0.8), "moved", 0.89, id="an IoU under 0.9"),
        pytest.param((BOX, 1, 0.8), "relabelled", 1, id="another class"),
        pytest.param(((0, 0, 60, 100), 1, 0.6), "relabelled", 0.6, id="all at once"),
        pytest.param((BOX, 0, 0.69), "rescored", 1, id="a lower score"),
        pytest.param((BOX, 0, 0.91), "rescored", 1, id="a higher score"),
        pytest.param(((0, 0, 80, 100), 0, 0.6), "moved", 0.8, id="moved, and a lower score"),
    ],
)
def test_a_pair_has_one_fate(after, expected, iou):
    sides = found((BOX, 0, 0.8)), found(after)
    assert fates(*sides, 0.5) == ([expected], [expected])
    counted = change(*sides, 0.5)
    assert counted[expected] == counted["units"] == 1
    assert counted["changed"] == (expected in ("moved", "relabelled"))
    assert counted["mean_iou"] == pytest.approx(iou, abs=1e-12)


@pytest.mark.parametrize(
    ("after", "gained"),
    [
        pytest.param([], 0, id="nothing is there"),
        pytest.param([(BOX, 0, 0.5)], 0, id="its score is no longer above the threshold"),
        pytest.param([(FAR, 0, 0.8)], 1, id="the other box is elsewhere"),
        pytest.param([((0, 0, 49, 100), 0, 0.8)], 1, id="an IoU under 0.5"),
    ],
)
def test_an_object_without_a_counterpart_is_lost_or_gained(after, gained):
    sides = found((BOX, 0, 0.8)), found(*after)
    assert fates(*sides, 0.5) == (["lost"], ["gained"] * gained)
    assert change(*sides, 0.5) == counts(lost=1, gained=gained)
    assert change(*sides[::-1], 0.5) == counts(lost=gained, gained=1)


def test_two_empty_sides_have_no_units():
    assert change(found(), found((BOX, 0, 0.4)), 0.5) == counts()


def test_fates_are_those_of_the_boxes_above_the_threshold_in_their_order():
    before = found((FAR, 0, 0.9), (BOX, 0, 0.8), (BOX, 2, 0.5))
    after = found((BOX, 0, 0.8), ((0, 300, 9, 309), 0, 0.7), (FAR, 0, 0.1))
    assert fates(before, after, 0.5) == (["lost", "kept"], ["kept", "gained"])


def test_of_equal_boxes_those_of_one_class_are_paired():
    before = found((BOX, 0, 0.8), (BOX, 1, 0.8))
    after = found((BOX, 1, 0.8), (BOX, 0, 0.8))
    assert fates(before, after, 0.5) == (["kept", "kept"], ["kept", "kept"])


def test_of_equal_boxes_of_one_class_those_of_equal_score_are_paired():
    before = found((BOX, 0, 0.9), (BOX, 0, 0.7))
    assert fates(before, found((BOX, 0, 0.7)), 0.5) == (["lost", "kept"], ["kept"])


def test_overlapping_classes_do_not_swap_for_a_hair_of_iou():
    """Within a class the IoU is 98/100 and 97/99, across them it is 99/100 and 97/98."""
    before = found(((0, 0, 100, 9), 0, 0.8), ((0, 0, 97, 9), 1, 0.8))
    after = found(((0, 0, 98, 9), 0, 0.8), ((0, 0, 99, 9), 1, 0.8))
    assert fates(before, after, 0.5) == (["kept", "kept"], ["kept", "kept"])


def test_boxes_that_are_no_pair_do_not_lure_the_assignment():
    """a-x has IoU 75/125; a-y and b-x have 65/135 each, more in sum, and are no pairs."""
    a, b = (0, 0, 100, 9), (60, 0, 160, 9)
    x, y = (25, 0, 125, 9), (-35, 0, 65, 9)
    sides = found((a, 0, 0.9), (b, 0, 0.9)), found((x, 0, 0.9), (y, 0, 0.9))
    assert fates(*sides, 0.5) == (["moved", "lost"], ["moved", "gained"])


def test_a_box_without_area_is_kept_when_it_is_still_there():
    sides = [found(((5, 5, 5, 5), 0, 0.9), ((9, 9, 3, 3), 0, 0.8), ((0, 0, 1e9, 1e9), 0, 0.7))] * 2
    assert change(*sides, 0.5) == counts(1, kept=3)


def scene(rng, most=5):
    """A few boxes around one another, at scores none of which are equal."""
    n = int(rng.integers(0, most + 1))
    corner, sides = rng.uniform(0, 60, (n, 2)), rng.uniform(30, 90, (n, 2))
    return Detections(
        np.hstack([corner, corner + sides]), np.sort(rng.random(n))[::-1], rng.integers(0, 3, n)
    )


def shaken(rng, one):
    """The same boxes, moved a little, a few left out, and a few classes changed."""
    kept = rng.random(len(one)) < 0.85
    boxes = one.boxes + rng.normal(0, rng.choice([0.5, 3, 12]), one.boxes.shape)
    classes = np.where(rng.random(len(one)) < 0.8, one.classes, (one.classes + 1) % 3)
    scores = np.clip(one.scores + rng.normal(0, 0.1, len(one)), 0, 1)
    order = np.argsort(-scores, kind="stable")
    order = order[kept[order]]
    return Detections(boxes[order], scores[order], classes[order])


def plain_iou(a, b):
    """Two boxes x1, y1, x2, y2."""
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    common = max(width, 0) * max(height, 0)
    size = [(x2 - x1) * (y2 - y1) for x1, y1, x2, y2 in (a, b)]
    return common / (sum(size) - common) if sum(size) > common else 0


def best_by_trying_all(before, after):
    """The sorted fates of the best of all assignments, in plain Python."""
    n, m = len(before), len(after)
    best, winner = -1.0, []
    for columns in itertools.permutations([*range(m), *[None] * n], n):
        worth, words = 0.0, []
        for row, column in enumerate(columns):
            share = 0 if column is None else plain_iou(before.boxes[row], after.boxes[column])
            if share < 0.5:
                words.append("lost")
                continue
            same = before.classes[row] == after.classes[column]
            gap = abs(before.scores[row] - after.scores[column])
            worth += share + 0.05 * same - 1e-6 * gap
            fate = "rescored" if gap > 0.1 else "kept"
            words.append("relabelled" if not same else "moved" if share < 0.9 else fate)
        if worth > best:
            best, winner = worth, words
    return winner


seeds = st.integers(0, 2**32 - 1)


@settings(max_examples=80, deadline=None)
@given(seeds)
def test_pairs_are_the_best_of_all_assignments(seed):
    rng = np.random.default_rng(seed)
    before = scene(rng, most=4)
    after = shaken(rng, before)
    assert fates(before, after, -1)[0] == best_by_trying_all(before, after)


@settings(max_examples=100, deadline=None)
@given(seeds, st.sampled_from([0.0, 0.3, 0.6]))
def test_counts_add_up_and_swapped_sides_swap_lost_and_gained(seed, threshold):
    rng = np.random.default_rng(seed)
    before = scene(rng, most=12)
    after = shaken(rng, before)
    one, other = change(before, after, threshold), change(after, before, threshold)
    pairs = one["kept"] + one["moved"] + one["relabelled"] + one["rescored"]
    assert pairs + one["lost"] == (before.scores > threshold).sum()
    assert pairs + one["gained"] == (after.scores > threshold).sum()
    assert one["units"] == pairs + one["lost"] + one["gained"]
    assert (one["lost"], one["gained"]) == (other["gained"], other["lost"])
    for name in ("kept", "moved", "relabelled", "rescored"):
        assert one[name] == other[name]
    assert one["mean_iou"] == pytest.approx(other["mean_iou"])


@settings(max_examples=100, deadline=None)
@given(seeds, st.randoms(use_true_random=False))
def test_permuted_boxes_have_the_same_fates(seed, random):
    rng = np.random.default_rng(seed)
    before = scene(rng, most=8)
    after = shaken(rng, before)
    order = list(range(len(after)))
    random.shuffle(order)
    permuted = Detections(after.boxes[order], after.scores[order], after.classes[order])
    first, second = fates(before, after, 0.2)
    shown = [i for i in order if after.scores[i] > 0.2]
    assert fates(before, permuted, 0.2) == (first, [second[i] for i in shown])


@settings(max_examples=100, deadline=None)
@given(seeds, st.integers(1, 3))
def test_identical_detections_are_all_kept_even_where_boxes_repeat(seed, times):
    one = scene(np.random.default_rng(seed), most=8)
    boxes, scores = np.tile(one.boxes, (times, 1)), np.linspace(1, 0.3, times * len(one))
    one = Detections(boxes, scores, np.tile(one.classes, times))
    shown = int((scores > 0.5).sum())
    assert change(one, one, 0.5) == counts(1 if shown else None, kept=shown)
