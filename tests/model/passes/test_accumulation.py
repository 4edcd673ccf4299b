"""The accumulation axis: PyTorch's half sums, block by block, and ONNX's official models."""

import numpy as np
import official
import onnx
import pydantic
import pytest
import tiny
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from simulator.errors import ModelError
from simulator.model.passes.accumulation import apply
from simulator.profile.graph import Accumulation

RNG = np.random.default_rng(0)
F = torch.nn.functional


def fp16(block):
    return Accumulation(dtype="fp16", block=block)


def summed(partials):
    """Partial sums added up by PyTorch in half precision."""
    total = None
    for partial in partials:
        half = partial.half()
        total = half if total is None else total + half
    return total.float().numpy()


def convolved(x, w, b, block, **options):
    step = max(block // w[0, 0].numel(), 1)
    return summed(
        F.conv2d(x[:, i : i + step], w[:, i : i + step], None if i else b, **options)
        for i in range(0, x.shape[1], step)
    )


def close(got, wanted):
    """Equal, but for a partial sum that two FP32 kernels round to FP16 neighbours."""
    assert np.mean(got == wanted) > 0.9
    np.testing.assert_allclose(got, wanted, rtol=4e-3, atol=2e-2)


@given(channels=st.integers(1, 20), block=st.integers(1, 40), kernel=st.sampled_from([1, 3]))
@settings(max_examples=30, deadline=None, derandomize=True)
def test_a_convolution_is_what_pytorch_adds_up(channels, block, kernel):
    rng = np.random.default_rng(channels)
    x, w, b = (
        rng.normal(size=shape).astype(np.float32)
        for shape in ((1, channels, 6, 6), (5, channels, kernel, kernel), (5,))
    )
    pads = [kernel // 2] * 4
    node = helper.make_node("Conv", ["x", "w", "b"], ["y"], pads=pads)
    model = tiny.model([node], {"x": x.shape}, {"y": [1, 5, 6, 6]}, {"w": w, "b": b})

    change = apply(model, fp16(block))

    assert change.effective == 1
    onnx.checker.check_model(model, full_check=True)
    wanted = convolved(*map(torch.from_numpy, (x, w, b)), block, padding=kernel // 2)
    close(official.runtime(model, {"x": x}), wanted)


@pytest.mark.parametrize(("trans_a", "trans_b"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_a_gemm_is_what_pytorch_adds_up(trans_a, trans_b):
    a, b = (RNG.normal(size=shape).astype(np.float32) for shape in ((3, 50), (50, 7)))
    c = RNG.normal(size=7).astype(np.float32)
    fed = a.T.copy() if trans_a else a
    node = helper.make_node("Gemm", ["x", "w", "c"], ["y"], transA=trans_a, transB=trans_b)
    weights = {"w": b.T.copy() if trans_b else b, "c": c}
    model = tiny.model([node], {"x": fed.shape}, {"y": None}, weights)

    apply(model, fp16(16))

    first, second = torch.from_numpy(a), torch.from_numpy(b)
    wanted = summed(
        first[:, i : i + 16] @ second[i : i + 16] + (0 if i else torch.from_numpy(c))
        for i in range(0, 50, 16)
    )
    close(official.runtime(model, {"x": fed}), wanted)


def test_a_product_of_two_activations():
    """Attention: neither side is constant, both are sliced."""
    q, k = (RNG.normal(size=shape).astype(np.float32) for shape in ((1, 2, 5, 32), (1, 2, 32, 5)))
    node = helper.make_node("MatMul", ["q", "k"], ["y"])
    model = tiny.model([node], {"q": q.shape, "k": k.shape}, {"y": None})

    apply(model, fp16(8))

    parts = range(0, 32, 8)
    wanted = summed(torch.from_numpy(q)[..., i : i + 8] @ torch.from_numpy(k)[..., i : i + 8, :]
                    for i in parts)  # fmt: skip
    close(official.runtime(model, {"q": q, "k": k}), wanted)


PRODUCTS = official.names("test_basic_conv", "test_conv_with", "test_gemm", "test_matmul_",
                          without=("_1d",))  # fmt: skip


@pytest.mark.parametrize("block", [1, 4, 1000])
@pytest.mark.parametrize("name", PRODUCTS)
def test_official_models_to_the_precision_of_half(name, block):
    """A rounding is off by 2^-11 of a sum; these have at most 25 terms, each rounded as well."""
    model, feeds, wanted = official.case(name)

    apply(model, fp16(block))

    bound = 2 * 25 * 2**-11 * np.abs(wanted).max()
    np.testing.assert_allclose(official.runtime(model, feeds), wanted, atol=bound)


def test_overflow_is_infinite():
    """FP16 ends at 65504: 300 * 300 is beyond."""
    x = np.full((1, 1), 300, np.float32)
    model = tiny.model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": [1, 1]}, {"y": None},
                       {"w": x})  # fmt: skip

    apply(model, fp16(16))

    assert np.isposinf(official.runtime(model, {"x": x})).all()


def test_a_depthwise_convolution_is_rounded_once_or_left_alone():
    w = RNG.normal(size=(4, 1, 3, 3)).astype(np.float32)
    x = RNG.normal(size=(1, 4, 6, 6)).astype(np.float32)
    node = helper.make_node("Conv", ["x", "w"], ["y"], group=4)
    model = tiny.model([node], {"x": x.shape}, {"y": None}, {"w": w})
    alone = official.copied(model)

    apply(model, fp16(9))
    change = apply(alone, fp16(8))

    exact = F.conv2d(torch.from_numpy(x), torch.from_numpy(w), groups=4)
    close(official.runtime(model, {"x": x}), exact.half().float().numpy())
    assert (change.found, change.rewritten) == (1, 0)
    assert change.notes == ("1 unchanged: grouped, or of unknown size",)


def test_an_old_opset_is_refused():
    model = tiny.model([helper.make_node("MatMul", ["x", "x"], ["y"])], opset=10)

    with pytest.raises(ModelError, match=r"graph\.accumulation needs opset 11 or later"):
        apply(model, fp16(16))


@pytest.mark.parametrize("fields", [{"dtype": "fp16"}, {"block": 16}])
def test_a_block_belongs_to_fp16(fields):
    with pytest.raises(pydantic.ValidationError, match="dtype: fp16 needs a block"):
        Accumulation(**fields)
