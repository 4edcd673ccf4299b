"""Static quantizers: what they write, what they keep, and how they find a range."""

import os
import shutil
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
import pytest
import sums
import tiny
from onnx import TensorProto, helper, numpy_helper

from backends.ort.calibration import least_error
from simulator import cache, registry
from simulator.contract import Effective, Stage
from simulator.errors import ModelError, ProfileError
from simulator.notices import Kind
from simulator.pipeline import in_force
from simulator.profile.implementations import choose
from simulator.profile.load import load

NOTHING = {"op_types": [], "nodes": [], "reason": ""}
PLAIN = {
    "weights": "per_channel",
    "activations": "uint8",
    "symmetric": False,
    "reduce_range": False,
    "target": "cpu",
    "operators": "all",
    "bias_correction": False,
    "keep": NOTHING,
    "scales": "any",
    "symmetric_weights": True,
}
ORT = {
    "provider": "cpu",
    "io_binding": False,
    "device": "cpu",
    "threads": 1,
    "graph_optimization_level": "all",
    "storage": "int8",
    "compute": "int8",
}
METHODS = [
    ("onnxruntime", {"method": "minmax"}),
    ("onnxruntime", {"method": "entropy", "num_bins": 512}),
    ("onnxruntime", {"method": "percentile", "num_bins": 512, "percentile": 99.99}),
    ("onnxruntime", {"method": "mse", "num_bins": 2048}),
    ("onnxruntime", {"method": "minmax", "reduce_range": True}),
    (
        "onnxruntime",
        {"method": "minmax", "target": "tensorrt", "activations": "int8", "symmetric": True},
    ),
    ("nncf", {"method": "minmax"}),
    ("nncf", {"method": "mean_minmax"}),
]


def keep(op_types=(), nodes=()):
    return {"op_types": list(op_types), "nodes": list(nodes), "reason": "a test"}


def two_convs(size=8):
    """Two 1x1 convolutions, [[1, -1], [1, 1]] and [[1, 1]], with a Relu between, and biases."""
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["a"], name="first"),
        helper.make_node("Relu", ["a"], ["b"], name="relu"),
        helper.make_node("Conv", ["b", "w2", "b2"], ["y"], name="last"),
    ]
    constants = {
        "w1": np.float32([[1, -1], [1, 1]])[..., None, None],
        "b1": np.float32([0.5, 0]),
        "w2": np.float32([[1, 1]])[..., None, None],
        "b2": np.float32([0.25]),
    }
    return tiny.model(nodes, {"x": [1, 2, size, size]}, {"y": [1, 1, size, size]}, constants)


def truth(x):
    a, b = x[0]
    return np.maximum(a - b + 0.5, 0) + np.maximum(a + b, 0) + 0.25


def samples(count=20, size=8):
    rng = np.random.default_rng(0)
    return [rng.uniform(-1, 1, (1, 2, size, size)).astype(np.float32) for _ in range(count)]


def quantized(backend, folder, feeds=None, model=None, **how):
    source, target = folder / "source.onnx", folder / "target.onnx"
    onnx.save(model or two_convs(), str(source))
    options = {**PLAIN, **how}
    maker = registry.backend(backend).of(Stage.QUANTIZE)[0].make
    maker(options).quantize(source, target, iter([{"x": s} for s in feeds or samples()]))
    return onnx.load(str(target))


def opened(folder):
    offers = registry.backend("onnxruntime").of(Stage.RUNTIME)
    return offers[0].make(folder / "target.onnx", ORT)


def scales(proto):
    """Scale and zero point by the tensor that is quantized with them."""
    held = {t.name: numpy_helper.to_array(t) for t in proto.graph.initializer}
    return {
        node.input[0]: (held[node.input[1]], held[node.input[2]])
        for node in proto.graph.node
        if node.op_type in ("QuantizeLinear", "DequantizeLinear")
    }


def dequantized(proto):
    """For every node of the original, which of its inputs come from a DequantizeLinear."""
    made = {n.output[0] for n in proto.graph.node if n.op_type == "DequantizeLinear"}
    return {
        node.name: [name in made for name in node.input]
        for node in proto.graph.node
        if not node.op_type.endswith("Linear")
    }


def is_loud(reduced):
    """Whether a run of ONNX Runtime says that its INT8 products saturate here."""
    profile = load("ort_int8", [f"precision.quantizer.reduce_range={str(reduced).lower()}"])
    told = in_force.notices(profile, choose(profile), Effective({"int8": 1}, {}))
    return any(one.kind is Kind.SATURATED and one.is_strict for one in told)


def test_what_onnxruntime_does_is_what_a_run_says():
    """Two products of 255 and 127 are 64,770: more than 16 bits hold. 3 x 2 of them, by hand."""
    weights = numpy_helper.from_array(np.full((6, 1), 127, np.int8), "w")
    zeros = [
        numpy_helper.from_array(np.array(0, kind), name)
        for name, kind in (("xz", np.uint8), ("wz", np.int8))
    ]
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["x", "w", "xz", "wz"], ["y"])],
        "sum",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, [1, 6])],
        [helper.make_tensor_value_info("y", TensorProto.INT32, [1, 1])],
        [weights, *zeros],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )

    (found,) = session.run(None, {"x": np.full((1, 6), 255, np.uint8)})

    assert int(found[0, 0]) == (3 * 32767 if is_loud(False) else 6 * 255 * 127)
    assert not is_loud(True)


@pytest.mark.prove
def test_a_processor_without_vnni_is_told_of(tmp_path):
    """The tests above on a Haswell, which QEMU emulates for every library."""
    if not shutil.which("qemu-x86_64"):
        pytest.skip("qemu-x86_64 is not installed: apt-get install qemu-user")
    tests = ["-q", "-p", "no:cacheprovider", __file__, "-k", "onnxruntime and not haswell"]
    code = (
        f"import sys, pytest\nended = pytest.main({tests})\n"
        "import test_quantizers as t\nassert t.is_loud(False)\nsys.exit(ended)"
    )
    haswell = ["qemu-x86_64", "-cpu", "Haswell", sys.executable, "-c", code]
    env = os.environ | {cache.VARIABLE: str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(haswell, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_onednn_without_vnni_is_told_of(tmp_path):
    """OpenVINO's kernels are oneDNN's, which can be held back by its own variable."""
    code = (
        "from simulator.model.probe import saturates\n"
        "from simulator.profile.implementations import choose\n"
        "from simulator.profile.load import load\n"
        "print(saturates(choose(load('openvino_int8'))['runtime']))"
    )
    env = os.environ | {cache.VARIABLE: str(tmp_path), "ONEDNN_MAX_CPU_ISA": "AVX2"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)

    assert done.stdout == "True\n", done.stderr


@pytest.mark.parametrize(("backend", "how"), METHODS, ids=str)
def test_int8_stays_within_a_step_of_the_truth(tmp_path, backend, how, capsys):
    """
    Values lie in [-2.5, 2.5] and 8-bit steps are at most 5/255 = 0.02; a sum of four of them
    is rounded by less than 0.1. Where ranges are cut, by less where nothing is cut off. Where the
    processor's products saturate, a run says so, and weights of 7 bits stay within the step.
    """
    made = quantized(backend, tmp_path, **how)

    assert {"QuantizeLinear", "DequantizeLinear"} <= {node.op_type for node in made.graph.node}
    assert capsys.readouterr().out == ""
    if "mean" not in how["method"] and how["method"] != "entropy":
        if is_loud(how.get("reduce_range", False)):
            return
        x = samples()[0]
        runtime = opened(tmp_path)
        (out,) = runtime.run({"x": x}).values()
        assert np.abs(out[0, 0] - truth(x)).max() < 0.1
        if backend == "onnxruntime":  # NNCF leaves the last output in float
            assert runtime.effective({"x": x}).products["int8"] == 2


def test_entropy_at_onnxruntimes_default_bins_is_refused():
    """At num_bins = num_quantized_bins = 128 it equals MinMax (measured: all scales equal)."""
    override = "precision.quantizer={method: entropy, num_bins: 128}"

    with pytest.raises(ProfileError, match="from 129 up"):
        choose(load("ort_int8", [override]))


def test_reduce_range_makes_weights_of_seven_bits(tmp_path):
    """ONNX Runtime's reduced range of symmetric INT8 ends at 64, the full one at 127."""
    ends = {}
    for reduce_range in (False, True):
        made = quantized("onnxruntime", tmp_path, method="minmax", reduce_range=reduce_range)
        weights = [t for t in made.graph.initializer if t.name.startswith("w1_quantized")]
        ends[reduce_range] = max(abs(int(v)) for v in numpy_helper.to_array(weights[0]).ravel())

    assert ends == {False: 127, True: 64}


@pytest.mark.parametrize(
    ("reduce_range", "ends"), [(False, [127, 127]), (True, [64, 64]), ("first_layer", [64, 127])]
)
def test_nncf_reduces_the_range_where_it_is_told_to(tmp_path, reduce_range, ends):
    made = quantized("nncf", tmp_path, method="minmax", reduce_range=reduce_range)

    codes = [numpy_helper.to_array(t) for t in made.graph.initializer]
    found = [int(np.abs(c.astype(int)).max()) for c in codes if c.ndim == 4]
    assert found == ends


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"activations": "int8", "symmetric": True, "target": "tensorrt"},
        {"weights": "per_tensor", "symmetric_weights": False, "activations": "int16"},
    ],
    ids=str,
)
@pytest.mark.parametrize("scales_are", ["power_of_two", "power_of_two_activations"])
def test_scales_are_rounded_up_to_powers_of_two(tmp_path, how, scales_are):
    """Each is the next power of two; the smallest value of an activation keeps its code."""
    before = scales(quantized("onnxruntime", tmp_path, method="minmax", **how))
    after = scales(quantized("onnxruntime", tmp_path, method="minmax", scales=scales_are, **how))

    for name, (scale, zero) in before.items():
        weights = name[0] in "wb"
        want = 2.0 ** np.ceil(np.log2(scale))
        if weights and scales_are == "power_of_two_activations":
            want = after[name][0] if name[0] == "b" else scale
        elif name[0] == "b":
            want = 2.0 ** np.round(np.log2(after[name][0]))
        assert np.array_equal(after[name][0], want), name
        if not weights:
            low, ends = (np.iinfo(zero.dtype).min - int(zero)) * scale, np.iinfo(zero.dtype)
            moved = int(zero) if how.get("symmetric") else ends.min - np.rint(low / want)
            assert int(after[name][1]) == moved


@pytest.mark.parametrize("backend", ["onnxruntime", "nncf"])
def test_weights_get_a_zero_point(tmp_path, backend):
    """[[1, 1]] reaches from 0 to 1, and -128 stands for 0; NNCF widens the range by a code."""
    made = quantized(
        backend, tmp_path, method="minmax", weights="per_tensor", symmetric_weights=False
    )

    ((scale, zero),) = (of for name, of in scales(made).items() if "w2" in name)
    assert scale == pytest.approx(1 / 255, rel=2e-3)
    assert zero == -128


def test_the_form_for_tensorrt(tmp_path):
    """Zero points of 0, weights in FP32 behind a pair of their own, biases in FP32."""
    made = quantized(
        "onnxruntime", tmp_path, method="minmax",
        activations="int8", symmetric=True, target="tensorrt",
    )  # fmt: skip

    assert all((zero == 0).all() for _, zero in scales(made).values())
    assert {z.dtype for _, z in scales(made).values()} == {np.dtype(np.int8)}
    kinds = {t.name: t.data_type for t in made.graph.initializer}
    assert {kinds[name] for name in ("w1", "w2", "b1", "b2")} == {TensorProto.FLOAT}
    readers = [n.input[0] for n in made.graph.node if n.op_type == "QuantizeLinear"]
    assert {"w1", "w2"} <= set(readers)
    assert dequantized(made)["first"] == [True, True, False]


@pytest.mark.parametrize("backend", ["onnxruntime", "nncf"])
@pytest.mark.parametrize(
    ("kept", "floats"),
    [
        (NOTHING, set()),
        (keep(nodes=["last"]), {"last"}),
        (keep(nodes=["first"]), {"first"}),
        (keep(["Conv"]), {"first", "last"}),
        (keep(["LayerNormalization"]), set()),
    ],
    ids=["nothing", "last", "first", "type", "absent"],
)
def test_kept_nodes_read_fp32_weights(tmp_path, backend, kept, floats):
    made = quantized(backend, tmp_path, method="minmax", keep=kept)

    weights = {name: inputs[1] for name, inputs in dequantized(made).items() if len(inputs) > 1}
    assert {name for name in ("first", "last") if not weights[name]} == floats


@pytest.mark.parametrize("backend", ["onnxruntime", "nncf"])
def test_a_keep_list_of_another_model_is_refused(tmp_path, backend):
    with pytest.raises(ModelError, match="no node 'lats', did you mean 'last'"):
        quantized(backend, tmp_path, method="minmax", keep=keep(nodes=["lats"]))


def test_what_onnxruntime_merges_cannot_be_kept_by_type(tmp_path):
    """BatchNormalization goes into the convolution before it, whatever a keep list says."""
    norm = ["scale", "bias", "mean", "var"]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], name="conv"),
        helper.make_node("BatchNormalization", ["a", *norm], ["y"], name="bn"),
    ]
    constants = {name: np.ones(1, np.float32) for name in norm}
    constants["w"] = np.ones((1, 2, 1, 1), np.float32)
    model = tiny.model(nodes, {"x": [1, 2, 8, 8]}, {"y": [1, 1, 8, 8]}, constants)

    with pytest.raises(ModelError, match="merges bn into other nodes"):
        quantized(
            "onnxruntime", tmp_path, model=model, method="minmax",
            keep=keep(["BatchNormalization"]),
        )  # fmt: skip


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("{op_types: [Gemm]}", "keep.reason: required"),
        ("{op_types: [Gemm], reason: ''}", "keep.reason"),
        ("{reason: nothing}", "keep needs op_types or nodes"),
    ],
)
def test_a_keep_list_says_what_and_why(written, message):
    with pytest.raises(ProfileError, match=message):
        choose(load("ort_int8", [f"precision.quantizer.keep={written}"]))


# The range of least squared error


def gauss(bits):
    """A fine histogram of the standard normal distribution, cut at 6."""
    values = np.linspace(-6, 6, 6001)
    return values, np.exp(-(values**2) / 2), (-6.0, 6.0), (1 - 2 ** (bits - 1), 2 ** (bits - 1) - 1)


@pytest.mark.parametrize(("bits", "alpha"), [(4, 2.55), (5, 2.93), (6, 3.28), (7, 3.61), (8, 3.92)])
def test_a_gaussian_is_cut_where_aciq_cuts_it(bits, alpha):
    """
    Optimal clipping of a normal distribution, in standard deviations: Banner et al., Post
    training 4-bit quantization of convolutional networks, NeurIPS 2019, with 2^M levels; ours
    has one fewer. The search has steps of 0.12.
    """
    low, high = least_error(*gauss(bits), True)

    assert low == -high
    assert high == pytest.approx(alpha, abs=0.15)


def squared_error(values, low, high, codes):
    """By numpy, from the definition of QuantizeLinear."""
    scale = (high - low) / (codes[1] - codes[0])
    zero = np.round(codes[0] - low / scale)
    stored = (np.clip(np.round(values / scale) + zero, *codes) - zero) * scale
    return ((values - stored) ** 2).sum()


@pytest.mark.parametrize("seed", range(3))
def test_no_other_range_is_better(seed):
    """Against every one of 200 x 200 ranges, on the values themselves, at 4 bits."""
    rng = np.random.default_rng(seed)
    values = rng.laplace(0.3, 1, 2000)
    ends, codes = (values.min(), values.max()), (0, 15)

    found = least_error(values, np.ones(len(values)), ends, codes, False)

    shares = np.linspace(0.02, 1, 200)
    best = min(
        squared_error(values, a * ends[0], b * ends[1], codes) for a in shares for b in shares
    )
    assert squared_error(values, *found, codes) <= 1.02 * best
    assert squared_error(values, *found, codes) < 0.7 * squared_error(values, *ends, codes)


def test_evenly_spread_values_are_not_cut():
    values = np.linspace(0, 1, 1000)

    assert least_error(values, np.ones(1000), (0.0, 1.0), (0, 255), False) == (0.0, 1.0)


def test_a_tensor_of_zeros_has_no_range():
    assert least_error(np.zeros(1), np.ones(1), (0.0, 0.0), (0, 255), False) == (0.0, 0.0)


def cut_of(count, top):
    """
    Where one value of *top* is cut, beside *count* values spread over [-1, 1], in INT8 of 254
    steps: a cut at c costs count (2c / 254)^2 / 12 for rounding, and (top - c)^2 once.
    """
    return top / (1 + count * 4 / 254**2 / 12)


def test_an_outlier_is_cut_where_its_error_weighs_as_much_as_all_others():
    values, counts = np.append(np.linspace(-1, 1, 2001), 20), np.append(np.full(2001, 100), 1)

    _, high = least_error(values, counts, (-1.0, 20.0), (-127, 127), True)

    assert cut_of(200_100, 20) == pytest.approx(9.84, abs=0.01)
    assert high == pytest.approx(cut_of(200_100, 20), abs=0.4)


def test_mse_cuts_an_outlier_that_minmax_keeps(tmp_path):
    """20 samples of 8192 values, one of them 5: it is cut at 2.71."""
    feeds = samples(size=64)
    feeds[3][0, 0, 0, 0] = 5
    form = {"model": two_convs(64), "activations": "int8", "symmetric": True}

    whole = quantized("onnxruntime", tmp_path, feeds, method="minmax", **form)
    cut = quantized("onnxruntime", tmp_path, feeds, method="mse", num_bins=2048, **form)

    assert scales(whole)["x"][0] * 127 == pytest.approx(5, rel=1e-3)
    assert scales(cut)["x"][0] * 127 == pytest.approx(cut_of(20 * 8192, 5), abs=0.15)
    assert cut_of(20 * 8192, 5) == pytest.approx(2.71, abs=0.01)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("precision.quantizer={method: mse}", "num_bins: required by onnxruntime"),
        ("precision.quantizer={reduce_range: first_layer}", "onnxruntime offers"),
        ("precision.quantizer={target: tensorrt}", "onnxruntime offers"),
    ],
)
def test_what_the_quantizer_does_not_offer_is_refused(written, message):
    with pytest.raises(ProfileError, match=message):
        choose(load("ort_int8", [written]))


def test_facts_of_a_plain_quantizer():
    """What need not be written: nothing is kept, the file is for CPUs."""
    chosen = choose(load("ort_int8", []))[Stage.QUANTIZE]

    facts = {name: chosen.options[name] for name in chosen.facts}
    assert facts == {name: PLAIN[name] for name in facts}


def test_nncf_and_openvino_send_no_reports(tmp_path):
    """Their telemetry package is out of reach: nothing of it is loaded, NNCF has its stub."""
    sums.save(tmp_path / "m.onnx")
    code = f"""
import sys
import numpy as np
from pathlib import Path
from simulator.contract import Stage
from simulator.profile.implementations import choose
from simulator.profile.load import load
folder = Path({str(tmp_path)!r})
choices = choose(load("openvino_int8"))
feeds = iter([{{"x": np.ones((1, 2, 8, 8), np.float32)}}] * 3)
choices[Stage.QUANTIZE].make().quantize(folder / "m.onnx", folder / "q.onnx", feeds)
choices[Stage.RUNTIME].make(folder / "q.onnx")
import nncf.telemetry.wrapper as wrapper
print(sorted(m for m in sys.modules if m.startswith("openvino_telemetry.")))
print(type(wrapper.telemetry).__name__)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

    assert done.stdout.splitlines() == ["[]", "MagicMock"]


def conv(opset):
    """A convolution of channels of 0.01, 1 and 100; NNCF raises the smallest of their scales."""
    weights = np.stack([np.full((3, 3, 3), s, np.float32) for s in (0.01, 1.0, 100.0)])
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], name="conv")]
    shapes = {"x": [1, 3, 8, 8]}, {"y": [1, 3, 6, 6]}
    return tiny.model(nodes, *shapes, {"w": weights}, opset=opset)


@pytest.mark.parametrize(("backend", "how"), [METHODS[0], ("nncf", {"method": "minmax"})])
def test_an_older_operator_set_gets_a_scale_per_channel(backend, how, tmp_path):
    """Before operator set 13 QuantizeLinear has one scale for all channels."""
    feeds = [
        np.random.default_rng(i).normal(size=(1, 3, 8, 8)).astype(np.float32) for i in range(4)
    ]
    model = quantized(backend, tmp_path, feeds, conv(11), **how)

    assert next(one.version for one in model.opset_import if one.domain == "") >= 13
    scales = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    assert any(scale.shape == (3,) and scale.max() / scale.min() > 50 for scale in scales.values())


def test_an_operator_set_that_means_something_else_is_refused(tmp_path):
    with pytest.raises(ModelError, match="operator set 10, but at least 11 is needed"):
        quantized("onnxruntime", tmp_path, samples(), conv(10), method="minmax")
