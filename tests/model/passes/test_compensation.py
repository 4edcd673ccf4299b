"""The compensation axis: least squares, and where the convolution goes."""

import numpy as np
import official
import onnx
import pytest
import tiny
from onnx import helper
from pydantic import ValidationError

from simulator.contract.passes import Fitting
from simulator.errors import ModelError
from simulator.model.passes.compensation import PASS
from simulator.profile.graph import BothSides, Compensation

RNG = np.random.default_rng(2)
MATRIX = np.array([[1.1, 0.1, -0.2], [0, 0.9, 0.3], [0.05, -0.1, 1.2]])
OFFSET = np.array([0.5, -1.0, 0.25])


def asked(form):
    return Compensation(form=form, calibration=BothSides(samples=4, source="data"))


def network(pads=(0, 0, 0, 0), bias=True, **options):
    inputs = ["x", "w", *(["b"] if bias else [])]
    nodes = [
        helper.make_node("Conv", inputs, ["c"], name="first", pads=list(pads), **options),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    constants = {
        "w": RNG.normal(size=(4, 3, 3, 3)).astype(np.float32),
        "b": RNG.normal(size=4).astype(np.float32),
    }
    return tiny.model(nodes, {"x": [1, 3, 9, 7]}, {"y": None}, constants)


def turned(x, matrix=MATRIX, offset=OFFSET):
    """What a camera with other primaries sees, pixel by pixel."""
    return (np.einsum("ij,njhw->nihw", matrix, x) + offset[None, :, None, None]).astype(np.float32)


def pairs(make, count=4):
    deploys = [RNG.normal(size=(1, 3, 9, 7)).astype(np.float32) for _ in range(count)]
    return [(make(x), x) for x in deploys]


def fitting(samples):
    return Fitting("made", lambda: (tuple({"x": x} for x in pair) for pair in samples), None)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("pads", "nodes"), [((0,) * 4, 2), ((1,) * 4, 3), ((0, 0, 0, 1), 3)])
def test_the_network_sees_what_the_training_stack_makes(pads, nodes, bias):
    """The transform is known; without padding it costs no node."""
    original = network(pads, bias)
    model, samples = official.copied(original), pairs(turned)
    change = PASS.change(model, asked("matrix"), fitting(samples))

    train, deploy = samples[0]
    wanted = official.runtime(original, {"x": train})
    found = official.runtime(model, {"x": deploy})
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)
    assert len(model.graph.node) == nodes
    where = "folded into Conv" if nodes == 2 else "a 1x1 convolution before Conv"
    assert where in str(change)
    assert "it removes 100 % of the squared difference" in str(change)


def test_affine_is_numpys_least_squares_of_each_channel():
    """Against np.polyfit of degree 1, channel by channel."""
    samples = pairs(lambda x: np.tanh(turned(x)).astype(np.float32))
    transform = PASS.fit.constants(network(), asked("affine"), fitting(samples))

    for channel in range(3):
        train, deploy = (np.ravel([pair[side][0, channel] for pair in samples]) for side in (0, 1))
        slope, offset = np.polyfit(deploy.astype(float), train.astype(float), 1)
        assert transform.matrix[channel, channel] == pytest.approx(slope)
        assert transform.offset[channel] == pytest.approx(offset)
    assert np.count_nonzero(transform.matrix) == 3


def test_a_share_of_the_difference_is_left():
    """Half of the energy of the difference is noise, which no transform removes."""
    noise = [RNG.normal(size=(1, 3, 9, 7)) for _ in range(200)]
    left = iter(noise)
    samples = pairs(lambda x: (x + 1 + next(left)).astype(np.float32), 200)
    transform = PASS.fit.constants(network(), asked("affine"), fitting(samples))

    assert transform.removed == pytest.approx(0.5, abs=0.02)


def test_a_grouped_first_layer_is_left_alone():
    """A depthwise convolution cannot mix channels."""
    model = network(group=3, bias=False)
    weights = np.ones((3, 1, 3, 3), np.float32)
    model.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(weights, "w"))
    change = PASS.change(model, asked("matrix"), fitting(pairs(turned)))

    assert "a 1x1 convolution before Conv" in str(change)


def test_an_input_without_channels_first_has_no_such_axis():
    model = tiny.model(
        [helper.make_node("Relu", ["x"], ["y"])], {"x": [1, 9, 7, 3]}, {"y": None}, {}
    )
    change = PASS.change(model, asked("matrix"), fitting(pairs(turned)))

    assert str(change) == (
        "this axis does not exist in this model: it has no single input of shape "
        "(N, channels, rows, columns)"
    )


def test_inputs_of_two_shapes_are_refused():
    samples = [(np.zeros((1, 3, 9, 7), np.float32), np.zeros((1, 3, 9, 8), np.float32))]

    with pytest.raises(ModelError, match=r"inputs of \(1, 3, 9, 7\), this one of \(1, 3, 9, 8\)"):
        PASS.change(network(), asked("affine"), fitting(samples))


def test_a_form_needs_samples_and_samples_need_a_form():
    for fields in ({"form": "affine"}, {"calibration": {"samples": 3, "source": "data"}}):
        with pytest.raises(ValidationError, match=r"need calibration: \{samples, source\}"):
            Compensation.model_validate(fields)
