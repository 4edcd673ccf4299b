"""Suppression against plain Python."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.tasks.detection.nms import suppress
from simulator.tasks.detection.settings import Suppression

BOX = st.tuples(*[st.integers(0, 12)] * 2, *[st.integers(0, 9)] * 2)
ITEMS = st.lists(st.tuples(BOX, st.sampled_from([0.1, 0.2, 0.5, 0.9]), st.integers(0, 2)))


def rule(kind="greedy", threshold=0.5, aware=True, offset=0, sigma=0.5, score=0.0, k=(None, None)):
    """A suppression, by position what matters most."""
    return Suppression(kind, threshold, aware, offset, sigma, score, *k)


def arrays(items):
    """Sorted boxes, scores and classes of (x, y, w, h), score, class."""
    items = sorted(items, key=lambda item: -item[1])
    boxes = [(x, y, x + w, y + h) for (x, y, w, h), _, _ in items]
    return (
        np.array(boxes, float).reshape(-1, 4),
        np.array([s for _, s, _ in items], float),
        np.array([c for _, _, c in items], np.int64),
    )


def overlap(a, b, offset):
    """IoU in plain Python."""
    w = max(0, min(a[2], b[2]) - max(a[0], b[0]) + offset)
    h = max(0, min(a[3], b[3]) - max(a[1], b[1]) + offset)
    area = [(p[2] - p[0] + offset) * (p[3] - p[1] + offset) for p in (a, b)]
    union = area[0] + area[1] - w * h
    return w * h / union if union > 0 else 0.0


@given(ITEMS, st.sampled_from([0.0, 0.25, 1 / 3, 0.5, 1.0]), st.booleans(), st.integers(0, 1))
def test_greedy_is_the_plain_loop(items, threshold, aware, offset):
    """A box stays if no better box that stays overlaps it by more than the threshold."""
    boxes, scores, classes = arrays(items)
    kept = []
    for i in range(len(boxes)):
        rivals = [j for j in kept if not aware or classes[i] == classes[j]]
        if all(overlap(boxes[i], boxes[j], offset) <= threshold for j in rivals):
            kept.append(i)
    index, left = suppress(boxes, scores, classes, rule("greedy", threshold, aware, offset))
    assert index.tolist() == kept
    assert left.tolist() == scores[kept].tolist()


@given(ITEMS, st.sampled_from(["soft_linear", "soft_gaussian"]), st.integers(0, 1))
def test_soft_nms_is_the_paper_s_pseudo_code(items, kind, offset):
    """While B: take the best b_m, then s_i <- s_i f(iou(M, b_i)) (Bodla et al., figure 2)."""
    boxes, scores, classes = arrays(items)
    least, threshold, sigma = 0.15, 0.3, 0.5
    b = {i: s for i, s in enumerate(scores.tolist()) if s > least}
    d = []
    while b:
        m = max(b, key=lambda i: (b[i], -i))
        d.append((m, b.pop(m)))
        for i in list(b):
            u = overlap(boxes[m], boxes[i], offset)
            if kind == "soft_gaussian":
                b[i] *= math.exp(-u * u / sigma)
            elif u > threshold:
                b[i] *= 1 - u
            if b[i] <= least:
                del b[i]
    chosen = rule(kind, threshold, False, offset, sigma, least)
    index, left = suppress(boxes, scores, classes, chosen)
    np.testing.assert_allclose(left, [s for _, s in d], rtol=1e-12)
    assert sorted(index.tolist()) == sorted(i for i, _ in d)


def test_soft_nms_lowers_only_boxes_of_the_same_class_where_it_is_aware():
    """The second of two equal boxes keeps its score in a class of its own."""
    boxes, scores = np.array([[0.0, 0, 8, 8]] * 3), np.array([0.9, 0.8, 0.7])
    index, left = suppress(boxes, scores, np.array([0, 1, 0]), rule("soft_gaussian", sigma=1.0))
    assert index.tolist() == [0, 1, 2]
    assert left == pytest.approx([0.9, 0.8, 0.7 * math.exp(-1)])


def test_soft_nms_can_change_the_order():
    """Worked on paper: IoU 60 / 100 makes 0.8 of the second 0.8 * 0.4 = 0.32, below 0.5."""
    boxes = np.array([[0.0, 0, 10, 8], [0, 2, 10, 10], [50, 50, 60, 60]])
    scores, classes = np.array([0.9, 0.8, 0.5]), np.zeros(3, np.int64)
    index, left = suppress(boxes, scores, classes, rule("soft_linear"))
    assert index.tolist() == [0, 2, 1]
    assert left == pytest.approx([0.9, 0.5, 0.32])


def test_an_overlap_of_exactly_the_threshold_is_kept():
    """Halves of IoU 0.5: suppressed only by a threshold below it."""
    boxes = np.array([[0.0, 0, 4, 4], [0, 0, 4, 2]])
    scores, classes = np.array([0.9, 0.8]), np.zeros(2, np.int64)
    assert len(suppress(boxes, scores, classes, rule(threshold=0.5))[0]) == 2
    assert len(suppress(boxes, scores, classes, rule(threshold=0.49))[0]) == 1


def test_the_offset_decides_a_close_case():
    """0..4 and 0..3 wide: 3 / 4 without, 4 / 5 with +1 (heights are equal)."""
    boxes = np.array([[0.0, 0, 4, 9], [0, 0, 3, 9]])
    scores, classes = np.array([0.9, 0.8]), np.zeros(2, np.int64)
    assert len(suppress(boxes, scores, classes, rule(threshold=0.77, offset=0))[0]) == 2
    assert len(suppress(boxes, scores, classes, rule(threshold=0.77, offset=1))[0]) == 1


def test_top_k_before_and_after():
    """Of four apart boxes the best three go in, and the best two come out."""
    boxes = np.array([[10.0 * i, 0, 10 * i + 5, 5] for i in range(4)])
    scores, classes = np.array([0.9, 0.8, 0.7, 0.6]), np.arange(4)
    assert suppress(boxes, scores, classes, rule(k=(3, None)))[0].tolist() == [0, 1, 2]
    assert suppress(boxes, scores, classes, rule(k=(3, 2)))[0].tolist() == [0, 1]


@given(ITEMS, st.sampled_from(["none", "greedy"]), st.integers(1, 3), st.integers(1, 4))
def test_top_k_of_each_class(items, kind, each, of_all):
    """Gst-nvinfer's topk: of what NMS left, a class keeps its best; then the image's limit."""
    boxes, scores, classes = arrays(items)
    left = suppress(boxes, scores, classes, rule(kind))[0].tolist()
    wanted, seen = [], {}
    for i in left:
        seen[classes[i]] = seen.get(classes[i], 0) + 1
        if seen[classes[i]] <= each:
            wanted.append(i)

    limited = replace(rule(kind, k=(None, of_all)), class_top_k_after=each)

    assert suppress(boxes, scores, classes, limited)[0].tolist() == wanted[:of_all]


def test_no_boxes_are_no_boxes():
    """Every kind takes an empty input."""
    for kind in ("none", "greedy", "soft_linear", "soft_gaussian"):
        empty = np.zeros((0, 4)), np.zeros(0), np.zeros(0, np.int64)
        assert [len(part) for part in suppress(*empty, rule(kind))] == [0, 0]


OWN = st.fixed_dictionaries(
    {},
    optional={
        "iou_threshold": st.sampled_from([0.0, 0.25, 1.0]),
        "score_threshold": st.sampled_from([0.15, 0.5, 1.0]),
        "class_top_k_after": st.sampled_from([1, 2, None]),
    },
)


@given(ITEMS, st.dictionaries(st.integers(0, 2), OWN))
def test_thresholds_of_single_classes_are_those_of_each_class_run_alone(items, classes):
    """With class_aware each class is a problem of its own, with its own three numbers."""
    boxes, scores, labels = arrays(items)
    general = replace(rule("greedy", 0.5, score=0.1), class_top_k_after=3)
    kept = []
    for label in range(3):
        own = replace(general, **classes.get(label, {}))
        (mine,) = np.nonzero(labels == label)
        index, _ = suppress(boxes[mine], scores[mine], labels[mine], own)
        kept += mine[index].tolist()

    index, left = suppress(boxes, scores, labels, replace(general, classes=classes))

    assert index.tolist() == sorted(kept)
    assert left.tolist() == scores[sorted(kept)].tolist()


def test_a_softened_score_ends_at_the_threshold_of_its_class():
    """Two pairs of equal boxes; the second of each is softened to 0.8 / e = 0.29, of 0 and 0.5."""
    boxes = np.array([[0, 0, 9, 9]] * 4, float)
    scores, labels = np.array([0.9, 0.9, 0.8, 0.8]), np.array([0, 1, 0, 1])
    soft = replace(rule("soft_gaussian", sigma=1.0), classes={1: {"score_threshold": 0.5}})

    index, left = suppress(boxes, scores, labels, soft)

    assert index.tolist() == [0, 1, 2]
    assert left.tolist() == pytest.approx([0.9, 0.9, 0.8 * math.exp(-1)])
