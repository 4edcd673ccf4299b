"""The formats of model files that this program knows."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from simulator.contract.description import Description, operators
from simulator.contract.model_format import Contents, ModelFormat


class Onnx(ModelFormat):
    """An ONNX file, with the files of its external data."""

    name = "onnx"
    about = "an ONNX file"
    suffix = ".onnx"
    described_by = "simulator.model.onnx_description"
    key = "model"
    suffices = True
    runtime: ClassVar[Mapping[str, object]] = {
        "backend": "onnxruntime", "device": "cpu", "graph_optimization_level": "all"
    }  # fmt: skip

    def files(self, path: Path) -> list[Path]:
        """Return the file, then those of its external data."""
        from simulator.model.onnxfile import structure

        return [path, *structure(path)[1]]

    def read(self, path: Path) -> Contents:
        """Check the model, and read its inputs and outputs."""
        from simulator.model.onnxfile import contents

        return contents(path)


class TorchExport(ModelFormat):
    """A program of ``torch.export.save``; :mod:`simulator.contract.program` looks it through."""

    name = key = "torch_export"
    about = "a torch.export program"
    suffix = ".pt2"
    described_by = "simulator.model.program_description"
    runs_code = True
    runtime: ClassVar[Mapping[str, object]] = {
        "backend": "pytorch", "device": "cpu", "mode": "eager", "memory_format": "contiguous"
    }  # fmt: skip


class Tflite(ModelFormat):
    """A flat buffer of TensorFlow Lite."""

    name = key = "tflite"
    about = "a .tflite file"
    suffix = ".tflite"
    described_by = "simulator.model.tflite_description"
    by_weights = True
    suffices = True
    typed = True
    runtime: ClassVar[Mapping[str, object]] = {
        "backend": "litert", "device": "cpu", "kernels": "xnnpack"
    }  # fmt: skip


class Gguf(ModelFormat):
    """A language model of llama.cpp."""

    name = key = "gguf"
    about = "a GGUF file"
    suffix = ".gguf"
    typed = True
    runtime: ClassVar[Mapping[str, object]] = {
        "backend": "llama_cpp", "device": "cpu", "flash_attention": False, "kv_cache": "fp16"
    }  # fmt: skip

    def _describe(self, path: Path) -> Description:
        """Read the metadata, and the types of the matrices; integers meet 8 bits."""
        from simulator import gguf_header

        header = gguf_header.read(path)
        made = operators(("matrix", kind, "") for kind in header.matrices)
        most = re.match(r"(BF|F|I?Q|MXFP)(\d+)", made[0].weights if made else "")
        words = {"BF": "bf", "F": "fp", "MXFP": "mxfp"}
        stored = words.get(most[1], "int") + most[2] if most else None
        computed = "int8" if stored and stored.startswith(("int", "mxfp")) else stored
        return Description(operators=made, storage=stored, compute=computed, metadata=header.fields)


class CTranslate2(ModelFormat):
    """A folder of CTranslate2, with ``model.bin`` in it."""

    name = key = "ctranslate2"
    about = "a folder of CTranslate2"
    suffix = ".ctranslate2"
    is_folder = True
    suffices = True
    typed = True

    def recognises(self, path: Path) -> bool:
        """Whether it is a folder with a model in it."""
        return os.path.isfile(path / "model.bin")


class SavedModel(ModelFormat):
    """A folder of TensorFlow's SavedModel, with ``saved_model.pb`` in it."""

    name = key = "saved_model"
    about = "a SavedModel of TensorFlow"
    suffix = ".savedmodel"
    is_folder = True
    suffices = True
    runs_code = True
    runtime: ClassVar[Mapping[str, object]] = {
        "backend": "tensorflow", "device": "cpu", "onednn": True, "jit_compile": False
    }  # fmt: skip

    def recognises(self, path: Path) -> bool:
        """Whether it is a folder with a graph in it."""
        return os.path.isfile(path / "saved_model.pb")


class OpenVinoIr(ModelFormat):
    """OpenVINO's IR, which is made of an ONNX file: a graph, and its weights beside it."""

    name = "openvino_ir"
    about = "an OpenVINO IR"
    suffix = ".xml"
    described_by = "simulator.model.openvino_description"
    weights = ".bin"
    runtime: ClassVar[Mapping[str, object]] = {"backend": "openvino", "device": "cpu"}


class Rknn(ModelFormat):
    """A model of RKNN-Toolkit2 with its inputs, which is made of an ONNX file."""

    name = "rknn"
    about = "a model of RKNN-Toolkit2"
    suffix = ".rknn.zip"


ONNX, TORCH_EXPORT, TFLITE, GGUF = Onnx(), TorchExport(), Tflite(), Gguf()
CTRANSLATE2, OPENVINO_IR, RKNN = CTranslate2(), OpenVinoIr(), Rknn()
SAVED_MODEL = SavedModel()
