"""A detector's card: what it may say, what a profile replaces, and what its model must give."""

from __future__ import annotations

import json

import pytest
from detection_cards import (
    ANCHORS,
    APART,
    BOXES,
    FINAL,
    RETINANET,
    SCORE,
    center_size,
    distances,
    output,
    settings,
)
from pydantic import ValidationError

from simulator.errors import ModelError
from simulator.tasks.detection.ports import check

YOLO = center_size(
    {"activation": "sigmoid"}, {"activation": "sigmoid", "unit": "anchor"},
    layout="maps", strides=[8, 16], anchors={"kind": "shapes", "shapes": [[[9, 9]] * 3] * 2},
    outputs=[{"names": ["p3", "p4"], "columns": ["boxes", "objectness", "scores"]}],
    score={**SCORE, "objectness": {"activation": "sigmoid"}},
)  # fmt: skip


@pytest.mark.parametrize(
    ("head", "ports", "line"),
    [
        (
            RETINANET,
            {"cls_logits": (1, 24570, 91), "box_deltas": (1, 24570, 4)},
            "output 'cls_logits': expected (1, 24570, 3), 24570 boxes (40x52x9 + 20x26x9 +"
            " 10x13x9), each 3 scores; got (1, 24570, 91)",
        ),
        (
            RETINANET,
            {"cls_logits": (1, 24570, 3), "box_deltas": ("batch", 8190, 4)},
            "output 'box_deltas': expected (1, 24570, 4), 24570 boxes (40x52x9 + 20x26x9 +"
            " 10x13x9), each 4 of the box; got (?, 8190, 4)",
        ),
        (
            RETINANET,
            {"cls_logits": (8, 24570, 3), "box_deltas": (1, 24570, 4)},
            "output 'cls_logits': expected (1, 24570, 3)",
        ),
        (
            YOLO,
            {"p3": (1, 24, 40, 52), "p4": (1, 255, 20, 26)},
            "output 'p4': expected (1, 24, 20, 26), 20x26x3 boxes, each 4 of the box + 1"
            " objectness + 3 scores; got (1, 255, 20, 26)",
        ),
        (
            {**BOXES, "layout": "columns"},
            {"scores": (1, 3, 8400), "boxes": (1, 8400, 4)},
            "output 'boxes': expected (1, 4, N), 4 of the box; got (1, 8400, 4)",
        ),
        (
            {**BOXES, "score": {**SCORE, "background": "last"}},
            {"scores": (1, 100, 3), "boxes": (1, 100, 4)},
            "output 'scores': expected (1, N, 4), 4 scores; got (1, 100, 3)",
        ),
        (
            {**distances(activation="distribution", bins=16), "outputs": APART},
            {"scores": (1, 2080, 3), "boxes": (1, 2080, 4)},
            "output 'boxes': expected (1, 2080, 64), 40x52x1 boxes, each 64 of the box;"
            " got (1, 2080, 4)",
        ),
        (
            FINAL,
            {"found": (1, "n", 7)},
            "output 'found': expected (1, N, 6), 4 of the box + 1 score + 1 class; got (1, ?, 7)",
        ),
        (RETINANET, {"logits": (1, 24570, 3)}, "unknown output 'cls_logits'"),
    ],
)
def test_a_wrong_output_is_named_with_what_was_expected_and_what_came(head, ports, line):
    """The count comes from the declared anchors, for a network of 320 x 416 and three labels."""
    with pytest.raises(ModelError) as error:
        check(output(head), ports, (320, 416), 3)
    assert str(error.value).startswith(line)


@pytest.mark.parametrize(
    ("head", "ports"),
    [
        (RETINANET, {"cls_logits": ("batch", "anchors", 3), "box_deltas": (None, 0, 4)}),
        (RETINANET, {"cls_logits": (1, 24570, 3), "box_deltas": (1, 24570, 4)}),
        (YOLO, {"p3": (1, 24, "h", "w"), "p4": (1, 24, 20, 26), "more": (3,)}),
        (FINAL, {"found": ("n", 6)}),
        (FINAL, {"found": (1, 100, 6)}),
        ({**YOLO, "layout": "rows"}, {"p3": (1, 3, 40, 52, 8), "p4": (1, 3, 20, 26, 8)}),
    ],
)
def test_what_is_not_known_before_the_model_runs_is_accepted(head, ports):
    """Names, None and 0 are any number; further outputs are nobody's business."""
    check(output(head), ports, (320, 416), 3)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"nms": {"kind": "model"}}, "kind: 'model' is for profiles; say it in the card"),
        ({"box_offset": {"corners": "model"}}, "corners: 'model' is for profiles"),
        ({"box_precision": "model"}, "Input should be 'fp32' or 'fp16'"),
        ({"nms": {"kind": "soft_gaussian"}}, "the card must say sigma"),
        ({"exp_clamp": None}, "exp_clamp is missing"),
        ({"clip": True}, "Input should be 'none', 'network' or 'image'"),
        ({"nms": {"treshold": 1}}, "Extra inputs are not permitted"),
    ],
)
def test_a_card_says_everything_itself(change, line):
    """A profile's ``model`` has no meaning in it."""
    with pytest.raises(ValidationError, match=line):
        output(ANCHORS, **change)


def test_an_incomplete_nms_names_all_that_is_missing():
    """Nothing that changes a box has a default."""
    document = output(ANCHORS).model_dump(mode="json")
    document["nms"] = {"kind": "greedy", "class_aware": True, "offset": 0, "top_k_before": "all"}
    with pytest.raises(
        ValidationError, match="the card must say iou_threshold, score_threshold, top_k_after"
    ):
        type(output(ANCHORS)).model_validate(document)


def test_what_is_neutral_need_not_be_said():
    """Without an offset or a rounding there is none; one of an offset leaves the others 0."""
    given = output(ANCHORS, box_offset={"corners": 1})
    assert given.box_offset.model_dump() == {"anchors": 0, "corners": 1, "extent": 0}
    assert given.box_rounding.mode == "none"
    assert given.unletterbox.model_dump() == {"scale": "resized", "offset": "integer"}


@pytest.mark.parametrize(
    ("head", "line"),
    [
        ({**BOXES, "outputs": APART[:1]}, "the columns must be boxes, scores, once each"),
        ({**ANCHORS, "strides": [8, 16]}, "2 strides, and shapes anchors for 1"),
        ({**ANCHORS, "cells": [[1, 2], [3, 4]]}, "1 strides and 2 pairs of cells"),
        ({**YOLO, "outputs": [{**YOLO["outputs"][0], "names": ["p"]}]}, "2 strides are 2 outputs"),
        ({**YOLO, "anchors": None}, "units of anchor and anchors go together"),
        ({**ANCHORS, "deltas": {"means": [0, 0, 0, 0]}}, "either weights, or means and stds"),
        (distances(activation="distribution"), "distribution and a number of bins go together"),
        ({**FINAL, "outputs": [{"names": ["a"], "columns": ["boxes"]}]}, "boxes, score and class"),
        ({**BOXES, "kind": "boxs"}, "does not match any of the expected tags"),
    ],
)
def test_a_head_that_contradicts_itself_is_refused(head, line):
    """Each with the two things that do not fit."""
    with pytest.raises(ValidationError, match=line):
        output(head)


def test_exp_clamp_without_an_exp_is_refused():
    """A clamp that would do nothing is a misunderstanding."""
    with pytest.raises(ValidationError, match="this head takes no exp"):
        output(BOXES, exp_clamp=4.0)


def test_a_profile_replaces_what_it_names_and_nothing_else():
    """Every field in its place; ``model`` and what is not written stay the card's."""
    asked = {
        "box_offset": {"anchors": 1}, "box_rounding": {"mode": "floor", "at": "image"},
        "box_precision": "fp16", "exp_clamp": 2.0, "unletterbox": {"scale": "ratio"},
        "nms": {"kind": "greedy", "iou_threshold": 0.3, "top_k_after": 7, "offset": 1,
                "class_top_k_after": 3},
    }  # fmt: skip
    got = settings(ANCHORS, (8, 16), asked, box_offset={"corners": 1})
    assert (got.anchor_offset, got.corner_offset, got.extent_offset) == (1, 1, 0)
    assert (got.rounding, got.rounding_at, got.precision) == ("floor", "image", "fp16")
    assert (got.exp_clamp, got.scale, got.padding) == (2.0, "ratio", "integer")
    nms = got.nms
    assert (nms.kind, nms.iou_threshold, nms.offset) == ("greedy", 0.3, 1)
    assert (nms.top_k_before, nms.top_k_after, nms.class_aware) == (None, 7, True)
    assert nms.class_top_k_after == 3
    assert settings(ANCHORS, (8, 16), {}).nms.class_top_k_after is None


def test_what_the_head_has_no_use_for_makes_no_difference():
    """Equal work has an equal identity: a model with NMS inside has no anchors and no corners."""
    asked = {
        "box_offset": {"anchors": 1, "corners": 1}, "exp_clamp": 1.0,
        "nms": {"iou_threshold": 0.1, "offset": 1}, "box_rounding": {"at": "image"},
    }  # fmt: skip
    assert settings(FINAL, (8, 16), asked) == settings(FINAL, (8, 16))
    assert settings(ANCHORS, (8, 16), {"exp_clamp": 1.0}) != settings(ANCHORS, (8, 16))


def test_an_identity_is_plain_json():
    """And differs where the settings do."""
    one = settings(RETINANET, (320, 416)).identity()
    assert json.loads(json.dumps(one)) == one
    other = settings(RETINANET, (320, 416), {"nms": {"score_threshold": 0.1}}).identity()
    assert one != other


def test_soft_gaussian_without_any_sigma_is_refused():
    """The profile asks for it, and neither says how wide."""
    with pytest.raises(ModelError, match="sigma to the model card, which has none"):
        settings(BOXES, (8, 16), {"nms": {"kind": "soft_gaussian"}})


def test_the_outputs_that_are_read():
    """In the order of the card, every level."""
    assert output(YOLO).outputs() == ("p3", "p4")
    assert output(RETINANET).outputs() == ("cls_logits", "box_deltas")
