"""Casts: what is stored, what it stands for, and what stays as it was."""

import numpy as np
import onnx
import pytest
import tiny
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from backends.stored_weights.codes import quantize
from simulator import registry
from simulator.contract import Stage
from simulator.errors import ModelError, ProfileError
from simulator.profile.implementations import choose
from simulator.profile.load import load

NOTHING = {"op_types": [], "nodes": [], "reason": ""}
ORT = {
    "provider": "cpu",
    "io_binding": False,
    "device": "cpu",
    "threads": 1,
    "graph_optimization_level": "all",
    "compute": "fp32",
}
STEPS = {"int8": 127, "int6": 31, "int4": 7, "int2": 1}
RNG = np.random.default_rng(0)


def keep(op_types=(), nodes=()):
    return {"op_types": list(op_types), "nodes": list(nodes), "reason": "a test"}


def cast(backend, proto, folder, **options):
    """The stored model; *options* as a profile's ``cast`` section has them."""
    source, target = folder / "source.onnx", folder / "target.onnx"
    onnx.save(proto, str(source))
    integer = {"granularity": "per_channel", "symmetric": True} if "int" in str(options) else {}
    options = {"keep": NOTHING, **integer, **options}
    offers = registry.backend(backend).of(Stage.CAST)
    offer = next(o for o in offers if options["storage"] in o.options["storage"])
    offer.make(options).cast(source, target)
    return onnx.load(str(target))


def ran(proto, x, folder, level="all"):
    """The output of ONNX Runtime, and the kernels that made it."""
    path = folder / "run.onnx"
    onnx.save(proto, str(path))
    options = {**ORT, "graph_optimization_level": level, "storage": "fp32"}
    runtime = registry.backend("onnxruntime").of(Stage.RUNTIME)[0].make(path, options)
    (out,) = runtime.run({"x": x}).values()
    return out, runtime.effective({"x": x}).details["kernels"]


def arrays(proto):
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in proto.graph.initializer}


def types(proto):
    return {TensorProto.DataType.Name(tensor.data_type) for tensor in proto.graph.initializer}


def product(weights, op="MatMul", opset=21, **attributes):
    """x (2, K) times weights, a model of one node; unnamed weights are ``w``."""
    node = helper.make_node(op, ["x", "w"], ["y"], name="product", **attributes)
    k = weights.shape[1] if attributes.get("transB") else weights.shape[0]
    n = weights.shape[0] if attributes.get("transB") else weights.shape[1]
    return tiny.model([node], {"x": [2, k]}, {"y": [2, n]}, {"w": weights}, opset=opset)


def chain(*names):
    """x (1, 4) through MatMul, Softmax, MatMul, of one and the same 0.1 times one."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name=names[0]),
        helper.make_node("Softmax", ["a"], ["b"], name=names[1]),
        helper.make_node("MatMul", ["b", "w"], ["y"], name=names[2]),
    ]
    weights = {"w": 0.1 * np.eye(4, dtype=np.float32)}
    return tiny.model(nodes, {"x": [1, 4]}, {"y": [1, 4]}, weights)


# FP16


def test_fp16_storage_rounds_weights_and_computes_in_fp32(tmp_path):
    """0.1 as a half is 0.0999755859375; times 3 in FP32, rounded to half on no way."""
    made = cast("onnxconverter", product(np.float32([[0.1]])), tmp_path, storage="fp16")
    out, kernels = ran(made, np.full((2, 1), 3, np.float32), tmp_path)

    assert arrays(made)["w"].dtype == np.float16
    assert arrays(made)["w"].item() == 0.0999755859375
    assert out.dtype == np.float32
    assert out[0, 0] == pytest.approx(0.3, abs=3e-4)
    assert kernels["MatMul(float)"] == 1


def test_fp16_rounds_as_pytorch_does(tmp_path):
    weights = RNG.normal(0, 10, (40, 50)).astype(np.float32)

    made = cast("onnxconverter", product(weights), tmp_path, storage="fp16")

    assert (arrays(made)["w"] == torch.tensor(weights).half().numpy()).all()


def reached(proto, name):
    """The element type of each input of a node, after shape inference."""
    graph = onnx.shape_inference.infer_shapes(proto, strict_mode=True).graph
    kinds = {v.name: v.type.tensor_type.elem_type for v in (*graph.value_info, *graph.input)}
    kinds |= {tensor.name: tensor.data_type for tensor in graph.initializer}
    (node,) = (node for node in graph.node if node.name == name)
    return {TensorProto.DataType.Name(kinds[i]) for i in node.input}


@pytest.mark.parametrize(
    ("kept", "float32"),
    [
        (keep(["Softmax"]), {"s"}),
        (keep(nodes=["first"]), {"first"}),
        (keep(nodes=["last"]), {"last"}),
        (keep(["MatMul"]), {"first", "last"}),
        (keep(["LayerNormalization"]), set()),
    ],
    ids=["type", "first", "last", "both", "absent"],
)
def test_fp16_keeps_what_is_named(tmp_path, kept, float32):
    """The two products share one weight: the kept one reads it in FP32, the other in FP16."""
    made = cast("onnxconverter", chain("first", "s", "last"), tmp_path, storage="fp16", keep=kept)

    for name in ("first", "s", "last"):
        assert reached(made, name) == {"FLOAT" if name in float32 else "FLOAT16"}
    out, _ = ran(made, np.zeros((1, 4), np.float32), tmp_path)
    assert out.dtype == np.float32
    assert np.abs(out - 0.025).max() < 2e-5  # softmax of zeros is 1/4, times 0.1


def test_fp16_gives_a_kept_output_unrounded(tmp_path):
    """1/3 in FP32 is no half; the graph's output and its reader inside both get their own."""
    nodes = [
        helper.make_node("Div", ["x", "three"], ["y"], name="d"),
        helper.make_node("Relu", ["y"], ["z"], name="r"),
    ]
    model = tiny.model(nodes, {"x": [1]}, {"y": [1], "z": [1]}, {"three": np.float32([3])})

    made = cast("onnxconverter", model, tmp_path, storage="fp16", keep=keep(nodes=["d"]))

    y, z = ReferenceEvaluator(made).run(None, {"x": np.float32([1])})
    assert (y.dtype, y[0]) == (np.float32, np.float32(1 / 3))
    assert (z.dtype, z[0]) == (np.float32, np.float32(np.float16(1 / 3)))


# Keep lists


@pytest.mark.parametrize(
    ("kept", "message"),
    [
        (keep(nodes=["frist"]), "no node 'frist', did you mean 'first'"),
        (keep(nodes=["nothing_like_it"]), "no node 'nothing_like_it'$"),
        (keep(["Softmex"]), "no operator 'Softmex', did you mean 'Softmax'"),
        (keep(["Softmex"], ["frist"]), "'frist'.*'Softmex'"),
    ],
)
@pytest.mark.parametrize(
    ("backend", "storage"), [("onnxconverter", "fp16"), ("weight_only", "int8")]
)
def test_a_keep_list_of_another_model_is_refused(tmp_path, backend, storage, kept, message):
    with pytest.raises(ModelError, match=message):
        cast(backend, chain("first", "s", "last"), tmp_path, storage=storage, keep=kept)


def test_nodes_without_names_are_kept_by_type_and_called_as_their_output(tmp_path):
    kept = keep(["Softmax"], ["y"])

    made = cast("onnxconverter", chain("", "", ""), tmp_path, storage="fp16", keep=kept)

    assert [reached(made, name) for name in "aby"] == [{"FLOAT16"}, {"FLOAT"}, {"FLOAT"}]


@pytest.mark.parametrize("storage", ["bf16", "int4"])
def test_weights_of_kept_nodes_stay_in_fp32(tmp_path, storage):
    model = chain("first", "s", "last")

    made = cast("weight_only", model, tmp_path, storage=storage, keep=keep(nodes=["first"]))

    by_name = {node.name: node for node in made.graph.node}
    assert by_name["first"].input[1] == "w"
    assert by_name["last"].input[1] != "w"
    assert (arrays(made)["w"] == 0.1 * np.eye(4, dtype=np.float32)).all()


# BF16


def test_bf16_ties_go_to_even(tmp_path):
    """Between 1 and 1 + 2**-7 lies no BF16; halves go to the even neighbour."""
    weights = np.float32([[1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, -1 - 2**-9]])

    made = cast("weight_only", product(weights), tmp_path, storage="bf16")

    (stored,) = arrays(made).values()
    assert types(made) == {"BFLOAT16"}
    assert stored.astype(float).ravel().tolist() == [1, 1 + 2**-6, 1 + 2**-7, -1]


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.floats(width=32, min_value=-(2.0**126), max_value=2.0**126), min_size=1, max_size=20
    )
)
def test_bf16_rounds_as_pytorch_does(tmp_path_factory, values):
    weights = np.float32([values])
    folder = tmp_path_factory.mktemp("bf16")

    made = cast("weight_only", product(weights), folder, storage="bf16")

    (stored,) = arrays(made).values()
    assert (stored.astype(np.float32) == torch.tensor(weights).bfloat16().float().numpy()).all()


@pytest.mark.parametrize("opset", [13, 21])
def test_bf16_is_computed_in_fp32(tmp_path, opset):
    weights = RNG.normal(size=(16, 8)).astype(np.float32)
    x = RNG.normal(size=(2, 16)).astype(np.float32)

    made = cast("weight_only", product(weights, opset=opset), tmp_path, storage="bf16")

    wanted = x @ torch.tensor(weights).bfloat16().float().numpy()
    out, kernels = ran(made, x, tmp_path)
    assert np.abs(out - wanted).max() < 1e-5
    assert kernels["MatMul(float)"] == 1
    assert np.abs(ReferenceEvaluator(made).run(None, {"x": x})[0] - wanted).max() < 1e-5


def test_bf16_leaves_what_decides_shapes(tmp_path):
    """A Resize by 1.7 of 10 columns gives 17; 1.7 as BF16 is 1.703125."""
    node = helper.make_node("Resize", ["x", "", "scales"], ["a"], name="up")
    plus = helper.make_node("Add", ["a", "w"], ["y"], name="plus")
    constants = {"scales": np.float32([1, 1, 1, 1.7]), "w": np.float32([0.1])}
    model = tiny.model([node, plus], {"x": [1, 1, 1, 10]}, {"y": [1, 1, 1, 17]}, constants)

    made = cast("weight_only", model, tmp_path, storage="bf16")

    assert arrays(made)["scales"].dtype == np.float32
    assert types(made) == {"FLOAT", "BFLOAT16"}


# 8, 6, 4 and 2 bits


@pytest.mark.parametrize(
    ("storage", "opset", "stored"),
    [
        ("int8", 13, "INT8"),
        ("int6", 21, "INT8"),
        ("int4", 18, "INT8"),
        ("int4", 21, "INT4"),
        ("int2", 21, "INT8"),
        ("int2", 25, "INT2"),
    ],
)
def test_a_grid_is_stored_as_it_is(tmp_path, storage, opset, stored):
    """Multiples of 1/4 from -top / 4 to top / 4 are the codes -top to top at a scale of 1/4."""
    top = STEPS[storage]
    grid = np.arange(-top, top + 1)
    weights = (grid / 4).astype(np.float32)[:, None]

    made = cast("weight_only", product(weights, opset=opset), tmp_path, storage=storage)

    onnx.checker.check_model(made, full_check=True)
    found = arrays(made)
    assert types(made) == {stored, "FLOAT", "INT64"}
    assert found[f"w.{storage}.-1"].astype(int).ravel().tolist() == grid.tolist()
    assert found[f"w.{storage}.-1.scale"].tolist() == [0.25]
    x = np.stack([np.eye(len(grid))[0], np.ones(len(grid))]).astype(np.float32)
    assert ran(made, x, tmp_path)[0].ravel().tolist() == [-top / 4, 0]


def test_an_asymmetric_grid_has_its_zero_inside(tmp_path):
    """-2.5 to 5 in steps of 1/2: sixteen codes, and 5 of them below zero."""
    weights = (np.arange(-5, 11) / 2).astype(np.float32)[:, None]

    made = cast("weight_only", product(weights), tmp_path, storage="int4", symmetric=False)

    found = arrays(made)
    assert types(made) == {"UINT4", "FLOAT", "INT64"}
    assert found["w.int4.-1"].astype(int).ravel().tolist() == list(range(16))
    assert found["w.int4.-1.scale"].tolist() == [0.5]
    assert found["w.int4.-1.zero"].astype(int).tolist() == [5]


def conv(opset, op="Conv", shape=(6, 4, 3, 3), group=1):
    channels = shape[0] if op == "ConvTranspose" else shape[1] * group
    node = helper.make_node(op, ["x", "w"], ["y"], name="conv", group=group)
    weights = {"w": RNG.normal(size=shape).astype(np.float32)}
    return tiny.model([node], {"x": [1, channels, 5, 5]}, {"y": None}, weights, opset=opset)


def left_product(opset):
    weights = {"w": RNG.normal(size=(6, 10)).astype(np.float32)}
    node = helper.make_node("MatMul", ["w", "x"], ["y"], name="left")
    return tiny.model([node], {"x": [10, 3]}, {"y": [6, 3]}, weights, opset=opset)


MODELS = {
    "conv": (conv, 0),
    "depthwise": (lambda opset: conv(opset, shape=(4, 1, 3, 3), group=4), 0),
    "transposed": (lambda opset: conv(opset, "ConvTranspose"), 1),
    "gemm": (lambda opset: product(RNG.normal(size=(10, 6)).astype("f4"), "Gemm", opset), 1),
    "gemm_b": (
        lambda opset: product(RNG.normal(size=(6, 10)).astype("f4"), "Gemm", opset, transB=1),
        0,
    ),
    "matmul": (lambda opset: product(RNG.normal(size=(10, 6)).astype("f4"), opset=opset), 1),
    "matmul_left": (left_product, 0),
}
SHAPES = {"per_tensor": {}, "per_channel": {}, "block": {"block_size": 4}}


def by_pytorch(weights, axis, top, symmetric, granularity):
    """The weights that 4-bit storage stands for, each group by torch's own fake quantizer."""
    rows = np.moveaxis(weights, axis, 0)
    table = rows.reshape(len(rows), -1)
    cuts = [slice(at, at + 4) for at in range(0, table.shape[1], 4)]
    groups = {
        "per_tensor": [(slice(None), slice(None))],
        "per_channel": [(row, slice(None)) for row in range(len(rows))],
        "block": [(row, cut) for row in range(len(rows)) for cut in cuts],
    }[granularity]
    out = np.empty_like(table)
    for group in groups:
        values = table[group]
        if symmetric:
            scale, zero, low, high = np.float32(abs(values).max() / top), 0, -top, top
        else:
            low, high = 0, 2 * top + 1
            scale = np.float32((max(values.max(), 0) - min(values.min(), 0)) / high)
            zero = round(-min(values.min(), 0) / scale)
        fake = torch.fake_quantize_per_tensor_affine(
            torch.tensor(values), float(scale), int(zero), low, high
        )
        out[group] = fake.numpy()
    return np.moveaxis(out.reshape(rows.shape), 0, axis)


@pytest.mark.parametrize("opset", [18, 21])
@pytest.mark.parametrize("symmetric", [True, False], ids=["symmetric", "asymmetric"])
@pytest.mark.parametrize("granularity", SHAPES)
@pytest.mark.parametrize("name", MODELS)
def test_every_weight_stands_for_what_pytorch_rounds_it_to(
    tmp_path, name, granularity, symmetric, opset
):
    make, axis = MODELS[name]
    model = make(opset)
    (port,) = model.graph.input
    x = RNG.normal(size=[d.dim_value for d in port.type.tensor_type.shape.dim]).astype("f4")

    made = cast(
        "weight_only", model, tmp_path, storage="int4", symmetric=symmetric,
        granularity=granularity, **SHAPES[granularity],
    )  # fmt: skip

    (tensor,) = model.graph.initializer
    rounded = by_pytorch(numpy_helper.to_array(tensor), axis, 7, symmetric, granularity)
    tensor.CopyFrom(numpy_helper.from_array(rounded, "w"))
    wanted, _ = ran(model, x, tmp_path)
    out, kernels = ran(made, x, tmp_path)
    assert np.abs(out - wanted).max() < 1e-4
    assert not any("NBits" in kernel or "Integer" in kernel for kernel in kernels)
    if opset == 21:  # onnx.reference has DequantizeLinear from opset 19 on
        assert np.abs(ReferenceEvaluator(made).run(None, {"x": x})[0] - wanted).max() < 1e-4


@pytest.mark.parametrize("storage", STEPS)
@pytest.mark.parametrize("symmetric", [True, False], ids=["symmetric", "asymmetric"])
@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1))
def test_no_weight_moves_by_more_than_half_a_step(storage, symmetric, values):
    bits = int(storage[3:])

    codes, scales, zeros = quantize(np.float32([values]), bits, symmetric)

    stored = (codes - zeros[:, None]) * scales[:, None].astype(float)
    assert np.abs(np.float32([values]) - stored).max() <= scales[0] * (0.5 + 1e-5)
    low, high = (-STEPS[storage], STEPS[storage]) if symmetric else (0, 2**bits - 1)
    assert codes.min() >= low
    assert codes.max() <= high
    assert low <= zeros[0] <= high


@pytest.mark.parametrize("granularity", ["per_channel", "block"])
def test_activations_are_not_rounded_by_the_way(tmp_path, granularity):
    """
    A weight of one 4-bit step times 1 + 2**-12: a kernel that rounds activations to INT8, as
    the one that ONNX Runtime fuses DequantizeLinear and MatMul to, gives 1.
    """
    weights = np.eye(32, dtype=np.float32)
    x = np.full((2, 32), 1 + 2**-12, np.float32)
    x[:, 0] = 100

    made = cast(
        "weight_only", product(weights), tmp_path, storage="int4",
        granularity=granularity, block_size=32,
    )  # fmt: skip

    out, _ = ran(made, x, tmp_path)
    assert (np.abs(out - x) < 1e-4).all()


def test_weights_in_constant_nodes_are_stored(tmp_path):
    weights = np.float32([[0.5, -1], [1, 0.25]])
    constant = helper.make_node("Constant", [], ["w"], value=numpy_helper.from_array(weights))
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    model = tiny.model([constant, node], {"x": [2, 2]}, {"y": [2, 2]})

    made = cast("weight_only", model, tmp_path, storage="int8")

    assert "Constant" not in {node.op_type for node in made.graph.node}
    assert np.abs(ran(made, np.eye(2, dtype=np.float32), tmp_path)[0] - weights).max() < 0.004


def test_a_weight_that_a_branch_reads_stays(tmp_path):
    """The body of an If reads ``w`` from outside; it keeps the FP32 one."""
    weights = np.float32([[0.3]])
    out = [helper.make_tensor_value_info("b", TensorProto.FLOAT, [1, 1])]
    body = helper.make_graph([helper.make_node("Identity", ["w"], ["b"])], "body", [], out)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("If", ["yes"], ["c"], then_branch=body, else_branch=body),
        helper.make_node("Add", ["a", "c"], ["y"]),
    ]
    constants = {"w": weights, "yes": np.array(True)}
    model = tiny.model(nodes, {"x": [1, 1]}, {"y": [1, 1]}, constants)

    made = cast("weight_only", model, tmp_path, storage="int2")

    assert arrays(made)["w"] == np.float32(0.3)
    assert ran(made, np.float32([[2]]), tmp_path)[0] == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (product(np.float32([[1]]), opset=12), "opset 12: 13 or later is needed"),
        (tiny.model([helper.make_node("Relu", ["x"], ["y"])]), "no FP32 weights to store"),
        (product(np.float32([[np.inf]])), "weight 'w' has values that are not finite"),
    ],
    ids=["opset", "nothing", "infinite"],
)
def test_what_cannot_be_stored_is_refused(tmp_path, model, message):
    with pytest.raises(ModelError, match=message):
        cast("weight_only", model, tmp_path, storage="int8")


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("storage: int4, compute: int8, cast: {granularity: per_tensor}", "needs a quantizer"),
        ("storage: int8, compute: int8, cast: {granularity: per_tensor}", "needs a quantizer"),
        ("storage: int4, compute: fp32, cast: {granularity: block}", "block_size: required"),
        ("storage: bf16, compute: fp32, cast: {granularity: block}", "granularity"),
        ("storage: fp32, compute: fp32, cast: {}", "storage fp32 needs no cast"),
    ],
)
def test_a_cast_that_does_not_fit_is_refused(written, message):
    written = written.replace("cast: {", "cast: {backend: weight_only, symmetric: true, ")

    with pytest.raises(ProfileError, match=message):
        choose(load("pillow_fp32", [f"precision={{{written}}}"]))


def test_an_output_that_a_layer_reads_is_cast_too(tmp_path):
    """The library gives every reader of an output its FP32, where the layer has FP16 weights."""
    weights = RNG.normal(size=(3, 3, 1, 1)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["inner"], "one"),
        helper.make_node("Conv", ["inner", "w"], ["y"], "two"),
    ]
    shape = [1, 3, 4, 4]
    model = tiny.model(nodes, {"x": shape}, {"inner": shape, "y": shape}, {"w": weights})
    x = RNG.normal(size=shape).astype(np.float32)

    made = cast("onnxconverter", model, tmp_path, storage="fp16")

    assert [output.name for output in made.graph.output] == ["inner", "y"]
    found = ReferenceEvaluator(made).run(None, {"x": x})
    once = np.einsum("oi,bihw->bohw", weights[..., 0, 0], x)
    twice = np.einsum("oi,bihw->bohw", weights[..., 0, 0], once)
    np.testing.assert_allclose(found[0], once, atol=2e-2)
    np.testing.assert_allclose(found[1], twice, atol=1e-1)
