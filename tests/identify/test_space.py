"""The space has what the backends offer here, and its stacks are those that its options say."""

import pytest
import tiny

from simulator.errors import ProfileError, UserError
from simulator.identify.space import Space, load_space, space
from simulator.model.card import Card
from simulator.profile.load import load

PILLOW = {"bilinear", "bicubic", "box", "hamming", "lanczos", "nearest"}
"""The filters of Pillow's handbook, 'Concepts: Filters'."""


@pytest.fixture(scope="module")
def card(tmp_path_factory):
    return Card(tiny.card(tmp_path_factory.mktemp("card")))


@pytest.fixture(scope="module")
def whole(card):
    return space("pillow_fp32", card)


def test_columns_of_tensors_in_the_order_of_overrides(whole):
    assert list(whole.axes) == [
        "decode", "resize", "domain", "geometry", "encode", "convert", "source", "odd_size",
        "format", "order", "normalize",
    ]  # fmt: skip


def test_pillow_has_the_filters_of_its_handbook(whole):
    found = {
        option["resize"]["interpolation"]
        for option in whole.axes["resize"].values()
        if option["resize"]["backend"] == "pillow"
    }

    assert found == PILLOW


def test_frames_depend_on_fewer_columns(card):
    assert list(space("pillow_fp32", card, "frames", "decode").axes) == ["decode"]


def test_what_needs_a_device_is_left_out(whole):
    sections = [option["decode"] for option in whole.axes["decode"].values()]

    assert all(section["backend"] != "ascend" for section in sections)
    assert all(section["backend"] != "recorded" for section in sections)


def test_an_option_leaves_nothing_of_the_section_that_it_replaces(whole):
    """ascend_nv12_int8 decodes with FFmpeg, whose swscale_flags Pillow does not have."""
    other = Space("ascend_nv12_int8", whole.axes)
    picks = {"decode": "pillow exif=apply", "source": "encode"}

    profile, choices = other.stack(picks)

    assert profile.spec.decode.model_dump(exclude_none=True) == {
        "backend": "pillow", "exif": "apply", "idct": "islow", "chroma_upsampling": "fancy",
    }  # fmt: skip
    assert choices["decode"].backend.name == "pillow"


def test_rgb_removes_what_yuv_needs(whole):
    picks = {axis: next(iter(options)) for axis, options in whole.axes.items()}

    color = whole.stack(picks | {"format": "rgb", "domain": "yuv"})[0].spec.color
    carried = whole.stack(picks | {"format": "nv12"})[0].spec.color

    assert (color.format, color.encode, color.convert, color.source) == ("rgb", None, None, None)
    assert carried.convert.backend == next(iter(whole.axes["convert"])).split()[0]


def test_planes_of_a_decoder_that_gives_none(whole, card):
    picks = {axis: next(iter(options)) for axis, options in whole.axes.items()}
    picks |= {"format": "nv12", "source": "planes", "decode": "pillow exif=ignore"}

    assert not whole.fits(picks, card)
    with pytest.raises(ProfileError, match="pillow does not give YUV planes"):
        whole.stack(picks)


def test_normalizations_of_the_card_and_mistakes_about_it(whole):
    """The card has mean 127 and std 64: a forgotten std divides by 1."""
    sections = {name: option["normalize"] for name, option in whole.axes["normalize"].items()}

    assert sections["model"] == {"mean": "model", "std": "model"}
    assert sections["mean only"] == {"mean": [127.0] * 3, "std": [1.0] * 3}
    assert sections["scaled to 0..1"] == {"mean": [0.0] * 3, "std": [255.0] * 3}
    assert "channels reversed" not in sections  # all channels have the same


def test_geometries_of_squash_have_no_rounding(whole):
    """Squashing rounds nothing, so that the card's three roundings are one option."""
    names = list(whole.axes["geometry"])

    assert [name for name in names if name.startswith("model")] == ["model torchvision"]
    assert "squash" not in names
    assert {"letterbox center 114 dali", "squash_crop 37 floor"} <= set(names)  # 32 / 0.875 = 36.6


def test_a_base_of_its_own_is_an_option(card):
    """No list of flags has FFmpeg's three at once; the base has."""
    found = space("ascend_nv12_int8", card, "frames", "decode").axes["decode"]

    flags = load("ascend_nv12_int8").spec.decode.swscale_flags
    assert found["ascend_nv12_int8"]["decode"]["swscale_flags"] == list(flags)


def test_runtimes_of_outputs_leave_no_quantizer(cache, card):
    """Over an INT8 base, FP32 on ONNX Runtime has neither the quantizer nor INT8."""
    axes = {"runtime": space("pillow_fp32", card, "outputs").axes["runtime"]}

    profile, choices = Space("ascend_nv12_int8", axes).stack(
        {"runtime": "onnxruntime graph_optimization_level=basic"}
    )

    assert profile.spec.precision.model_dump(exclude_none=True) == {
        "storage": "fp32", "compute": "fp32",
    }  # fmt: skip
    assert "quantize" not in choices


def test_a_document_narrows_the_space(whole, tmp_path):
    path = tmp_path / "narrow.yaml"
    path.write_text(Space(whole.base, {"resize": whole.axes["resize"]}, name="narrow").document())

    found = load_space(path)

    assert (found.base, found.axes) == (whole.base, {"resize": whole.axes["resize"]})
    assert found.size == len(whole.axes["resize"])


def test_documents_that_are_no_space(whole, tmp_path):
    path = tmp_path / "suite.yaml"
    path.write_text(whole.document() + "combined: {decode.backend: pillow}\n")

    with pytest.raises(UserError, match="combined: a space has none; remove it"):
        load_space(path)
