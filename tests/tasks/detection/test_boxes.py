"""Overlaps of boxes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.tasks.detection.boxes import Detections, areas, iou, xywh

CORNER = st.integers(-20, 20)
BOXES = st.lists(st.tuples(CORNER, CORNER, CORNER, CORNER), max_size=6)


def pixels(box):
    """The unit squares that a box of whole numbers covers."""
    x1, y1, x2, y2 = box
    return {(x, y) for x in range(x1, x2) for y in range(y1, y2)}


@given(BOXES, BOXES)
def test_the_overlap_is_counted_in_unit_squares(a, b):
    """IoU of boxes on whole numbers is that of the sets of squares they cover."""
    got = iou(np.array(a, float).reshape(-1, 4), np.array(b, float).reshape(-1, 4))
    assert got.shape == (len(a), len(b))
    for i, one in enumerate(map(pixels, a)):
        for j, other in enumerate(map(pixels, b)):
            expected = len(one & other) / len(one | other) if one | other else 0.0
            assert got[i, j] == expected


@pytest.mark.parametrize(("offset", "expected"), [(0, 16), (1, 25)])
def test_an_offset_of_one_counts_both_end_pixels(offset, expected):
    """A box 0..4 is 4 by 4, or the pixels 0 to 4; nms.py's overlaps are tried in test_nms.py."""
    assert areas(np.array([[0.0, 0, 4, 4]]), offset)[0] == expected


def test_a_box_without_area_overlaps_nothing_and_gives_no_nan():
    """A point on itself is 0."""
    point = np.array([[3.0, 3, 3, 3]])
    assert iou(point, point)[0, 0] == 0


def test_xywh_has_no_plus_one():
    """COCO's width is x2 - x1."""
    assert xywh(np.array([[1.0, 2, 4, 8]])).tolist() == [[1, 2, 3, 6]]


def test_detections_above_a_threshold_are_strictly_above():
    """A score of exactly the threshold is left out."""
    found = Detections(np.arange(8.0).reshape(2, 4), np.array([0.7, 0.5]), np.array([3, 4]))
    above = found.above(0.5)
    assert (len(above), above.classes.tolist(), above.boxes.tolist()) == (1, [3], [[0, 1, 2, 3]])
