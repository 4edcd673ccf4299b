"""The layout axis: pointwise convolutions against PyTorch's products over the last axis."""

import numpy as np
import official
import onnx
import pytest
import tiny
import torch
from onnx import helper

from simulator.model.passes.layout import apply

RNG = np.random.default_rng(0)
X = RNG.normal(size=(1, 24, 7, 5)).astype(np.float32)


def network(weight=(8, 24, 1, 1), bias=True, out=None, **options):
    inputs = ["x", "w", *(["b"] if bias else [])]
    constants = {
        "w": RNG.normal(size=weight).astype(np.float32),
        "b": RNG.normal(size=weight[0]).astype(np.float32),
    }
    node = helper.make_node("Conv", inputs, ["y"], **options)
    return tiny.model([node], {"x": X.shape}, {"y": out}, constants)


@pytest.mark.parametrize("bias", [True, False])
def test_a_pointwise_convolution_is_a_product_of_channels_last(bias):
    model = network(bias=bias, out=[1, 8, 7, 5])
    w, b = (torch.tensor(onnx.numpy_helper.to_array(t)) for t in model.graph.initializer)

    change = apply(model, "nhwc")

    last = torch.from_numpy(X).permute(0, 2, 3, 1)
    wanted = torch.nn.functional.linear(last, w[:, :, 0, 0], b if bias else None)
    for run in (official.runtime, official.reference):
        got = run(model, {"x": X})
        np.testing.assert_allclose(got, wanted.permute(0, 3, 1, 2), rtol=1e-4, atol=1e-5)
    assert str(change) == "1 of 1 Conv changed"
    assert "Conv" not in [node.op_type for node in model.graph.node]
    onnx.checker.check_model(model, full_check=True)


OTHERS = [
    {"weight": (8, 24, 3, 3)}, {"weight": (8, 12, 1, 1), "group": 2}, {"strides": [2, 2]},
    {"pads": [1, 1, 1, 1]},
]  # fmt: skip


@pytest.mark.parametrize("options", OTHERS)
def test_other_convolutions_stay(options):
    model = network(**options)
    before = official.copied(model)

    assert (apply(model, "nhwc").rewritten, model == before) == (0, True)
