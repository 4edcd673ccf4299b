"""Slips of answers, done here by hand to answers of the training stack."""

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from simulator.diagnose.answers import name_classes
from simulator.diagnose.boxes import Seen, name_boxes
from simulator.diagnose.masks import Seen as Mask
from simulator.diagnose.masks import name_masks
from simulator.diagnose.outputs import name_outputs
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
        (lambda x: 1 / (1 + np.exp(-x)), ["a sigmoid is applied to the outputs"]),
        (lambda x: x / 2, ["the outputs are multiplied by 0.5"]),
        (
            lambda x: np.round(255 * softmax(x, axis=1)),
            ["softmax is applied twice", "the outputs are whole numbers"],
        ),
        (lambda x: x[:, :-1], ["the last class is missing (39 against 40)"]),
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


def best(scores):
    return [(int(row.argmax()), float(row.max())) for row in scores]


FOUR = np.random.default_rng(4).normal(size=(4, 40))
P = softmax(FOUR, axis=1)
LABELS = [f"n{(7 * at) % 40:02}" for at in range(40)]
"""In alphabetical order class k comes (7 k) mod 40th."""


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ([((7 * k) % 40, s) for k, s in best(P)], "the classes are in alphabetical order"),
        ([(k, 100 * s) for k, s in best(P)], "scores are in percent"),
        ([(k, round(s, 2)) for k, s in best(P)], "scores are rounded to 2 digits"),
        (best(1 / (1 + np.exp(-FOUR))), "a sigmoid is applied in place of softmax"),
        (best(FOUR), "softmax is missing"),
        (best(softmax(FOUR / 2, axis=1)), "the outputs are divided by 2 before the softmax"),
        ([(int(r.argmin()), float(r.min())) for r in P], "the worst class is taken"),
        ([(int(r.argsort()[-2]), float(np.sort(r)[-2])) for r in P], "the class of rank 2"),
        ([(0, float(r[0])) for r in P], "class 0 is given for every sample"),
        ([(k, 1 - s) for k, s in best(P)], None),
    ],
)
def test_a_slip_of_classes_and_scores_is_named(given, name):
    train = [postprocess(row.astype(np.float32), "logits", 0) for row in FOUR]
    deploy = [type(train[0])(k, s, 0.0) for k, s in given]

    found = name_classes(train, deploy, list(FOUR), LABELS)

    assert [one.name.startswith(name or "-") for one in found] == [True] * bool(name)


def test_scores_of_the_best_class_alone_show_a_second_softmax():
    train = [type(one)(one.prediction, one.score, 0.0)
             for one in (postprocess(row, "logits", 0) for row in FOUR)]  # fmt: skip
    deploy = [type(train[0])(k, s, 0.0) for k, s in best(softmax(P, axis=1))]

    assert [one.name for one in name_classes(train, deploy, labels=LABELS)] == [
        "softmax is applied twice"
    ]


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


def greedy(nms, score=None):
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

    nms, head, scale, padding = NMS, None, "resized", "integer"


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
        (HALVES * [2, 1.25, 2, 1.25],
         "boxes are mapped back as if the image had been squashed to the network's size"),
        (BOXES / [640, 400, 640, 400] * [400, 640, 400, 640],
         "boxes are scaled with width and height of the image exchanged"),
        (np.minimum(BOXES, 299), None),
        (np.rint(BOXES + 0.3), "boxes are rounded to whole pixels"),
        (BOXES - [0, 0, 1, 1], "the right and lower sides are one pixel less"),
    ],
)  # fmt: skip
def test_boxes_in_another_place_are_named(boxes, name):
    moved = 0.3 if name == "boxes are rounded to whole pixels" else 0.0
    train = Detections(BOXES + moved, SCORES, CLASSES)

    found = name_boxes([Seen(train, placed(boxes), LETTERBOX)], None)

    assert [one.name for one in found] == ([name] if name else [])


@pytest.mark.parametrize(
    ("scores", "classes", "name"),
    [
        (SCORES, CLASSES + 1, "classes are shifted by one: a background class first"),
        (SCORES, np.where(CLASSES == 0, 5, 3), "the classes are in another order (class 0 is 5, 1"),
        (np.sqrt(SCORES), CLASSES, "scores are square roots"),
        (SCORES[::-1], CLASSES, None),
    ],
)
def test_numbers_of_classes_and_scores_are_named(scores, classes, name):
    found = name_boxes([Seen(ALL, Detections(BOXES, scores, classes), LETTERBOX)], None)

    assert [one.name.startswith(name or "-") for one in found] == [True] * bool(name)


MASK = np.repeat(np.repeat(np.arange(6, dtype=np.uint8).reshape(2, 3), 8, 0), 8, 1)
MASK[:3, :2] = 5
"""Six squares of 8 pixels, one of each class, with a corner of another."""


def blurred(mask):
    """Two columns at each border lie between the numbers of both sides."""
    found = mask.copy()
    found[:, 7] = found[:, 8] = 20
    return found


@pytest.mark.parametrize(
    ("deploy", "name"),
    [
        (MASK, None),
        (MASK.T, "rows and columns of the mask are exchanged"),
        (MASK[:, ::-1], "the mask is mirrored"),
        (MASK + 1, "classes are shifted by one"),
        (np.where(MASK == 0, 255, MASK), "class 0 is given as 255, which is not judged"),
        (np.array([3, 1, 2, 0, 4, 5], np.uint8)[MASK], "classes have other numbers (0 is 3"),
        (MASK[::2, ::2], "the mask is not brought back to the size of the image (8 x 12)"),
        (blurred(MASK), "the numbers of classes are interpolated"),
        (np.roll(MASK, 3), None),
    ],
)
def test_a_slip_of_masks_is_named(deploy, name):
    found = name_masks([Mask(MASK, deploy)], None)

    assert [one.name.startswith(name or "-") for one in found] == [True] * bool(name)


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

    def again(nms, score):
        return same if nms.kind == "none" or nms.iou_threshold > 0.82 else lone

    def told(train, deploy, iou):
        nms = Suppression("greedy", iou, True, 0, 0.0, 0.3, None, None)
        own = type("Own", (Given,), {"nms": nms})
        return [one.name for one in name_boxes([Seen(train, deploy, LETTERBOX, again)], own)]

    assert told(lone, same, 0.5) == ["the NMS is missing"]
    assert told(lone, lone, 0.5) == []
