"""The upsample axis: values of PyTorch's interpolate and of ONNX's official Resize models."""

import numpy as np
import official
import onnx
import pytest
import tiny
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from simulator.errors import ModelError
from simulator.model.passes.upsample import FIELDS, apply
from simulator.profile.graph import Upsample

F = torch.nn.functional
X = np.random.default_rng(0).normal(size=(1, 2, 5, 6)).astype(np.float32)


def network(shape=(10, 12), opset=18, **options):
    """A Resize of 5 x 6 to a size."""
    node = helper.make_node("Resize", ["x", "", "", "s"], ["y"], name="up", **options)
    return tiny.model(
        [node], {"x": [1, 2, 5, 6]}, {"y": [1, 2, *shape]},
        {"s": np.array([1, 2, *shape])}, opset=opset,
    )  # fmt: skip


def old(op, opset, mode):
    """An upsampling by 2 as it was written before opset 11."""
    if opset < 9:
        node = helper.make_node(op, ["x"], ["y"], mode=mode, scales=[1.0, 1.0, 2.0, 2.0])
        return tiny.model([node], {"x": [1, 2, 5, 6]}, {"y": [1, 2, 10, 12]}, opset=opset)
    node = helper.make_node(op, ["x", "s"], ["y"], mode=mode)
    scales = np.array([1, 1, 2, 2], np.float32)
    return tiny.model(
        [node], {"x": [1, 2, 5, 6]}, {"y": [1, 2, 10, 12]}, {"s": scales}, opset=opset
    )


INTERPOLATE = [
    (Upsample(mode="linear", coordinate_transformation_mode="pytorch_half_pixel"),
     {"mode": "bilinear", "align_corners": False}),
    (Upsample(mode="linear", coordinate_transformation_mode="align_corners"),
     {"mode": "bilinear", "align_corners": True}),
    (Upsample(mode="cubic", coordinate_transformation_mode="half_pixel"),
     {"mode": "bicubic", "align_corners": False}),
    (Upsample(mode="cubic", coordinate_transformation_mode="align_corners"),
     {"mode": "bicubic", "align_corners": True}),
    (Upsample(mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
     {"mode": "nearest"}),
    (Upsample(mode="nearest", coordinate_transformation_mode="half_pixel",
              nearest_mode="round_prefer_ceil"), {"mode": "nearest-exact"}),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "options"), INTERPOLATE)
@given(rows=st.integers(2, 17), columns=st.integers(2, 17))
@settings(max_examples=15, deadline=None, derandomize=True)
def test_values_of_pytorch(asked, options, rows, columns):
    model = network((rows, columns), mode="linear", coordinate_transformation_mode="asymmetric")

    apply(model, asked)

    wanted = F.interpolate(torch.from_numpy(X), (rows, columns), **options).numpy()
    got = official.runtime(model, {"x": X})
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4, strict=True)


RESIZES = official.names(
    "test_resize",
    without=("tf_crop", "half_pixel_symmetric", "antialias", "not_larger", "not_smaller"),
)


@pytest.mark.parametrize("name", RESIZES)
def test_official_models_come_back(name):
    """Changed in every field and back, ONNX's models give what ONNX says.

    ONNX Runtime (1.31) has answers of its own to align_corners by a broken scale, and gives them.
    """
    model, feeds, wanted = official.case(name)
    values = {a.name: helper.get_attribute_value(a) for a in model.graph.node[0].attribute}
    first = dict(zip(FIELDS, (b"nearest", b"half_pixel", b"round_prefer_floor"), strict=True))
    mine = {field: values.get(field, first[field]).decode() for field in FIELDS}
    others = {
        "mode": "linear" if mine["mode"] == "nearest" else "nearest",
        "coordinate_transformation_mode": "align_corners",
        "nearest_mode": "ceil" if mine["nearest_mode"] == "floor" else "floor",
    }

    changed = apply(model, Upsample(**others))
    apply(model, Upsample(**mine))

    assert changed.rewritten == 1
    np.testing.assert_allclose(official.reference(model, feeds), wanted, rtol=1e-3, atol=1e-6)
    own = official.runtime(official.case(name)[0], feeds)
    np.testing.assert_array_equal(official.runtime(model, feeds), own)


@pytest.mark.parametrize(("op", "opset"), [("Upsample", 7), ("Upsample", 9), ("Resize", 10)])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_old_operators_keep_what_is_not_asked_for(op, opset, mode):
    """ONNX's version converter makes half_pixel of what was asymmetric; we do not."""
    wanted = official.runtime(old(op, opset, mode), {"x": X})
    model = old(op, opset, mode)

    change = apply(model, Upsample(mode=mode))

    assert (change.found, change.rewritten) == (1, 0)
    np.testing.assert_allclose(official.runtime(model, {"x": X}), wanted, atol=1e-6)


@pytest.mark.parametrize(("op", "opset"), [("Upsample", 7), ("Upsample", 9), ("Resize", 10)])
def test_old_operators_get_the_new_attributes(op, opset):
    model = old(op, opset, "linear")

    change = apply(model, Upsample(coordinate_transformation_mode="align_corners"))

    wanted = F.interpolate(torch.from_numpy(X), (10, 12), mode="bilinear", align_corners=True)
    np.testing.assert_allclose(official.runtime(model, {"x": X}), wanted.numpy(), atol=1e-5)
    assert str(change) == f"1 of 1 {op} changed"


def test_nearest_by_two_is_the_same_with_both_conventions():
    """Half pixel: -0.25 0.25 0.75 1.25 round to 0 0 1 1; asymmetric: 0 0.5 1 1.5 floor to them."""
    model = network(
        mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"
    )

    change = apply(model, Upsample(
        coordinate_transformation_mode="half_pixel", nearest_mode="round_prefer_floor"
    ))  # fmt: skip

    assert (change.found, change.rewritten, change.effective) == (1, 1, 0)
    assert str(change) == (
        "1 of 1 Resize changed, 1 without effect because both give the same values at these sizes"
    )


def test_nearest_mode_of_a_linear_resize_has_no_effect():
    change = apply(network(mode="linear"), Upsample(nearest_mode="ceil"))

    assert (change.rewritten, change.effective) == (1, 0)


def test_what_has_an_effect_is_seen():
    change = apply(network(mode="linear"), Upsample(coordinate_transformation_mode="asymmetric"))

    assert (change.rewritten, change.effective) == (1, 1)


def test_a_deconvolution_is_kept():
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2])
    model = tiny.model([node], {"x": [1, 2, 5, 6]}, {"y": None},
                       {"w": np.ones((2, 2, 2, 2), np.float32)})  # fmt: skip
    before = official.copied(model)

    change = apply(model, Upsample(mode="nearest"))

    assert str(change) == (
        "this axis does not exist in this model: it has no Resize or Upsample; "
        "1 ConvTranspose unchanged"
    )
    assert model == before


def test_an_opset_that_cannot_be_raised_is_refused():
    model = old("Upsample", 9, "linear")
    model.graph.node.append(helper.make_node("Own", ["y"], ["z"]))

    with pytest.raises(ModelError, match="upsample needs opset 11 or later, the model has 9 and"):
        apply(model, Upsample(mode="nearest"))


def test_the_result_is_a_valid_model():
    model = network()

    apply(model, Upsample(mode="cubic", coordinate_transformation_mode="align_corners"))

    onnx.checker.check_model(model, full_check=True)
