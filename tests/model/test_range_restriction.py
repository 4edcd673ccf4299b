"""Activations that are held within the range that they have without faults."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
import tiny
from onnx import helper

from simulator.errors import DataError, ModelError
from simulator.model.range_restriction import Range, Ranges, activations, restrict

W = np.array([[1, 0], [0, 2], [3, -3]], np.float32).reshape(3, 2, 1, 1)
V = np.ones((1, 3, 1, 1), np.float32)


def network(path, opset=17):
    """relu(conv(x)), then their sum over channels: a plain network of two layers."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="first"),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node("Conv", ["r", "v"], ["y"], name="second"),
    ]
    model = tiny.model(
        nodes, {"x": [1, 2, 1, 1]}, {"y": [1, 1, 1, 1]}, {"w": W, "v": V}, opset=opset
    )
    onnx.save(model, path)
    return path


def run(path, x, level="ORT_ENABLE_ALL"):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return float(session.run(None, {"x": np.array(x, np.float32).reshape(1, 2, 1, 1)})[0].item())


@pytest.mark.parametrize("by", ["clip", "min_max"])
@pytest.mark.parametrize("level", ["ORT_DISABLE_ALL", "ORT_ENABLE_ALL"])
@pytest.mark.parametrize(
    ("x", "expected"),
    [((1, 1), 1 + 2 + 0.5), ((4, 1), 4 + 2 + 5), ((-5, 1), 0.5 + 2 + 0.5), ((3e38, 0), 10.5)],
)  # fmt: skip
def test_values_are_held_within_the_range(tmp_path, by, level, x, expected):
    """Channels x1, 2 x2 and 3 x1 - 3 x2, from 0.5 to 5; the last input overflows to infinity."""
    source, target = network(tmp_path / "model.onnx"), tmp_path / "held.onnx"
    assert restrict(source, target, {"first": Range(0.5, 5.0)}, by) == {"first": "r"}
    assert run(target, x, level) == expected


@pytest.mark.parametrize("by", ["clip", "min_max"])
def test_within_its_range_a_network_answers_as_before(tmp_path, by):
    source, target = network(tmp_path / "model.onnx"), tmp_path / "held.onnx"
    restrict(source, target, {"first": Range(0.0, 5.0), "second": Range(0.0, 9.0)}, by)
    assert run(target, (1, 0.5)) == run(source, (1, 0.5)) == 1 + 1 + 1.5
    assert run(target, (5, 0)) == 9.0


@pytest.mark.parametrize("by", ["clip", "min_max"])
def test_nan_stays_nan(tmp_path, by):
    """Infinity times a weight of 0."""
    source, target = network(tmp_path / "model.onnx"), tmp_path / "held.onnx"
    restrict(source, target, {"first": Range(0.5, 5.0)}, by)
    assert np.isnan(run(target, (np.inf, 1)))


def test_a_clip_is_fused_into_the_layer_and_a_max_and_a_min_are_not(tmp_path):
    """What ONNX Runtime makes of both: after a fused Clip the stored output is not restricted."""
    source, made = network(tmp_path / "model.onnx"), {}
    for by in ("clip", "min_max"):
        target, seen = tmp_path / f"{by}.onnx", tmp_path / f"{by}-optimized.onnx"
        restrict(source, target, {"first": Range(0.5, 5.0)}, by)
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        options.optimized_model_filepath = str(seen)
        options.log_severity_level = 4
        onnxruntime.InferenceSession(str(target), options, providers=["CPUExecutionProvider"])
        made[by] = [node.op_type for node in onnx.load(seen).graph.node]
    assert made == {"clip": ["FusedConv", "Conv"], "min_max": ["FusedConv", "Max", "Min", "Conv"]}


def test_half_precision_has_bounds_of_its_own_type(tmp_path):
    source, target = tmp_path / "model.onnx", tmp_path / "held.onnx"
    nodes = [
        helper.make_node("Cast", ["x"], ["h"], to=onnx.TensorProto.FLOAT16),
        helper.make_node("MatMul", ["h", "w"], ["m"], name="product"),
        helper.make_node("Cast", ["m"], ["y"], to=onnx.TensorProto.FLOAT),
    ]
    weights = {"w": np.array([[3], [1]], np.float16)}
    onnx.save(tiny.model(nodes, {"x": [1, 2]}, {"y": [1, 1]}, weights), source)
    restrict(source, target, {"product": Range(-1.5, 6.5)}, "clip")
    session = onnxruntime.InferenceSession(str(target), providers=["CPUExecutionProvider"])
    for x, expected in (((1, 1), 4.0), ((3, 1), 6.5), ((-3, 1), -1.5)):
        assert session.run(None, {"x": np.array([x], np.float32)})[0].item() == expected


def test_the_activation_behind_each_layer_is_found():
    """
    Behind a batch normalization; not where another node reads the layer's output (x * sigmoid(x)),
    nor behind an addition; a layer without a name has that of its output.
    """
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], name="normalized"),
        helper.make_node("BatchNormalization", ["a", "s", "s", "s", "s"], ["b"]),
        helper.make_node("Relu", ["b"], ["c"]),
        helper.make_node("Conv", ["c", "w"], ["d"], name="swish"),
        helper.make_node("Sigmoid", ["d"], ["e"]),
        helper.make_node("Mul", ["d", "e"], ["f"]),
        helper.make_node("Conv", ["f", "w"], ["g"]),
        helper.make_node("Add", ["g", "f"], ["h"]),
        helper.make_node("Relu", ["h"], ["y"]),
    ]
    constants = {"w": np.ones((2, 2, 1, 1), np.float32), "s": np.ones(2, np.float32)}
    model = tiny.model(nodes, {"x": [1, 2, 1, 1]}, {"y": [1, 2, 1, 1]}, constants)
    assert activations(model) == {"normalized": "c", "swish": "d", "g": "g"}


def test_ranges_are_taken_over_all_samples():
    ranges = Ranges()
    ranges.add({"a": np.array([1.0, 2.0]), "b": np.array([[-1.0]])})
    ranges.add({"a": np.array([0.5])})
    assert ranges.found == {"a": Range(0.5, 2.0), "b": Range(-1.0, -1.0)}


@pytest.mark.parametrize("values", [[], [1.0, np.nan], [np.inf]])
def test_no_range_is_taken_of_nothing_or_nan(values):
    with pytest.raises(DataError, match="a: no range can be taken"):
        Ranges().add({"a": np.array(values)})


def test_integer_activations_are_bounded_already(tmp_path):
    source = tmp_path / "model.onnx"
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s"], ["y"]),
    ]
    constants = {"s": np.array(0.1, np.float32)}
    onnx.save(tiny.model(nodes, {"x": [1, 2]}, {"y": [1, 2]}, constants), source)
    with pytest.raises(ModelError, match="bounded by their quantization already"):
        restrict(source, tmp_path / "held.onnx", {}, "clip")


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ({"frist": Range(0, 1)}, "unknown layer 'frist'; did you mean 'first'"),
        ({"first": Range(1, 0)}, "has no value"),
        ({"first": Range(float("nan"), 0)}, "has no value"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, ranges, message):
    source = network(tmp_path / "model.onnx")
    with pytest.raises(ModelError, match=message):
        restrict(source, tmp_path / "held.onnx", ranges, "clip")


def test_an_old_model_is_refused(tmp_path):
    source = network(tmp_path / "model.onnx", opset=10)
    with pytest.raises(ModelError, match="needs opset 11 or later"):
        restrict(source, tmp_path / "held.onnx", {}, "clip")
