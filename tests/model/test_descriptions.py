"""What a model file says of itself, held against what the tool that wrote it was told."""

import json

import made_coreml
import made_gguf
import numpy as np
import onnx
import openvino as ov
import pytest
import tiny
import torch
from onnx import helper, numpy_helper
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)
from openvino.preprocess import PrePostProcessor
from shared_data import shared

from simulator.cli import main
from simulator.contract.description import Operators, Scheme, Value
from simulator.profile.artifact import read


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Two convolutions and a product."""
    rng = np.random.default_rng(0)
    shapes = {"a": (4, 3, 3, 3), "b": (4, 4, 3, 3), "w": (4, 3)}
    weights = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    nodes = [
        helper.make_node("Conv", ["x", "a"], ["c"], name="first"),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Conv", ["r", "b"], ["d"], name="second"),
        helper.make_node("GlobalAveragePool", ["d"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "w"], ["y"], name="fc"),
    ]
    path = tmp_path_factory.mktemp("described") / "net.onnx"
    onnx.save(tiny.model(nodes, constants=weights), path)
    return path


class Noise(CalibrationDataReader):
    def __init__(self):
        noise = np.random.default_rng(1).normal(size=(4, 1, 3, 32, 32)).astype(np.float32)
        self.left = iter(noise)

    def get_next(self):
        return next(({"x": x} for x in self.left), None)


def products(said):
    return {(one.operator, one.weights, one.activations): one.count for one in said.operators
            if one.weights}  # fmt: skip


def test_onnx_in_fp32(source):
    said = read(source).description

    assert said.inputs == (Value("x", "float32", (1, 3, 32, 32)),)
    assert said.outputs == (Value("y", "float32", (1, 3)),)
    assert products(said) == {("Conv", "fp32", "fp32"): 2, ("Gemm", "fp32", "fp32"): 1}
    assert (said.storage, said.compute, said.form) == ("fp32", "fp32", "")
    assert said.metadata["operator sets"] == "ai.onnx 17"


@pytest.mark.parametrize("per_channel", [False, True])
def test_onnx_in_qdq(source, tmp_path, per_channel):
    path = tmp_path / "qdq.onnx"
    quantize_static(
        source, path, Noise(), quant_format=QuantFormat.QDQ, per_channel=per_channel,
        op_types_to_quantize=["Conv"], activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
    )  # fmt: skip

    said = read(path).description

    assert products(said) == {("Conv", "int8", "int8"): 2, ("Gemm", "fp32", "fp32"): 1}
    assert (said.storage, said.compute, said.form) == ("int8", "int8", "QDQ")
    per = "channel" if per_channel else "tensor"
    assert [one for one in said.quantization if one.of == "weights"] == [
        Scheme("weights", "int8", per, True, 2)
    ]
    assert {one.dtype for one in said.quantization if one.of == "activations"} == {"uint8"}


def test_onnx_in_qoperator_and_dynamic(source, tmp_path):
    static, dynamic = tmp_path / "qop.onnx", tmp_path / "dynamic.onnx"
    quantize_static(source, static, Noise(), quant_format=QuantFormat.QOperator,
                    op_types_to_quantize=["Conv"])  # fmt: skip
    quantize_dynamic(source, dynamic, op_types_to_quantize=["Conv"])

    first, second = read(static).description, read(dynamic).description

    assert first.form == "QOperator"
    assert products(first)["QLinearConv", "int8", "int8"] == 2
    assert second.form == "dynamic"
    assert products(second)["ConvInteger", "int8", "int8"] == 2
    assert {first.compute, second.compute} == {"int8"}


def test_what_suppresses_boxes_is_told(tmp_path):
    boxes = numpy_helper.from_array(np.zeros((1, 4, 4), np.float32), "boxes")
    scores = numpy_helper.from_array(np.zeros((1, 1, 4), np.float32), "scores")
    nms = helper.make_node("NonMaxSuppression", ["boxes", "scores"], ["kept"])
    output = helper.make_tensor_value_info("kept", onnx.TensorProto.INT64, [None, 3])
    graph = helper.make_graph([nms], "g", [], [output], [boxes, scores])
    onnx.save(helper.make_model(graph), tmp_path / "nms.onnx")

    assert read(tmp_path / "nms.onnx").description.postprocessing == ("NonMaxSuppression",)


def test_openvino_as_it_was_saved(source, tmp_path):
    model = ov.convert_model(source)
    for half in (False, True):
        path = tmp_path / f"half{half}.xml"
        ov.save_model(model, path, compress_to_fp16=half)
        said = read(path).description
        kind = "fp16" if half else "fp32"
        assert products(said) == {("Convolution", kind, "fp32"): 2, ("MatMul", kind, "fp32"): 1}
        assert (said.storage, said.compute) == (kind, "fp32")
        assert said.inputs == (Value("x", "float32", (1, 3, 32, 32)),)
        assert "2026" in said.metadata["Runtime_version"] or said.metadata["Runtime_version"]


def test_openvino_quantized_by_nncf(source, tmp_path):
    nncf = pytest.importorskip("nncf")
    noise = np.random.default_rng(1).normal(size=(4, 1, 3, 32, 32)).astype(np.float32)
    model = nncf.quantize(ov.convert_model(source), nncf.Dataset(list(noise)), subset_size=4)
    ov.save_model(model, tmp_path / "int8.xml")

    said = read(tmp_path / "int8.xml").description

    found = products(said)
    assert found["Convolution", "int8", "int8"] == 2
    assert (said.storage, said.compute, said.form) == ("int8", "int8", "FakeQuantize")
    assert {(one.dtype, one.per) for one in said.quantization if one.of == "weights"} == {
        ("int8", "channel")
    }


def test_tflite_of_coral():
    path = shared("models") / "coral_mobilenet_v2_1.0_224_quant.tflite"

    said = read(path).description

    # its own documentation: uint8 in and out, a scale of 1/128 and a zero point of 128
    assert said.inputs == (Value("input", "uint8", (1, 224, 224, 3), 0.0078125, 128),)
    assert said.outputs[0].shape == (1, 1001)
    assert Operators("CONV_2D", 36, "int8", "int8") in said.operators
    assert (said.storage, said.compute) == ("int8", "int8")
    assert said.metadata["NormalizationOptions mean"] == "127.5"


def test_core_ml_images(tmp_path):
    (tmp_path / "net.mlmodel").write_bytes(made_coreml.classifier())

    said = read(tmp_path / "net.mlmodel").description

    assert said.inputs == (Value("image", "uint8", (32, 24, 3)),)
    assert said.outputs == (Value("scores", "float32", (1, 3)),)
    assert said.operators == (Operators("convolution", 1, "", ""),)
    assert said.preprocessing.steps == (
        "an image in rgb", "x * 0.015625 + [-1.0, -2.0, -3.0] (red, green, blue)"
    )  # fmt: skip
    assert said.metadata["author"] == "nobody" and said.metadata["k"] == "v"


def test_ncnn_with_one_int8_layer(tmp_path):
    """The keys of ncnn's param file, Convolution: 8 is int8_scale_term."""
    (tmp_path / "net.bin").touch()
    (tmp_path / "net.param").write_text(
        "7767517\n3 3\nInput            in0  0 1 in0\n"
        "Convolution      conv 1 1 in0 a 0=8 1=3 6=216 8=2\n"
        "InnerProduct     fc   1 1 a out0 0=5 2=40\n"
    )

    said = read(tmp_path / "net.param").description

    assert [one.name for one in (*said.inputs, *said.outputs)] == ["in0", "out0"]
    assert {one.operator: one.weights for one in said.operators} == {
        "Convolution": "int8", "InnerProduct": ""
    }  # fmt: skip
    assert said.storage == "int8"


def test_gguf_as_its_own_library_wrote_it(tmp_path):
    said = read(made_gguf.write(tmp_path / "net.gguf", kind="Q8_0")).description

    assert said.operators == (Operators("matrix", 15, "Q8_0", ""),)  # 7 a layer and the embedding
    assert (said.storage, said.compute) == ("int8", "int8")
    assert said.metadata["llama.context_length"] == str(made_gguf.CONTEXT)


def test_a_program_as_torch_export_saved_it(tmp_path):
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(2))
    program = torch.export.export(net.half().eval(), (torch.zeros(1, 3, 8, 9).half(),))
    torch.export.save(program, tmp_path / "net.pt2")

    said = read(tmp_path / "net.pt2").description

    assert [(one.dtype, one.shape) for one in said.inputs] == [("float16", (1, 3, 8, 9))]
    assert [(one.dtype, one.shape) for one in said.outputs] == [("float16", (1, 8, 42))]
    assert Operators("conv2d", 1, "fp16", "fp16") in said.operators
    assert (said.storage, said.compute) == ("fp16", "fp16")


def test_the_metadata_that_ultralytics_writes_before_an_engine(tmp_path):
    said = json.dumps({"task": "detect", "stride": 32, "names": {"0": "person"}}).encode()
    with (tmp_path / "net.engine").open("wb") as file:  # ultralytics/engine/exporter.py
        file.write(len(said).to_bytes(4, byteorder="little", signed=True))
        file.write(said + b"ftrt engine")
    (tmp_path / "bare.plan").write_bytes(b"ftrt" + bytes(400))

    assert read(tmp_path / "net.engine").description.metadata == {
        "task": "detect", "stride": "32", "names": "{'0': 'person'}"
    }  # fmt: skip
    assert not read(tmp_path / "bare.plan").description.metadata


def test_the_verdict_stands_first(source, tmp_path, capsys):
    ppp = PrePostProcessor(ov.convert_model(source))
    ppp.input().tensor().set_element_type(ov.Type.u8)
    ppp.input().preprocess().convert_element_type(ov.Type.f32).mean([1.0]).scale([2.0])
    ov.save_model(ppp.build(), tmp_path / "net.xml", compress_to_fp16=False)

    assert main(["model", "show", str(tmp_path / "net.xml")]) == 0

    first = capsys.readouterr().out.splitlines()[0]
    assert first == "net.xml: weights fp32; arithmetic fp32; normalizes its input itself"


def test_the_command_shows_all_of_it(source, capsys):
    assert main(["model", "show", str(source)]) == 0
    screen = capsys.readouterr().out
    assert main(["model", "show", str(source), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)

    assert "Conv" in screen and "1x3x32x32" in screen and "opened by" in screen
    assert found["sha256"] in screen
    assert "openvino" in found["opened_by"]
    assert [one["operator"] for one in found["operators"] if one["weights"]] == ["Conv", "Gemm"]
