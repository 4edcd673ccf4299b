"""The whole way from outputs to boxes in the image."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from detection_cards import (
    ANCHORS,
    APART,
    BOXES,
    FINAL,
    RETINANET,
    SCORE,
    center_size,
    settings,
    whole,
)
from hypothesis import given
from hypothesis import strategies as st

from simulator.errors import ModelError, NotFinite, SampleError
from simulator.modalities.image.cropping import Cut
from simulator.modalities.image.geometry import Geometry, Placement
from simulator.tasks.detection.declared import Score
from simulator.tasks.detection.decode import decode
from simulator.tasks.detection.scores import candidates


def found(boxes, scores, head=BOXES, size=(20, 40), place=None, asked=None, **fields):
    """Decode boxes (n, 4) with scores (n, C)."""
    scores = np.array(scores, np.float32)
    outputs = {"boxes": np.array(boxes, np.float32)[None], "scores": scores[None]}
    given = settings(head, size, asked, **fields)
    return decode(outputs, given, place or whole(*size), scores.shape[1])


def test_each_class_of_a_box_is_a_detection_of_its_own_or_only_the_best():
    """Two classes above 0.1: two detections, best first; with ``best`` one."""
    box, scores = [[1, 2, 3, 4]], [[0.2, 0.05, 0.7]]
    every = found(box, scores, nms={"score_threshold": 0.1})
    assert every.classes.tolist() == [2, 0]
    assert every.scores.tolist() == pytest.approx([0.7, 0.2])
    assert every.boxes.tolist() == [[1, 2, 3, 4]] * 2
    best = found(box, scores, {**BOXES, "score": {**SCORE, "classes": "best"}})
    assert best.classes.tolist() == [2]


def plain_scores(values, activation, background):
    """Scores of one box, in plain Python."""
    if activation == "sigmoid":
        values = [1 / (1 + math.exp(-v)) for v in values]
    if activation == "softmax":
        powers = [math.exp(v - max(values)) for v in values]
        values = [p / sum(powers) for p in powers]
    return {"none": values, "first": values[1:], "last": values[:-1]}[background]


def plain_factor(value, rule):
    """Objectness to its power, in plain Python; a rule is (activation, exponent) or None."""
    if rule is None:
        return 1.0
    value = 1 / (1 + math.exp(-value)) if rule[0] == "sigmoid" else value
    return value if rule[1] == 1 else max(value, 0) ** rule[1]


def test_a_class_has_its_own_score_threshold():
    """0.3 for all, 0.1 and 1 for two classes: the lower one is kept, the highest drops all."""
    box, scores = [[1, 2, 3, 4]], [[0.2, 0.2, 0.99]]
    classes = {"1": {"score_threshold": 0.1}, "2": {"score_threshold": 1.0}}
    some = found(box, scores, asked={"nms": {"score_threshold": 0.3, "classes": classes}})
    assert some.classes.tolist() == [1]
    rows = np.array([[[1, 2, 3, 4, 0.2, 0], [1, 2, 3, 4, 0.2, 1]]], np.float32)
    given = settings(FINAL, (20, 40), {"nms": {"score_threshold": 0.3, "classes": classes}})
    assert decode({"found": rows}, given, whole(20, 40), 3).classes.tolist() == [1]


@pytest.mark.parametrize(
    ("sizes", "kept"),
    [
        ({"min_width": 4.0}, [[0, 0, 4, 8], [0, 0, 10, 2]]),
        ({"min_width": 4.0001}, [[0, 0, 10, 2]]),
        ({"max_width": 4.0}, [[0, 0, 2, 9], [0, 0, 4, 8]]),
        ({"min_height": 8.0, "max_height": 8.5}, [[0, 0, 4, 8]]),
        ({"min_height": 9.0, "classes": {"0": {"min_height": 2.0}}},
         [[0, 0, 2, 9], [0, 0, 4, 8], [0, 0, 10, 2]]),
        ({"max_height": 1.0, "classes": {"0": {"max_height": "none"}}},
         [[0, 0, 2, 9], [0, 0, 4, 8], [0, 0, 10, 2]]),
        ({"classes": {"1": {"min_width": 90.0}}}, [[0, 0, 2, 9], [0, 0, 4, 8], [0, 0, 10, 2]]),
    ],
)  # fmt: skip
def test_boxes_of_the_image_that_are_too_small_or_too_large_are_dropped(sizes, kept):
    """attach_metadata_detector of Gst-nvinfer: after scaling; a side that is equal is kept."""
    raw = np.array([[0, 0, 2, 9], [0, 0, 4, 8], [0, 0, 10, 2]]) / 2
    place = Geometry(kind="squash", height=20, width=20).placement((40, 40), (20, 20))
    some = found(raw, [[0.9], [0.8], [0.7]], size=(20, 20), place=place, asked={"nms": sizes})
    assert some.boxes.tolist() == kept


def test_an_upright_image_s_sides_are_measured():
    """A phone's picture on its side: what the network sees as 8 wide is 8 high in the file."""
    place = replace(whole(20, 20), orientation=6)
    asked = {"nms": {"min_width": 8.0}}
    some = found([[0, 0, 8, 4], [0, 0, 4, 8]], [[0.9], [0.8]], size=(20, 20), place=place,
                 asked=asked)  # fmt: skip
    sides = (some.boxes[:, 2:] - some.boxes[:, :2]).tolist()
    assert sides == [[4, 8]]


@pytest.mark.parametrize(
    ("nms", "problem"),
    [
        ({"classes": {"3": {"min_width": 1.0}}}, "nms.classes.3: the model card has 3 labels"),
        ({"kind": "greedy", "class_aware": False, "classes": {"1": {"iou_threshold": 0.2}}},
         "nms.classes.1.iou_threshold: boxes of other classes are suppressed too"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_of_a_class(nms, problem):
    with pytest.raises(ModelError, match=problem):
        settings(BOXES, (20, 40), {"nms": nms})


def test_a_card_may_have_thresholds_of_classes_and_a_profile_replaces_them():
    nms = {"classes": {"1": {"score_threshold": 0.5}}}
    assert settings(BOXES, (8, 8), nms=nms).nms.classes == {1: {"score_threshold": 0.5}}
    assert settings(BOXES, (8, 8), {"nms": {"classes": {}}}, nms=nms).nms.classes == {}


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.3, 3]),
    st.sampled_from(["sigmoid", "softmax", "none"]),
    st.sampled_from(["none", "first", "last"]),
    st.sampled_from(["all", "best"]),
    st.sampled_from([None, ("sigmoid", 0.6), ("sigmoid", 1), ("none", 2)]),
    st.sampled_from([0.0, 0.01, 0.3, 0.5, 0.999]),
    st.sampled_from([1, 0.4]),
)
def test_candidates_are_those_of_computing_every_score(
    seed, scale, activation, background, choice, factor, threshold, exponent
):
    """What is dropped early is what a plain loop over all scores drops."""
    random = np.random.default_rng(seed)
    raw = random.normal(0, scale, (40, 4)).astype(np.float32)
    objectness = random.normal(0, scale, (40, 1)).astype(np.float32)
    rule = {"activation": activation, "background": background, "classes": choice}
    if factor:
        rule["objectness"] = {"activation": factor[0], "exponent": factor[1]}
    score = Score.model_validate({**rule, "exponent": exponent})
    expected = {}
    for row, values in enumerate(raw.astype(float).tolist()):
        own = plain_factor(float(objectness[row, 0]), factor)
        scores = plain_scores(values, activation, background)
        best = max(range(len(scores)), key=lambda c: (scores[c], -c))
        for c, v in enumerate(scores):
            product = own * (v if exponent == 1 else max(v, 0) ** exponent)
            if product > threshold and (choice == "all" or c == best):
                expected[row, c] = product
    rows, classes, scores = candidates(raw, objectness if factor else None, score, threshold)
    got = dict(zip(zip(rows.tolist(), classes.tolist(), strict=True), scores, strict=True))
    # a score within a rounding of the threshold may fall on either side
    close = {k for k in {*got, *expected} if abs(got.get(k, expected.get(k)) - threshold) < 1e-12}
    assert set(got) - close == set(expected) - close
    for key in set(got) & set(expected):
        assert got[key] == pytest.approx(expected[key], rel=1e-9)


def test_a_score_of_exactly_the_threshold_is_dropped():
    """sigmoid(0) is 0.5, and so is the threshold."""
    head = {**BOXES, "score": {**SCORE, "activation": "sigmoid"}}
    some = found([[1, 2, 3, 4]] * 2, [[0.0], [1e-6]], head, nms={"score_threshold": 0.5})
    assert len(some) == 1


@pytest.mark.parametrize(
    ("activation", "value", "threshold"),
    [
        ("none", 0.3, 0.3),  # as float32: 0.30000001192
        ("sigmoid", -4.5951195, 0.01),  # the logarithm of 1 / 99 is -4.5951199
        ("sigmoid", 6.90675477, 0.999),
    ],
)
def test_a_score_just_above_the_threshold_is_kept(activation, value, threshold):
    """And is not where the threshold is the score itself, nor the next number below it."""
    score = Score.model_validate({**SCORE, "activation": activation})
    raw = np.array([[value]], np.float32)
    low = np.nextafter(raw, np.float32(-9), dtype=np.float32)
    wide = raw.astype(float)
    exact = 1 / (1 + math.exp(-wide.item())) if activation == "sigmoid" else wide.item()
    assert exact > threshold
    assert len(candidates(raw, None, score, threshold)[0]) == 1
    assert len(candidates(raw, None, score, exact)[0]) == 0
    assert len(candidates(low, None, score, exact)[0]) == 0


def test_a_softmax_that_is_almost_sure_is_above_a_high_threshold():
    """1 / (1 + exp(-18)) is 0.99999998."""
    score = Score.model_validate({**SCORE, "activation": "softmax"})
    rows, classes, _ = candidates(np.array([[9, -9]], np.float32), None, score, 0.999)
    assert (rows.tolist(), classes.tolist()) == ([0], [0])


def test_equal_scores_come_in_the_order_of_the_output():
    """Ninety of one score, apart from each other, after one that is better."""
    boxes = [[10 * i, 0, 10 * i + 5, 5] for i in range(91)]
    some = found(boxes, [[0.5]] * 90 + [[0.9]], size=(20, 910), nms={"kind": "greedy"})
    assert some.boxes[:, 0].tolist() == [900, *range(0, 900, 10)]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("where", ["boxes", "scores"])
def test_nan_and_infinity_skip_the_sample(bad, where):
    """The line says which output; the run goes on."""
    boxes, scores = [[1.0, 2, 3, 4]], [[0.5]]
    (boxes if where == "boxes" else scores)[0][0] = bad
    what = "NaN" if math.isnan(bad) else "an infinity"
    with pytest.raises(SampleError, match=f"the model gave {what} in output '{where}'"):
        found(boxes, scores)


@pytest.mark.parametrize("kind", ["greedy", "soft_gaussian"])
def test_huge_values_neither_warn_nor_crash(kind):
    """Finite boxes are as far away as the model says; float64 holds their areas."""
    huge = float(np.float32(3e38))
    raw = [[-huge, -huge, huge, huge], [0, 0, 90, 90]]
    some = found(raw, [[0.9], [0.8]], size=(8, 24), asked={"nms": {"kind": kind, "sigma": 0.5}})
    assert some.boxes.tolist() == raw
    assert np.isfinite(some.scores).all()


@pytest.mark.parametrize("clip", ["none", "network", "image"])
@pytest.mark.parametrize(
    ("head", "raw", "precision"),
    [
        (ANCHORS, [0, 0, 89, 0], "fp32"),  # exp(89) is 4.5e38, float32 ends at 3.4e38
        (ANCHORS, [3e38, -3e38, 3e38, 3e38], "fp32"),
        ({**BOXES, "format": "cxcywh"}, [3e38, 0, 3e38, 3], "fp32"),
        (ANCHORS, [0, 0, 12, 0], "fp16"),  # exp(12) is 162,755, float16 ends at 65,504
        (BOXES, [0, 0, 7e4, 9], "fp16"),
    ],
)
def test_a_box_that_overflows_is_told_and_not_moved_to_a_place(head, raw, precision, clip):
    """Clipping would make a box as large as the image of an infinity."""
    given = {"clip": clip, "asked": {"box_precision": precision}}
    with pytest.raises(NotFinite, match=f"in a box, as it is decoded in {precision}"):
        found([raw], [[0.9]], head, (8, 8), **given)
    least = {"score_threshold": 0.95}
    assert len(found([raw], [[0.9]], head, (8, 8), nms=least, **given)) == 0


TENSOR = {"names": ["all"], "columns": ["boxes", "objectness", "scores"]}
SHAPED = {**BOXES, "outputs": [TENSOR], "score": {**SCORE, "objectness": {"activation": "none"}}}


@pytest.mark.parametrize(
    ("head", "row", "message"),
    [
        (BOXES, [2.8e31], r"^scores: 0 to 1 expected.* the model gave 2.8e\+31 to 2.8e\+31; if"),
        (BOXES, [-7], "gave -7 to -7"),
        (SHAPED, [1.2, 0.5], "^objectness: .* gave 1.2 to 1.2"),
        (SHAPED, [0.0, 3], "^scores: .* gave 3 to 3"),  # though their product is 0
        (FINAL, [1.2, 0], "^score: .* gave 1.2 to 1.2"),
    ],
)
def test_a_score_that_cannot_be_one_skips_the_sample(head, row, message):
    """Where the card has no activation, numbers are scores; some runs have one bad sample."""
    given = settings(head, (20, 40), nms={"score_threshold": 0.01})
    box = [1, 2, 3, 4]
    arrays = {"all": [*box, *row], "found": [*box, *row], "boxes": box, "scores": row}
    outputs = {name: np.array([[one]], np.float32) for name, one in arrays.items()}
    with pytest.raises(SampleError, match=message):
        decode(outputs, given, whole(20, 40), 1)


def test_scores_may_leave_their_range_by_a_quantizer_s_step():
    """And rows that a model with NMS inside fills with -1 are none."""
    assert found([[1, 2, 3, 4]] * 2, [[1.03], [-0.03]]).scores.tolist() == [np.float32(1.03)]
    rows = np.array([[1, 2, 3, 4, 0.5, 1], [-1] * 6], np.float32)
    assert len(decode({"found": rows}, settings(FINAL, (20, 40)), whole(20, 40), 2)) == 1


def test_nothing_above_the_threshold_is_an_empty_result():
    """With every kind of NMS, of the right shapes and types."""
    for kind in ("none", "greedy", "soft_linear"):
        some = found([[1, 2, 3, 4]], [[0.1]], nms={"score_threshold": 0.5, "kind": kind})
        assert (some.boxes.shape, some.scores.shape, some.classes.shape) == ((0, 4), (0,), (0,))
        assert (some.boxes.dtype, some.classes.dtype) == (np.float64, np.int64)


def test_clip_to_the_network_leaves_the_offset_of_the_last_pixel():
    """A box beyond 40 x 20 ends at 40, 20, or at 39, 19 where a box ends on its last pixel."""
    raw = [[0, 0, 90, 90]]
    head = {**BOXES, "format": "cxcywh"}
    assert found(raw, [[0.5]], head, clip="network").boxes.tolist() == [[0, 0, 40, 20]]
    asked = {"box_offset": {"corners": 1}}
    some = found(raw, [[0.5]], head, clip="network", asked=asked)
    assert some.boxes.tolist() == [[0, 0, 39, 19]]


LETTERBOX = Geometry(kind="letterbox", height=100, width=100, position="center", value=114)


@pytest.mark.parametrize(
    ("scale", "offset", "y"),
    [
        ("resized", "integer", (50 - 33) / (33 / 67)),
        ("ratio", "integer", (50 - 33) / (100 / 200)),
        ("resized", "exact", (50 - 33.5) / (33 / 67)),
        ("ratio", "exact", (50 - 33.5) / (100 / 200)),
    ],
)
def test_letterbox_by_what_was_resized_or_by_the_ratio(scale, offset, y):
    """67 x 200 becomes 33 x 100 (33.5 rounded down), with 33 rows above: 33.5 were the half."""
    place = LETTERBOX.placement((67, 200), LETTERBOX.resized(67, 200))
    assert (place.rows, place.top) == (33, 33)
    asked = {"unletterbox": {"scale": scale, "offset": offset}}
    some = found([[10, 50, 20, 60]], [[0.5]], size=(100, 100), place=place, asked=asked)
    assert some.boxes[0, 0] == 20
    assert some.boxes[0, 1] == pytest.approx(y)


SQUASH = Geometry(kind="squash", height=320, width=416)
CORNER = Geometry(kind="letterbox", height=100, width=100, position="top_left")
CROP = Geometry(kind="short_side_crop", height=40, width=40, short_side=50)


@pytest.mark.parametrize("unletterbox", [{}, {"scale": "ratio", "offset": "exact"}])
@pytest.mark.parametrize(
    ("geometry", "image", "box", "expected"),
    [
        # 640 x 480 in 416 x 320: x * 640 / 416, y * 480 / 320
        (SQUASH, (480, 640), [208, 160, 416, 320], [320, 240, 640, 480]),
        # padding on one side has no half: the image begins at 0, whatever is asked
        (CORNER, (50, 200), [10, 20, 30, 25], [20, 40, 60, 50]),
        # 200 x 100, short side to 50, center 40: rows begin 30 and columns 5 before the network
        (CROP, (200, 100), [0, 0, 40, 40], [10, 60, 90, 140]),
    ],
)
def test_boxes_go_back_to_the_image(geometry, image, box, expected, unletterbox):
    place = geometry.placement(image, geometry.resized(*image))
    size = geometry.height, geometry.width
    some = found([box], [[0.5]], size=size, place=place, asked={"unletterbox": unletterbox})
    assert some.boxes.tolist() == [expected]


def test_a_crop_before_the_resize_shifts_boxes_back():
    """Of 40 x 80 the middle 20 x 40 is squashed to 10 x 10: 2 pixels down and 4 across each."""
    geometry = Geometry(kind="squash", height=10, width=10)
    place = replace(geometry.placement((20, 40), (10, 10)), cut=Cut(10, 20, 10, 20))
    some = found([[0, 0, 5, 10]], [[0.5]], size=(10, 10), place=place)
    assert some.boxes.tolist() == [[20, 10, 40, 30]]
    turned = replace(place, orientation=3)
    some = found([[0, 0, 5, 10]], [[0.5]], size=(10, 10), place=turned)
    assert some.boxes.tolist() == [[40, 10, 60, 30]]


@pytest.mark.parametrize(("scale", "factor"), [("resized", 99 / 200), ("ratio", 50 / 101)])
def test_a_crop_has_a_ratio_as_well(scale, factor):
    """200 x 101 becomes 99 x 50, where 99.0099 was meant: the short side is exact."""
    geometry = Geometry(kind="short_side_crop", height=40, width=40, short_side=50)
    for turned in (False, True):
        size = (101, 200) if turned else (200, 101)
        place = geometry.placement(size, geometry.resized(*size))
        assert (place.rows, place.columns) == ((50, 99) if turned else (99, 50))
        asked = {"unletterbox": {"scale": scale}}
        some = found([[0, 0, 40, 40]], [[0.5]], size=(40, 40), place=place, asked=asked)
        long = some.boxes[0, 0::2] if turned else some.boxes[0, 1::2]
        begin = -(place.left if turned else place.top)
        assert long == pytest.approx([begin / factor, (begin + 40) / factor])


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("none", [1.25, 2.5, 3.75, 7.0]),
        ("floor", [1, 2, 3, 7]),
        ("ceil", [2, 3, 4, 7]),
        ("nearest", [1, 2, 4, 7]),
    ],
)
def test_rounding_in_the_image(mode, expected):
    """Half to even at the end; the network's pixels are the image's here."""
    asked = {"box_rounding": {"mode": mode, "at": "image"}}
    assert found([[1.25, 2.5, 3.75, 7]], [[0.5]], asked=asked).boxes.tolist() == [expected]


def test_rounding_in_the_network_is_scaled_and_changes_the_overlap():
    """0..4.4 and 0..3.6 of 9 rows are one box after rounding, IoU 1; before, 36 / 44."""
    place = Placement(40, 80, 20, 40, 0, 0, 20, 40)
    boxes, scores = [[0, 0, 4.4, 9], [0, 0, 3.6, 9]], [[0.9], [0.8]]
    nms = {"kind": "greedy", "iou_threshold": 0.9}
    assert len(found(boxes, scores, place=place, nms=nms)) == 2
    asked = {"box_rounding": {"mode": "nearest", "at": "network"}}
    some = found(boxes, scores, place=place, nms=nms, asked=asked)
    assert some.boxes.tolist() == [[0, 0, 8, 18]]


def test_the_extent_is_in_pixels_of_the_image():
    """A reported width of x2 - x1 + 1, twice the network's size: the last pixel is the image's."""
    place = Placement(40, 80, 20, 40, 0, 0, 20, 40)
    asked = {"box_offset": {"extent": 1}}
    some = found([[1, 2, 3, 4]], [[0.5]], place=place, asked=asked)
    assert some.boxes.tolist() == [[2, 4, 7, 9]]


def test_clip_to_the_image_comes_after_the_way_back():
    """The padding's part of a box is cut where the image ends."""
    place = LETTERBOX.placement((50, 100), LETTERBOX.resized(50, 100))
    head = {**BOXES, "format": "xywh"}
    for corners in (0, 1):
        asked = {"box_offset": {"corners": corners}}
        some = found([[10, 0, 99, 100]], [[0.5]], head, (100, 100), place, asked, clip="image")
        assert some.boxes.tolist() == [[10, 0, 100 - corners, 50 - corners]]


def test_a_retinanet_worked_on_paper():
    """One logit of 2 at level 16, row 1, column 2, ratio 1, scale 1, and no delta."""
    logits, deltas = np.full((1, 24570, 3), -9, np.float32), np.zeros((1, 24570, 4), np.float32)
    logits[0, 18720 + (1 * 26 + 2) * 9 + 3, 1] = 2
    given = settings(RETINANET, (320, 416), nms={"score_threshold": 0.05})
    outputs = {"cls_logits": logits, "box_deltas": deltas}
    some = decode(outputs, given, whole(320, 416), 3)
    assert some.classes.tolist() == [1]
    assert some.scores.tolist() == pytest.approx([1 / (1 + math.exp(-2))])
    assert some.boxes.tolist() == [[40 - 24, 24 - 24, 40 + 24, 24 + 24]]


@pytest.mark.parametrize("order", ["cells_anchors", "anchors_cells"])
@pytest.mark.parametrize("layout", ["rows", "columns", "maps", "maps_last"])
def test_one_head_in_every_layout(layout, order):
    """Two levels, two anchors a cell, one output a level: the numbers of (level, row, column,
    anchor) lie where the layout says, and the boxes are the same."""
    shapes = [[[2, 2], [4, 4]], [[8, 8], [16, 16]]]
    grids, width = [(2, 3), (1, 2)], 5 + 2
    head = center_size(
        {"activation": "sigmoid"}, {"activation": "sigmoid", "unit": "anchor"},
        strides=[8, 16], anchors={"kind": "shapes", "shapes": shapes}, layout=layout, order=order,
        outputs=[{"names": ["a", "b"], "columns": ["boxes", "objectness", "scores"]}],
        score={**SCORE, "activation": "sigmoid", "objectness": {"activation": "sigmoid"}},
    )  # fmt: skip
    random = np.random.default_rng(3)
    outputs, expected = {}, set()
    for name, level, (rows, columns) in zip("ab", shapes, grids, strict=True):
        t = random.normal(size=(rows, columns, 2, width)).astype(np.float32)  # row, column, anchor
        s = 1 / (1 + np.exp(-t.astype(float)))
        for r, c, a in np.ndindex(rows, columns, 2):
            x, y, w, h, objectness = s[r, c, a, :5]
            stride = 8 if name == "a" else 16
            center = np.array([x + c, y + r]) * stride
            half = np.array([w, h]) * level[a] / 2
            for k in range(2):
                score = objectness * s[r, c, a, 5 + k]
                expected.add((k, *np.round([*(center - half), *(center + half), score], 3)))
        if layout == "maps":
            outputs[name] = t.transpose(2, 3, 0, 1).reshape(1, 2 * width, rows, columns)
        elif layout == "maps_last":
            outputs[name] = t.reshape(1, rows, columns, 2 * width)
        else:
            flat = (t if order == "cells_anchors" else t.transpose(2, 0, 1, 3)).reshape(-1, width)
            outputs[name] = (flat if layout == "rows" else flat.T)[None]
    some = decode(outputs, settings(head, (16, 24)), whole(16, 24), 2)
    got = {
        (int(c), *np.round([*box, score], 3))
        for c, box, score in zip(some.classes, some.boxes, some.scores, strict=True)
    }
    assert got == expected
    assert len(some) == 2 * (6 + 2) * 2


@pytest.mark.parametrize("layout", ["maps", "maps_last"])
def test_anchors_of_a_cell_that_share_their_class_scores(layout):
    """Yolo-FastestV2: a cell has 2 x 4 box numbers, 2 objectnesses, and 3 class scores once."""
    head = center_size(
        {"activation": "sigmoid", "gain": 2, "shift": -0.5},
        {"activation": "sigmoid", "gain": 2, "power": 2, "unit": "anchor"},
        strides=[16], anchors={"kind": "shapes", "shapes": [[[12, 18], [37, 49]]]}, layout=layout,
        outputs=[{"names": ["a"], "columns": ["boxes", "objectness", "scores"],
                  "shared": ["scores"]}],
        score={**SCORE, "activation": "softmax", "objectness": {"activation": "sigmoid"}},
    )  # fmt: skip
    cell = np.random.default_rng(5).normal(size=(2, 3, 13))  # row, column, numbers
    expected = []
    for row, column in np.ndindex(2, 3):
        boxes, objectness = cell[row, column, :8].reshape(2, 4), cell[row, column, 8:10]
        powers = np.exp(cell[row, column, 10:])
        for anchor, size in enumerate([(12, 18), (37, 49)]):
            s = 1 / (1 + np.exp(-boxes[anchor]))
            center = (s[:2] * 2 - 0.5 + (column, row)) * 16
            half = (s[2:] * 2) ** 2 * size / 2
            factor = 1 / (1 + np.exp(-objectness[anchor]))
            for k, share in enumerate(powers / powers.sum()):
                expected.append((k, *(center - half), *(center + half), factor * share))
    array = cell.astype(np.float32)[None]
    given = {"a": array if layout == "maps_last" else array.transpose(0, 3, 1, 2)}

    some = decode(given, settings(head, (32, 48)), whole(32, 48), 3)

    got = [
        (c, *box, score)
        for c, box, score in zip(some.classes, some.boxes, some.scores, strict=True)
    ]
    assert np.allclose(sorted(got), sorted(expected), atol=1e-3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layout": "rows"}, "shared columns are for layout maps"),
        ({"outputs": [{"names": ["a"], "columns": ["boxes", "scores"], "shared": ["objectness"]}],
          "score": SCORE}, "not among the columns"),
    ],
)  # fmt: skip
def test_shared_columns_that_make_no_sense_are_refused(change, message):
    given = {
        "strides": [16], "layout": "maps",
        "score": {**SCORE, "objectness": {"activation": "sigmoid"}},
        "outputs": [{"names": ["a"], "columns": ["boxes", "objectness", "scores"],
                     "shared": ["scores"]}],
    }  # fmt: skip
    with pytest.raises(ValueError, match=message):
        settings(center_size({"activation": "none"}, {"activation": "none", "unit": "stride"},
                             **(given | change)), (32, 48))  # fmt: skip


def test_softmax_with_the_background_first():
    """SSD: of (0, ln 3, 0) the first label has 3 / 5; the background is never reported."""
    head = {**BOXES, "score": {**SCORE, "activation": "softmax", "background": "first"}}
    outputs = {
        "boxes": np.array([[[1, 2, 3, 4]]], np.float32),
        "scores": np.array([[[0, math.log(3), 0]]], np.float32),
    }
    some = decode(outputs, settings(head, (20, 40)), whole(20, 40), 2)
    assert some.classes.tolist() == [0, 1]
    assert some.scores.tolist() == pytest.approx([0.6, 0.2])


def test_a_model_with_nms_inside():
    """Rows (x1, y1, x2, y2, score, class), the best first; class -1 is none."""
    rows = np.array([[1, 2, 3, 4, 0.5, 1], [5, 6, 7, 8, 0.9, 0], [0, 0, 0, 0, 0.3, -1]], np.float32)
    for array in (rows, rows[None]):
        some = decode({"found": array}, settings(FINAL, (20, 40)), whole(20, 40), 2)
        assert some.classes.tolist() == [0, 1]
        assert some.boxes.tolist() == [[5, 6, 7, 8], [1, 2, 3, 4]]


def test_a_model_with_nms_inside_and_a_count_of_its_answers():
    """TensorFlow's four outputs: y first, 0 to 1, class 1 is the first label, 2 rows count."""
    names = {"b": ["boxes"], "s": ["score"], "c": ["class"], "n": ["count"]}
    head = {
        **FINAL, "format": "yxyx", "unit": "image", "first_class": 1,
        "outputs": [{"names": [n], "columns": c} for n, c in names.items()],
    }  # fmt: skip
    outputs = {
        "b": np.array([[[0, 0, 0.5, 0.25], [0.5, 0.5, 1, 1], [0, 0, 1, 1]]], np.float32),
        "s": np.array([[0.9, 0.8, 0.7]], np.float32),
        "c": np.array([[2, 1, 1]], np.float32),
        "n": np.array([2], np.float32),
    }
    some = decode(outputs, settings(head, (20, 40)), whole(20, 40), 2)
    assert some.classes.tolist() == [1, 0]
    assert some.boxes.tolist() == [[0, 0, 10, 10], [20, 10, 40, 20]]


def test_a_class_that_has_no_label_is_the_card_s_fault():
    """Class 2 of two labels that begin at 0; without any rows there is nothing to say."""
    rows = np.array([[1, 2, 3, 4, 0.5, 2]], np.float32)
    given = settings(FINAL, (20, 40))
    with pytest.raises(
        ModelError, match="gave class 2, but the card has 2 labels, the first of which is class 0"
    ):
        decode({"found": rows}, given, whole(20, 40), 2)
    assert len(decode({"found": rows[:0]}, given, whole(20, 40), 2)) == 0


def test_outputs_of_different_lengths_do_not_belong_together():
    """Three boxes and two rows of scores."""
    outputs = {"boxes": np.zeros((1, 3, 4), np.float32), "scores": np.zeros((1, 2, 2), np.float32)}
    with pytest.raises(ModelError, match="do not fit each other: 2 scores, 3 boxes"):
        decode(outputs, settings({**BOXES, "outputs": APART}, (20, 40)), whole(20, 40), 2)


def test_an_array_of_another_shape_or_type_or_none_is_named():
    """Expected and got, when the model runs."""
    given = settings(RETINANET, (320, 416))
    good = np.zeros((1, 24570, 3), np.float32)
    outputs = {"cls_logits": good, "box_deltas": np.zeros((1, 24569, 4), np.float32)}
    line = r"output 'box_deltas': expected \(1, 24570, 4\).*got \(1, 24569, 4\)"
    with pytest.raises(ModelError, match=line):
        decode(outputs, given, whole(320, 416), 3)
    with pytest.raises(ModelError, match="'cls_logits': expected numbers, got complex128"):
        decode({"cls_logits": good.astype(complex)}, given, whole(320, 416), 3)
    with pytest.raises(ModelError, match="unknown output 'cls_logits'; did you mean 'cls_logit'"):
        decode({"cls_logit": good}, given, whole(320, 416), 3)
