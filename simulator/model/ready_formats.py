"""Formats that a vendor's tool finishes for its own runtime: no card names them, a profile may."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from simulator.contract.description import Description, Value, operators
from simulator.contract.model_format import ModelFormat
from simulator.errors import ModelError
from simulator.files import LARGE, json_before, open_file, read_file


class TensorRtEngine(ModelFormat):
    """A serialized engine of TensorRT, for one GPU and one version."""

    name = "tensorrt_engine"
    about = "an engine of TensorRT"
    suffix = ".engine"
    native = True
    runtime: ClassVar[Mapping[str, object]] = {
        "backend": "tensorrt", "device": "cuda", "threads": 1, "tf32": False
    }  # fmt: skip

    def recognises(self, path: Path) -> bool:
        """Whether it has one of the names that NVIDIA's tools give it."""
        return path.suffix.lower() in (".engine", ".plan", ".trt") and not os.path.isdir(path)

    def _describe(self, path: Path) -> Description:
        """Read the metadata that Ultralytics writes before an engine."""
        with open_file(path, LARGE) as file:
            said = json.loads(json_before(file.read(2**20)) or b"{}")
        metadata = {str(key): str(value) for key, value in said.items()}
        return replace(super()._describe(path), metadata=metadata)


class RknnFile(ModelFormat):
    """What RKNN-Toolkit2 exports for a Rockchip NPU; its simulator cannot open it."""

    name = "rknn_file"
    about = "a model of a Rockchip NPU"
    suffix = ".rknn"


class Mnn(ModelFormat):
    """A file of ``mnnconvert``."""

    name = "mnn"
    about = "an MNN file"
    suffix = ".mnn"
    runtime: ClassVar[Mapping[str, object]] = {
        "backend": "mnn", "device": "cpu", "weight_storage": "fp32"
    }  # fmt: skip


class Executorch(ModelFormat):
    """A program of ExecuTorch."""

    name = "executorch"
    about = "a program of ExecuTorch"
    suffix = ".pte"
    runtime: ClassVar[Mapping[str, object]] = {"backend": "executorch", "device": "cpu"}


class Iree(ModelFormat):
    """A module of IREE's compiler; without reflection it does not say its shapes."""

    name = "iree_module"
    about = "a module of IREE"
    suffix = ".vmfb"


class CoreMl(ModelFormat):
    """Apple's model in one file."""

    name = "coreml"
    about = "a Core ML model"
    suffix = ".mlmodel"
    described_by = "simulator.model.coreml_description"


class CoreMlPackage(CoreMl):
    """Apple's model as a folder, with its weights beside it."""

    name = "coreml_package"
    about = "a Core ML package"
    suffix = ".mlpackage"
    is_folder = True

    def _describe(self, path: Path) -> Description:
        models = [file for file in self.files(path) if file.name.endswith(".mlmodel")]
        if len(models) != 1:
            raise ModelError(f"{path}: one .mlmodel in it expected, got {len(models)}")
        return super()._describe(models[0])


_LAYER = re.compile(r"\s*(\S+)\s+\S+\s+(\d{1,6})\s+(\d{1,6})\s*(.*)")
"""Its kind, the numbers of blobs that it takes and gives, then their names and its keys."""


class Ncnn(ModelFormat):
    """ncnn's graph as text, and its weights beside it."""

    name = "ncnn"
    about = "a model of ncnn"
    suffix = ".param"
    weights = ".bin"

    def _describe(self, path: Path) -> Description:
        """Read the layers; key 8 of a convolution or product says that its weights are INT8."""
        lines = read_file(path, LARGE).decode("utf-8", "replace").splitlines()
        if lines[:1] != ["7767517"]:
            raise ModelError(f"{path}: not a graph of ncnn: its first line is not 7767517")
        taken: set[str] = set()
        made: dict[str, str] = {}
        typed: list[tuple[str, str, str]] = []
        for line in lines[2:]:
            if (found := _LAYER.match(line)) is None:
                continue
            kind, rest, split = found[1], found[4].split(), int(found[2])
            end = split + int(found[3])
            taken.update(rest[:split])
            made |= dict.fromkeys(rest[split:end], kind)
            rounded = any(one.startswith("8=") and one[2:] not in ("0", "") for one in rest[end:])
            if kind != "Input":
                typed.append((kind, "int8" if rounded else "", ""))
        has = any(weights for _, weights, _ in typed)
        return Description(
            tuple(Value(name, "", ()) for name, kind in made.items() if kind == "Input"),
            tuple(Value(name, "", ()) for name in made if name not in taken),
            operators(typed),
            form="INT8 weights" if has else "",
            storage="int8" if has else None,
        )


TENSORRT_ENGINE, RKNN_FILE, MNN, EXECUTORCH = TensorRtEngine(), RknnFile(), Mnn(), Executorch()
IREE, COREML, COREML_PACKAGE, NCNN = Iree(), CoreMl(), CoreMlPackage(), Ncnn()
