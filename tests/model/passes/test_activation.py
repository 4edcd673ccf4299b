"""The activation axis: PyTorch's own approximations, ONNX's official models, tables by NumPy."""

import io
import warnings

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
from simulator.model.passes.activation import apply
from simulator.profile.graph import Activation, Table

F = torch.nn.functional
X = np.random.default_rng(0).normal(scale=4, size=(1, 3, 16, 16)).astype(np.float32)


def exported(function, opset=17):
    """What PyTorch's exporter writes for a function."""

    class Module(torch.nn.Module):
        def forward(self, x):
            return function(x)

    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            Module().eval(), (torch.from_numpy(X),), buffer, dynamo=False, opset_version=opset
        )
    return onnx.load_from_string(buffer.getvalue())


def single(op, opset=17, **options):
    shapes = {"x": list(X.shape)}, {"y": list(X.shape)}
    return tiny.model([helper.make_node(op, ["x"], ["y"], **options)], *shapes, opset=opset)


def changed(model, **asked):
    """Apply, check, and run in ONNX Runtime and in ONNX's reference."""
    change = apply(model, Activation(**asked))
    onnx.checker.check_model(model, full_check=True)
    name = model.graph.input[0].name
    found = [run(model, {name: X}) for run in (official.runtime, official.reference)]
    return change, found


FORMS = {
    "x (1 + erf) / 2": "d = Div(x, s) f = Erf(d) g = Add(f, one) p = Mul(x, g) y = Mul(p, half)",
    "(x / 2) (1 + erf)": "h = Mul(x, half) d = Mul(x, r) f = Erf(d) g = Add(one, f) y = Mul(g, h)",
    "x ((1 + erf) / 2)": "d = Mul(r, x) f = Erf(d) g = Add(f, one) p = Mul(half, g) y = Mul(p, x)",
}


def written(text):
    body = text.replace(") ", ")\n")
    numbers = {"half": 0.5, "one": 1.0, "r": 0.5**0.5, "s": 2**0.5}
    used = ", ".join(f"float {k} = {{{v}}}" for k, v in numbers.items())
    return onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]>\ntiny (float[1,3,16,16] x) => '
        f"(float[1,3,16,16] y) <{used}> {{\n{body}\n}}"
    )


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_gelu_is_found_however_it_is_written(text):
    change, found = changed(written(text), gelu="tanh")

    assert str(change) == "1 of 1 Gelu changed"
    wanted = F.gelu(torch.from_numpy(X), approximate="tanh").numpy()
    for got in found:
        np.testing.assert_allclose(got, wanted, atol=2e-6)


def test_an_erf_that_is_no_gelu_stays():
    text = "d = Mul(x, r) f = Erf(d) g = Add(f, one) p = Mul(x, g) y = Mul(p, one)"

    assert apply(written(text), Activation(gelu="tanh")).found == 0


@pytest.mark.parametrize("form", ["erf", "tanh"])
@pytest.mark.parametrize("other", ["erf", "tanh"])
def test_gelu_as_pytorch_exports_it(form, other):
    names = {"erf": "none", "tanh": "tanh"}
    model = exported(lambda x: F.gelu(x, approximate=names[form]))

    change, found = changed(model, gelu=other)

    assert (change.found, change.rewritten) == (1, int(form != other))
    wanted = F.gelu(torch.from_numpy(X), approximate=names[other]).numpy()
    for got in found:
        np.testing.assert_allclose(got, wanted, atol=2e-6)


@pytest.mark.parametrize("name", official.names("test_gelu", without=("expanded",)))
def test_official_gelu_models_come_back(name):
    model, feeds, wanted = official.case(name)
    form, other = ("tanh", "erf") if "tanh" in name else ("erf", "tanh")

    assert apply(model, Activation(gelu=other)).rewritten == 1
    assert apply(model, Activation(gelu=form)).rewritten == 1

    np.testing.assert_allclose(official.reference(model, feeds), wanted, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(official.runtime(model, feeds), wanted, rtol=1e-3, atol=1e-5)


def test_swish_becomes_hard_and_other_gates_stay():
    model = exported(lambda x: F.silu(x) + torch.sigmoid(x.flip(3)))

    change, found = changed(model, swish="hard")

    assert str(change) == "1 of 1 Swish changed"
    x = torch.from_numpy(X)
    for got in found:
        np.testing.assert_allclose(
            got, (F.hardswish(x) + torch.sigmoid(x.flip(3))).numpy(), atol=2e-6
        )


def test_hard_sigmoid_of_pytorch():
    change, found = changed(single("Sigmoid"), sigmoid="hard")

    assert change.effective == 1
    for got in found:
        np.testing.assert_allclose(got, F.hardsigmoid(torch.from_numpy(X)).numpy(), atol=1e-6)


def test_hard_swish_is_onnxs_official_one():
    """ONNX's HardSwish is x * HardSigmoid(alpha=1/6, beta=0.5)."""
    _, feeds, wanted = official.case("test_hardswish")
    (x,) = feeds.values()
    nodes = [helper.make_node("Sigmoid", ["x"], ["s"]), helper.make_node("Mul", ["s", "x"], ["y"])]
    model = tiny.model(nodes, {"x": x.shape}, {"y": x.shape})

    apply(model, Activation(swish="hard"))

    np.testing.assert_allclose(official.runtime(model, {"x": x}), wanted, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("name", official.names("test_swish", without=("expanded",)))
def test_the_swish_operator_has_a_slope(name):
    """ONNX Runtime 1.31 has no Swish; ours is written in older operators."""
    model, feeds, _ = official.case(name)
    (x,) = feeds.values()

    assert apply(model, Activation(swish="hard")).rewritten == 1

    slope = helper.get_attribute_value(official.case(name)[0].graph.node[0].attribute[0])
    wanted = torch.from_numpy(x) * F.hardsigmoid(slope * torch.from_numpy(x))
    np.testing.assert_allclose(official.reference(model, feeds), wanted.numpy(), atol=1e-6)


FUNCTIONS = {"Sigmoid": torch.sigmoid, "Exp": torch.exp}


@pytest.mark.parametrize("op", FUNCTIONS)
@given(entries=st.integers(2, 300), limit=st.floats(0.5, 8))
@settings(max_examples=20, deadline=None, derandomize=True)
def test_tables(op, entries, limit):
    """np.interp is the linear table; the nearest one takes PyTorch's value at the nearest point."""
    points = np.linspace(-limit, limit, entries)
    values = FUNCTIONS[op](torch.from_numpy(points)).numpy()
    gaps = np.abs(X.reshape(-1, 1) - points)
    clear = np.abs(np.diff(np.sort(gaps, axis=1)[:, :2], axis=1)).reshape(X.shape) > 1e-3
    wanted = {
        "linear": np.interp(X, points, values),
        "nearest": values[gaps.argmin(axis=1)].reshape(X.shape),
    }
    for interpolation, expected in wanted.items():
        table = Table(entries=entries, limit=limit, interpolation=interpolation)
        _, found = changed(single(op), **{op.lower(): "table"}, table=table)
        for got in found:
            np.testing.assert_allclose(got[clear], expected[clear], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", ["test_sigmoid", "test_exp"])
def test_a_fine_table_is_the_official_function(name):
    model, feeds, wanted = official.case(name)
    table = Table(entries=4097, limit=8.0, interpolation="linear")

    apply(model, Activation(**{name.removeprefix("test_"): "table"}, table=table))

    np.testing.assert_allclose(official.runtime(model, feeds), wanted, rtol=1e-3, atol=1e-5)


TYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("opset", [13, 17, 18])
def test_softmax_step_by_step_in_pytorchs_own_type(kind, opset):
    """PyTorch rounds every one of these operations on tensors of the narrow type."""
    change, found = changed(single("Softmax", opset=opset, axis=1), softmax=kind)

    x = torch.from_numpy(X).to(TYPES[kind])
    power = torch.exp(x - x.amax(1, keepdim=True))
    wanted = (power / power.sum(1, keepdim=True)).float().numpy()
    exact = torch.softmax(torch.from_numpy(X), 1).numpy()
    assert change.effective == 1
    for got in found:
        np.testing.assert_allclose(got, wanted, atol=2e-3 if kind == "fp16" else 8e-3)
        assert np.mean(got == wanted) > 0.95
        assert np.abs(got - exact).max() > 1e-4


SOFTMAXES = official.names("test_softmax", without=("expanded", "large_number"))


@pytest.mark.parametrize("name", SOFTMAXES)
@pytest.mark.parametrize("kind", TYPES)
def test_official_softmax_models_to_the_narrow_precision(name, kind):
    """Five roundings of 2^-11 (FP16) or 2^-8 (BF16), and those of x and x - max before exp."""
    model, feeds, wanted = official.case(name)

    apply(model, Activation(softmax=kind))

    bound = {"fp16": 2**-11, "bf16": 2**-8}[kind] * (3 + 4 * 3)
    np.testing.assert_allclose(official.runtime(model, feeds), wanted, rtol=bound)
    np.testing.assert_allclose(official.reference(model, feeds), wanted, rtol=bound)


def test_softmax_of_old_opsets_sums_over_all_axes_from_the_first():
    model = single("Softmax", opset=11, axis=1)
    table = Table(entries=65536, limit=40.0, interpolation="linear")

    _, (got, _) = changed(model, exp="table", table=table)

    wanted = torch.softmax(torch.from_numpy(X).flatten(1), 1).reshape(X.shape)
    np.testing.assert_allclose(got, wanted.numpy(), atol=1e-4)


def test_rounding_survives_the_optimiser():
    """ONNX Runtime must not drop the pair of casts that rounds."""
    model = single("Softmax", axis=1)
    apply(model, Activation(softmax="fp16"))

    plain, optimised = (official.runtime(model, {"x": X}, on) for on in (False, True))

    np.testing.assert_array_equal(plain, optimised)


def test_every_kind_is_counted():
    model = exported(lambda x: F.silu(x) + torch.sigmoid(x + 1) + F.gelu(x) + torch.exp(-x.abs()))
    table = {"entries": 257, "limit": 8.0, "interpolation": "linear"}

    change = apply(model, Activation(sigmoid="table", gelu="tanh", table=Table(**table)))

    assert (change.found, change.rewritten) == (4, 3)
    assert sorted(str(change).split(", ")) == [
        "1 of 1 Gelu changed", "1 of 1 Sigmoid changed", "1 of 1 Swish changed",
    ]  # fmt: skip


def test_bf16_needs_an_opset():
    with pytest.raises(ModelError, match=r"graph\.activation needs opset 13 or later"):
        apply(single("Softmax", opset=12), Activation(softmax="bf16"))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"sigmoid": "table"}, "need table: {entries, limit, interpolation}"),
        ({"table": {"entries": 9, "limit": 1.0, "interpolation": "linear"}}, "used only where"),
    ],
)
def test_a_table_is_written_where_it_is_used(fields, words):
    with pytest.raises(pydantic.ValidationError, match=words):
        Activation(**fields)
