"""The axis roi_align: ONNX's official models, and old ones that are raised."""

import numpy as np
import official
import pytest

from simulator.model.passes.roi_align import apply
from simulator.profile.graph import RoiAlign

MODES = {
    "half_pixel": "test_roialign_aligned_true",
    "output_half_pixel": "test_roialign_aligned_false",
}


def case(mode):
    """An official model, of opset 16, its inputs and its output."""
    model, feeds, wanted = official.case(MODES[mode], modules=("roialign",))
    model.opset_import[0].version, model.ir_version = 16, 8
    return model, feeds, wanted


@pytest.mark.parametrize("mode", MODES)
def test_one_official_model_becomes_the_other(mode):
    (other,) = set(MODES) - {mode}
    model, feeds, _ = case(other)

    change = apply(model, RoiAlign(coordinate_transformation_mode=mode))

    assert (change.found, change.rewritten, change.effective) == (1, 1, 1)
    np.testing.assert_allclose(official.runtime(model, feeds), case(mode)[2], atol=1e-4)


def test_a_model_before_opset_16_keeps_its_convention():
    """Before opset 16 there is no other convention than output_half_pixel."""
    model, feeds, wanted = case("output_half_pixel")
    model.graph.node[0].attribute.remove(
        next(a for a in model.graph.node[0].attribute if a.name == "coordinate_transformation_mode")
    )
    model.opset_import[0].version = 10
    ratio = next(a.i for a in model.graph.node[0].attribute if a.name == "sampling_ratio")

    change = apply(model, RoiAlign(sampling_ratio=ratio + 1))
    assert change.rewritten == 1
    apply(model, RoiAlign(sampling_ratio=ratio))

    np.testing.assert_allclose(official.runtime(model, feeds), wanted, atol=1e-4)


def test_a_model_without_one_is_left_alone():
    model, _, _ = official.case("test_exp", modules=("exp",))
    change = apply(model, RoiAlign(sampling_ratio=1))
    assert "does not exist" in str(change)
