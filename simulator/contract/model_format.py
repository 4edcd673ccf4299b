"""Formats of model files: what a card may name and a runtime may take. Each by entry point."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, final

from simulator.contract.description import Description, Value
from simulator.contract.model import Port
from simulator.entry_points import Table
from simulator.errors import ModelError, foreign
from simulator.files import LARGE, hash_folder, open_file


@dataclass(frozen=True, slots=True)
class Contents:
    """What a model file takes and gives, read without running it.

    Attributes:
        inputs: the inputs that must be fed, in the file's order.
        outputs: the shape of each output, in the file's order; None for a free dimension.
        files: all files that the model consists of, as :meth:`ModelFormat.files` returns them.
        graph: an ``onnx.GraphProto``, of an ONNX file.
    """

    inputs: Mapping[str, Port]
    outputs: Mapping[str, tuple[int | None, ...]]
    files: Sequence[Path]
    graph: Any = None


class ModelFormat:
    """One format of model files; the defaults are those of one file that only its runtime reads.

    Attributes:
        name: the name of its entry point: what runtimes, exporters and quantizers say they take
            and give.
        about: such a file in words, with an article.
        suffix: how the names of its files end, with the dot.
        weights: how the name of the file of weights ends that must lie beside it; empty: none must.
        key: the field of a model card that names such a file; empty: no card does, it is made of
            another.
        is_folder: whether it is a folder of files.
        by_weights: whether a card names a file for each type of weights.
        suffices: whether a card may name such a file alone.
        typed: whether the file has its own type of weights, whatever a profile would make.
        runs_code: whether the library that reads it may run what the file says.
        native: whether it holds code for a processor, which its runtime runs outside of any bound.
        runtime: the section ``runtime`` of a profile that opens such a file as its makers do, for
            a stack whose own runtime does not; empty: none here does.
        described_by: the module whose ``describe`` reads what a file says of itself; empty: it says
            what :meth:`read` gives.
    """

    name: ClassVar[str]
    about: ClassVar[str]
    suffix: ClassVar[str]
    weights: ClassVar[str] = ""
    key: ClassVar[str] = ""
    is_folder: ClassVar[bool] = False
    by_weights: ClassVar[bool] = False
    suffices: ClassVar[bool] = False
    typed: ClassVar[bool] = False
    runs_code: ClassVar[bool] = False
    native: ClassVar[bool] = False
    runtime: ClassVar[Mapping[str, object]] = {}
    described_by: ClassVar[str] = ""

    def recognises(self, path: Path) -> bool:
        """Whether a file or folder is of this format, by its name and by what lies beside it."""
        named = path.name and path.name.lower().endswith(self.suffix)
        if not named or os.path.isdir(path) != self.is_folder:
            return False
        return not self.weights or os.path.isfile(path.with_suffix(self.weights))

    def files(self, path: Path) -> list[Path]:
        """Return all files that a model consists of; those of a folder lie below it.

        Raises:
            ModelError: one is missing, or may not be used.
        """
        if self.is_folder:
            return sorted(file for file in path.rglob("*") if file.is_file())
        return [path, path.with_suffix(self.weights)] if self.weights else [path]

    def read(self, path: Path) -> Contents | None:
        """Read what a file takes and gives; None where only its runtime knows.

        Raises:
            ModelError: the file is damaged or refused, and why.
        """
        return None

    @final
    def describe(self, path: Path) -> Description:
        """Read what a file says of itself: types, quantization, preprocessing, metadata.

        Raises:
            ModelError: the file is damaged or refused, and why.
        """
        with foreign(ModelError, f"{path}: not {self.about} that can be read"):
            try:
                return self._describe(path)
            except OSError as error:
                raise ModelError(f"{path}: cannot be read: {error.strerror}") from error

    def _describe(self, path: Path) -> Description:
        if self.described_by:
            said: Description = import_module(self.described_by).describe(path)
            return said
        found = self.read(path)
        if found is None:
            return Description(unread=f"only a runtime that takes it reads {self.about}")
        return Description(
            tuple(Value(port.name, port.dtype.name, port.shape) for port in found.inputs.values()),
            tuple(Value(name, "", shape) for name, shape in found.outputs.items()),
        )

    @final
    def digest(self, paths: Iterable[Path], known: Contents | None = None) -> str:
        """Return the SHA-256 of all files of some models, or that of a folder.

        Args:
            paths: where they are.
            known: what :meth:`read` gave of the one model, whose files are not looked up again.

        Raises:
            OSError: one of them cannot be read.
            ModelError: as for :meth:`files`.
        """
        found = hashlib.sha256()
        for path in paths:
            if self.is_folder:
                return hash_folder(path)
            for file in known.files if known else self.files(path):
                with open_file(file, LARGE) as opened:
                    while chunk := opened.read(2**20):
                        found.update(chunk)
        return found.hexdigest()

    @property
    def written(self) -> str:
        """Return how a card names one, for messages."""
        file = "FOLDER" if self.is_folder else f"FILE{self.suffix}"
        return f"{self.key}: {{fp32: {file}}}" if self.by_weights else f"{self.key}: {file}"


MODEL_FORMATS: Table[ModelFormat] = Table(
    "simulator.model_formats", "model format", lambda one: isinstance(one, ModelFormat)
)
"""Every format by name; entry points name objects."""
ONNX = "onnx"
"""The format that graph passes, casts and quantizers of this program work on."""


def card_formats() -> list[ModelFormat]:
    """Return the formats that a card can name: ONNX, then other files, then folders."""
    named = (one for one in MODEL_FORMATS if one.key)
    return sorted(named, key=lambda one: (one.name != ONNX, one.is_folder, one.name))


def format_of(path: Path) -> ModelFormat | None:
    """Return the format of a model file, that of its suffix first; None for another file."""
    found = [one for one in MODEL_FORMATS if one.recognises(path)]
    return min(found, key=lambda one: not path.name.lower().endswith(one.suffix), default=None)


RECORD = "record its outputs where it runs (simulate recordings, docs/recordings.md)"
"""What to do with a file that no runtime here opens."""
_DEVICES = {
    ".hef": "Hailo", ".bmodel": "Sophgo", ".cvimodel": "Sophgo", ".dlc": "Qualcomm",
    ".om": "Ascend", ".nb": "VeriSilicon or Paddle Lite", ".kmodel": "Kendryte",
    ".axmodel": "Axera", ".xmodel": "AMD Vitis AI", ".tmfile": "Tengine", ".blob": "Movidius",
    ".ms": "MindSpore Lite", ".mlmodelc": "Core ML, compiled",
}  # fmt: skip
"""Files for devices of which no runtime is here, by their suffix."""
_SOURCES = {
    **dict.fromkeys(
        (".pt", ".pth", ".ckpt", ".torchscript"), "PyTorch: export it with torch.onnx.export"
    ),
    **dict.fromkeys(
        (".h5", ".keras", ".pb"),
        "TensorFlow: give a SavedModel (model.export(FOLDER) in Keras), a .tflite or an .onnx",
    ),
    **dict.fromkeys((".pdmodel", ".pdiparams"), "Paddle: convert it with paddle2onnx"),
    ".ort": "ONNX Runtime alone: give the .onnx that it was made of",
    ".caffemodel": "Caffe: convert it to .onnx",
    ".py": "Python: export its network with torch.onnx.export",
    ".safetensors": "training: export the network to .onnx",
}  # fmt: skip
"""Files that must be converted first, by their suffix: whose they are, and how."""


def refusal(path: Path) -> str:
    """Return why a file is no model that can be opened here, and what to do; empty: it may be."""
    beside, suffix = path.with_suffix(".bin"), path.suffix.lower()
    for file in (path, beside):
        if said := _mistaken(file):
            return said if file == path else f"{file.name} is {said}"
    if suffix in _DEVICES:
        return f"a file for {_DEVICES[suffix]}, which no runtime here opens; {RECORD}"
    if suffix in _SOURCES:
        return f"a file of {_SOURCES[suffix]}"
    return _misplaced(path, beside)


def _misplaced(path: Path, beside: Path) -> str:
    """What a file is, where it is not what its name says."""
    if os.path.isfile(path) and not os.path.getsize(path):
        return "an empty file"
    if format_of(path) is not None or not os.path.exists(path):
        return ""
    if os.path.isdir(path):
        inside = next((one.name for one in sorted(path.glob("*")) if format_of(one)), "")
        return (
            f"a folder; give the model file in it: {inside}"
            if inside
            else "a folder without a model file"
        )
    format = next((one for one in MODEL_FORMATS if one.suffix == path.suffix.lower()), None)
    if format is None:
        return ""
    if format.is_folder:
        return f"a file, and not {format.about}"
    return f"{format.about} has its weights beside it, and {beside.name} is missing"


def _mistaken(file: Path) -> str:
    """What a file is by its first bytes, where that is no model of any kind."""
    try:
        with open_file(file, LARGE) as opened:
            start = opened.read(200).lstrip().lower()
    except OSError:  # reported by its reader
        return ""
    if start.startswith(b"version https://git-lfs"):
        return "a pointer of Git LFS, and not the file itself; get that with git lfs pull"
    html = start.startswith((b"<!doctype html", b"<html"))
    return "a web page, and not the file itself; download it again" if html else ""


def suffix_of(format: str) -> str:
    """Return how the names of a format's files end, with the dot."""
    return MODEL_FORMATS[format].suffix if format in MODEL_FORMATS else f".{format}"
