"""LiteRT, what makes its files, and its predecessor, on models worked out by hand."""

import importlib.metadata
import runpy
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import tiny
import torch
from ai_edge_litert import interpreter as library
from one_stack import outputs
from shared_data import shared

from backends.litert import interpreter as litert_interpreter
from backends.litert.tensor import Tensor
from simulator import compare, registry
from simulator.contract import Stage
from simulator.errors import MissingLibrary, ModelError, ProfileError, Unsupported
from simulator.profile.implementations import choose
from simulator.profile.load import load

RUN = {"device": "cpu", "threads": 1, "kernels": "xnnpack", "storage": "fp32", "compute": "fp32"}
WEIGHTS = [[1, 10], [-1, 0.5]]


class ChannelsLast(torch.nn.Module):
    """Gives [a - b, a + b + c] at each place of an NHWC image."""

    def forward(self, x):
        return torch.stack((x[..., 0] - x[..., 1], x.sum(-1)), -1)


class Mean(torch.nn.Module):
    """The answer of tiny.classifier: the mean of each channel."""

    def forward(self, x):
        return x.mean((2, 3))


def export(folder, name, module, shape, dtype=torch.float32):
    program = torch.export.export(module.eval(), (torch.zeros(shape, dtype=dtype),))
    torch.export.save(program, str(folder / f"{name}.pt2"))
    (offer,) = registry.backend("litert_torch").of(Stage.EXPORT)
    offer.make({}).export(folder / f"{name}.pt2", folder / f"{name}.tflite")
    return folder / f"{name}.tflite"


def pointwise(weights):
    conv = torch.nn.Conv2d(len(weights[0]), len(weights), 1, bias=False)
    conv.weight.data = torch.tensor(weights, dtype=torch.float32)[..., None, None]
    return conv


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("litert")
    return {
        "conv": export(folder, "conv", pointwise(WEIGHTS), (1, 2, 8, 8)),
        "nhwc": export(folder, "nhwc", ChannelsLast(), (1, 5, 7, 3)),
        "mean": export(folder, "mean", Mean(), (1, 3, 32, 32)),
    }


def opened(file, **options):
    options = {**RUN, **options}
    for offer in registry.backend("litert").of(Stage.RUNTIME):
        if all(options[name] in admitted for name, admitted in offer.options.items()):
            return offer.make(file, options)
    raise AssertionError(f"litert does not offer {options}")


def answer(runtime, x):
    (port,) = runtime.inputs
    (out,) = runtime.run({port.name: x}).values()
    return out


def constant(*channels):
    x = np.zeros((1, len(channels), 8, 8), np.float32)
    x[0] = np.reshape(channels, (-1, 1, 1))
    return x


def quantized(files, folder, recipe):
    """The convolution with integer tensors, calibrated on inputs in [-1, 1]."""
    rng = np.random.default_rng(0)
    samples = [rng.uniform(-1, 1, (1, 2, 8, 8)).astype(np.float32) for _ in range(8)]
    (offer,) = registry.backend("ai_edge_quantizer").of(Stage.QUANTIZE)
    target = folder / f"{recipe}.tflite"
    feeds = iter([{"the name in the ONNX file": sample} for sample in samples])
    offer.make({"recipe": recipe, "weights": "per_channel"}).quantize(files["conv"], target, feeds)
    return target, samples[0]


def cast(source, folder, storage):
    offer = next(
        offer
        for offer in registry.backend("ai_edge_quantizer").of(Stage.CAST)
        if storage in offer.options["storage"]
    )
    offer.make({"storage": storage}).cast(source, folder / f"{storage}.tflite")
    return folder / f"{storage}.tflite"


@pytest.mark.parametrize("kernels", ["xnnpack", "builtin", "reference"])
def test_answers_by_hand(files, kernels):
    """(1, 2) through [[1, 10], [-1, 0.5]] is (21, 0)."""
    runtime = opened(files["conv"], kernels=kernels)

    out = answer(runtime, constant(1, 2))

    assert out.shape == (1, 2, 8, 8)
    assert out.dtype == np.float32
    assert out[0, :, 3, 4].tolist() == [21, 0]


@pytest.mark.parametrize(
    ("kernels", "who"),
    [("xnnpack", "xnnpack"), ("builtin", "own_kernels"), ("reference", "own_kernels")],
)
def test_who_ran_the_convolution_is_read_back(files, kernels, who):
    runtime = opened(files["conv"], kernels=kernels)

    effective = runtime.effective({runtime.inputs[0].name: constant(0, 0)})

    assert effective.products == {"fp32": 1}
    assert effective.options["kernels"] == kernels
    (other,) = {"xnnpack", "own_kernels"} - {who}
    assert "CONV_2D" in effective.details[who]
    assert "CONV_2D" not in effective.details[other]


def test_threads_do_not_mix(files):
    """21 x is the first channel's answer to (x, 2x)."""
    runtime = opened(files["conv"])

    with ThreadPoolExecutor(4) as pool:
        got = list(pool.map(lambda i: answer(runtime, constant(i, 2 * i))[0, 0, 0, 0], range(64)))

    assert got == [21 * i for i in range(64)]


def test_a_file_that_takes_nhwc_is_fed_either(files):
    runtime = opened(files["nhwc"])
    x = np.arange(105, dtype=np.float32).reshape(1, 3, 5, 7)

    out = answer(runtime, x)

    assert runtime.inputs[0].shape == (None, 5, 7, 3)
    assert out.shape == (1, 5, 7, 2)
    assert (out[0, ..., 0] == x[0, 0] - x[0, 1]).all()
    assert (out[0, ..., 1] == x[0].sum(0)).all()
    assert (answer(runtime, np.ascontiguousarray(x.transpose(0, 2, 3, 1))) == out).all()
    with pytest.raises(ValueError, match="got float32"):
        answer(runtime, x.transpose(0, 1, 3, 2))


def test_integers_are_rounded_clipped_and_brought_back():
    """Scale 1/2, zero 10: 0.25 and 0.75 are halfway, and go to the even 10 and 12."""
    tensor = Tensor("x", 0, np.dtype("u1"), (1, 5), np.float32(0.5), 10)

    stored = tensor.store(np.array([[0.25, 0.75, -4.0, -99.0, 999.0]], np.float32))

    assert stored.dtype == np.uint8
    assert stored.tolist() == [[10, 12, 2, 0, 255]]
    assert tensor.load(stored).tolist() == [[0, 1, -4, -5, 122.5]]


@pytest.mark.parametrize("kernels", ["xnnpack", "builtin", "reference"])
def test_int8_is_the_integer_arithmetic_of_the_specification(files, tmp_path, kernels):
    """
    LiteRT's quantization specification: with real = scale x (q - zero), a convolution is the
    integer sum of (q - zero) x weight, rescaled by s_in x s_weight / s_out, rounded, plus the
    output's zero point. Kernels may round a half either way: one step.
    """
    file, x = quantized(files, tmp_path, "static_wi8_ai8")
    bare = library.Interpreter(model_path=str(file))
    tensors = {tuple(t["shape"]): t for t in bare.get_tensor_details()}
    weights = bare.get_tensor(tensors[2, 1, 1, 2]["index"]).reshape(2, 2).astype(np.int64)
    scales = tensors[2, 1, 1, 2]["quantization_parameters"]["scales"].astype(np.float64)
    (one, zero), (step, origin) = (
        detail[0]["quantization"]
        for detail in (bare.get_input_details(), bare.get_output_details())
    )
    q = np.clip(np.rint(x[0].astype(np.float64) / one) + zero, -128, 127)
    total = np.einsum("kc,chw->khw", weights, q - zero)
    y = np.clip(np.rint(total * (one * scales / step)[:, None, None]) + origin, -128, 127)

    runtime = opened(file, kernels=kernels, storage="int8", compute="int8")
    out = answer(runtime, x)

    assert np.abs(out[0] - step * (y - origin)).max() <= step * 1.001
    assert np.abs(out[0] - np.einsum("kc,chw->khw", WEIGHTS, x[0])).max() < 0.2  # 22 / 255 x 2
    assert runtime.effective({runtime.inputs[0].name: x}).products == {"int8": 1}


def test_int16_activations_are_no_int8_and_not_for_xnnpack(files, tmp_path):
    file, x = quantized(files, tmp_path, "static_wi8_ai16")
    runtime = opened(file, storage="int8", compute="int8")

    effective = runtime.effective({runtime.inputs[0].name: x})

    assert effective.compute == "int16x8"
    assert effective.options["kernels"] == "builtin"


def test_fp16_storage_is_computed_in_fp32(files, tmp_path):
    """0.1 as a half is 0.0999755859375; three times that is no half, and comes out whole."""
    source = export(tmp_path, "tenth", pointwise([[0.1]]), (1, 1, 8, 8))
    runtime = opened(cast(source, tmp_path, "fp16"), storage="fp16")

    assert answer(runtime, constant(3))[0, 0, 0, 0] == 0.2999267578125
    assert runtime.effective({runtime.inputs[0].name: constant(0)}).compute == "fp32"


def test_int8_storage_is_computed_in_fp32(files, tmp_path):
    """Each channel's largest weight becomes 127: [1, 10] is [13, 127] x 10 / 127."""
    runtime = opened(cast(files["conv"], tmp_path, "int8"), storage="int8")

    out = answer(runtime, constant(1, 0))[0, :, 0, 0]

    assert out == pytest.approx([13 * 10 / 127, -1], rel=1e-6)
    assert runtime.effective({runtime.inputs[0].name: constant(0, 0)}).compute == "fp32"


def test_fp16_compute_rounds_the_operands(files):
    """A half has 11 bits: 1 + 2**-12 is stored as 1, and 1 + 2**-10 as it is."""
    half = opened(files["conv"], compute="fp16")
    single = opened(files["conv"])

    assert answer(half, constant(1 + 2**-12, 0))[0, 0, 0, 0] == 1
    assert answer(half, constant(1 + 2**-10, 0))[0, 0, 0, 0] == 1 + 2**-10
    assert answer(single, constant(1 + 2**-12, 0))[0, 0, 0, 0] == 1 + 2**-12
    assert half.effective({half.inputs[0].name: constant(0, 0)}).products == {}
    half.close()


def test_fp16_compute_needs_float_inputs(files, tmp_path):
    file, _ = quantized(files, tmp_path, "static_wi8_ai8")

    with pytest.raises(Unsupported, match="float32 inputs and outputs"):
        opened(file, compute="fp16")


def test_it_equals_pytorch(tmp_path):
    """A small network with the operators of mobile ones, against PyTorch's own answer."""
    torch.manual_seed(0)
    layers = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, stride=2, padding=1),
        torch.nn.BatchNorm2d(8),
        torch.nn.ReLU6(),
        torch.nn.Conv2d(8, 8, 3, padding=1, groups=8),
        torch.nn.Hardswish(),
        torch.nn.MaxPool2d(2),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(8, 10),
    ).eval()
    x = torch.randn(1, 3, 32, 32)
    runtime = opened(export(tmp_path, "net", layers, tuple(x.shape)))

    with torch.no_grad():
        assert answer(runtime, x.numpy()) == pytest.approx(layers(x).numpy(), abs=1e-5)
    products = runtime.effective({runtime.inputs[0].name: x.numpy()}).products
    assert products == {"fp32": 3}


def test_a_real_integer_file():
    """
    Coral's MobileNet v2 takes uint8 NHWC with scale 1/128 and zero 128: pixel p stands for
    (p - 128) / 128, so the adapter must hand the library the very pixels.
    """
    file = shared("models") / "coral_mobilenet_v2_1.0_224_quant.tflite"
    pixels = np.random.default_rng(0).integers(0, 256, (1, 224, 224, 3), np.uint8)
    bare = library.Interpreter(model_path=str(file), num_threads=1)
    bare.allocate_tensors()
    bare.set_tensor(bare.get_input_details()[0]["index"], pixels)
    bare.invoke()
    expected = bare.get_tensor(bare.get_output_details()[0]["index"]) / 256
    runtime = opened(file, storage="int8", compute="int8")

    got = answer(runtime, (pixels.transpose(0, 3, 1, 2) - np.float32(128)) / 128)

    assert (got == expected).all()
    assert set(runtime.effective({"input": np.zeros((1, 3, 224, 224), "f4")}).products) == {"int8"}


class Normalized(torch.nn.Module):
    """The same of bytes in NHWC, which it normalizes itself, as tiny's card says."""

    def forward(self, x):
        return ((x.to(torch.float32) - 127.0) / 64.0).mean((1, 2))


def test_bytes_are_fed_to_a_file_that_normalizes_itself(tmp_path, cache, data):
    file = export(tmp_path, "raw", Normalized(), (1, 32, 32, 3), torch.uint8)
    asked = f"precision.artifact={file}"

    tensor, stack, found = outputs(tiny.card(tmp_path / "card"), data, "pillow_fp32", asked)

    own = library.Interpreter(str(file), num_threads=1)
    own.allocate_tensors()
    own.set_tensor(own.get_input_details()[0]["index"], tensor)
    own.invoke()
    wanted = own.get_tensor(own.get_output_details()[0]["index"])
    assert tensor.dtype == np.uint8 and tensor.shape == (1, 32, 32, 3)
    np.testing.assert_array_equal(next(iter(found.values())), wanted)
    lines = [notice.text for notice in stack.notices]
    assert "raw.tflite normalizes its input itself, so the stack feeds pixels and does not" in lines
    assert any("in FP32 by 0.00%" in line for line in lines)


def test_a_free_batch_takes_any():
    """MLPerf Tiny's ResNet leaves its batch free: five at once are five one by one."""
    file = shared("models") / "mlperf_tiny_pretrainedResnet_large_float.tflite"
    x = np.random.default_rng(0).uniform(0, 255, (5, 3, 32, 32)).astype(np.float32)
    runtime = opened(file)

    together = answer(runtime, x)

    assert runtime.inputs[0].shape == (None, 32, 32, 3)
    one_by_one = np.concatenate([answer(runtime, x[i : i + 1]) for i in range(5)])
    assert together == pytest.approx(one_by_one, abs=1e-6)


@pytest.mark.parametrize("made", [True, False], ids=["exporter", "own file"])
def test_a_card_brings_a_program_or_a_file(files, tmp_path, cache, data, made):
    """Either way the colours are told as ONNX Runtime tells them."""
    folder = tmp_path / "model"
    folder.mkdir()
    kept = files["mean"].with_suffix(".pt2" if made else ".tflite")
    (folder / kept.name).write_bytes(kept.read_bytes())
    own = {"torch_export": kept.name} if made else {"tflite": {"fp32": kept.name}}
    overrides = [] if made else ["deploy.runtime.exporter=null"]

    summary = compare(
        "pillow_fp32",
        "litert_fp32",
        model=tiny.card(folder, **own),
        data=data,
        out=tmp_path / "run",
        overrides=overrides,
    ).summary

    assert summary["samples"] == 6
    assert summary["flips"]["count"] == 0
    assert (
        summary["deploy"]["effective"]["compute"] == "fp32"
    )  # a probe says so: a mean is no product


OWN = str(Path(__file__).parents[2] / "docs/measured/litert_own_fp32.yaml")


@pytest.fixture
def only_tflite(files, tmp_path):
    """A card whose one file is the .tflite that takes means of the colours; no ONNX, no program."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "mean.tflite").write_bytes(files["mean"].with_suffix(".tflite").read_bytes())
    card = tiny.card(folder, model=None, tflite={"fp32": "mean.tflite"})
    (folder / "model.onnx").unlink()
    return card


def test_a_card_of_tflite_files_alone_runs(only_tflite, tmp_path, cache, data):
    """The colours are told as their labels say, by both stacks."""
    summary = compare(
        OWN,
        OWN,
        model=only_tflite,
        data=data,
        out=tmp_path / "run",
        overrides=["deploy.decode.backend=opencv"],
    ).summary

    assert (summary["samples"], summary["flips"]["count"]) == (6, 0)
    assert [summary[side]["metric"]["top1"] for side in ("train", "deploy")] == [1.0, 1.0]


@pytest.mark.parametrize(
    ("profile", "overrides", "says"),
    [
        (
            "pillow_fp32",
            [],
            r"takes an ONNX file, and .* names none; .*FILE\.onnx, .*\.tflite file: litert",
        ),
        ("litert_fp32", [], "takes a torch.export program, and .* names none"),
        (OWN, ["train.precision.storage=fp16"], "names none of fp16"),
        (OWN, ["train.graph.pooling.ceil_mode=ceil"], "rewrites change the ONNX"),
    ],
)
def test_what_a_card_of_tflite_files_alone_cannot_is_said(
    only_tflite, tmp_path, cache, data, profile, overrides, says
):
    with pytest.raises(ModelError, match=says):
        compare(
            profile, profile, model=only_tflite, data=data, out=tmp_path / "run",
            overrides=overrides,
        )  # fmt: skip


def test_the_profiles_hold_and_a_typo_does_not():
    choices = choose(load("litert_int8"))

    assert choices[Stage.EXPORT].backend.name == "litert_torch"
    assert choices[Stage.QUANTIZE].options["recipe"] == "static_wi8_ai8"
    with pytest.raises(ProfileError, match="litert offers xnnpack, builtin, reference here"):
        choose(load("litert_fp32", ["runtime.kernels=xnnpak"]))
    with pytest.raises(ProfileError, match="offers static_wi8_ai8, static_wi8_ai16 here"):
        choose(load("litert_int8", ["precision.quantizer.recipe=int8"]))


def test_an_unsupported_tensor_is_named():
    detail = {
        "name": "pixels",
        "index": 0,
        "dtype": np.int8,
        "shape_signature": np.array([1, 8, 8, 3]),
        "quantization": (0.0, 0),
    }

    with pytest.raises(Unsupported, match="'pixels' is int8 with scale 0"):
        Tensor.of(detail)


def test_a_program_without_example_inputs_is_refused(tmp_path):
    program = torch.export.export(Mean(), (torch.zeros(1, 3, 8, 8),))
    program.example_inputs = None
    torch.export.save(program, str(tmp_path / "p.pt2"))
    (offer,) = registry.backend("litert_torch").of(Stage.EXPORT)

    with pytest.raises(Unsupported, match="without its example inputs"):
        offer.make({}).export(tmp_path / "p.pt2", tmp_path / "p.tflite")


def test_the_library_says_nothing(files):
    """Not while it opens and runs, in FP16 not even when the process ends."""
    code = f"""
from pathlib import Path
import numpy as np
from backends.litert.compiled import BACKEND
for offer in BACKEND.offers:
    runtime = offer.make(Path({str(files["conv"])!r}), {{"threads": 1, "kernels": "xnnpack"}})
    shapes = {{port.name: [side or 1 for side in port.shape] for port in runtime.inputs}}
    runtime.run({{name: np.zeros(shape, np.float32) for name, shape in shapes.items()}})
    runtime.close()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_predecessor_is_taken_where_only_that_is_installed(monkeypatch):
    real = importlib.metadata.version

    def version(name):
        if name == "ai-edge-litert":
            raise importlib.metadata.PackageNotFoundError(name)
        return "2.14.0" if name == "tflite-runtime" else real(name)

    source = Path(litert_interpreter.__file__)
    assert runpy.run_path(source)["newest"].distribution == "ai-edge-litert"
    monkeypatch.setattr(importlib.metadata, "version", version)
    monkeypatch.setattr("simulator.contract.library._read", version)
    monkeypatch.setattr("simulator.contract.library._missing", {})
    assert runpy.run_path(source)["newest"].distribution == "tflite-runtime"


@pytest.mark.parametrize("name", ["tflite_runtime", "onnx2tf"])
def test_what_cannot_share_our_python_says_how_to_get_it(name, cache):
    with pytest.raises(MissingLibrary, match=f"simulate backends install {name}"):
        registry.require(registry.backend(name))
