"""Each way to decode a box against its formula in plain Python."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from detection_cards import ANCHORS, BOXES, RETINANET, center_size, distances, settings

from simulator.tasks.detection import heads

RANDOM = np.random.default_rng(0)
SIZE = (24, 40)
CELLS = [(row, column) for row in range(3) for column in range(5)]


def corners(cx, cy, w, h):
    """x1, y1, x2, y2."""
    return cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2


def sigmoid(x):
    """The logistic function."""
    return 1 / (1 + math.exp(-x))


def decoded(head, numbers, size=SIZE, asked=None, **fields):
    """All boxes of a head."""
    given = settings(head, size, asked, **fields)
    return heads.boxes(numbers, np.arange(len(numbers)), given)


def normal(rows, columns=4, scale=1.0):
    """Raw outputs."""
    return RANDOM.normal(0, scale, (rows, columns)).astype(np.float32)


def listing(boxes, deltas, anchor_offset, corner_offset, clamp=math.inf):
    """SysNoise's listing of a box decoder, line by line; both offsets are its one."""
    result = []
    for (x1, y1, x2, y2), (dx, dy, dw, dh) in zip(boxes, deltas, strict=True):
        widths = x2 - x1 + anchor_offset
        heights = y2 - y1 + anchor_offset
        ctr_x = x1 + 0.5 * widths
        ctr_y = y1 + 0.5 * heights
        pred_ctr_x = dx * widths + ctr_x
        pred_ctr_y = dy * heights + ctr_y
        pred_w = math.exp(min(dw, clamp)) * widths
        pred_h = math.exp(min(dh, clamp)) * heights
        result.append(
            (
                pred_ctr_x - 0.5 * pred_w,
                pred_ctr_y - 0.5 * pred_h,
                pred_ctr_x + 0.5 * pred_w - corner_offset,
                pred_ctr_y + 0.5 * pred_h - corner_offset,
            )
        )
    return result


def anchors(size):
    """(x1, y1, x2, y2) of one 16 x 8 anchor for each cell of stride 8."""
    rows, columns = size[0] // 8, size[1] // 8
    centers = [(8 * c + 4, 8 * r + 4) for r in range(rows) for c in range(columns)]
    return [(x - 8, y - 4, x + 8, y + 4) for x, y in centers]


@pytest.mark.parametrize("corner", [0, 1])
@pytest.mark.parametrize("anchor", [0, 1])
@pytest.mark.parametrize("clamp", [math.inf, 0.5])
def test_anchor_boxes_follow_the_listing(anchor, corner, clamp):
    """Each of the two places of the offset on its own, and both."""
    deltas = normal(15)
    asked = {"box_offset": {"anchors": anchor, "corners": corner}}
    asked["exp_clamp"] = "none" if clamp == math.inf else clamp
    expected = listing(anchors(SIZE), deltas.tolist(), anchor, corner, clamp)
    got = decoded(ANCHORS, deltas, asked=asked)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-4)


def test_an_anchor_worked_on_paper():
    """Anchor (-4, 0, 12, 8), deltas 0.5, 0, ln 2, 0: center 4 + 0.5 * 16 = 12, width 32."""
    deltas = np.array([[0.5, 0, math.log(2), 0]], np.float32)
    assert decoded(ANCHORS, deltas, (8, 8)).tolist() == [[-4, 0, 28, 8]]
    asked = {"box_offset": {"anchors": 1, "corners": 1}}
    # 17 x 9 around (4.5, 4.5): center 13, width 34, less 1 at the end
    assert decoded(ANCHORS, deltas, (8, 8), asked).tolist() == [[-4, 0, 29, 8]]


@pytest.mark.parametrize(
    ("code", "scale", "shift"),
    [
        ({"weights": [10, 10, 5, 5]}, (0.1, 0.1, 0.2, 0.2), (0, 0, 0, 0)),
        (
            {"means": [0.1, 0, 0, -0.2], "stds": [0.1, 0.1, 0.2, 0.2]},
            (0.1, 0.1, 0.2, 0.2),
            (0.1, 0, 0, -0.2),
        ),
    ],
)
@pytest.mark.parametrize("order", ["xywh", "yxhw"])
def test_weights_divide_and_means_and_stds_restore(code, scale, shift, order):
    """BoxCoder: dx / wx (torchvision); delta * std + mean (MMDetection); ty, tx, th, tw (TF)."""
    deltas = normal(15)
    plain = [[d * s + m for d, s, m in zip(row, scale, shift, strict=True)] for row in deltas]
    expected = listing(anchors(SIZE), plain, 0, 0)
    if order == "yxhw":
        deltas = deltas[:, [1, 0, 3, 2]]
        code = {k: [v[1], v[0], v[3], v[2]] for k, v in code.items()}
    got = decoded({**ANCHORS, "deltas": {**code, "order": order}}, deltas)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-4)


def test_only_the_rows_that_are_asked_for_are_decoded():
    """Rows 2 and 9 alone are what they are among all."""
    deltas = normal(15)
    given = settings(ANCHORS, SIZE)
    rows = np.array([2, 9])
    got = heads.boxes(deltas[rows], rows, given)
    assert got.tolist() == decoded(ANCHORS, deltas)[rows].tolist()


def test_anchors_of_several_levels_line_up_with_their_rows():
    """With deltas of 0, the box of a row is the anchor: the last is the center of the last cell."""
    got = decoded(RETINANET, np.zeros((24570, 4), np.float32), (320, 416))
    middle = (got[-1, :2] + got[-1, 2:]) / 2
    assert middle.tolist() == pytest.approx([12.5 * 32, 9.5 * 32], rel=1e-6)
    assert got[-1, 2] - got[-1, 0] == pytest.approx(96 * 2 ** (2 / 3) / math.sqrt(4 / 3))


def test_yolox():
    """(xy + grid) * stride, exp(wh) * stride (YOLOX, ``demo_postprocess``)."""
    head = center_size({"activation": "none"}, {"activation": "exp", "unit": "stride"})
    raw = normal(15)
    expected = []
    for (row, column), (x, y, w, h) in zip(CELLS, raw.tolist(), strict=True):
        center = (x + column) * 8, (y + row) * 8
        expected.append(corners(*center, math.exp(w) * 8, math.exp(h) * 8))
    np.testing.assert_allclose(decoded(head, raw), expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("order", ["cells_anchors", "anchors_cells"])
@pytest.mark.parametrize("version", [3, 5])
def test_yolo_v3_and_v5(version, order):
    """v3: (σ + grid) * s, a * exp; v5: (2 σ - 0.5 + grid) * s, a * (2 σ)²."""
    shapes = [[10, 13], [16, 30]]
    if version == 3:
        center, size = {"activation": "sigmoid"}, {"activation": "exp"}
    else:
        center = {"activation": "sigmoid", "gain": 2, "shift": -0.5}
        size = {"activation": "sigmoid", "gain": 2, "power": 2}
    head = center_size(
        center, {**size, "unit": "anchor"}, anchors={"kind": "shapes", "shapes": [shapes]},
        order=order,
    )  # fmt: skip
    raw = normal(30)
    where = [(cell, a) for cell in CELLS for a in shapes]
    if order == "anchors_cells":
        where = [(cell, a) for a in shapes for cell in CELLS]
    expected = []
    for ((row, column), (aw, ah)), (x, y, w, h) in zip(where, raw.tolist(), strict=True):
        if version == 3:
            center = (sigmoid(x) + column) * 8, (sigmoid(y) + row) * 8
            size = aw * math.exp(w), ah * math.exp(h)
        else:
            center = (2 * sigmoid(x) - 0.5 + column) * 8, (2 * sigmoid(y) - 0.5 + row) * 8
            size = aw * (2 * sigmoid(w)) ** 2, ah * (2 * sigmoid(h)) ** 2
        expected.append(corners(*center, *size))
    np.testing.assert_allclose(decoded(head, raw), expected, rtol=1e-5, atol=1e-4)


def test_fastestdet():
    """cx = (gx + tanh) / columns * W, w = sigmoid * W (FastestDet, ``handle_preds``)."""
    head = center_size({"activation": "tanh"}, {"activation": "sigmoid", "unit": "image"})
    raw = normal(15)
    expected = []
    for (row, column), (x, y, w, h) in zip(CELLS, raw.tolist(), strict=True):
        center = (column + math.tanh(x)) / 5 * 40, (row + math.tanh(y)) / 3 * 24
        expected.append(corners(*center, sigmoid(w) * 40, sigmoid(h) * 24))
    np.testing.assert_allclose(decoded(head, raw), expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    ("activation", "function"),
    [("none", lambda x: x), ("relu", lambda x: max(x, 0)), ("exp", math.exp)],
)
@pytest.mark.parametrize(("unit", "scale"), [("stride", 8), ("pixel", 1)])
def test_fcos(activation, function, unit, scale):
    """left, top, right and bottom distances from the middle of the cell."""
    raw = normal(15)
    expected = []
    for (row, column), sides in zip(CELLS, raw.tolist(), strict=True):
        x, y = (column + 0.5) * 8, (row + 0.5) * 8
        left, top, right, bottom = (function(t) * scale for t in sides)
        expected.append((x - left, y - top, x + right, y + bottom))
    got = decoded(distances(activation=activation, unit=unit), raw)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-4)


def test_distribution_focal_distances():
    """A side is the mean of a softmax over its bins, times the stride (YOLOv8, ``DFL``)."""
    bins = 5
    raw = normal(15, 4 * bins, 3.0)
    expected = []
    for (row, column), t in zip(CELLS, raw.tolist(), strict=True):
        far = []
        for side in range(4):
            powers = [math.exp(v) for v in t[side * bins : (side + 1) * bins]]
            far.append(8 * sum(i * p for i, p in enumerate(powers)) / sum(powers))
        x, y = (column + 0.5) * 8, (row + 0.5) * 8
        expected.append((x - far[0], y - far[1], x + far[2], y + far[3]))
    got = decoded(distances(activation="distribution", bins=bins), raw)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    ("format", "numbers"),
    [
        ("xyxy", [2, 4, 10, 20]),
        ("yxyx", [4, 2, 20, 10]),
        ("cxcywh", [6, 12, 8, 16]),
        ("xywh", [2, 4, 8, 16]),
    ],
)
@pytest.mark.parametrize("unit", ["pixel", "image"])
def test_boxes_that_the_model_has_decoded(format, numbers, unit):
    """(2, 4) to (10, 20) of a network 40 wide and 20 high, in pixels or as a share of them."""
    sides = {"xyxy": [40, 20, 40, 20], "yxyx": [20, 40, 20, 40]}.get(format, [40, 20, 40, 20])
    raw = np.array([numbers], np.float32)
    if unit == "image":
        raw = raw / np.array(sides, np.float32)
    got = decoded({**BOXES, "format": format, "unit": unit}, raw, (20, 40))
    np.testing.assert_allclose(got, [[2, 4, 10, 20]], rtol=1e-6)


def test_the_corner_offset_does_not_touch_corners_that_the_model_gave():
    """It is part of decoding: from a width or a distance the end is 1 less, a given end stays."""
    raw = np.array([[2, 4, 8, 16]], np.float32)
    asked = {"box_offset": {"corners": 1}}
    assert decoded({**BOXES, "format": "xywh"}, raw, asked=asked).tolist() == [[2, 4, 9, 19]]
    assert decoded(BOXES, raw, asked=asked).tolist() == [[2, 4, 8, 16]]
    sides = np.array([[1, 2, 3, 4]], np.float32)  # from the middle of a cell of 8: 4, 4
    head = distances(activation="none", unit="pixel")
    assert decoded(head, sides, (8, 8), asked).tolist() == [[3, 2, 6, 7]]


def test_half_precision_is_that_of_ieee_754():
    """Coordinates go through binary16 as Python's struct rounds them."""
    raw = [[1025.3, 2.1, 2049.0, 2050.9]]
    expected = [[struct.unpack("e", struct.pack("e", v))[0] for v in raw[0]]]
    got = decoded(BOXES, np.array(raw, np.float32), asked={"box_precision": "fp16"})
    assert got.dtype == np.float16
    assert got.tolist() == expected == [[1025.0, 2.099609375, 2048.0, 2050.0]]


def test_half_precision_rounds_every_step():
    """Anchor and delta as binary16, and each sum and product rounded to it again."""

    def half(x):
        return struct.unpack("e", struct.pack("e", x))[0]

    dx = half(0.3337)
    center = half(half(dx * 16) + 788.0)
    deltas = np.zeros((99, 4), np.float32)
    deltas[-1, 0] = 0.3337
    got = decoded(ANCHORS, deltas, (8, 792), {"box_precision": "fp16"})
    assert got[-1].tolist() == [half(center - 8), 0, half(center + 8), 8]


def test_what_does_not_fit_half_precision_is_infinite_and_warns_nobody():
    """exp(12) is 162754, and binary16 ends at 65504; with the clamp it fits."""
    deltas = np.array([[0, 0, 12, 0]], np.float32)
    asked = {"box_precision": "fp16"}
    with np.errstate(all="ignore"):
        assert np.isinf(decoded(ANCHORS, deltas, (8, 8), asked)[0, 2])
    clamped = decoded(ANCHORS, deltas, (8, 8), {**asked, "exp_clamp": math.log(1000 / 16)})
    assert clamped[0, 2] == pytest.approx(4 + 8 * 62.5, rel=2e-3)
