"""ONNX files as torch.export programs, held against ONNX Runtime and the ONNX reference."""

import numpy as np
import onnx
import onnxruntime
import pytest
import tiny
from onnx import helper
from onnx.reference import ReferenceEvaluator
from shared_data import shared

from backends import pytorch_onnx_export
from backends.pytorch_converters import onnx2torch
from simulator import registry
from simulator.contract import ModelError, Stage, Unsupported
from simulator.contract.injection import Target
from simulator.profile.implementations import implementation
from simulator.testing import models

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not onnx2torch.present, reason="onnx2torch is not installed")
OPTIONS = {
    "device": "cpu", "threads": 1, "mode": "eager", "memory_format": "contiguous",
    "storage": "fp32", "compute": "fp32",
}  # fmt: skip


def exported(source, target):
    backend = registry.backend("onnx2torch")
    implementation(Stage.EXPORT, backend, {}).make().export(source, target)
    runtime = implementation(Stage.RUNTIME, registry.backend("pytorch"), OPTIONS)
    return runtime.make(target), runtime.offer.make.injector()(target, OPTIONS)


def written(path, model):
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize("name", ["yolox_nano_416", "bccd_retinanet_316x412"])
def test_real_detectors_give_the_answers_of_onnx_runtime(tmp_path, name):
    """Within 0.1 % of the largest number of each output."""
    source = shared("models") / f"{name}.onnx"
    session = onnxruntime.InferenceSession(str(source))
    (port,) = session.get_inputs()
    sizes = [size if isinstance(size, int) else 1 for size in port.shape]
    x = np.random.default_rng(4).uniform(0, 255, sizes).astype(np.float32)
    if name.startswith("bccd"):
        x = x / 127 - 1
    wanted = session.run(None, {port.name: x})
    runtime, injector = exported(source, tmp_path / "m.pt2")
    found = runtime.run({runtime.inputs[0].name: x})
    for got, want in zip(found.values(), wanted, strict=True):
        assert np.abs(got - want).max() <= 1e-3 * np.abs(want).max()
    graph = onnx.load(str(source)).graph
    used = {}
    for node in graph.node:
        if node.op_type == "Conv":
            used.setdefault(node.input[1], node.name)  # shared weights belong to the first
    layers = [one.layer for one in injector.sites if one.target is Target.WEIGHTS]
    assert layers == list(used.values())


def shapes():
    """A reshape and a token, of sizes that the graph itself computes of its input's shape."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="first/conv"),
        helper.make_node("Shape", ["c"], ["s"]),
        helper.make_node("Gather", ["s", "one"], ["channels"]),
        helper.make_node("Concat", ["zero", "channels", "rest"], ["sizes"], axis=0),
        helper.make_node("Reshape", ["c", "sizes"], ["flat"]),
        helper.make_node("Concat", ["zero", "channels", "zero"], ["column"], axis=0),
        helper.make_node("ConstantOfShape", ["column"], ["token"]),
        helper.make_node("Concat", ["flat", "token"], ["both"], axis=2),
        helper.make_node("ReduceMean", ["both", "axes"], ["y"], keepdims=0),
    ]
    constants = {
        "w": np.random.default_rng(0).normal(size=(3, 3, 1, 1)).astype(np.float32),
        "one": np.array([1], np.int64),
        "zero": np.array([1], np.int64),
        "rest": np.array([-1], np.int64),
        "axes": np.array([2], np.int64),
    }
    return tiny.model(nodes, constants=constants, opset=18)


def test_what_the_graph_computes_of_shapes_is_computed_once(tmp_path):
    model = shapes()
    x = np.random.default_rng(1).normal(size=(1, 3, 32, 32)).astype(np.float32)
    (want,) = ReferenceEvaluator(model).run(None, {"x": x})
    runtime, injector = exported(written(tmp_path / "m.onnx", model), tmp_path / "m.pt2")
    (found,) = runtime.run({runtime.inputs[0].name: x}).values()
    np.testing.assert_allclose(found, want, atol=1e-5)
    assert "first/conv" in {one.layer for one in injector.sites}


def test_two_conversions_have_equal_bytes(tmp_path):
    source = written(tmp_path / "m.onnx", models.build("conv"))
    for name in ("a.pt2", "b.pt2"):
        exported(source, tmp_path / name)
    assert (tmp_path / "a.pt2").read_bytes() == (tmp_path / "b.pt2").read_bytes()


def test_a_program_that_computes_something_else_is_refused(tmp_path):
    """The program of one model, held against another with other weights."""
    one, other = shapes(), shapes()
    other.graph.initializer[0].raw_data = np.zeros((3, 3, 1, 1), np.float32).tobytes()
    program = pytorch_onnx_export.exported(one.SerializeToString())
    pytorch_onnx_export.hold(program, one.SerializeToString(), "m.onnx")
    with pytest.raises(Unsupported, match=r"changes what m\.onnx computes: output .y. is off by"):
        pytorch_onnx_export.hold(program, other.SerializeToString(), "m.onnx")


def test_an_operator_that_onnx2torch_lacks_is_named_in_one_line(tmp_path):
    nodes = [helper.make_node("Det", ["x"], ["y"])]
    model = tiny.model(nodes, outputs={"y": [1, 3]})
    with pytest.raises(ModelError, match=r"onnx2torch cannot convert it: .*Det") as caught:
        exported(written(tmp_path / "m.onnx", model), tmp_path / "m.pt2")
    assert "\n" not in str(caught.value)
