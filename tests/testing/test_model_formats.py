"""The checks of formats of model files: ours pass them, and each broken one trips exactly one."""

import json

import made_coreml
import numpy as np
import onnx
import openvino
import pytest
import tiny

from simulator.contract import Port
from simulator.contract.model_format import MODEL_FORMATS, Contents, ModelFormat, format_of
from simulator.errors import ModelError, UserError
from simulator.testing.model_formats import SUITE, prove_model_format
from suites import passes, trips


def file(name, raw=b"anything"):
    def write(folder):
        (folder / name).write_bytes(raw)
        return folder / name

    return write


def with_external_data(folder):
    weights = {"w": np.ones((64, 64), np.float32)}
    nodes = [onnx.helper.make_node("MatMul", ["x", "w"], ["y"])]
    proto = tiny.model(nodes, {"x": [1, 64]}, {"y": [1, 64]}, weights)
    onnx.save(proto, folder / "m.onnx", save_as_external_data=True, location="m.data",
              size_threshold=0)  # fmt: skip
    return folder / "m.onnx"


def ctranslate2(folder):
    file("vocabulary.json")(folder)
    return file("model.bin")(folder).parent


def openvino_ir(folder):
    onnx.save(tiny.classifier(), folder / "tiny.onnx")
    openvino.save_model(openvino.convert_model(folder / "tiny.onnx"), folder / "m.xml")
    (folder / "tiny.onnx").unlink()
    return folder / "m.xml"


def coreml_package(folder):
    (folder / "m.mlpackage" / "Data").mkdir(parents=True)
    (folder / "m.mlpackage" / "Manifest.json").write_text("{}")
    (folder / "m.mlpackage" / "Data" / "model.mlmodel").write_bytes(made_coreml.classifier())
    return folder / "m.mlpackage"


def saved_model(folder):
    (folder / "variables").mkdir()
    file("variables/variables.index")(folder)
    return file("saved_model.pb")(folder).parent


def ncnn(folder):
    file("m.bin")(folder)
    layers = "Input in0 0 1 in0\nInnerProduct fc 1 1 in0 out0 0=3 1=1 2=9 8=1\n"
    return file("m.param", f"7767517\n2 2\n{layers}".encode())(folder)


MODELS = {
    "onnx": with_external_data, "torch_export": file("m.pt2"), "tflite": file("m.tflite"),
    "gguf": file("m.gguf"), "ctranslate2": ctranslate2, "openvino_ir": openvino_ir,
    "rknn": file("m.rknn.zip"), "rknn_file": file("m.rknn"), "mnn": file("m.mnn"),
    "tensorrt_engine": file("m.engine"), "iree_module": file("m.vmfb"),
    "executorch": file("m.pte"), "coreml": file("m.mlmodel", made_coreml.classifier()),
    "coreml_package": coreml_package, "ncnn": ncnn, "saved_model": saved_model,
}  # fmt: skip


def test_every_format_of_ours_is_tried():
    assert set(MODELS) == {one for one in MODEL_FORMATS.names if MODEL_FORMATS.is_ours(one)}


@pytest.mark.parametrize("name", MODELS)
def test_our_formats_pass_every_check(name, tmp_path):
    model = MODELS[name](tmp_path)

    passes(prove_model_format(model), SUITE)
    assert format_of(model).name == name


class Small(ModelFormat):
    """A correct one: sizes as JSON, and weights beside them."""

    name = key = "small"
    about = "a small file"
    suffix = ".small"
    port = "x"

    def files(self, path):
        return [path, path.with_suffix(".weights")]

    def read(self, path):
        try:
            sizes = [int(one) for one in json.loads(path.read_bytes())["sizes"]]
            weights = path.with_suffix(".weights").stat().st_size
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise ModelError(f"{path}: not a small file: {type(error).__name__}") from error
        shape = (1, *(abs(one) for one in sizes))
        return Contents({"x": Port(self.port, np.dtype("f4"), shape)}, {"y": (weights,)}, [path])


class Greedy(Small):
    def recognises(self, path):
        return True


class Half(Small):
    def files(self, path):
        return [path]

    def read(self, path):
        there = path.with_suffix(".weights").is_file()
        shape = (1, 2) if there else (1, 3)
        return Contents({"x": Port("x", np.dtype("f4"), shape)}, {"y": (1,)}, [path])


class Nameless(Small):
    port = "another"


class Fragile(Small):
    def read(self, path):
        json.loads(path.read_bytes())
        return super().read(path)


class Thief(Small):
    key = "labels"


FAULTS = {
    "its_own_files_are_recognised": Greedy,
    "its_files_are_all": Half,
    "what_it_reads_are_ports": Nameless,
    "damage_is_refused": Fragile,
    "a_card_can_name_it": Thief,
}


@pytest.fixture
def small(tmp_path):
    file("m.weights")(tmp_path)
    return file("m.small", b'{"sizes": [4, 5]}')(tmp_path)


def test_a_correct_format_passes(small):
    passes(prove_model_format(small, Small()))


@pytest.mark.parametrize("check", FAULTS)
def test_a_fault_trips_its_check_and_no_other(small, check):
    trips(prove_model_format(small, FAULTS[check]()), check)


def test_no_check_is_without_a_fault():
    assert set(FAULTS) == set(SUITE.names)


def test_a_file_of_no_format_is_one_line(tmp_path):
    with pytest.raises(UserError, match="no installed model format recognises it"):
        prove_model_format(file("m.unknown")(tmp_path))
    with pytest.raises(UserError, match="there is no such file or folder"):
        prove_model_format(tmp_path / "gone.onnx")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("tflite", "not a .tflite file: its first bytes are another file's"),
        ("gguf", "a GGUF file does not say how samples become its input"),
        ("rknn", "a model of RKNN-Toolkit2 is made of a network: give that as --model"),
    ],
)
def test_a_model_in_place_of_its_card_is_said(name, words, tmp_path):
    from simulator.model.card import Card

    with pytest.raises(ModelError, match=words):
        Card(MODELS[name](tmp_path))
