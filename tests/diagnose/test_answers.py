"""Slips of answers, done here by hand to answers of the training stack."""

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from simulator.diagnose.answers import name_classes, name_outputs
from simulator.diagnose.boxes import Seen, name_boxes
from simulator.modalities.image.geometry import Placement
from simulator.tasks.classification.answer import postprocess
from simulator.tasks.detection.boxes import Detections, overlaps
from simulator.tasks.detection.settings import Suppression

ORDER = np.random.default_rng(1).permutation(40)
LOGITS = [np.random.default_rng(seed).normal(size=(1, 40)).astype(np.float32) for seed in (2, 3)]


@pytest.mark.parametrize(
    ("slip", "names"),
    [
        (lambda x: x, []),
        (lambda x: np.concatenate([[[0.5]], x], 1), ["labels are shifted by one (41"]),
        (lambda x: x[:, 1:], ["labels are shifted by one (39"]),
        (lambda x: np.concatenate([[[9.0]], x[:, :-1]], 1), ["labels are shifted by one"]),
        (lambda x: x[:, ORDER], ["the classes are in another order"]),
        (lambda x: softmax(x, axis=1), ["softmax is applied twice"]),
        (lambda x: log_softmax(x, axis=1), ["the logarithm of the softmax is given"]),
        (
            lambda x: np.concatenate([[[0.0]], softmax(x, axis=1)], 1),
            ["softmax is applied twice", "labels are shifted by one (41"],
        ),
        (lambda x: np.sqrt(np.abs(x)), []),
    ],
)
def test_a_slip_of_outputs_is_named(slip, names):
    found = name_outputs(LOGITS, [slip(one).astype(np.float32) for one in LOGITS])

    assert len(found) == len(names)
    assert all(one.name.startswith(name) for one, name in zip(found, names, strict=True))


def test_a_missing_softmax_is_named():
    (one,) = name_outputs([softmax(x, axis=1) for x in LOGITS], LOGITS)

    assert one.name == "softmax is missing"


def test_two_images_are_not_put_in_order_by_one():
    """An order that the first image gives must hold for the second."""
    mixed = [LOGITS[0][:, ORDER], LOGITS[1][:, ORDER[::-1]]]

    assert name_outputs(LOGITS, mixed) == []


def test_classes_alone_tell_a_shift_and_scores_a_second_softmax():
    train = [postprocess(one, "logits", 0) for one in LOGITS]
    shifted = [type(one)(one.prediction + 1, one.score, one.margin) for one in train]
    twice = [postprocess(softmax(one, axis=1), "logits", 0) for one in LOGITS]

    assert [one.name for one in name_classes(train, shifted)] == ["labels are shifted by one"]
    assert [one.name for one in name_classes(train, twice)] == ["softmax is applied twice"]
    assert name_classes(train, train) == []
    other = [type(one)(at, one.score, one.margin) for at, one in enumerate(train)]
    assert name_classes(train, other) == []


LETTERBOX = Placement(400, 640, 200, 320, 60, 0, 320, 320, centered=True)
"""640 x 400 pixels at half the size, between 60 rows above and below."""
BOXES = np.array(
    [[100, 50, 300, 250], [110, 60, 310, 240], [0, 200, 80, 380], [400, 100, 600, 300],
     [20, 10, 60, 40]],
    np.float64,
)  # fmt: skip
SCORES = np.array([0.9, 0.8, 0.7, 0.6, 0.4])
CLASSES = np.array([0, 1, 0, 1, 1])
ALL = Detections(BOXES, SCORES, CLASSES)
NMS = Suppression("greedy", 0.5, True, 0, 0.0, 0.3, None, None)


def greedy(nms):
    """Torchvision's batched NMS, in a few lines: kept are those that no better one overlaps."""
    kept = []
    for at in range(len(ALL)):
        same = [k for k in kept if not nms.class_aware or CLASSES[k] == CLASSES[at]]
        covers = [overlaps(BOXES[[at]], BOXES[[k]])[0, 0] > nms.iou_threshold for k in same]
        if SCORES[at] > nms.score_threshold and (nms.kind == "none" or not any(covers)):
            kept.append(at)
    return ALL.take(np.array(kept))


class Given:
    """The settings as far as they are looked at."""

    nms = NMS


def names(*deploy):
    seen = [Seen(greedy(NMS), one, LETTERBOX, greedy) for one in deploy]
    return [one.name for one in name_boxes(seen, Given())]


def placed(boxes):
    return Detections(boxes, SCORES, CLASSES)


HALVES = BOXES / 2 + [0, 60, 0, 60]
"""In pixels of the network."""


@pytest.mark.parametrize(
    ("boxes", "name"),
    [
        (HALVES, "boxes are not mapped back from the network's input"),
        (HALVES * 2, "boxes are mapped back without the padding"),
        (HALVES / 320, "boxes are shares of the network's input"),
        (BOXES / [640, 400, 640, 400], "boxes are shares of the image"),
        (BOXES[:, [1, 0, 3, 2]], "x and y are exchanged"),
        (
            np.stack([BOXES[:, 0], BOXES[:, 1], BOXES[:, 2] - BOXES[:, 0],
                      BOXES[:, 3] - BOXES[:, 1]], axis=1),
            "left, top, width and height are read as corners",
        ),
        (
            np.stack([(HALVES[:, 0] + HALVES[:, 2]) / 2, (HALVES[:, 1] + HALVES[:, 3]) / 2,
                      HALVES[:, 2] - HALVES[:, 0], HALVES[:, 3] - HALVES[:, 1]], axis=1),
            "boxes are not mapped back from the network's input, and "
            "center, width and height are read as corners",
        ),
    ],
)  # fmt: skip
def test_boxes_in_another_place_are_named(boxes, name):
    assert names(placed(boxes)) == [name]


@pytest.mark.parametrize(
    ("kept", "name"),
    [
        ([0, 1, 2, 3], "another score threshold: between 0.4 and 0.6"),
        ([0, 1, 3, 4], "boxes at the border are dropped"),
        ([0, 2, 3, 4], "the NMS ignores classes (class-agnostic)"),
        ([0, 1, 2, 4], None),
        ([1, 2, 3], None),
    ],
)
def test_missing_boxes_are_explained_or_not(kept, name):
    assert names(ALL.take(np.array(kept))) == ([name] if name else [])


def test_a_threshold_for_one_class_is_told_from_one_for_all():
    """Of class 1 (0.8, 0.6, 0.4) the last two are lost, of class 0 none (0.9, 0.7)."""
    deploy = ALL.take(np.array([0, 1, 2]))
    low = Detections(BOXES[:3], np.array([0.9, 0.8, 0.45]), CLASSES[:3])
    every = Detections(BOXES, np.array([0.9, 0.8, 0.45, 0.6, 0.4]), CLASSES)
    (found,) = name_boxes([Seen(every, low, LETTERBOX)], None)

    assert found.name == "a score threshold for each class: class 1 between 0.6 and 0.8"
    assert names(deploy) == ["another score threshold: between 0.6 and 0.7"]


def test_a_limit_shows_in_two_images_with_other_numbers_of_boxes():
    two = [Seen(ALL, ALL.take(np.arange(3)), LETTERBOX),
           Seen(ALL.take(np.arange(2)), ALL.take(np.arange(2)), LETTERBOX)]  # fmt: skip

    assert [one.name for one in name_boxes(two, None)] == ["at most 3 boxes are kept"]


def test_a_missing_nms_and_another_iou_are_told():
    """The first two boxes, of other classes, overlap by 0.82; of one class they would."""
    same = Detections(BOXES, SCORES, np.array([0, 0, 0, 1, 1]))
    lone = same.take(np.array([0, 2, 3, 4]))

    def again(nms):
        return same if nms.kind == "none" or nms.iou_threshold > 0.82 else lone

    def told(train, deploy, iou):
        own = type("Own", (), {"nms": Suppression("greedy", iou, True, 0, 0.0, 0.3, None, None)})
        return [one.name for one in name_boxes([Seen(train, deploy, LETTERBOX, again)], own)]

    assert told(lone, same, 0.5) == ["the NMS is missing"]
    assert told(lone, lone, 0.5) == []
