"""DoReFa, PACT and LSQ: their formulas, the file that they make, and what is refused."""

import numpy as np
import onnx
import openvino
import pytest
import tiny
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from onnx import helper, numpy_helper

from backends.fake_quant.formulas import (
    Grid,
    clip_codes,
    dorefa_weights,
    first_step,
    least_error_step,
    lsq_codes,
)
from simulator import registry
from simulator.contract import Stage
from simulator.errors import ModelError, ProfileError
from simulator.profile.implementations import choose
from simulator.profile.load import load

NOTHING = {"op_types": [], "nodes": [], "reason": ""}
BITS = st.sampled_from([2, 4, 6, 8])
VALUES = arrays.arrays(np.float32, st.integers(1, 50), elements=st.floats(-8, 8, width=32))
LSQ = {"method": "lsq", "weights": "per_tensor", "step": "initial"}
HOW = [
    LSQ,
    {**LSQ, "step": "least_error"},
    {**LSQ, "weights": "per_channel"},
    {"method": "pact", "weights": "per_tensor"},
    {"method": "dorefa", "weights": "per_tensor"},
]


# Formulas


@given(VALUES, BITS, st.booleans(), st.floats(0.0625, 4, width=32))
def test_a_grid_has_few_levels_is_idempotent_and_keeps_the_order(values, bits, signed, step):
    for low, high in (lsq_codes(bits, signed), clip_codes(bits, signed)):
        grid = Grid(np.float32(step), low, high)
        rounded = grid.rounded(np.sort(values))
        assert high - low + 1 <= 2**bits
        assert set(np.rint(rounded / np.float32(step))) <= set(range(low, high + 1))
        assert (np.diff(rounded) >= 0).all()
        assert (grid.rounded(rounded) == rounded).all()
        inside = (np.sort(values) >= low * step) & (np.sort(values) <= high * step)
        assert (np.abs(rounded - np.sort(values))[inside] <= step * 0.50001).all()


@given(VALUES, BITS)
def test_dorefa_weights_have_few_levels_and_keep_the_order(values, bits):
    made = dorefa_weights(np.sort(values), bits)

    assert len(np.unique(made)) <= 2**bits
    assert (np.diff(made) >= 0).all()
    assert np.abs(made).max() <= 1
    assert np.abs(made).max() == (1 if values.any() else 0)


def test_dorefa_by_hand():
    """
    tanh(0.5) = 0.46212, tanh(1) = 0.76159. Over 2 x 0.76159 and plus 1/2: 0, 0.80340, 0.5, 1;
    times 3: 0, 2.41, 1.5, 3; rounded to 0, 2, 2 (a tie, to even), 3; over 3, times 2, minus 1.
    """
    made = dorefa_weights(np.float32([-1, 0.5, 0, 1]), 2)

    assert made == pytest.approx([-1, 1 / 3, 1 / 3, 1])


def test_pact_by_hand():
    """alpha = 6 at 2 bits: steps of 2. 3 is a tie between codes 1 and 2."""
    low, high = clip_codes(2, signed=False)

    made = Grid(np.float32(6 / high), low, high).rounded(np.float32([-1, 0.9, 1.1, 3, 5.1, 9]))
    assert made.tolist() == [0, 0, 2, 4, 6, 6]


@given(VALUES, st.sampled_from([2, 4, 6, 8]), st.booleans())
def test_lsq_is_what_pytorch_computes(values, bits, signed):
    """Where a value is not within a rounding error of a tie: PyTorch multiplies by 1 / s."""
    low, high = lsq_codes(bits, signed)
    step = np.float32(0.3)
    clear = np.abs(np.abs(values / step) % 1 - 0.5) > 1e-4
    theirs = torch._fake_quantize_learnable_per_tensor_affine(
        torch.from_numpy(values), torch.tensor([step]), torch.zeros(1), low, high
    )

    ours = Grid(step, low, high).rounded(values)
    assert ours[clear] == pytest.approx(theirs.numpy()[clear], abs=1e-5)


def test_codes_of_the_paper():
    """Section 2 of LSQ: unsigned Qn = 0 and Qp = 2^b - 1, signed Qn = 2^(b-1), Qp = 2^(b-1) - 1."""
    assert lsq_codes(4, signed=False) == (0, 15)
    assert lsq_codes(4, signed=True) == (-8, 7)
    assert first_step(np.array(0.5), 4) == pytest.approx(0.5)


@given(st.integers(0, 20), st.sampled_from([2, 4, 8]))
@settings(max_examples=25, deadline=None)
def test_no_other_step_is_better(seed, bits):
    values = np.random.default_rng(seed).laplace(0, 2, (2, 300)).astype(np.float32)
    low, high = lsq_codes(bits, signed=True)
    start = first_step(np.abs(values).mean(1, keepdims=True), high)

    def error(step):
        return ((Grid(step, low, high).rounded(values) - values) ** 2).sum(1)

    found = error(least_error_step(values, start, low, high))
    tried = [error(np.float32(s)) for s in np.linspace(0.02, 8, 400)]
    assert (found <= np.min(tried, axis=0) * 1.01 + 1e-6).all()
    assert (found <= error(start)).all()


# The file


def four_layers():
    """Convolutions first, a, b and a Gemm last; b sees values of both signs."""
    rng = np.random.default_rng(1)
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], name="first", pads=[1] * 4),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("Conv", ["r1", "w2"], ["c2"], name="a"),
        helper.make_node("Conv", ["c2", "w3"], ["c3"], name="b"),
        helper.make_node("Relu", ["c3"], ["r3"]),
        helper.make_node("GlobalAveragePool", ["r3"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "w4", "b4"], ["y"], name="last", transB=1),
    ]
    shapes = {"w1": (8, 3, 3, 3), "b1": (8,), "w2": (8, 8, 1, 1), "w3": (8, 8, 3, 3)}
    shapes |= {"w4": (5, 8), "b4": (5,)}
    held = {k: rng.normal(0, 0.3, shape).astype(np.float32) for k, shape in shapes.items()}
    return tiny.model(nodes, {"x": [1, 3, 12, 12]}, {"y": [1, 5]}, held)


def samples(count=8):
    rng = np.random.default_rng(0)
    return [rng.normal(0, 1, (1, 3, 12, 12)).astype(np.float32) for _ in range(count)]


def quantized(folder, how, bits, model=None, feeds=None, **more):
    source, target = folder / "source.onnx", folder / "target.onnx"
    onnx.save(model or four_layers(), str(source))
    options = {"bits": bits, "first_last_bits": 8, "keep": NOTHING, **how, **more}
    offers = registry.backend("fake_quant").of(Stage.QUANTIZE)
    offer = next(o for o in offers if options["method"] in o.options["method"])
    feeds = [{"x": s} for s in (samples() if feeds is None else feeds)]
    offer.make(options).quantize(source, target, iter(feeds))
    made = onnx.load(str(target))
    onnx.checker.check_model(made, full_check=True)
    return made


def weights_of(made, name):
    held = {t.name: numpy_helper.to_array(t) for t in made.graph.initializer}
    by_output = {node.output[0]: node for node in made.graph.node}
    read = next(node for node in made.graph.node if node.name == name).input[1]
    if read in held:
        return held[read]
    codes, step = (held[one] for one in by_output[read].input)
    return codes * step.reshape((-1,) + (1,) * (codes.ndim - 1) if step.ndim else ())


def by_numpy(made, x):
    """The network in float64, by PyTorch's convolutions, with the steps and weights of the file."""
    held = {t.name: numpy_helper.to_array(t) for t in made.graph.initializer}

    def rounded(tensor, values):
        (part,) = {name.rpartition(".")[0] for name in held if name.startswith(f"{tensor}.")}
        step = held[f"{part}.step"].astype(np.float64)
        if f"{part}.zero" in held:
            kind = np.iinfo(held[f"{part}.zero"].dtype)
            low, high = kind.min, kind.max
        else:
            low, high = held[f"{part}.low"], held[f"{part}.high"]
        return np.rint(np.clip(values / step, low, high)) * step

    def conv(values, name, pad=0, bias=None):
        kernel = torch.from_numpy(weights_of(made, name).astype(np.float64))
        return torch.conv2d(torch.from_numpy(values), kernel, bias, padding=pad).numpy()

    bias = torch.from_numpy(held["b1"].astype(np.float64))
    r1 = np.maximum(conv(rounded("x", x.astype(np.float64)), "first", 1, bias), 0)
    c2 = conv(rounded("r1", r1), "a")
    r3 = np.maximum(conv(rounded("c2", c2), "b"), 0)
    f = rounded("f", r3.mean((2, 3)))
    return f @ weights_of(made, "last").T.astype(np.float64) + held["b4"]


@pytest.mark.parametrize("bits", [8, 6, 4, 2])
@pytest.mark.parametrize("how", HOW, ids=str)
def test_runtimes_compute_what_numpy_computes(tmp_path, how, bits):
    """
    Sums in FP32 may put a value on the other side of a tie, so that some are a step off. In INT8
    (LSQ at 8 bits) biases are rounded, too.
    """
    made = quantized(tmp_path, how, bits)
    options = {
        "provider": "cpu", "io_binding": False, "device": "cpu", "threads": 1,
        "graph_optimization_level": "all", "storage": "fp32", "compute": "fp32",
    }  # fmt: skip
    runtime = (
        registry.backend("onnxruntime").of(Stage.RUNTIME)[0].make(tmp_path / "target.onnx", options)
    )
    core = openvino.Core()
    exact = {"INFERENCE_PRECISION_HINT": "f32", "NUM_STREAMS": 1}
    compiled = core.compile_model(str(tmp_path / "target.onnx"), "CPU", exact)
    off = {"onnxruntime": [], "openvino": []}
    for x in samples(6):
        want = by_numpy(made, x)
        scale = np.abs(want).max()
        off["onnxruntime"].append(np.abs(runtime.run({"x": x})["y"] - want).max() / scale)
        off["openvino"].append(np.abs(compiled({"x": x})[0] - want).max() / scale)

    for name, found in off.items():
        assert np.median(found) < (1e-3 if bits == 8 else 1e-4), name
        assert np.max(found) < 0.05, name


@pytest.mark.parametrize("bits", [8, 6, 4, 2])
@pytest.mark.parametrize("how", HOW, ids=str)
def test_first_and_last_have_8_bits_and_the_others_fewer(tmp_path, how, bits):
    made = quantized(tmp_path, how, bits)

    channels = how["weights"] == "per_channel"
    for name in ("a", "b"):
        rows = weights_of(made, name).reshape(8 if channels else 1, -1)
        assert all(len(np.unique(row)) <= 2**bits for row in rows)
    assert len(np.unique(weights_of(made, "first"))) > 2**5
    kinds = [node.op_type for node in made.graph.node]
    pairs = 0 if how["method"] != "lsq" else 4 if bits == 8 else 2
    assert kinds.count("QuantizeLinear") == pairs
    assert kinds.count("Round") == 4 - pairs


@pytest.mark.parametrize("how", HOW, ids=str)
def test_more_bits_are_nearer(tmp_path, how):
    x = samples()[0]
    want = by_numpy_fp32(x)
    errors = [
        np.abs(by_numpy(quantized(tmp_path, how, bits), x) - want).mean() for bits in (2, 4, 6, 8)
    ]

    if how.get("step") != "initial":  # LSQ's first step is made for training
        assert errors[3] < errors[1] < errors[0]
    assert errors[3] < 0.1 * np.abs(want).max()


def by_numpy_fp32(x):
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(four_layers()).run(None, {"x": x})[0]


def test_a_tensor_without_negative_values_has_no_sign(tmp_path):
    made = quantized(tmp_path, LSQ, 4)

    held = {t.name: numpy_helper.to_array(t) for t in made.graph.initializer}
    ends = {name: (held[f"{name}.4bit.low"], held[f"{name}.4bit.high"]) for name in ("r1", "c2")}
    assert ends == {"r1": (0, 15), "c2": (-8, 7)}


def test_lsq_starts_at_the_papers_step(tmp_path):
    """2 mean|x| / sqrt(Qp), of all values of all samples."""
    made = quantized(tmp_path, LSQ, 4)

    held = {t.name: numpy_helper.to_array(t) for t in made.graph.initializer}
    mean = np.mean([np.abs(x) for x in samples()])
    assert held["x.8bit.step"] == pytest.approx(2 * mean / np.sqrt(127), rel=1e-5)
    w = {t.name: numpy_helper.to_array(t) for t in four_layers().graph.initializer}["w2"]
    steps = np.diff(np.unique(weights_of(made, "a")))
    assert steps.min() == pytest.approx(2 * np.abs(w).mean() / np.sqrt(7), rel=1e-5)


def test_a_tensor_of_zeros_stays_zero(tmp_path):
    made = quantized(tmp_path, HOW[1], 4, feeds=[np.zeros((1, 3, 12, 12), np.float32)])

    x = np.zeros((1, 3, 12, 12), np.float32)
    assert np.isfinite(by_numpy(made, x)).all()


def test_kept_nodes_stay_in_fp32(tmp_path):
    keep = {"op_types": ["Gemm"], "nodes": ["b"], "reason": "a test"}
    made = quantized(tmp_path, LSQ, 4, keep=keep)

    source = {t.name: numpy_helper.to_array(t) for t in four_layers().graph.initializer}
    assert (weights_of(made, "b") == source["w3"]).all()
    assert (weights_of(made, "last") == source["w4"]).all()
    assert "c2" in {name for node in made.graph.node if node.name == "b" for name in node.input}


# What is refused


def test_values_that_are_not_finite_are_refused(tmp_path):
    bad = samples(1)[0]
    bad[0, 0, 0, 0] = np.nan
    with pytest.raises(ModelError, match="calibration: tensor 'x' has values that are not finite"):
        quantized(tmp_path, LSQ, 4, feeds=[bad])
    model = four_layers()
    model.graph.initializer[2].CopyFrom(
        numpy_helper.from_array(np.full((8, 8, 1, 1), np.inf, np.float32), "w2")
    )
    with pytest.raises(ModelError, match="tensor 'c2' has values that are not"):
        quantized(tmp_path, LSQ, 4, model=model)


def test_nothing_to_quantize_is_refused(tmp_path):
    keep = {"op_types": ["Gemm", "Conv"], "nodes": [], "reason": "a test"}
    with pytest.raises(ModelError, match="no convolutions or products outside the keep list"):
        quantized(tmp_path, LSQ, 4, keep=keep)
    with pytest.raises(ModelError, match="there are no samples"):
        quantized(tmp_path, LSQ, 4, feeds=[])


SECTION = (
    "precision={storage: fp32, compute: fp32, quantizer: {backend: fake_quant, method: lsq, "
    "weights: per_tensor, step: initial, BITS, "
    "calibration: {samples: 4, through: deploy, source: data}}}"
)


@pytest.mark.parametrize(
    ("bits", "override", "message"),
    [
        ("bits: 5", "", "precision.quantizer.bits: .*offers 8, 6, 4, 2"),
        ("bits: 4, first_last_bits: 4", "", "precision.quantizer.first_last_bits"),
        ("bits: 4", "precision.storage=int4", "write storage fp32, compute fp32"),
        ("bits: 4", "precision.quantizer={method: adaround}", "precision.quantizer.method"),
        ("bits: 4", "precision.quantizer={method: pact}", "method: fake_quant offers lsq here"),
    ],
)
def test_other_bits_and_methods_are_refused_in_one_line(bits, override, message):
    overrides = [SECTION.replace("BITS", bits), *filter(None, [override])]
    with pytest.raises(ProfileError, match=message) as error:
        choose(load("pillow_fp32", overrides))
    assert len(str(error.value).splitlines()) == 1


def test_bits_of_a_real_int8_quantizer_are_refused():
    with pytest.raises(ProfileError, match="a quantizer to 4 bits rounds in FP32"):
        choose(load("ort_int8", ["precision.quantizer={bits: 4}"]))


def test_it_is_emulated_and_called_so():
    chosen = choose(load("pillow_fp32", [SECTION.replace("BITS", "bits: 4")]))[Stage.QUANTIZE]

    assert chosen.offer.evidence == "emulated"
