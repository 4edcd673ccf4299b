"""The batchnorm axis: PyTorch's fusion, and ONNX's official models with another epsilon."""

import numpy as np
import official
import onnx
import pytest
import tiny
import torch
from onnx import helper
from torch.nn.utils.fusion import fuse_conv_bn_weights, fuse_linear_bn_weights

from simulator.model.passes.batchnorm import apply
from simulator.profile.graph import Batchnorm

FOLD = Batchnorm(folding="fold")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(1, 4, 9, 9)).astype(np.float32)


def statistics(channels):
    names = ("gamma", "beta", "mean", "var")
    values = RNG.normal(size=(4, channels)).astype(np.float32)
    return dict(zip(names, [*values[:3], np.abs(values[3]) + 0.01], strict=True))


def norm(given="c", made="y", name="bn", **options):
    return helper.make_node(
        "BatchNormalization", [given, "gamma", "beta", "mean", "var"], [made], name=name, **options
    )


def convolution(op="Conv", bias=True, group=1, made="c"):
    inputs = ["x", "w", *(["b"] if bias else [])]
    return helper.make_node(op, inputs, [made], name="conv", group=group)


def network(*nodes, channels=6, weight=(6, 4, 3, 3), x=(1, 4, 9, 9), out=None):
    constants = {
        "w": RNG.normal(size=weight).astype(np.float32),
        "b": RNG.normal(size=channels).astype(np.float32),
        **statistics(channels),
    }
    return tiny.model(list(nodes), {"x": x}, {"y": out}, constants)


def tensors(model):
    return {t.name: torch.tensor(onnx.numpy_helper.to_array(t)) for t in model.graph.initializer}


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    ("op", "group", "weight"),
    [("Conv", 1, (6, 4, 3, 3)), ("Conv", 2, (6, 2, 3, 3)), ("ConvTranspose", 1, (4, 6, 3, 3)),
     ("ConvTranspose", 2, (4, 3, 3, 3))],
)  # fmt: skip
def test_folded_weights_are_pytorchs(op, group, weight, bias):
    """PyTorch's fuse_conv_bn_weights folds in FP32; ONNX Runtime ran the nodes apart."""
    size = 11 if op == "ConvTranspose" else 7
    model = network(
        convolution(op, bias, group), norm(epsilon=1e-3), weight=weight, out=[1, 6, size, size]
    )
    given = tensors(model)
    apart = official.runtime(model, {"x": X}, optimised=False)

    change = apply(model, FOLD)

    assert [node.op_type for node in model.graph.node] == [op]
    assert str(change) == "1 of 1 BatchNormalization changed"
    got = official.runtime(model, {"x": X}, optimised=False)
    np.testing.assert_allclose(got, apart, rtol=1e-4, atol=2e-4)
    onnx.checker.check_model(model, full_check=True)
    if group == 1:
        made, shift = tensors(model).values()
        wanted, wanted_shift = fuse_conv_bn_weights(
            given["w"], given["b"] if bias else None, given["mean"], given["var"], 1e-3,
            given["gamma"], given["beta"], transpose=op == "ConvTranspose",
        )  # fmt: skip
        np.testing.assert_allclose(made, wanted.detach(), rtol=2e-6, atol=1e-6)
        np.testing.assert_allclose(shift, wanted_shift.detach(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("transposed", [0, 1])
def test_a_gemm_is_folded_into(transposed):
    node = helper.make_node("Gemm", ["x", "w", "b"], ["c"], transB=transposed)
    model = network(node, norm(), x=(2, 4), weight=(6, 4) if transposed else (4, 6), channels=6)
    given, x = tensors(model), RNG.normal(size=(2, 4)).astype(np.float32)

    apply(model, FOLD)

    weight = given["w"] if transposed else given["w"].T
    wanted = fuse_linear_bn_weights(
        weight, given["b"], given["mean"], given["var"], 1e-5, given["gamma"], given["beta"]
    )
    expected = torch.nn.functional.linear(torch.from_numpy(x), *wanted).detach().numpy()
    np.testing.assert_allclose(official.runtime(model, {"x": x}), expected, rtol=1e-4, atol=1e-5)


STAY = {
    "nothing before it": [norm("x")],
    "something in between": [convolution(), helper.make_node("Relu", ["c"], ["r"]), norm("r")],
    "the result is read twice": [
        convolution(), norm("c", "n"), helper.make_node("Add", ["c", "n"], ["y"]),
    ],
}  # fmt: skip


@pytest.mark.parametrize("nodes", STAY.values(), ids=STAY)
def test_what_cannot_be_folded_stays_and_is_told(nodes):
    channels = 4 if len(nodes) == 1 else 6
    model = network(*nodes, channels=channels, weight=(channels, 4, 3, 3))
    before = official.runtime(model, {"x": X})

    change = apply(model, FOLD)

    assert (change.found, change.rewritten) == (1, 0)
    assert change.notes == (
        "1 not folded, because no layer with constant weights comes directly before",
    )
    np.testing.assert_array_equal(official.runtime(model, {"x": X}), before)


def test_two_convolutions_that_share_weights_are_folded_apart():
    nodes = [
        convolution(made="c"), norm("c", "n", "bn1"),
        helper.make_node("Conv", ["x", "w", "b"], ["d"]), norm("d", "m", "bn2"),
        helper.make_node("Sub", ["n", "m"], ["y"]),
    ]  # fmt: skip
    model = network(*nodes)

    assert apply(model, FOLD).rewritten == 2
    assert not official.runtime(model, {"x": X}).any()


def test_epsilon_of_pytorch():
    model = network(norm("x"), channels=4)
    given = tensors(model)

    change = apply(model, Batchnorm(epsilon=0.1))

    wanted = torch.nn.functional.batch_norm(
        torch.from_numpy(X), given["mean"], given["var"], given["gamma"], given["beta"], eps=0.1
    )
    assert change.effective == 1
    np.testing.assert_allclose(official.runtime(model, {"x": X}), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "epsilon"), [("test_batchnorm_example", 1e-5), ("test_batchnorm_epsilon", 1e-2)]
)
def test_official_models_come_back(name, epsilon):
    model, feeds, wanted = official.case(name)

    assert apply(model, Batchnorm(epsilon=0.5)).rewritten == 1
    assert apply(model, Batchnorm(epsilon=epsilon)).rewritten == 1

    np.testing.assert_allclose(official.reference(model, feeds), wanted, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(official.runtime(model, feeds), wanted, rtol=1e-3, atol=1e-6)


def test_epsilon_goes_into_what_is_folded():
    model = network(convolution(), norm())
    apart = official.copied(model)

    apply(model, Batchnorm(folding="fold", epsilon=0.5))
    apply(apart, Batchnorm(epsilon=0.5))

    wanted = official.runtime(apart, {"x": X})
    np.testing.assert_allclose(official.runtime(model, {"x": X}), wanted, rtol=1e-4, atol=1e-4)


def test_what_is_so_already():
    change = apply(network(norm("x"), channels=4), Batchnorm(epsilon=1e-5))

    assert str(change) == "none of 1 batchnorm nodes needs a change"
