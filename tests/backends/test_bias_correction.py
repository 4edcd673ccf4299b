"""Bias correction of ONNX Runtime's quantizer: by hand, layer by layer, and against NNCF's."""

import numpy as np
import onnx
import onnxruntime
import pytest
import tiny
from onnx import helper, numpy_helper

from backends.ort.bias_correction import SAMPLES, kept
from simulator import registry
from simulator.contract import Stage
from simulator.profile.implementations import choose
from simulator.profile.load import load

RNG = np.random.default_rng(11)
PLAIN = {
    "weights": "per_tensor",
    "activations": "uint8",
    "symmetric": False,
    "reduce_range": False,
    "symmetric_weights": True,
    "scales": "any",
    "target": "cpu",
    "operators": "all",
    "method": "minmax",
    "keep": {"op_types": [], "nodes": [], "reason": ""},
}
TENSORRT = {"target": "tensorrt", "activations": "int8", "symmetric": True}


def network(bias=True):
    """Two convolutions with a Relu between, a residual, and a Gemm; one weight is very large.

    The large weight makes the steps of a per-tensor scale coarse, so that the mean of each
    channel moves.
    """
    nodes = [
        helper.make_node("Conv", ["x", "w1", *(["b1"] if bias else [])], ["a"], name="one"),
        helper.make_node("Relu", ["a"], ["b"], name="relu"),
        helper.make_node("Conv", ["b", "w2"], ["c"], name="two", pads=[1] * 4),
        helper.make_node("Add", ["b", "c"], ["d"], name="add"),
        helper.make_node("GlobalAveragePool", ["d"], ["e"], name="pool"),
        helper.make_node("Flatten", ["e"], ["f"], name="flat"),
        helper.make_node("Gemm", ["f", "w3", "b3"], ["y"], name="three", transB=1),
    ]
    constants = {
        "w1": RNG.normal(size=(8, 3, 3, 3)).astype(np.float32),
        "w2": RNG.normal(size=(8, 8, 3, 3)).astype(np.float32),
        "w3": RNG.normal(size=(5, 8)).astype(np.float32),
        "b1": RNG.normal(size=8).astype(np.float32),
        "b3": RNG.normal(size=5).astype(np.float32),
    }
    constants["w1"][0, 0, 0, 0] = constants["w2"][0, 0, 0, 0] = 30
    if not bias:
        del constants["b1"]
    return tiny.model(nodes, {"x": [1, 3, 10, 10]}, {"y": [1, 5]}, constants)


@pytest.fixture
def samples():
    return [RNG.uniform(0, 1, (1, 3, 10, 10)).astype(np.float32) for _ in range(24)]


def quantized(model, folder, samples, backend="onnxruntime", **how):
    source, target = folder / "source.onnx", folder / "target.onnx"
    onnx.save(model, str(source))
    maker = registry.backend(backend).of(Stage.QUANTIZE)[0].make
    maker({**PLAIN, **how}).quantize(source, target, iter([{"x": one} for one in samples]))
    return onnx.load(str(target))


def means(model, tensor, samples):
    """The mean of each channel of a tensor, by ONNX Runtime without any optimization."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    del made.graph.output[:]
    made.graph.output.append(helper.make_empty_tensor_value_info(tensor))
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(made.SerializeToString(), options)
    outputs = [session.run([tensor], {"x": one})[0].astype(np.float64) for one in samples]
    return np.mean([np.moveaxis(out, 1, 0).reshape(out.shape[1], -1).mean(1) for out in outputs], 0)


def made_by(model, name):
    """The tensor that a layer gives, whatever the quantizer calls it."""
    return next(node.output[0] for node in model.graph.node if node.name == name)


@pytest.mark.parametrize("how", [{}, {"weights": "per_channel"}, TENSORRT], ids=str)
@pytest.mark.parametrize("bias", [True, False])
def test_every_layer_has_the_mean_of_the_float_model(tmp_path, samples, bias, how):
    """The definition: after the correction the expected error of each channel is 0."""
    model = network(bias)
    plain = quantized(model, tmp_path, samples, bias_correction=False, **how)
    corrected = quantized(model, tmp_path, samples, bias_correction=True, **how)

    for layer, tensor in (("one", "a"), ("two", "c"), ("three", "y")):
        wanted = means(model, tensor, samples)
        before = np.abs(means(plain, made_by(plain, layer), samples) - wanted).max()
        after = np.abs(means(corrected, made_by(corrected, layer), samples) - wanted).max()
        assert after < 0.02 * before, (layer, before, after)


def test_only_biases_change(tmp_path, samples):
    model = network()
    files = [quantized(model, tmp_path, samples, bias_correction=on) for on in (False, True)]
    plain, corrected = (
        {t.name: numpy_helper.to_array(t) for t in file.graph.initializer} for file in files
    )
    differ = {n for n in plain if n in corrected and not np.array_equal(plain[n], corrected[n])}

    assert differ == {"b1_quantized", "b3_quantized"}
    assert set(corrected) - set(plain) == {
        f"c/bias_quantized{end}" for end in ("", "_scale", "_zero_point")
    }


def test_a_kept_layer_keeps_its_bias(tmp_path, samples):
    keep = {"op_types": [], "nodes": ["one"], "reason": "a test"}
    model = network()
    made = quantized(model, tmp_path, samples, bias_correction=True, keep=keep)

    held = {t.name: numpy_helper.to_array(t) for t in (*made.graph.initializer,)}
    given = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    np.testing.assert_array_equal(held["b1"], given["b1"])


def test_nncf_and_ours_both_reduce_the_mean_error(tmp_path):
    """
    Not equal: NNCF's is the fast one, which feeds each layer a map of channel means. So it is held
    where that is near the truth, behind one layer without padding; ours has no such limit.
    """
    rng = np.random.default_rng(1)
    samples = [rng.uniform(0, 1, (1, 3, 10, 10)).astype(np.float32) for _ in range(24)]
    constants = {
        "w2": (rng.normal(size=(8, 8, 3, 3)) * 0.2).astype(np.float32),
        "w1": rng.normal(size=(8, 3, 1, 1)).astype(np.float32),
        "b2": rng.normal(size=8).astype(np.float32),
        "b1": rng.normal(size=8).astype(np.float32),
    }
    constants["w2"][:, 0, 0, 0] = 4
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["a"], name="one"),
        helper.make_node("Relu", ["a"], ["b"], name="relu"),
        helper.make_node("Conv", ["b", "w2", "b2"], ["y"], name="two"),
    ]
    model = tiny.model(nodes, {"x": [1, 3, 10, 10]}, {"y": None}, constants)
    wanted = means(model, "y", samples)
    left = {}
    for backend, how in (("onnxruntime", {}), ("nncf", {"reduce_range": False})):
        errors = []
        for on in (False, True):
            made = quantized(
                model, tmp_path, samples, backend,
                weights="per_channel", bias_correction=on, **how,
            )  # fmt: skip
            errors.append(np.abs(means(made, made_by(made, "two"), samples) - wanted).mean())
        left[backend] = errors[1] / errors[0]

    assert left["onnxruntime"] < left["nncf"] < 0.5


def test_a_profile_may_ask_for_it():
    """Not written means without; both are seen as different stacks."""
    plain = choose(load("ort_int8"))[Stage.QUANTIZE]
    asked = choose(load("ort_int8", ["precision.quantizer.bias_correction=true"]))[Stage.QUANTIZE]

    assert (plain.options["bias_correction"], asked.options["bias_correction"]) == (False, True)
    assert plain.identity() != asked.identity()


def test_no_more_samples_are_kept_than_are_used():
    into = []
    given = [{"x": np.zeros(1)} for _ in range(SAMPLES + 3)]

    assert list(kept(iter(given), into)) == given
    assert into == given[:SAMPLES]
