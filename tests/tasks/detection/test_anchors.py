"""Anchors and cells against published numbers and plain Python."""

from __future__ import annotations

import math

import numpy as np
import pytest
from detection_cards import ANCHORS, RETINANET, center_size, output

from simulator.tasks.detection.declared import RatioAnchors
from simulator.tasks.detection.grids import cells, counts, lattice, sizes


def total(head, network):
    """How many boxes a head has."""
    given = output(head).head
    grids = zip(cells(given, network), counts(given), strict=True)
    return sum(rows * columns * each for (rows, columns), each in grids)


def test_the_first_anchors_of_torchvision():
    """Size 32 at the ratios 1/2, 1 and 2 (AnchorGenerator.generate_anchors, rounded)."""
    rule = RatioAnchors(
        kind="ratios", sizes=[[32]], ratios=[0.5, 1, 2], outer="ratios", rounding="nearest"
    )
    assert sizes(rule)[0].tolist() == [[-23, -11, 23, 11], [-16, -16, 16, 16], [-11, -23, 11, 23]]


@pytest.mark.parametrize("outer", ["ratios", "sizes"])
def test_the_order_of_sizes_scales_and_ratios(outer):
    """A list of (width, height), by plain loops in the order that is asked for."""
    rule = RatioAnchors(
        kind="ratios", sizes=[[10, 30]], scales=[1, 2], ratios=[0.25, 4], outer=outer,
        rounding="none",
    )  # fmt: skip
    pairs = [(s * z, r) for s in (10, 30) for z in (1, 2) for r in (0.25, 4)]
    if outer == "ratios":
        pairs = [(s * z, r) for r in (0.25, 4) for s in (10, 30) for z in (1, 2)]
    expected = [(s / math.sqrt(r), s * math.sqrt(r)) for s, r in pairs]
    got = sizes(rule)[0]
    np.testing.assert_allclose(got[:, 2:] - got[:, :2], expected, rtol=1e-12)


def test_the_anchors_of_a_retinanet_card_by_its_text():
    """Level, row, column, ratio, scale; x1 = cx - w / 2 (shared/data/models/bccd_retinanet.md)."""
    expected = []
    for stride, base in ((8, 20), (16, 48), (32, 96)):
        for row in range(math.ceil(316 / stride)):
            for column in range(math.ceil(412 / stride)):
                cx, cy = (column + 0.5) * stride, (row + 0.5) * stride
                for r in (0.75, 1, 4 / 3):
                    for z in (1, 2 ** (1 / 3), 2 ** (2 / 3)):
                        w, h = base * z / math.sqrt(r), base * z * math.sqrt(r)
                        expected.append((cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2))
    where = lattice(output(RETINANET).head, (316, 412))
    center = (where.cell + 0.5) * where.stride
    got = np.concatenate([center + where.low, center + where.high], axis=1)
    assert len(got) == 24570
    np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_numbers_of_boxes_that_papers_and_projects_state():
    """SSD300 has 8732, YOLOv5 at 640 has 25200, YOLOX at 416 has 3549."""
    each = [4, 6, 6, 6, 4, 4]
    ssd = {**ANCHORS, "strides": [8, 16, 32, 64, 100, 300],
           "anchors": {"kind": "shapes", "shapes": [[[9, 9]] * n for n in each]}}  # fmt: skip
    assert total(ssd, (300, 300)) == 8732
    yolov5 = center_size(
        {"activation": "sigmoid"}, {"activation": "sigmoid", "unit": "anchor"},
        strides=[8, 16, 32], anchors={"kind": "shapes", "shapes": [[[9, 9]] * 3] * 3},
    )  # fmt: skip
    assert total(yolov5, (640, 640)) == 25200
    yolox = center_size(
        {"activation": "none"}, {"activation": "exp", "unit": "stride"}, strides=[8, 16, 32]
    )
    assert total(yolox, (416, 416)) == 3549


@pytest.mark.parametrize(
    ("given", "expected"), [("ceil", (3, 4)), ("floor", (2, 3)), ([[5, 6]], (5, 6))]
)
def test_grids_are_rounded_as_declared_or_given(given, expected):
    """20 x 28 pixels at a stride of 8 are 2.5 x 3.5 cells."""
    assert cells(output({**ANCHORS, "cells": given}).head, (20, 28)) == [expected]


def test_a_stride_may_differ_between_y_and_x():
    """The cell in row 1, column 2 of strides 10 (y) and 20 (x) begins at (40, 10)."""
    where = lattice(output({**ANCHORS, "strides": [[10, 20]]}).head, (20, 60))
    assert (where.cell * where.stride).tolist()[5] == [40, 10]


def test_the_order_of_cells_and_anchors():
    """Two anchors on one row of two cells: a cell's anchors, or an anchor's cells, together."""
    shapes = {"kind": "shapes", "shapes": [[[2, 2], [4, 4]]]}
    near = lattice(output({**ANCHORS, "anchors": shapes}).head, (8, 16))
    far = lattice(output({**ANCHORS, "anchors": shapes, "order": "anchors_cells"}).head, (8, 16))
    assert near.cell[:, 0].tolist() == [0, 0, 1, 1]
    assert near.high[:, 0].tolist() == [1, 2, 1, 2]
    assert far.cell[:, 0].tolist() == [0, 1, 0, 1]
    assert far.high[:, 0].tolist() == [1, 1, 2, 2]
