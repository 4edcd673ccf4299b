import json

import pytest
from pydantic import ValidationError

from simulator.errors import ModelError
from simulator.profile.postprocess import MaskResize, Postprocess
from simulator.tasks.segmentation.card import Sampling, SegmentationOutput, check, resolve

UPSAMPLE = {"mode": "bilinear", "coordinate_transformation_mode": "align_corners"}
RESIZE = {"of": "labels", "mode": "nearest", "coordinate_transformation_mode": "half_pixel"}
SPEC = {
    "scores": "y",
    "kind": "logits",
    "logits_upsample": UPSAMPLE,
    "argmax": "after",
    "output_stride": 1,
    "mask_resize": RESIZE,
}
INSIDE = {"kind": "labels", "argmax": None, "logits_upsample": None}


def card(**fields):
    return SegmentationOutput.model_validate(
        {k: v for k, v in (SPEC | fields).items() if v is not None}
    )


def chosen(asked=None, network=(257, 257), **fields):
    return resolve(card(**fields), Postprocess.model_validate(asked or {}), network)


def refused(**fields):
    with pytest.raises(ValidationError) as error:
        card(**fields)
    (problem,) = error.value.errors()
    return problem["msg"]


def test_a_profile_that_asks_for_nothing_gets_what_the_card_says():
    found = chosen()

    assert found.upsample == Sampling("bilinear", "align_corners")
    assert found.resize == Sampling("nearest", "half_pixel")
    assert (found.resized, found.size) == ("labels", (257, 257))
    assert (found.scale, found.padding) == ("resized", "integer")


def test_what_a_profile_asks_for_replaces_what_the_card_says():
    found = chosen(
        {
            "logits_upsample": {"coordinate_transformation_mode": "asymmetric"},
            "output_stride": 8,
            "mask_resize": {"of": "logits", "mode": "bilinear"},
            "unletterbox": {"offset": "exact"},
        }
    )

    assert found.upsample == Sampling("bilinear", "asymmetric")
    assert found.resize == Sampling("bilinear", "half_pixel")
    assert (found.resized, found.size) == ("logits", (33, 33))
    assert (found.scale, found.padding) == ("resized", "exact")


def test_the_sides_by_the_output_stride_are_rounded_up():
    """ceil(100 / 8) = 13, ceil(128 / 8) = 16."""
    assert chosen({"output_stride": 8}, network=(100, 128)).size == (13, 16)


def test_classes_that_are_chosen_early_are_resized_by_nearest():
    """So the axis argmax can be swapped alone, whatever the others say of logits."""
    logits = MaskResize(of="logits", mode="bilinear")
    mixed = Postprocess(argmax="before").model_copy(update={"mask_resize": logits})
    found = resolve(card(), mixed, (64, 64))

    assert found.upsample == Sampling("nearest", "align_corners")
    assert found.resize == Sampling("nearest", "half_pixel")
    assert found.resized == "labels"


def test_settings_are_told_apart_by_their_identity():
    plain, again = chosen().identity(), chosen().identity()
    other = chosen({"argmax": "before"}).identity()

    assert plain == again == json.loads(json.dumps(plain))
    assert plain != other


@pytest.mark.parametrize(
    ("asked", "fields", "words"),
    [
        ({"mask_resize": {"mode": "bilinear"}}, {}, "only be resized by nearest"),
        ({"mask_resize": {"of": "labels"}},
         {"mask_resize": RESIZE | {"of": "logits", "mode": "bilinear"}}, "write `mode: nearest`"),
        ({"argmax": "after"}, INSIDE, "argmax: after: output 'y' holds labels"),
        ({"mask_resize": {"of": "logits"}}, INSIDE, "of: logits: output 'y' holds labels"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_one_line(asked, fields, words):
    with pytest.raises(ModelError, match=words) as error:
        chosen(asked, **fields)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"mask_resize": {"of": "labels", "mode": "nearest"}},
         "the card must say coordinate_transformation_mode"),
        ({"logits_upsample": UPSAMPLE | {"mode": "model"}}, "must say mode; 'model' is for profil"),
        ({"mask_resize": RESIZE | {"mode": "bilinear"}}, "labels can only be resized by nearest"),
        ({"argmax": None}, "argmax is missing: before, or after"),
        ({"argmax": "before"}, "logits_upsample.mode: labels can only be resized by nearest"),
        ({"argmax": "before", "logits_upsample": UPSAMPLE | {"mode": "nearest"},
          "mask_resize": RESIZE | {"of": "logits"}}, "mask_resize.of: classes have been chosen"),
        ({"kind": "labels"}, "argmax: a model that gives labels has it inside; leave it out"),
        ({"unletterbox": {"scale": "ratio"}}, "the card must say offset"),
    ],
)  # fmt: skip
def test_a_card_that_contradicts_itself_or_says_too_little(fields, words):
    assert words in refused(**fields)


@pytest.mark.parametrize(
    ("fields", "shape"),
    [
        ({}, (1, 21, 33, 33)),
        ({}, (None, 21, None, None)),
        ({"layout": "NHWC"}, (1, 33, 33, 21)),
        ({"logits_upsample": None}, (1, 21, 257, 129)),
        ({"logits_upsample": None, "output_stride": 4}, (1, 21, 65, 33)),
        (INSIDE, (1, 257, 129)),
        (INSIDE, (1, 1, 257, 129)),
        (INSIDE, (1, 257, 129, 1)),
        (INSIDE | {"output_stride": 8}, (1, 33, 17)),
    ],
)
def test_outputs_that_fit(fields, shape):
    check(card(**fields), {"x": (1,), "y": shape}, (257, 129), 21)


@pytest.mark.parametrize(
    ("fields", "shape", "words"),
    [
        ({}, (1, 19, 33, 33), r"'y': 21 labels, and 19 channels of \(1, 19, 33, 33\) as NCHW$"),
        ({}, (1, 33, 33, 21), r"33 channels .* as NCHW; is its layout NHWC\?"),
        ({}, (1, 21, 33), r"'y': logits are \(1, C, H, W\), got \(1, 21, 33\)"),
        ({}, (4, 21, 33, 33), r"got \(4, 21, 33, 33\)"),
        ({"layout": "NHWC"}, (1, 21), r"logits are \(1, H, W, C\), got \(1, 21\)"),
        ({"logits_upsample": None}, (1, 21, 33, None),
         r"expected 257x129, .* got \(33, \?\); .* write logits_upsample in the card"),
        (INSIDE, (1, 2, 257, 129), r"labels are \(1, H, W\), \(1, 1, H, W\) or \(1, H, W, 1\)"),
        (INSIDE, (1, 256, 129), "expected 257x129"),
    ],
)  # fmt: skip
def test_outputs_that_do_not_fit(fields, shape, words):
    with pytest.raises(ModelError, match=words):
        check(card(**fields), {"y": shape}, (257, 129), 21)


def test_an_output_that_the_model_does_not_have():
    with pytest.raises(ModelError, match=r"unknown output 'y'; did you mean 'yy'\?"):
        check(card(), {"yy": (1, 21, 33, 33)}, (257, 257), 21)


@pytest.mark.parametrize("classes", [1, 256])
def test_a_mask_has_2_to_255_classes(classes):
    with pytest.raises(ModelError, match=f"{classes} classes, but a mask can have 2 to 255"):
        check(card(), {"y": (1, classes, 33, 33)}, (257, 257), None)
