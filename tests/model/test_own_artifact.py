"""One's own model file: the runtime gets this very file, and nothing is done to it."""

import hashlib
import json

import made_coreml
import numpy as np
import onnx
import onnxruntime as ort
import openvino as ov
import pytest
import refusals
import tiny
from one_stack import outputs
from onnxconverter_common import float16
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from shared_data import shared

import simulator
from simulator.command import allowed
from simulator.contract import Stage
from simulator.experiments.common import chosen
from simulator.experiments.compare.experiment import CompareOptions
from simulator.profile.load import load

NOISE = np.random.default_rng(0).normal(size=(6, 1, 3, 32, 32)).astype(np.float32)


class Noise(CalibrationDataReader):
    def __init__(self):
        self.left = iter(NOISE)

    def get_next(self):
        return next(({"x": x} for x in self.left), None)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A card, and an INT8 file of its model that ONNX Runtime's own tool made."""
    folder = tmp_path_factory.mktemp("own")
    card = tiny.card(folder, tiny.pooled())
    quantize_static(
        folder / "model.onnx", folder / "net_int8.onnx", Noise(), quant_format=QuantFormat.QDQ,
        weight_type=QuantType.QInt8, activation_type=QuantType.QUInt8,
    )  # fmt: skip
    return card


def by_hand(path, tensor):
    """What ONNX Runtime itself gives, with the options of the profile pillow_fp32."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = load("pillow_fp32").spec.runtime.threads
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: tensor})


def test_the_runtime_gets_this_very_file(made, data, cache):
    file = made.parent / "net_int8.onnx"

    tensor, stack, found = outputs(made, data, "pillow_fp32", f"precision.artifact={file}")

    (wanted,) = by_hand(file, tensor)
    np.testing.assert_array_equal(next(iter(found.values())), wanted)
    assert stack.artifact.path == file
    assert stack.artifact.key == hashlib.sha256(file.read_bytes()).hexdigest()
    assert not list(cache.rglob("artifacts/*"))
    assert stack.effective.compute == "int8"
    assert not [
        notice for notice in stack.notices if notice.is_strict and "saturate" not in str(notice)
    ]


def test_types_are_read_from_the_file(made):
    spec = load("pillow_fp32", [f"precision.artifact={made.parent / 'net_int8.onnx'}"]).spec

    assert (spec.precision.storage, spec.precision.compute) == ("int8", "int8")


def test_types_that_are_written_are_held_against_the_file(made, data, cache):
    file = made.parent / "net_int8.onnx"
    asked = [f"precision.artifact={file}", "precision.storage=fp32", "precision.compute=fp32"]

    _, stack, _ = outputs(made, data, "pillow_fp32", *asked)

    lines = [notice.text for notice in stack.notices if notice.is_strict]
    assert "storage fp32 was asked for, net_int8.onnx has int8 weights" in lines
    assert "compute fp32 was asked for, onnxruntime is running int8" in lines


def test_an_inherited_quantizer_gives_way_and_it_is_said(made):
    profile = load("ort_int8", [f"precision.artifact={made.parent / 'net_int8.onnx'}"])

    assert profile.spec.precision.quantizer is None
    assert profile.notes == ("net_int8.onnx takes the place of precision.quantizer",)


def test_a_file_lies_beside_its_profile(made, tmp_path):
    (tmp_path / "net.onnx").write_bytes((made.parent / "net_int8.onnx").read_bytes())
    own = tmp_path / "own.yaml"
    own.write_text(
        "schema: 1\nname: own\nsummary: own\nextends: pillow_fp32\n"
        "precision: {artifact: net.onnx}\n"
    )

    assert load(str(own)).spec.precision.artifact == str(tmp_path / "net.onnx")


CASES = {
    "a quantizer": ("quantizer: {backend: onnxruntime}", "precision", "write quantizer: null"),
    "a cast": ("cast: {backend: onnxruntime}", "precision", "write cast: null"),
    "a rewrite": ("pooling: {ceil_mode: ceil}", "graph", "graph.pooling: net_int8.onnx is opened"),
    "an exporter": ("exporter: {backend: onnx2torch}", "runtime", "write exporter: null"),
}


@pytest.mark.parametrize(("asked", "section", "words"), CASES.values(), ids=CASES)
def test_what_would_change_the_file_is_refused(made, tmp_path, asked, section, words):
    own = tmp_path / "own.yaml"
    sections = {"precision": [f"artifact: {made.parent / 'net_int8.onnx'}"]}
    sections.setdefault(section, []).append(asked)
    text = "".join(f"{name}: {{{', '.join(fields)}}}\n" for name, fields in sections.items())
    own.write_text(f"schema: 1\nname: own\nsummary: own\nextends: pillow_fp32\n{text}")

    lines = refusals.refused(chosen, str(own), [])

    assert any(str(own) in line and words in line for line in lines), lines


def test_another_format_brings_its_runtime_unless_one_was_named(made):
    path = made.parent / "net.xml"
    ov.save_model(ov.convert_model(made.parent / "model.onnx"), path, compress_to_fp16=False)
    asked = f"precision.artifact={path}"

    profile = load("pillow_fp32", [asked])
    (line,) = refusals.refused(chosen, "pillow_fp32", [asked, "runtime.backend=onnxruntime"])

    assert profile.spec.runtime.backend == "openvino"
    assert profile.notes == (
        "net.xml is an OpenVINO IR, which onnxruntime does not open: runtime openvino takes its "
        "place",
    )
    assert line.endswith(
        "net.xml is an OpenVINO IR, which onnxruntime does not open; these do: openvino"
    )


def test_damage_and_strangers_are_one_line(made, data, tmp_path, cache):
    whole = (made.parent / "net_int8.onnx").read_bytes()
    other = tiny.classifier(size=16).SerializeToString()
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "net.tflite").write_bytes(b"")
    files = {
        "cut.onnx": (whole[: len(whole) // 2], "not an ONNX model, or only a part of one"),
        "net.txt": (b"no model", "no format of model files is known by this name"),
        "none.onnx": (None, "there is no such file"),
        "folder": (None, "a folder; give the model file in it: net.tflite"),
        "empty.onnx": (b"", "an empty file"),
        "other.onnx": (other, "takes float32 1x3x16x16; the model card gives float32 1x3x32x32"),
        "pointer.rknn": (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
        "page.engine": (b"\n<!DOCTYPE html><html>", "a web page, and not the file itself"),
        "alone.xml": (b"<net/>", "has its weights beside it, and alone.bin is missing"),
        "net.hef": (b"\1HEF", "a file for Hailo, which no runtime here opens; record its outputs"),
        "net.pth": (b"PK", "a file of PyTorch: export it with torch.onnx.export"),
    }

    for name, (content, words) in files.items():
        if content is not None:
            (tmp_path / name).write_bytes(content)
        asked = f"precision.artifact={tmp_path / name}"
        (line,) = refusals.refused(outputs, made, data, "pillow_fp32", asked)
        assert words in line and str(tmp_path / name) in line


def test_halves_are_rounded_to_and_run_on_the_device_of_the_stack(made, data, tmp_path, cache):
    file = tmp_path / "half.onnx"
    whole = onnx.load(made.parent / "model.onnx")
    onnx.save(float16.convert_float_to_float16(whole, keep_io_types=False), file)

    tensor, stack, found = outputs(made, data, "pillow_fp32", f"precision.artifact={file}")

    (wanted,) = by_hand(file, tensor.astype(np.float16))
    (got,) = found.values()
    np.testing.assert_array_equal(got, wanted.astype(np.float32))
    assert got.dtype == np.float32
    assert stack.choices[Stage.RUNTIME].options["provider"] == "cpu"
    assert any("takes float16, to which" in notice.text for notice in stack.notices)


def test_a_pair_says_which_file_ran(made, data, tmp_path, cache):
    file = made.parent / "net_int8.onnx"
    before = file.read_bytes()

    result = simulator.compare(
        "pillow_fp32", "pillow_fp32", deploy_artifact=file, model=made, data=data,
        out=tmp_path / "run",
    )  # fmt: skip

    stacks = json.loads((result.folder / "manifest.json").read_text())["stacks"]
    digest = hashlib.sha256(before).hexdigest()
    assert stacks["deploy"]["artifact"]["files"] == {"net_int8.onnx": digest}
    assert stacks["train"]["artifact"]["files"] == {}
    assert [one.axes for one in result.summary.alone] == [["precision"]]
    assert file.read_bytes() == before


@pytest.mark.parametrize("name", ["net.rknn", "net.vmfb", "net.mlmodel"])
def test_formats_without_a_runtime_here_can_be_recorded(made, tmp_path, name):
    (tmp_path / name).write_bytes(made_coreml.classifier())

    (line,) = refusals.refused(chosen, "pillow_fp32", [f"precision.artifact={tmp_path / name}"])

    assert f"precision.artifact: {name} is a" in line
    assert "no runtime here does; record its outputs where it runs" in line


def test_an_engine_is_opened_only_where_the_user_named_it(tmp_path):
    (tmp_path / "net.engine").write_bytes(b"ftrt")
    own = tmp_path / "own.yaml"
    own.write_text(
        "schema: 1\nname: own\nsummary: own\nextends: tensorrt_fp16\n"
        "precision: {artifact: net.engine}\n"
    )

    (line,) = refusals.refused(load, str(own))
    with allowed.calling(CompareOptions(train="a", deploy=str(own), allow_code=True)):
        spec = load(str(own)).spec

    assert "an engine of TensorRT holds code that runs here" in line and "--allow-code" in line
    # its types are not in the file: those of the profile that it extends stay
    assert (spec.precision.storage, spec.precision.compute) == ("fp16", "fp16")


def test_mnn_opens_a_file_of_its_own_converter(made, data, cache):
    mnn = pytest.importorskip("backends.alibaba_mnn")
    folder = made.parent / "mnn"
    folder.mkdir()
    mnn.MnnRuntime.compile(made.parent / "model.onnx", folder, {"weight_storage": "fp32"})
    path = made.parent / "net.mnn"
    (folder / "model.mnn").rename(path)

    tensor, stack, found = outputs(made, data, "pillow_fp32", f"precision.artifact={path}")

    assert stack.choices[Stage.RUNTIME].backend.name == "mnn"
    (wanted,) = by_hand(made.parent / "model.onnx", tensor)
    np.testing.assert_allclose(next(iter(found.values())), wanted, atol=1e-5)


def test_litert_opens_a_quantized_file(data, tmp_path, cache):
    """Bit for bit as its interpreter, which is fed integers by the file's own scale."""
    interpreter = pytest.importorskip("ai_edge_litert.interpreter")
    models = shared("models")
    names = [f"class{number}" for number in range(10)]
    card = tiny.card(
        tmp_path / "card", model=None,
        tflite={"fp32": str(models / "mlperf_tiny_pretrainedResnet.tflite")},
        input={**tiny.SPEC["input"], "layout": "NHWC", "mean": [0] * 3, "std": [1] * 3},
    )  # fmt: skip
    (card.parent / "labels.txt").write_text("\n".join(names))
    folder = tmp_path / "photos"
    for name, color in zip(names, tiny.COLORS.values(), strict=False):
        (folder / name).mkdir(parents=True)
        (folder / name / "one.jpg").write_bytes(tiny.encoded(tiny.picture(color)))
    path = models / "mlperf_tiny_pretrainedResnet_quant.tflite"

    tensor, stack, found = outputs(card, folder, "pillow_fp32", f"precision.artifact={path}")

    own = interpreter.Interpreter(str(path), num_threads=1)
    own.allocate_tensors()
    (taken,), (given,) = own.get_input_details(), own.get_output_details()
    scale, zero = taken["quantization"]
    whole = np.clip(np.rint(tensor / np.float32(scale)) + zero, -128, 127).astype(np.int8)
    own.set_tensor(taken["index"], whole)
    own.invoke()
    scale, zero = given["quantization"]
    wanted = (own.get_tensor(given["index"]).astype(np.float32) - zero) * np.float32(scale)
    np.testing.assert_array_equal(next(iter(found.values())), wanted)
    assert stack.choices[Stage.RUNTIME].backend.name == "litert"
    assert stack.profile.spec.precision.storage == "int8"
