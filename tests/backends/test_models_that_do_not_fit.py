"""Models that a runtime cannot open or run: one line that names the runtime and the culprit."""

import numpy as np
import pytest
import tiny
from onnx import helper

import simulator
from simulator.errors import ModelError

RUNTIMES = {
    "onnxruntime": "{}",
    "openvino": "{backend: openvino, graph_optimization_level: null}",
    "ncnn": "{backend: ncnn, graph_optimization_level: null}",
    "mnn": "{backend: mnn, weight_storage: fp32, graph_optimization_level: null}",
    "iree": "{backend: iree, graph_optimization_level: null}",
    "onnx_reference": "{backend: onnx_reference, graph_optimization_level: null}",
}
FLAT = [
    helper.make_node("GlobalAveragePool", ["x"], ["pooled"]),
    helper.make_node("Flatten", ["pooled"], ["flat"]),
]
EYE = {"w": np.eye(3, dtype=np.float32)}


@pytest.fixture
def run(cache, tmp_path, data):
    def once(runtime, model):
        return simulator.compare(
            "pillow_fp32", "pillow_fp32", model=tiny.card(tmp_path / "card", model), data=data,
            out=tmp_path / "run",
            overrides=[f"{side}.runtime={RUNTIMES[runtime]}" for side in ("train", "deploy")],
        ).summary  # fmt: skip

    return once


def refused(run, runtime, model):
    with pytest.raises(ModelError) as caught:
        run(runtime, model)
    (line,) = str(caught.value).splitlines()
    return line


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_an_operator_that_the_runtime_lacks_is_named_with_its_node(run, runtime):
    odd = helper.make_node("Oddity", ["flat"], ["y"], domain="vendor", name="odd_one")

    line = refused(run, runtime, tiny.model([*FLAT, odd], domains=("vendor",)))

    assert "Oddity" in line
    assert "odd_one" in line


@pytest.mark.parametrize("runtime", ["onnxruntime", "openvino"])
def test_the_same_operator_where_it_is_known(run, runtime):
    odd = helper.make_node("Gelu", ["flat"], ["y"], domain="com.microsoft", name="odd")

    assert run(runtime, tiny.model([*FLAT, odd], domains=("com.microsoft",)))["samples"] == 6


def test_an_opset_newer_than_the_runtime(run):
    model = tiny.classifier(opset=99)
    model.ir_version = 11

    line = refused(run, "onnxruntime", model)

    assert "onnxruntime cannot open" in line
    assert "Opset 99" in line
    assert "Current official support for domain ai.onnx is till opset" in line


def test_more_memory_than_there_is(run):
    """2**40 numbers are 4 TiB."""
    nodes = [
        *FLAT,
        helper.make_node("Gemm", ["flat", "w"], ["z"]),
        helper.make_node("ConstantOfShape", ["shape"], ["big"], name="too_big"),
        helper.make_node("ReduceMax", ["big"], ["m"], keepdims=0),
        helper.make_node("Add", ["z", "m"], ["y"]),
    ]
    constants = {**EYE, "shape": np.array([2**20, 2**20], np.int64)}

    line = refused(run, "onnxruntime", tiny.model(nodes, constants=constants))

    assert "ConstantOfShape" in line
    assert "Failed to allocate memory for requested buffer of size 4398046511104" in line


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_free_dimensions_run_everywhere(run, runtime):
    """A runtime that has none gets the card's size; each answers as it should."""
    nodes = [*FLAT, helper.make_node("MatMul", ["flat", "w"], ["y"])]
    model = tiny.model(nodes, {"x": ["n", 3, "h", "w"]}, {"y": ["n", 3]}, EYE)

    summary = run(runtime, model)

    assert (summary["samples"], summary["deploy"]["metric"]["top1"]) == (6, 1)
