"""Runtimes that convert or compile the ONNX file: ncnn, MNN, IREE, TVM, ExecuTorch, ONNX's own."""

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import tiny
from onnx import helper
from test_runtimes import feed, only, save_conv, save_program

from simulator import registry
from simulator.contract import MissingLibrary, Stage, Unsupported
from simulator.contract.installing import install
from simulator.data import example
from simulator.errors import ModelError

pytestmark = pytest.mark.prove

EXTRAS = ["executorch", "tvm"]
NAMES = ["iree", "mnn", "ncnn", "onnx_reference"]
ONNX_NAMES = [*NAMES, pytest.param("tvm", marks=pytest.mark.extras)]
ALL_NAMES = [*NAMES, *(pytest.param(name, marks=pytest.mark.extras) for name in EXTRAS)]
X = {"x": [1, 3, 8, 8]}


@pytest.fixture
def opened(tmp_path):
    """Open a model file as the engine would: compiled first where the runtime asks for it."""
    kept = []

    def open_with(name, source, storage="fp32", compute="fp32", threads=1, **more):
        (make,) = {
            offer.make
            for offer in registry.backend(name).of(Stage.RUNTIME)
            if storage in offer.options["storage"] and compute in offer.options["compute"]
        }
        options = {"device": "cpu", "threads": threads, "storage": storage, "compute": compute}
        options |= {"weight_storage": "fp32"} if name == "mnn" else {}
        options |= more
        artifact = Path(source)
        if make.compiled_by is not None:
            artifact = tmp_path / f"compiled{len(kept)}"
            artifact.mkdir()
            make.compile(Path(source), artifact, options)
        kept.append(make(artifact, options))
        return kept[-1]

    yield open_with
    for runtime in kept:
        runtime.close()


def conv(path, name, weights):
    """A 1x1 convolution in the format that the runtime takes."""
    takes = registry.backend(name).of(Stage.RUNTIME)[0].make.takes
    if takes == "torch_export":
        return save_program(path / "conv.pt2", weights)
    return save_conv(path / "conv.onnx", weights)


def onnx_file(path, nodes, *args, **options):
    path.write_bytes(tiny.model(nodes, *args, **options).SerializeToString())
    return path


def watched(runtime):
    return runtime.effective({p.name: np.zeros(p.shape, p.dtype) for p in runtime.inputs})


@pytest.mark.parametrize("name", ALL_NAMES)
def test_a_convolution_by_hand_with_manners(name, opened, tmp_path):
    """(1, 2) through [[1, 10], [-1, 0.5]] is (21, 0); arrays stay, threads do not mix."""
    runtime = opened(name, conv(tmp_path, name, [[1, 10], [-1, 0.5]]))
    given = feed(runtime, 1, 2)
    (key,) = given
    before = given[key].copy()

    kept = only(runtime.run(given))
    with ThreadPoolExecutor(4) as pool:
        got = list(
            pool.map(lambda i: only(runtime.run(feed(runtime, i, 0)))[0, 0, 3, 4], range(32))
        )

    assert kept.shape == (1, 2, 8, 8)
    assert kept.dtype == np.float32
    assert kept[0, :, 3, 4].tolist() == [21, 0]
    assert (given[key] == before).all()
    assert got == list(range(32))


@pytest.mark.parametrize("name", ALL_NAMES)
def test_what_is_read_back_fits_what_was_asked(name, opened, tmp_path):
    effective = watched(opened(name, conv(tmp_path, name, [[1, 1]])))

    assert effective.compute in ("fp32", None)
    assert effective.options["device"] == "cpu"
    assert effective.options.get("threads", 1) == 1


@pytest.mark.parametrize("name", ["iree", "mnn", "ncnn"])
def test_two_threads_give_the_same_answer(name, opened, tmp_path):
    runtime = opened(name, save_conv(tmp_path / "m.onnx", [[2, 1]]), threads=2)

    assert only(runtime.run(feed(runtime, 3, 4)))[0, 0, 0, 0] == 10
    assert watched(runtime).options.get("threads", 2) == 2


@pytest.mark.parametrize("name", ONNX_NAMES)
def test_two_inputs_and_two_outputs_keep_their_names(name, opened, tmp_path):
    """Planes of 5x7 also need ncnn's padding between channels to be left out."""
    ports = {"a": [1, 2, 5, 7], "b": [1, 2, 5, 7]}, {"less": [1, 2, 5, 7], "more": [1, 2, 5, 7]}
    nodes = [
        helper.make_node("Sub", ["a", "b"], ["less"]),
        helper.make_node("Add", ["a", "b"], ["more"]),
    ]
    runtime = opened(name, onnx_file(tmp_path / "m.onnx", nodes, *ports))
    a = np.arange(70, dtype=np.float32).reshape(1, 2, 5, 7)

    got = runtime.run({"b": np.ones_like(a), "a": a})

    assert (got["less"] == a - 1).all()
    assert (got["more"] == a + 1).all()


@pytest.mark.parametrize("name", ONNX_NAMES)
def test_an_operator_in_place_leaves_the_input_alone(name, opened, tmp_path):
    path = onnx_file(
        tmp_path / "m.onnx", [helper.make_node("Relu", ["x"], ["y"])], X, {"y": X["x"]}
    )
    runtime = opened(name, path)
    x = np.full((1, 3, 8, 8), -2, np.float32)

    assert (only(runtime.run({"x": x})) == 0).all()
    assert (x == -2).all()


@pytest.mark.parametrize("name", ONNX_NAMES)
def test_an_unknown_operator_is_named_with_its_node(name, opened, tmp_path):
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Magic", ["r"], ["y"], name="abra", domain="acme"),
    ]
    path = onnx_file(tmp_path / "m.onnx", nodes, X, {"y": X["x"]}, domains=["acme"])

    with pytest.raises(ModelError, match="Magic") as caught:
        opened(name, path)

    assert "\n" not in str(caught.value)
    assert "'abra'" in str(caught.value)


def test_ncnn_names_an_onnx_operator_that_it_lacks(opened, tmp_path):
    node = helper.make_node("Hardmax", ["x"], ["y"], name="hard")
    path = onnx_file(tmp_path / "m.onnx", [node], X, {"y": X["x"]})

    with pytest.raises(ModelError, match=r"ncnn has no operator Hardmax \(node 'hard'\)"):
        opened("ncnn", path)


@pytest.mark.parametrize("name", ONNX_NAMES)
@pytest.mark.parametrize("keep", [0, 60], ids=["junk", "truncated"])
def test_a_corrupt_file_is_one_clear_line(name, keep, opened, tmp_path):
    whole = save_conv(tmp_path / "whole.onnx", [[1, 1]]).read_bytes()
    path = tmp_path / "broken.onnx"
    path.write_bytes(whole[:keep] or b"not an ONNX file")

    with pytest.raises(ModelError, match=r"broken.onnx: not an ONNX model") as caught:
        opened(name, path)

    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ONNX_NAMES)
def test_a_free_batch_runs_or_is_refused(name, opened, tmp_path):
    shape = {"x": ["N", 3, 8, 8]}
    node = helper.make_node("Relu", ["x"], ["y"])
    path = onnx_file(tmp_path / "m.onnx", [node], shape, {"y": shape["x"]})
    if name == "ncnn":
        with pytest.raises(Unsupported, match=r"no dynamic shapes, but 'x' is \?x3x8x8"):
            opened(name, path)
        return
    runtime = opened(name, path)

    for batch in (1, 2):
        x = np.full((batch, 3, 8, 8), batch, np.float32)
        assert (only(runtime.run({"x": x})) == x).all()


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_printed_and_nothing_is_left_lying_about(name, tmp_path):
    """In a process of its own: what C prints at import comes once, and late."""
    work = tmp_path / "work"
    work.mkdir()
    source = save_conv(tmp_path / "m.onnx", [[1, 1]])
    program = f"""
import sys, pathlib, tempfile, numpy
sys.path.insert(0, {str(Path.cwd())!r})
from simulator import registry
from simulator.contract import Stage
make = registry.backend({name!r}).of(Stage.RUNTIME)[0].make
options = dict(device="cpu", threads=1, storage="fp32", compute="fp32", weight_storage="fp32")
path = pathlib.Path({str(source)!r})
with tempfile.TemporaryDirectory() as folder:
    if make.compiled_by is not None:
        make.compile(path, pathlib.Path(folder), options)
        path = pathlib.Path(folder)
    runtime = make(path, options)
    feeds = {{"x": numpy.ones((1, 2, 8, 8), numpy.float32)}}
    assert runtime.run(feeds)["y"][0, 0, 0, 0] == 2
    runtime.effective(feeds)
    runtime.close()
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=work, capture_output=True, text=True)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(work.iterdir()) == []


def test_mnn_installs_nothing(opened, tmp_path, monkeypatch):
    """Its command line would run pip for a usage reporter."""
    called = tmp_path / "called"
    for command in ("pip", "pip3"):
        fake = tmp_path / "bin" / command
        fake.parent.mkdir(exist_ok=True)
        fake.write_text(f"#!/bin/sh\ntouch {called}\n")
        fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")

    opened("mnn", save_conv(tmp_path / "m.onnx", [[1, 1]]))

    assert not called.exists()


def test_mnn_rounds_weights_as_asked_and_computes_in_fp32(opened, tmp_path):
    """
    The row (-1, 1, 0.1): as a half 0.1 is 0.0999755859375; in 8 bits the 256 levels from -1 to 1
    are 2/255 apart, and 0.1 is at 140.25, so -1 + 140 * 2/255. An input of
    1 + 2**-20 passes through a weight of 1 unrounded.
    """
    path = save_conv(tmp_path / "m.onnx", [[-1, 1, 0.1]])
    wanted = {"fp32": 0.1, "fp16": 0.0999755859375, "int8": -1 + 140 * 2 / 255}

    for storage, weight in wanted.items():
        runtime = opened("mnn", path, weight_storage=storage)
        assert only(runtime.run(feed(runtime, 0, 0, 1)))[0, 0, 0, 0] == pytest.approx(
            weight, abs=1e-7
        )
        assert only(runtime.run(feed(runtime, 0, 1 + 2**-20, 0)))[0, 0, 0, 0] == pytest.approx(
            1 + 2**-20, abs=2e-7
        )


def test_ncnn_fp16_rounds_the_weights_of_dense_layers_and_what_it_says(opened, tmp_path):
    """0.1 is 0.0999755859375 as a half; a convolution keeps it, where it does not say FP16."""
    dense = onnx_file(
        tmp_path / "dense.onnx",
        [helper.make_node("Gemm", ["x", "w"], ["y"], transB=1)],
        {"x": [1, 8]},
        {"y": [1, 8]},
        {"w": np.full((8, 8), 0.1, np.float32)},
    )
    x = np.zeros((1, 8), np.float32)
    x[0, 0] = 1

    got = {}
    for compute in ("fp32", "fp16"):
        runtime = opened("ncnn", dense, compute=compute)
        got[compute] = only(runtime.run({"x": x}))[0, 0]
    convolution = opened("ncnn", save_conv(tmp_path / "conv.onnx", [[0.1]]), compute="fp16")

    tenth = {"fp32": np.float32(0.1), "fp16": np.float32(0.0999755859375)}
    assert got == tenth
    kept = only(convolution.run(feed(convolution, 1)))[0, 0, 0, 0]
    assert kept == tenth[watched(convolution).compute]


def test_ncnn_refuses_a_matrix_product_that_it_gets_wrong(opened, tmp_path):
    """Without transB pnnx leaves a Gemm layer, and ncnn drops the batch of its left side."""
    node = helper.make_node("Gemm", ["x", "w"], ["y"])
    weights = {"w": np.eye(8, dtype=np.float32)}
    path = onnx_file(tmp_path / "m.onnx", [node], {"x": [1, 8]}, {"y": [1, 8]}, weights)

    with pytest.raises(ModelError, match=r"ncnn gives \(8, 8\) for 'y'.*a Gemm without transB"):
        opened("ncnn", path)


def test_ncnn_bf16_rounds_the_operands(opened, tmp_path):
    """bfloat16 has 8 bits of mantissa: 1 + 2**-9 is stored as 1, and 1 + 2**-7 as it is."""
    runtime = opened("ncnn", save_conv(tmp_path / "m.onnx", [[1]]), compute="bf16")

    assert only(runtime.run(feed(runtime, 1 + 2**-9)))[0, 0, 0, 0] == 1
    assert only(runtime.run(feed(runtime, 1 + 2**-7)))[0, 0, 0, 0] == 1 + 2**-7
    assert watched(runtime).compute == "bf16"


@pytest.mark.parametrize(
    "name", ["iree", "onnx_reference", pytest.param("tvm", marks=pytest.mark.extras)]
)
def test_an_fp16_file_is_computed_in_fp16(name, opened, tmp_path):
    """A half has 11 bits of mantissa: 1 + 2**-12 is 1, and 1 + 2**-10 is kept."""
    source, target = save_conv(tmp_path / "m.onnx", [[1]]), tmp_path / "half.onnx"
    (offer,) = registry.backend("onnxconverter").of(Stage.CAST)
    offer.make({"storage": "fp16", "keep": {"op_types": [], "nodes": [], "reason": ""}}).cast(
        source, target
    )
    runtime = opened(name, target, storage="fp16", compute="fp16")

    assert runtime.inputs[0].dtype == np.float32
    assert only(runtime.run(feed(runtime, 1 + 2**-12)))[0, 0, 0, 0] == 1
    assert only(runtime.run(feed(runtime, 1 + 2**-10)))[0, 0, 0, 0] == 1 + 2**-10
    assert watched(runtime).compute == "fp16"


def quantized(path, axis):
    """
    y = 0.5 * q(x), in steps of 1/4: weights are 2/4 as int8, per tensor or per channel.
    Opset 13, as most quantizers write it.
    """
    scale = np.array([0.25] if axis is not None else 0.25, np.float32)
    constants = {
        "w": np.full((1, 1, 1, 1), 2, np.int8),
        "s": scale,
        "z": np.zeros(scale.shape, np.int8),
        "step": np.array(0.25, np.float32),
        "zero": np.array(128, np.uint8),
    }
    along = {} if axis is None else {"axis": axis}
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["weights"], **along),
        helper.make_node("QuantizeLinear", ["x", "step", "zero"], ["qx"]),
        helper.make_node("DequantizeLinear", ["qx", "step", "zero"], ["dx"]),
        helper.make_node("Conv", ["dx", "weights"], ["y"]),
    ]
    ports = {"x": [1, 1, 8, 8]}, {"y": [1, 1, 8, 8]}
    return onnx_file(path, nodes, *ports, constants, opset=13)


@pytest.mark.parametrize(
    "name", ["iree", "onnx_reference", pytest.param("tvm", marks=pytest.mark.extras)]
)
@pytest.mark.parametrize("axis", [None, 0], ids=["per_tensor", "per_channel"])
def test_a_qdq_file_rounds_activations_to_their_scale(name, axis, opened, tmp_path):
    """1.1 is 4.4 steps of a quarter, so 4: 1.0, and half of it 0.5; 100 is clipped to 127/4."""
    runtime = opened(name, quantized(tmp_path / "q.onnx", axis), storage="int8", compute="int8")

    assert only(runtime.run(feed(runtime, 1.1)))[0, 0, 0, 0] == 0.5
    assert only(runtime.run(feed(runtime, 100)))[0, 0, 0, 0] == 127 / 8


def test_iree_refuses_a_second_number_of_workers(opened, tmp_path):
    path = save_conv(tmp_path / "m.onnx", [[1]])
    opened("iree", path, threads=2)

    with pytest.raises(Unsupported, match="once per process: it has 2, but 3 were requested"):
        opened("iree", path, threads=3)


@pytest.mark.extras
def test_executorch_halves_for_real_and_has_one_pool(opened, tmp_path):
    """A half has 11 bits of mantissa: 1 + 2**-12 is 1."""
    path = save_program(tmp_path / "m.pt2", [[1.0]])
    runtime = opened("executorch", path, compute="fp16", threads=2)

    assert only(runtime.run(feed(runtime, 1 + 2**-12)))[0, 0, 0, 0] == 1
    assert only(runtime.run(feed(runtime, 1 + 2**-10)))[0, 0, 0, 0] == 1 + 2**-10
    with pytest.raises(Unsupported, match="one thread pool per process"):
        opened("executorch", path, threads=1)


@pytest.mark.parametrize(("name", "module"), [("executorch", "executorch.runtime"), ("tvm", "tvm")])
def test_an_absent_library_says_what_to_install(name, module, monkeypatch):
    library = registry.backend(name).library
    monkeypatch.setattr(library, "_loaded", None)
    monkeypatch.setitem(sys.modules, module, None)

    with pytest.raises(MissingLibrary, match=re.escape(install(name))):
        library.load()


@pytest.fixture(scope="session")
def truth():
    """The example network, two inputs, and what ONNX Runtime says to them in FP32."""
    import onnxruntime

    folder = example.model_card().parent
    rng = np.random.default_rng(4)
    xs = [rng.standard_normal((1, 3, 224, 224)).astype(np.float32) for _ in range(2)]
    session = onnxruntime.InferenceSession(
        str(folder / "model.onnx"), providers=["CPUExecutionProvider"]
    )
    return folder, xs, [session.run(None, {"input": x})[0] for x in xs]


@pytest.mark.parametrize("name", [one for one in ALL_NAMES if one != "iree"])
def test_the_example_network_agrees_with_onnxruntime(name, truth, opened):
    """FP32 sums in another order: about 1e-5 on logits between -5 and 15.

    IREE compiles for long: its answers on this network are in test_shipped_runtimes.py.
    """
    folder, xs, wanted = truth
    runtime = opened(name, folder / f"model.{'pt2' if name == 'executorch' else 'onnx'}")

    for x, logits in zip(xs, wanted, strict=True):
        got = only(runtime.run({runtime.inputs[0].name: x}))
        assert np.abs(got - logits).max() < 1e-4
    assert watched(runtime).compute in ("fp32", None)
