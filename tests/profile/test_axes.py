"""Axes: what differs between two profiles, and mixtures of two."""

import pytest

from simulator.contract import Evidence, Stage
from simulator.errors import ProfileError
from simulator.profile import axes
from simulator.profile.implementations import choose
from simulator.profile.load import load
from simulator.profile.lookup import builtin_names


def chosen(name, *overrides):
    profile = load(name, overrides)
    return profile, choose(profile)


@pytest.mark.parametrize("name", builtin_names())
def test_a_profile_does_not_differ_from_itself(name):
    assert axes.differing(chosen(name), chosen(name)) == []


def test_what_is_implied_may_be_written_out():
    """``quantizer.target`` is implied by ONNX Runtime; written out it changes nothing."""
    written = chosen("ort_int8", "precision.quantizer.target=cpu")

    assert axes.differing(chosen("ort_int8"), written) == []


@pytest.mark.parametrize(
    ("override", "axis"),
    [
        ("decode.exif=apply", "decoder"),
        ("color.order=bgr", "color"),
        ("resize.interpolation=box", "resize"),
        ("geometry.rounding=floor", "geometry"),
        ("normalize.mean=[1, 2, 3]", "normalize"),
        ("graph.pooling.ceil_mode=ceil", "pooling"),
        ("runtime.threads=2", "runtime"),
    ],
)
def test_one_field_is_one_axis(override, axis):
    base, other = chosen("pillow_fp32"), chosen("pillow_fp32", override)

    assert axes.differing(base, other) == [axis]
    assert axes.differing(other, base) == [axis]


def test_axes_come_in_the_order_of_the_pipeline():
    found = axes.differing(chosen("pillow_fp32"), chosen("ascend_nv12_int8"))

    assert found == ["decoder", "color", "resize", "geometry", "normalize", "precision"]


def test_a_name_is_no_axis(write):
    path = write("schema: 1\nname: p\nsummary: s\nextends: pillow_fp32\n")

    assert axes.differing(chosen("pillow_fp32"), chosen(path)) == []


def test_facts_of_the_backend_are_part_of_an_axis():
    """Pillow's bilinear antialiases and OpenCV's does not, though neither profile writes it."""
    values = [
        axes.value(*chosen("pillow_fp32", f"resize={name}-bilinear"), "resize")
        for name in ("pil", "opencv")
    ]

    assert [value["antialias"] for value in values] == [True, False]


def test_a_swap_takes_one_axis_and_leaves_the_rest():
    base, other = chosen("pillow_fp32"), chosen("opencv_fp32")

    mixed, choices = axes.swap(base[0], other[0], ["resize"])

    assert axes.differing(base, (mixed, choices)) == ["resize"]
    assert axes.differing((mixed, choices), other) == ["decoder"]


def test_all_axes_swapped_is_the_other_profile():
    base, other = chosen("pillow_fp32"), chosen("ascend_nv12_int8")

    mixed = axes.swap(base[0], other[0], axes.differing(base, other))

    assert axes.differing(mixed, other) == []


def test_planes_from_a_decoder_without_planes_are_encoded():
    """The color axis of a decoder's own YUV, in a stack whose decoder gives only RGB."""
    mixed, choices = axes.swap(load("pillow_fp32"), load("ascend_nv12_int8"), ["color"])

    assert mixed.spec.color.source == "encode"
    assert mixed.spec.color.format == "nv12"
    assert choices[Stage.DECODE].backend.name == "pillow"


def test_a_resize_in_yuv_where_there_is_none_is_done_in_rgb():
    mixed, _ = axes.swap(load("pillow_fp32"), load("ascend_nv12_int8"), ["resize"])

    assert (mixed.spec.resize.backend, mixed.spec.resize.domain) == ("opencv", "rgb")


def test_a_mixture_that_cannot_run_is_refused():
    """PyTorch runs a torch.export program, which nobody quantizes to QDQ."""
    with pytest.raises(ProfileError, match="pytorch"):
        axes.swap(load("pytorch_fp32"), load("ort_int8"), ["precision"])


def test_a_swap_leaves_both_profiles_as_they_were():
    base, other = load("pillow_fp32"), load("ascend_nv12_int8")
    before = base.spec.model_dump(), other.spec.model_dump()

    axes.swap(base, other, ["color", "resize"])

    assert (base.spec.model_dump(), other.spec.model_dump()) == before


def test_the_profiles_own_claim_is_its_evidence():
    kind, source = axes.evidence(*chosen("ascend_nv12_int8"), "color")

    assert kind is Evidence.EMULATED
    assert "AIPP" in source


def test_without_a_claim_the_weakest_backend_counts():
    kind, _ = axes.evidence(*chosen("nv12_fp32", "color.order=bgr"), "color")

    assert kind is Evidence.EMULATED


def test_flat_names_every_leaf():
    assert axes.flat({"a": {"b": 1, "c": {"d": [2]}}, "e": None}) == {
        "a.b": 1, "a.c.d": [2], "e": None,
    }  # fmt: skip
    assert axes.flat("keep") == {"value": "keep"}


def test_a_field_that_is_an_axis_belongs_to_it_and_its_section_to_another():
    keys = ("runtime.batch", "runtime.batch.dynamic", "runtime.threads", "runtime")

    assert [axes.axis_of(key) for key in keys] == ["batch", "batch", "runtime", "runtime"]
