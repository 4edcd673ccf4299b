"""What detectors learn: formulas written out, matches by hand, derivatives by differences."""

import math

import detection_cards as cards
import numpy as np
import pytest

from simulator.data.truth import Boxes
from simulator.errors import ModelError
from simulator.modalities.image.cropping import Cut
from simulator.modalities.image.geometry import Placement
from simulator.modalities.image.orientation import stored_boxes
from simulator.tasks.detection import heads
from simulator.tasks.detection.decode import to_image
from simulator.tasks.detection.lesson import (
    BETA,
    RetinaLesson,
    Target,
    encoded,
    focal,
    matched,
    smooth_l1,
)
from simulator.tasks.detection.moving import to_network

SIGMOID = {**cards.SCORE, "activation": "sigmoid"}
NONE = np.zeros((0, 4))


def target(boxes, classes=None, aside=NONE):
    boxes = np.array(boxes, np.float64).reshape(-1, 4)
    known = np.zeros(len(boxes), np.int64) if classes is None else np.array(classes)
    return Target(boxes, known, np.array(aside, np.float64).reshape(-1, 4))


@pytest.mark.parametrize(
    ("logit", "known", "loss"),
    [
        # torchvision.ops.sigmoid_focal_loss, written out: alpha_t * (1 - p_t) ** 2 * -ln(p_t)
        (0.0, True, 0.25 * 0.5**2 * math.log(2)),
        (0.0, False, 0.75 * 0.5**2 * math.log(2)),
        (math.log(9), True, 0.25 * 0.1**2 * -math.log(0.9)),
        (math.log(9), False, 0.75 * 0.9**2 * -math.log(0.1)),
        (-math.log(3), True, 0.25 * 0.75**2 * math.log(4)),
    ],
)
def test_focal_loss_by_hand(logit, known, loss):
    value, _ = focal(np.array([logit]), np.array([known]))

    assert value == pytest.approx(loss, rel=1e-12)


@pytest.mark.parametrize("known", [True, False])
def test_a_large_logit_is_finite(known):
    """A score that is right costs nothing, one that is wrong its logit, and both have a slope."""
    value, slope = focal(np.array([800.0, -800.0]), np.array([known, known]))

    assert value == pytest.approx(800 * (0.25 if known else 0.75))
    assert np.abs(slope).sum() == pytest.approx(0.25 if known else 0.75)


def test_smooth_l1_by_hand():
    """torch.nn.functional.smooth_l1_loss with beta 1/9: 4.5 d^2 up to there, then |d| - 1/18."""
    value, slope = smooth_l1(np.array([[0.05, -0.1, 0.5, -2.0]]))

    assert value == pytest.approx(4.5 * 0.05**2 + 4.5 * 0.01 + 0.5 - 1 / 18 + 2 - 1 / 18)
    assert slope.tolist() == [[pytest.approx(0.45), pytest.approx(-0.9), 1, -1]]
    assert BETA == 1 / 9


@pytest.mark.parametrize(
    ("objects", "counts", "found", "which"),
    [
        # IoU of the first with the four anchors: 1/2, 3/7, 1/4, 0
        ([[0, 0, 10, 10]], [True, False, True, True], [0], [0]),
        # the best anchor of an object has it even below 0.4: 9 of 25
        ([[0, 0, 3, 3]], [True] * 4, [2], [0]),
        # the second object: 20 of 100
        ([[0, 0, 10, 10], [100, 100, 104, 105]], [True, False, True, True], [0, 3], [0, 1]),
        ([], [True] * 4, [], []),
    ],
)
def test_anchors_are_matched_by_hand(objects, counts, found, which):
    anchors = np.array([[0.0, 0, 10, 20], [0, 4, 10, 14], [0, 0, 5, 5], [100, 100, 110, 110]])
    match = matched(anchors, target(objects))

    assert match.counts.tolist() == counts
    assert match.found.tolist() == found and match.which.tolist() == which


def test_anchors_of_equal_overlap_share_an_object():
    anchors = np.array([[0.0, 0, 4, 4], [6, 6, 10, 10]])
    match = matched(anchors, target([[0, 0, 10, 10]]))

    assert match.found.tolist() == [0, 1] and match.counts.all()


def test_crowds_are_neither_object_nor_background():
    anchors = np.array([[0.0, 0, 10, 10], [50, 50, 60, 60], [80, 80, 90, 90]])
    match = matched(anchors, target([[0, 0, 10, 10]], aside=[[50, 50, 60, 61]]))

    assert match.counts.tolist() == [True, False, True] and match.found.tolist() == [0]


@pytest.mark.parametrize(
    "code",
    [
        {"weights": [1, 1, 1, 1]},
        {"weights": [10, 8, 5, 4], "order": "yxhw"},
        {"means": [0.1, -0.1, 0.2, 0], "stds": [0.1, 0.1, 0.2, 0.3]},
    ],
)
@pytest.mark.parametrize("offset", [{}, {"box_offset": {"anchors": 1, "corners": 1}}])
def test_what_is_encoded_is_decoded(code, offset):
    """The decoder is the other way round, and was checked against torchvision's."""
    settings = cards.settings({**cards.ANCHORS, "deltas": code}, (64, 64), offset)
    anchors = np.array([[8.0, 8, 24, 16], [30, 2, 46, 10]])
    boxes = np.array([[5.0, 9, 40, 13], [31, 1, 44, 50]])
    deltas = encoded(boxes, anchors, settings)

    assert heads.from_deltas(deltas, anchors, settings) == pytest.approx(boxes)


def test_a_box_is_encoded_as_in_faster_rcnn():
    """(x - xa) / wa and log(w / wa): equation 2 of Ren et al."""
    settings = cards.settings(cards.ANCHORS, (64, 64))
    deltas = encoded(np.array([[10.0, 10, 30, 50]]), np.array([[0.0, 0, 10, 20]]), settings)

    assert deltas.tolist() == [[1.5, 1.0, pytest.approx(math.log(2)), pytest.approx(math.log(2))]]


@pytest.mark.parametrize("orientation", range(1, 9))
def test_boxes_go_to_the_network_and_back(orientation):
    settings = cards.settings(cards.ANCHORS, (60, 90))
    placement = Placement(
        36, 56, 48, 84, 6, 3, 60, 90, cut=Cut(1, 2, 3, 2), orientation=orientation
    )
    seen = np.array([[5.0, 7, 30, 31], [10, 3, 20, 12]])  # in the network
    image = to_image(seen, placement, settings) + np.array([2, 1, 2, 1])
    kept = stored_boxes(image, orientation, (40, 60))

    assert to_network(kept, placement, settings.scale, settings.padding) == pytest.approx(seen)


def test_boxes_are_cut_at_the_border_and_dropped_outside():
    settings = cards.settings({**cards.ANCHORS, "score": SIGMOID}, (32, 32))
    crop = Placement(64, 64, 64, 64, -16, -16, 32, 32)
    flags = np.zeros(3, bool)
    boxes = np.array([[0.0, 0, 20, 20], [0, 0, 10, 10], [20, 20, 8, 4]])
    truth = Boxes(boxes, np.array([2, 1, 0]), flags, boxes[:, 2], np.array([False, False, True]))
    found = RetinaLesson(settings, 3).target(truth, crop)

    assert found.boxes.tolist() == [[0, 0, 4, 4]] and found.classes.tolist() == [2]
    assert found.aside.tolist() == [[4, 4, 12, 8]]


LAYOUTS = {
    "rows": (cards.APART, {"scores": (1, 16, 2), "boxes": (1, 16, 4)}),
    "columns": (cards.APART, {"scores": (1, 2, 16), "boxes": (1, 4, 16)}),
    "maps": (
        [{"names": ["all"], "columns": ["boxes", "scores"]}],
        {"unused": (1, 5), "all": (1, 6, 4, 4)},
    ),
    "maps_last": (
        [{"names": ["all"], "columns": ["scores", "boxes"]}],
        {"all": (1, 4, 4, 6)},
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_derivatives_are_those_of_differences(layout):
    """Of a batch of an image with two objects and one with none; only outputs that are read."""
    tensors, shapes = LAYOUTS[layout]
    head = {**cards.ANCHORS, "score": SIGMOID, "layout": layout, "outputs": tensors}
    lesson = RetinaLesson(cards.settings(head, (32, 32)), 2)
    rng = np.random.default_rng(3)
    outputs = {k: rng.normal(0, 1, (2, *s[1:])).astype(np.float32) for k, s in shapes.items()}
    targets = [target([[2, 3, 20, 12], [9, 16, 26, 25]], [0, 1]), target([])]
    value, slopes = lesson.loss(outputs, targets)

    assert value > 0 and "unused" not in slopes
    for name in slopes:
        array = outputs[name]
        assert slopes[name].shape == array.shape and slopes[name].dtype == np.float32
        for at in [tuple(rng.integers(array.shape)) for _ in range(25)]:
            ends = []
            for step in (2**-9, -(2**-9)):
                moved = array.copy()
                moved[at] += step
                ends.append(lesson.loss({**outputs, name: moved}, targets)[0])
            assert slopes[name][at] == pytest.approx((ends[0] - ends[1]) / 2**-8, abs=3e-4)


def test_the_loss_of_one_anchor_by_hand():
    """One cell, one anchor on its object: focal of both classes, smooth L1 of four, over one."""
    head = {**cards.ANCHORS, "score": SIGMOID}
    lesson = RetinaLesson(cards.settings(head, (8, 8)), 2)
    outputs = {
        "scores": np.array([[[0.0, 0.0]]], np.float32),
        "boxes": np.array([[[0.0, 0.0, 1.0, 0.0]]], np.float32),
    }
    value, _ = lesson.loss(outputs, [target([[-4, 0, 12, 8]], [1])])

    assert value == pytest.approx((0.25 + 0.75) * 0.25 * math.log(2) + 1 - 1 / 18)


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (cards.BOXES, "only heads of kind anchors are fine-tuned, this is boxes"),
        ({**cards.ANCHORS, "score": {**cards.SCORE, "activation": "softmax", "background": "last"}},
         "only heads with one sigmoid for each class"),
    ],
)  # fmt: skip
def test_other_heads_are_refused(head, message):
    with pytest.raises(ModelError, match=message):
        RetinaLesson(cards.settings(head, (64, 64)), 2)


def test_an_output_that_is_missing_is_named():
    lesson = RetinaLesson(cards.settings({**cards.ANCHORS, "score": SIGMOID}, (32, 32)), 2)

    with pytest.raises(ModelError, match="boxes"):
        lesson.loss({"scores": np.zeros((1, 16, 2), np.float32)}, [target([])])
