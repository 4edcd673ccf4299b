"""The pooling axis: sizes worked out by hand, values held against PyTorch and ONNX's reference."""

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import tiny
import torch
from onnx import helper
from onnx.reference import ReferenceEvaluator

from simulator.errors import ModelError
from simulator.model.graph.pooling import set_ceil_mode


def pool(op="MaxPool", kernel=2, stride=2, pad=0, given="x", made="y", **more):
    return helper.make_node(
        op, [given], [made], name=made,
        kernel_shape=[kernel, kernel], strides=[stride, stride], pads=[pad] * 4, **more,
    )  # fmt: skip


def network(*nodes, size=7, out=None, **more):
    return tiny.model(list(nodes), {"x": [1, 3, size, size]}, {"y": out}, **more)


def output_size(model):
    return [dim.dim_value for dim in model.graph.output[0].type.tensor_type.shape.dim]


SIZES = [(7, 2, 2, 0, 3, 4), (8, 3, 2, 0, 3, 4), (6, 3, 2, 1, 3, 4), (112, 3, 2, 1, 56, 57),
         (10, 3, 3, 0, 3, 4)]  # fmt: skip
"""(input, kernel, stride, pad) → floor and ceil of (input + 2 pad - kernel) / stride, plus 1."""


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize(("size", "kernel", "stride", "pad", "floor", "ceil"), SIZES)
def test_the_output_grows_by_one(op, size, kernel, stride, pad, floor, ceil):
    model = network(pool(op, kernel, stride, pad), size=size, out=[1, 3, floor, floor])

    change = set_ceil_mode(model, ceil=True)

    assert (change.pools, change.rewritten, change.effective) == (1, 1, 1)
    assert str(change) == "1 of 1 pooling nodes rewritten"
    assert output_size(model) == [1, 3, ceil, ceil]
    onnx.checker.check_model(model, full_check=True)


@pytest.mark.parametrize(("size", "kernel", "stride", "pad", "floor", "ceil"), SIZES)
def test_back_to_floor(size, kernel, stride, pad, floor, ceil):
    model = network(pool("MaxPool", kernel, stride, pad, ceil_mode=1), size=size)

    assert set_ceil_mode(model, ceil=False).effective == 1
    assert output_size(model) == [1, 3, floor, floor]


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "pad"), [*(row[:4] for row in SIZES), (7, 2, 2, 1), (5, 2, 3, 1)]
)
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
def test_values_are_those_of_pytorch_and_of_onnxs_reference(op, size, kernel, stride, pad):
    """``torch.nn.functional`` pools with ``ceil_mode=True`` know nothing of our rewrite.

    ONNX's reference (1.23) shifts the windows of an AveragePool whose last one hangs over by
    two; there ONNX Runtime, which agrees with PyTorch, stands alone.
    """
    model = network(pool(op, kernel, stride, pad), size=size)
    x = np.random.default_rng(0).normal(size=(1, 3, size, size)).astype(np.float32)

    set_ceil_mode(model, ceil=True)

    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    found = [session.run(None, {"x": x})[0]]
    if (op, size) != ("AveragePool", 10):
        found += ReferenceEvaluator(model).run(None, {"x": x})
    call = torch.nn.functional
    given = torch.from_numpy(x)
    if op == "MaxPool":
        wanted = call.max_pool2d(given, kernel, stride, pad, ceil_mode=True)
    else:
        wanted = call.avg_pool2d(
            given, kernel, stride, pad, ceil_mode=True, count_include_pad=False
        )
    assert tuple(wanted.shape) == tuple(output_size(model))
    for got in found:
        np.testing.assert_allclose(got, wanted.numpy(), rtol=1e-6, atol=1e-6, strict=True)


@pytest.mark.parametrize(("size", "kernel", "stride", "pad"), [(7, 2, 2, 1), (5, 2, 3, 1)])
def test_a_window_that_would_start_in_the_padding_does_not_count(size, kernel, stride, pad):
    """PyTorch: the last window must start inside the input or the left padding.

    7 wide, kernel 2, stride 2, pad 1: ceil(7 / 2) + 1 = 5 windows, and the fifth would start
    at 8 of 1 + 7. ONNX 1.23's shape inference says 5, and a Gemm sized for 4 would be refused.
    """
    fits = torch.nn.functional.max_pool2d(
        torch.zeros(1, 3, size, size), kernel, stride, pad, ceil_mode=True
    ).numel()
    nodes = [
        pool("MaxPool", kernel, stride, pad, made="p"),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "w"], ["y"], name="fc"),
    ]
    model = network(*nodes, size=size, out=[1, 5], constants={"w": np.zeros((fits, 5), np.float32)})

    change = set_ceil_mode(model, ceil=True)

    assert (change.rewritten, change.effective) == (1, 0)
    assert "1 without effect at these sizes" in str(change)


def test_sizes_that_divide_do_not_change():
    model = network(pool(made="a"), pool(given="a"), size=8, out=[1, 3, 2, 2])

    change = set_ceil_mode(model, ceil=True)

    assert (change.pools, change.rewritten, change.effective) == (2, 2, 0)


def test_a_later_pool_sees_the_new_size():
    """7 → 4 → 2 where it was 7 → 3 → 1: the second divides after the first has grown."""
    model = network(pool(made="a"), pool(given="a"), out=[1, 3, 1, 1])

    assert set_ceil_mode(model, ceil=True).effective == 2
    assert output_size(model) == [1, 3, 2, 2]


def test_a_model_without_pools_says_that_the_axis_does_not_exist():
    change = set_ceil_mode(tiny.classifier(), ceil=True)

    assert (change.pools, change.rewritten) == (0, 0)
    assert str(change).startswith("this axis does not exist in this model")


def test_what_is_so_already():
    change = set_ceil_mode(network(pool(ceil_mode=1)), ceil=True)

    assert str(change) == "all 1 pooling nodes already have this ceil_mode"


def test_other_attributes_stay():
    node = pool("AveragePool", 3, 2, 1, count_include_pad=1)
    model = network(node)

    set_ceil_mode(model, ceil=True)

    values = {a.name: helper.get_attribute_value(a) for a in model.graph.node[0].attribute}
    assert values == {
        "kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "count_include_pad": 1,
        "ceil_mode": 1,
    }  # fmt: skip


def test_a_gemm_that_no_longer_fits_is_named():
    """27 = 3 channels of 3 x 3; with ceil_mode they are 48 = 3 of 4 x 4."""
    nodes = [
        pool(made="p"),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "w"], ["y"], name="fc"),
    ]
    model = network(*nodes, out=[1, 5], constants={"w": np.zeros((27, 5), np.float32)})

    with pytest.raises(ModelError, match=r"ceil_mode ceil breaks .* node name: fc\).* 27 and 48"):
        set_ceil_mode(model, ceil=True)


def test_a_reshape_that_no_longer_fits_is_named():
    """Shape inference believes a Reshape whatever it is given."""
    nodes = [pool(made="p"), helper.make_node("Reshape", ["p", "s"], ["y"], name="view")]
    model = network(*nodes, out=[1, 27], constants={"s": np.array([1, 27])})

    with pytest.raises(ModelError, match=r"node name: view\): \[1, 3, 4, 4\] to \[1, 27\]"):
        set_ceil_mode(model, ceil=True)


def test_a_reshape_that_asks_for_the_rest_fits():
    nodes = [pool(made="p"), helper.make_node("Reshape", ["p", "s"], ["y"], name="view")]
    model = network(*nodes, out=[1, 27], constants={"s": np.array([1, -1])})

    assert set_ceil_mode(model, ceil=True).effective == 1
    assert output_size(model) == [1, 48]


def test_operators_of_others_do_not_stop_it():
    nodes = [pool(made="p"), helper.make_node("Own", ["p"], ["y"], domain="com.example")]

    change = set_ceil_mode(network(*nodes, domains=["com.example"]), ceil=True)

    assert change.effective == 1


def test_an_old_opset_is_refused():
    with pytest.raises(ModelError, match="ceil_mode needs opset 10 or later, the model has 9"):
        set_ceil_mode(network(pool(), opset=9), ceil=True)
