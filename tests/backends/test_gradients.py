"""Gradients of model files, against differences and against what is known of a network."""

import subprocess
import sys
import zipfile

import numpy as np
import onnx
import pytest
import tiny
from onnx import helper

from backends.pytorch_converters import onnx2torch
from backends.pytorch_gradients import TorchGradients
from simulator import registry
from simulator.contract import ModelError, Stage
from simulator.profile.implementations import implementation

torch = pytest.importorskip("torch")
VALUES = np.random.default_rng(5).normal(size=(1, 3, 32, 32)).astype(np.float32)


def opened(path, format):
    backend = registry.backend("onnx2torch" if format == "onnx" else "pytorch")
    return implementation(Stage.GRADIENT, backend, {"format": format}).make(path)


def from_onnx(tmp_path, model):
    if not onnx2torch.present:
        pytest.skip("onnx2torch is not installed")
    onnx.checker.check_model(model)
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    return opened(path, "onnx")


class Program(torch.nn.Module):
    def forward(self, x):
        return torch.tanh(x).mean((2, 3))


def tanh(pooling="GlobalAveragePool", opset=17):
    """The mean of the hyperbolic tangent of each channel."""
    nodes = [helper.make_node("Tanh", ["x"], ["t"])]
    constants = {"shape": np.array([1, -1], np.int64)}
    if pooling == "ReduceMean":
        nodes.append(helper.make_node("ReduceMean", ["t", "axes"], ["p"], keepdims=1))
        constants["axes"] = np.array([2, 3], np.int64)
    else:
        nodes.append(helper.make_node(pooling, ["t"], ["p"]))
    nodes.append(helper.make_node("Reshape", ["p", "shape"], ["y"], allowzero=1))
    return tiny.model(nodes, constants=constants, opset=opset)


@pytest.fixture(params=["program", "onnx", "reduce mean 18"])
def network(request, tmp_path):
    if request.param == "program":
        path = tmp_path / "m.pt2"
        torch.export.save(torch.export.export(Program(), (torch.zeros(1, 3, 32, 32),)), str(path))
        return opened(path, "torch_export")
    new = request.param != "onnx"
    return from_onnx(tmp_path, tanh("ReduceMean", 18) if new else tanh())


def test_scores_loss_and_gradient_by_formula(network):
    """d/dx of -log softmax(mean tanh x)[c] is (p - 1[c]) (1 - tanh² x) / 1024."""
    scores = np.tanh(VALUES.astype(np.float64)).mean((2, 3))[0]
    shares = np.exp(scores) / np.exp(scores).sum()
    found = network.gradient(VALUES, 2, "logits")
    np.testing.assert_allclose(found.scores, scores, atol=1e-6)
    assert found.loss == pytest.approx(-np.log(shares[2]), abs=1e-6)
    wanted = (shares - np.eye(3)[2])[:, None, None] * (1 - np.tanh(VALUES[0]) ** 2) / 1024
    np.testing.assert_allclose(found.gradient[0], wanted, atol=1e-8)
    np.testing.assert_allclose(network.scores(VALUES), scores, atol=1e-6)
    assert not network.rounds


def test_probabilities_are_not_put_through_a_softmax_again(tmp_path):
    nodes = [
        helper.make_node("GlobalAveragePool", ["x"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Softmax", ["f"], ["y"]),
    ]
    network = from_onnx(tmp_path, tiny.model(nodes))
    means = VALUES.astype(np.float64).mean((2, 3))[0]
    shares = np.exp(means) / np.exp(means).sum()
    found = network.gradient(VALUES, 0, "probabilities")
    assert found.loss == pytest.approx(-np.log(shares[0]), abs=1e-6)
    wanted = (shares - np.eye(3)[0])[:, None, None] / 1024 * np.ones((3, 32, 32))
    np.testing.assert_allclose(found.gradient[0], wanted, atol=1e-8)


def quantized():
    """Rounded to steps of 0.02 in int8, then a 1x1 product with the unit matrix in int8."""
    scale = {"w": np.array([0.5, 0.25, 1.0], np.float32)}
    nodes = [
        helper.make_node("Clip", ["x", "low", "high"], ["c"]),
        helper.make_node("QuantizeLinear", ["c", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("DequantizeLinear", ["w8", "w", "w0"], ["k"], axis=0),
        helper.make_node("Conv", ["d", "k"], ["v"]),
        helper.make_node("GlobalAveragePool", ["v"], ["p"]),
        helper.make_node("Flatten", ["p"], ["y"]),
    ]
    return tiny.model(nodes, constants=scale | {
        "low": np.float32(-3), "high": np.float32(100), "s": np.float32(0.02),
        "z": np.array(0, np.int8), "w8": np.array(np.diag([2, 4, 1]), np.int8).reshape(3, 3, 1, 1),
        "w0": np.zeros(3, np.int8),
    })  # fmt: skip


def test_integers_have_a_straight_through_gradient(tmp_path):
    """Weights of 1; the gradient is as without rounding inside of 127 steps of 0.02, else 0."""
    network = from_onnx(tmp_path, quantized())
    steps = np.clip(np.rint(VALUES[0].astype(np.float64) / np.float32(0.02)), -128, 127)
    scores = (steps * 0.02).mean((1, 2))
    shares = np.exp(scores) / np.exp(scores).sum()
    found = network.gradient(VALUES, 1, "logits")
    assert network.rounds
    np.testing.assert_allclose(found.scores, scores, atol=1e-4)
    inside = np.abs(VALUES[0]) < 2.53
    wanted = (shares - np.eye(3)[1])[:, None, None] / 1024 * np.ones((3, 32, 32))
    np.testing.assert_allclose(found.gradient[0][inside], wanted[inside], atol=1e-6)
    assert not found.gradient[0][VALUES[0] > 2.56].any() and (VALUES > 2.56).any()


def test_explicit_rounding_has_a_straight_through_gradient(tmp_path):
    """Fewer than 8 bits lie as Div, Clip, Round, Mul: 0 outside of 0 to 3 steps of 0.5, else 1."""
    nodes = [
        helper.make_node("Div", ["x", "s"], ["d"]),
        helper.make_node("Clip", ["d", "low", "high"], ["c"]),
        helper.make_node("Round", ["c"], ["r"]),
        helper.make_node("Mul", ["r", "s"], ["m"]),
        helper.make_node("GlobalAveragePool", ["m"], ["p"]),
        helper.make_node("Flatten", ["p"], ["y"]),
    ]
    constants = {"s": np.float32(0.5), "low": np.float32(0), "high": np.float32(3)}
    network = from_onnx(tmp_path, tiny.model(nodes, constants=constants))
    scores = (np.rint(np.clip(VALUES[0] / 0.5, 0, 3)) * 0.5).mean((1, 2))
    shares = np.exp(scores) / np.exp(scores).sum()
    found = network.gradient(VALUES, 1, "logits")
    assert network.rounds
    np.testing.assert_allclose(found.scores, scores, atol=1e-5)
    inside = (VALUES[0] > 0) & (VALUES[0] < 1.5)
    wanted = (shares - np.eye(3)[1])[:, None, None] / 1024 * inside
    np.testing.assert_allclose(found.gradient[0], wanted, atol=1e-6)
    assert inside.any() and not inside.all()


def test_an_operator_without_a_converter_is_refused_in_one_line(tmp_path):
    nodes = [helper.make_node("Det", ["x"], ["d"]), helper.make_node("Relu", ["d"], ["y"])]
    with pytest.raises(ModelError, match=r"cannot convert it: NotImplementedError.*Det") as caught:
        from_onnx(tmp_path, tiny.model(nodes, outputs={"y": [1, 3]}))
    assert "torch_export: FILE.pt2" in str(caught.value) and "\n" not in str(caught.value)


def test_names_of_a_stranger_are_no_code(tmp_path):
    """onnx2torch makes source code of the names of nodes."""
    model = tiny.classifier()
    mark = tmp_path / "ran"
    model.graph.node[0].name = f'a"); open({str(mark)!r}, "w"); ("'
    network = from_onnx(tmp_path, model)
    network.scores(VALUES)
    assert not mark.exists()


def test_scores_without_a_way_back_are_refused(tmp_path):
    nodes = [
        helper.make_node("GlobalAveragePool", ["x"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Cast", ["f"], ["i"], to=onnx.TensorProto.INT64),
        helper.make_node("Cast", ["i"], ["y"], to=onnx.TensorProto.FLOAT),
    ]
    network = from_onnx(tmp_path, tiny.model(nodes))
    with pytest.raises(ModelError, match="no gradient to its input"):
        network.gradient(VALUES, 0, "logits")


def test_the_backend_loads_without_torchvision():
    """As a user's first call does: nothing else has imported onnx2torch before."""
    if not onnx2torch.present:
        pytest.skip("onnx2torch is not installed")
    code = (
        "import sys; from simulator import registry; "
        "registry.require(registry.backend('onnx2torch')); import onnx2torch; "
        "assert 'torchvision' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_file_that_is_no_program_is_refused(tmp_path):
    path = tmp_path / "m.pt2"
    path.write_bytes(b"no zip")
    with pytest.raises(ModelError, match=r"m\.pt2"):
        opened(path, "torch_export")


def test_a_program_for_a_gpu_is_refused_in_one_line(tmp_path):
    """Its weights say cuda; PyTorch without a GPU says so, whatever its words are."""
    path = tmp_path / "m.pt2"
    torch.export.save(torch.export.export(Linear(), (torch.zeros(1, 3, 32, 32),)), str(path))
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(tmp_path / "gpu.pt2", "w") as new:
        for one in old.infolist():
            data = old.read(one)
            if one.filename.endswith(".json"):
                data = data.replace(b'"type": "cpu", "index": null', b'"type": "cuda", "index": 0')
                assert b'"cuda"' in data or b'"cpu"' not in data
            new.writestr(one.filename, data)
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(ModelError, match=r"gpu\.pt2: PyTorch cannot open it here") as caught:
        opened(tmp_path / "gpu.pt2", "torch_export")
    assert "\n" not in str(caught.value)


class Linear(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))

    def forward(self, x):
        return x.mean((2, 3)) * self.weight


class Counted(torch.nn.Module):
    """The mean of each channel; it notes how many threads PyTorch computes with, both ways."""

    def __init__(self):
        super().__init__()
        self.threads = []

    def forward(self, x):
        self.threads.append(torch.get_num_threads())
        if x.requires_grad:
            x.register_hook(lambda _: self.threads.append(torch.get_num_threads()))
        return x.mean((2, 3))


def test_gradients_are_of_one_thread_whatever_a_runtime_asked_for(tmp_path):
    class Watched(TorchGradients):
        def _read(self, artifact):
            return Counted()

    network = Watched(tmp_path / "m.pt2", {"format": "torch_export"})
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        network.gradient(VALUES, 0, "logits")
        network.scores(VALUES)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
    assert network._module.threads == [1, 1, 1]


def test_the_way_back_may_be_taken_many_times(network):
    """The derivative of one score: (1 - tanh² x) / 1024 in its channel, 0 in the others."""
    scores, pull = network.at(VALUES)
    np.testing.assert_allclose(scores, np.tanh(VALUES).mean((2, 3))[0], atol=1e-6)
    for one in np.eye(3, dtype=np.float32):
        wanted = one[:, None, None] * (1 - np.tanh(VALUES[0]) ** 2) / 1024
        np.testing.assert_allclose(pull(one)[0], wanted, atol=1e-8)


def test_a_runtime_computes_with_its_own_threads_whoever_set_them_last(tmp_path):
    path = tmp_path / "m.pt2"
    torch.export.save(torch.export.export(Program(), (torch.zeros(1, 3, 32, 32),)), str(path))
    backend = registry.backend("pytorch")
    options = {"device": "cpu", "threads": 2, "mode": "eager", "memory_format": "contiguous",
               "storage": "fp32", "compute": "fp32"}  # fmt: skip
    before = torch.get_num_threads()
    runtime = implementation(Stage.RUNTIME, backend, options).offer.make(path, options)
    try:
        torch.set_num_threads(1)
        runtime.run({runtime.inputs[0].name: VALUES})
        assert torch.get_num_threads() == 2
    finally:
        runtime.close()
        torch.set_num_threads(before)
