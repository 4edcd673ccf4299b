"""Runtimes, casts and quantizers on models small enough to work out by hand."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

from simulator import registry
from simulator.contract import Stage
from simulator.errors import MissingLibrary, ProfileError
from simulator.profile.implementations import choose
from simulator.profile.load import load

ORT = {
    "device": "cpu",
    "provider": "cpu",
    "io_binding": False,
    "threads": 1,
    "graph_optimization_level": "all",
    "compute": "fp32",
}
PLAIN = {"device": "cpu", "threads": 1}
TORCH = {**PLAIN, "mode": "eager", "memory_format": "contiguous", "compute": "fp32"}
RUNS = {"onnxruntime": ORT, "openvino": PLAIN, "pytorch": TORCH}


def save_conv(path, weights):
    """A 1x1 convolution: y[k] = sum over c of weights[k, c] x[c]."""
    weights = np.asarray(weights, np.float32)[..., None, None]
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"])],
        "conv",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, weights.shape[1], 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, weights.shape[0], 8, 8])],
        [numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.save(model, str(path))
    return path


def save_program(path, weights):
    conv = torch.nn.Conv2d(len(weights[0]), len(weights), 1, bias=False).eval()
    conv.weight.data = torch.tensor(weights, dtype=torch.float32)[..., None, None]
    program = torch.export.export(conv, (torch.zeros(1, len(weights[0]), 8, 8),))
    torch.export.save(program, str(path))
    return path


@pytest.fixture(params=sorted(RUNS))
def opened(request, tmp_path):
    def open_with(weights, compute="fp32"):
        save = save_program if request.param == "pytorch" else save_conv
        path = save(tmp_path / f"model.{'pt2' if request.param == 'pytorch' else 'onnx'}", weights)
        offer = registry.backend(request.param).of(Stage.RUNTIME)[0]
        options = {**RUNS[request.param], "storage": "fp32", "compute": compute}
        return offer.make(path, options)

    return open_with


def feed(runtime, *channels):
    x = np.zeros((1, len(channels), 8, 8), np.float32)
    x[0] = np.reshape(channels, (-1, 1, 1))
    return {runtime.inputs[0].name: x}


def watched(runtime):
    """What is in force, seen on an input of zeros."""
    (port,) = runtime.inputs
    return runtime.effective({port.name: np.zeros(port.shape, port.dtype)})


def only(outputs):
    (array,) = outputs.values()
    return array


def test_answers_by_hand(opened):
    """(1, 2) through [[1, 10], [-1, 0.5]] is (21, 0)."""
    runtime = opened([[1, 10], [-1, 0.5]])

    out = only(runtime.run(feed(runtime, 1, 2)))

    assert out.shape == (1, 2, 8, 8)
    assert out.dtype == np.float32
    assert out[0, :, 3, 4].tolist() == [21, 0]


def test_manners(opened):
    """Inputs stay as they were, outputs are kept, threads do not mix."""
    runtime = opened([[2, 0]])
    first = feed(runtime, 3, 0)
    before = {name: array.copy() for name, array in first.items()}
    kept = only(runtime.run(first))
    runtime.run(feed(runtime, 5, 0))

    assert all((first[name] == before[name]).all() for name in first)
    assert kept[0, 0, 0, 0] == 6
    with ThreadPoolExecutor(4) as pool:
        got = list(
            pool.map(lambda i: only(runtime.run(feed(runtime, i, 0)))[0, 0, 0, 0], range(64))
        )
    assert got == [2 * i for i in range(64)]


def test_options_are_read_back(opened):
    effective = watched(opened([[1, 1]]))

    assert effective.compute == "fp32"
    assert effective.options["threads"] == 1
    assert effective.options["device"] == "cpu"


@pytest.mark.parametrize("level", ["disable_all", "basic", "extended", "layout", "all"])
def test_onnxruntime_reads_its_level_back(tmp_path, level):
    path = save_conv(tmp_path / "m.onnx", [[1, 1]])
    offer = registry.backend("onnxruntime").of(Stage.RUNTIME)[0]

    runtime = offer.make(path, {**ORT, "graph_optimization_level": level, "compute": "fp32"})

    assert watched(runtime).options["graph_optimization_level"] == level


def test_onnxruntime_with_io_binding_gives_the_same_bits(tmp_path):
    path = save_conv(tmp_path / "m.onnx", [[0.1, 0.7]])
    make = registry.backend("onnxruntime").of(Stage.RUNTIME)[0].make
    plain, bound = make(path, ORT), make(path, {**ORT, "io_binding": True})
    x = np.random.default_rng(0).normal(size=(1, 2, 8, 8)).astype(np.float32)

    kept = only(bound.run({"x": x}))
    bound.run({"x": -x})

    assert np.array_equal(only(plain.run({"x": x})), kept)


@pytest.mark.parametrize("provider", ["cuda", "tensorrt", "openvino"])
def test_onnxruntime_refuses_a_provider_that_it_does_not_have(tmp_path, provider):
    path = save_conv(tmp_path / "m.onnx", [[1, 1]])
    make = registry.backend("onnxruntime").of(Stage.RUNTIME)[0].make

    with pytest.raises(MissingLibrary, match=r"has no \w+Provider .it has .*\[gpu\].*--python"):
        make(path, {**ORT, "provider": provider})


@pytest.mark.parametrize(
    ("runtime", "options"),
    [
        ("{provider: cuda, device: cuda, use_tf32: false}", {"use_tf32": False}),
        ("{provider: tensorrt, device: cuda, provider_options: {trt_engine_cache_enable: '1'}}",
         {"provider_options": {"trt_engine_cache_enable": "1"}}),
        ("{provider: openvino}", {"provider_options": {}}),
        ("{io_binding: true}", {"provider": "cpu", "io_binding": True}),
    ],
)  # fmt: skip
def test_a_profile_names_providers_and_their_options(runtime, options):
    chosen = choose(load("pillow_fp32", [f"runtime={runtime}"]))[Stage.RUNTIME].options

    assert options.items() <= chosen.items()


def test_tf32_has_to_be_said_for_cuda():
    with pytest.raises(ProfileError, match=r"runtime.use_tf32: required by onnxruntime: false, t"):
        choose(load("pillow_fp32", ["runtime={provider: cuda, device: cuda}"]))


def torch_runtime(path, **options):
    return registry.backend("pytorch").of(Stage.RUNTIME)[0].make(path, {**TORCH, **options})


@pytest.mark.parametrize("casting", ["autocast", "whole"])
def test_pytorch_bf16_rounds_the_operands(tmp_path, casting):
    """bfloat16 has 8 bits of mantissa: 1 + 2**-9 is stored as 1, and 1 + 2**-7 as it is."""
    path = save_program(tmp_path / "m.pt2", [[1.0]])
    runtime = torch_runtime(path, compute="bf16", casting=casting)

    assert only(runtime.run(feed(runtime, 1 + 2**-9)))[0, 0, 0, 0] == 1
    assert only(runtime.run(feed(runtime, 1 + 2**-7)))[0, 0, 0, 0] == 1 + 2**-7
    assert watched(runtime).compute == "bf16"


@pytest.mark.parametrize("casting", ["autocast", "whole"])
def test_pytorch_fp16_rounds_the_operands(tmp_path, casting):
    """A half has 11 bits: 1 + 2**-11 is stored as 1 (ties to even), 1 + 2**-10 as it is."""
    path = save_program(tmp_path / "m.pt2", [[1.0]])
    runtime = torch_runtime(path, compute="fp16", casting=casting)

    assert only(runtime.run(feed(runtime, 1 + 2**-11)))[0, 0, 0, 0] == 1
    assert only(runtime.run(feed(runtime, 1 + 2**-10)))[0, 0, 0, 0] == 1 + 2**-10
    assert watched(runtime).compute == "fp16"


def test_pytorch_casts_what_autocast_leaves(tmp_path):
    """mul is not on autocast's list: with 1 + 2**-9 its result keeps FP32 there only."""

    class Double(torch.nn.Module):
        def forward(self, x):
            return x * 2

    x = np.full((1, 1, 8, 8), 1 + 2**-9, np.float32)
    path = tmp_path / "m.pt2"
    torch.export.save(torch.export.export(Double(), (torch.zeros(x.shape),)), str(path))
    got = {
        casting: only(runtime.run({runtime.inputs[0].name: x}))[0, 0, 0, 0]
        for casting in ("autocast", "whole")
        for runtime in [torch_runtime(path, compute="bf16", casting=casting)]
    }

    assert got == {"autocast": 2 + 2**-8, "whole": 2}


@pytest.mark.parametrize(
    "options",
    [
        {"memory_format": "channels_last"},
        pytest.param({"mode": "compile"}, marks=pytest.mark.prove),
    ],
    ids=str,
)
def test_pytorch_channels_last_and_compiled_give_the_same_answers(tmp_path, options):
    """Compiling starts a C++ compiler, which takes a minute."""
    rng = np.random.default_rng(0)
    path = save_program(tmp_path / "m.pt2", rng.normal(size=(4, 3)).tolist())
    x = rng.normal(size=(1, 3, 8, 8)).astype(np.float32)
    wanted = only(torch_runtime(path).run({"input": x}))

    runtime = torch_runtime(path, **options)

    assert np.abs(only(runtime.run({"input": x})) - wanted).max() < 1e-6
    if "mode" in options:
        assert watched(runtime).products == {}  # compiled code does not tell


def test_pytorch_without_a_gpu_refuses_cuda(tmp_path):
    path = save_program(tmp_path / "m.pt2", [[1.0]])

    with pytest.raises(MissingLibrary, match="finds no CUDA device; use device: cpu"):
        torch_runtime(path, device="cuda", use_tf32=False)


HOME = """
import sys
import simulator
same, (card, data, out) = ("pillow_fp32", "pillow_fp32"), sys.argv[1:]
simulator.compare(*same, model=card, data=data, out=out)
"""


def test_onnx_runtime_keeps_no_record_of_its_use(card, data, cache, tmp_path):
    """Left alone, it writes a database of events below the home folder."""
    home = tmp_path / "home"
    home.mkdir()
    left = {"ORT_DISABLE_TELEMETRY", "XDG_CACHE_HOME"}
    environment = {k: v for k, v in os.environ.items() if k not in left} | {"HOME": str(home)}
    arguments = [str(card), str(data), str(tmp_path / "run")]

    subprocess.run([sys.executable, "-c", HOME, *arguments], env=environment, check=True)

    assert [path for path in home.rglob("*") if path.is_file()] == []
