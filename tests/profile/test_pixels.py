"""A deployment of the runtime only, and pixel axes that differ though nobody asked for it."""

import pytest

from simulator.errors import ProfileError, UserError
from simulator.experiments.common import pair_of
from simulator.profile import axes
from simulator.profile.pixels import unasked


def pair(train, deploy, *overrides, pixels="own"):
    return pair_of(train, deploy, overrides, pixels)


def differing(found):
    return axes.differing(found["train"], found["deploy"])


def test_only_the_runtime_is_deployed():
    found = pair("dali_fp32", "openvino_int8", pixels="train")

    assert differing(found) == ["precision", "runtime"]
    assert found["deploy"][0].name == "openvino_int8+pixels_of_train"


def test_changes_of_the_training_pixels_are_taken_too():
    changed = "train.resize=opencv-nearest"

    found = pair("pillow_fp32", "openvino_int8", changed, pixels="train")

    assert found["deploy"][0].spec.resize.backend == "opencv"
    assert differing(found) == ["precision", "runtime"]


def test_evidence_is_that_of_where_a_section_is_from():
    train, deploy = pair("dali_fp32", "openvino_int8", pixels="train").values()

    assert axes.evidence(*deploy, "decoder") == axes.evidence(*train, "decoder")
    alone = pair("dali_fp32", "openvino_int8")["deploy"]
    assert axes.evidence(*deploy, "runtime") == axes.evidence(*alone, "runtime")
    assert deploy[0].where(("decode", "backend")) == train[0].where(("decode", "backend"))


@pytest.mark.parametrize(
    ("overrides", "pixels", "kind", "said"),
    [
        (["deploy.resize=opencv-nearest"], "train", UserError, "those of the training stack"),
        ([], "trian", UserError, "did you mean 'train'"),
        (["deploy.runtime.backend=ncnn"], "train", ProfileError, "int8"),
    ],
)
def test_what_cannot_be_is_refused(overrides, pixels, kind, said):
    with pytest.raises(kind, match=said):
        pair("dali_fp32", "openvino_int8", *overrides, pixels=pixels)


@pytest.mark.parametrize(
    ("train", "deploy", "overrides", "named"),
    [
        ("dali_fp32", "openvino_int8", (), "decoder, resize, geometry, normalize differ"),
        ("opencv_fp32", "openvino_int8", (), "decoder, resize differ"),
        ("pillow_fp32", "openvino_int8", (), None),
        ("pillow_fp32", "openvino_int8", ("deploy.resize=opencv-nearest",), None),
        ("opencv_fp32", "openvino_int8", ("deploy.resize=opencv-nearest",), "decoder differs"),
        ("pillow_fp32", "openvino_int8", ("deploy.geometry={kind: squash, rounding: null}",), None),
        ("dali_fp32", "ascend_nv12_int8", (), None),
        ("pillow_fp32", "opencv_fp32", (), None),
    ],
)
def test_pixels_that_are_only_inherited_are_named(train, deploy, overrides, named):
    text = unasked(*pair(train, deploy, *overrides).values())

    assert text is None if named is None else text.startswith(named)
    assert text is None or "--deploy-runtime" in text
