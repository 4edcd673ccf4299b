"""Write a recording on the board that makes it: one file, which needs Python 3.7 and numpy only.

Copy this file to the board and call it where the board has what is to be recorded::

    from capture import Capture

    with Capture("board", kind="tensors", device="Board 7, SDK 1.2") as capture:
        for name in names:                        # as below the data folder: "cat/1.jpg"
            tensor = ...                          # what the board feeds to its network
            capture.add(name, tensor)

It writes recording.yaml, recording.npz (or recording.csv for predictions), and latency.csv where
latencies are given. ``simulate identify --recording recording.yaml`` reads them.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import zipfile

import numpy as np

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from numpy.typing import NDArray

    Row = dict[str, float | int | str]

MODEL = ""
"""SHA-256 of the ONNX file whose stack is recorded; ``simulate recordings capture-kit`` fills it
in where it is given a model card."""
KINDS = ("tensors", "outputs", "predictions", "frames")
AFTER = ("decode", "resize", "geometry")
PLANES = ("y", "u", "v")
STAGES = (
    "decode", "read", "tokenize", "sensor", "develop", "resample", "color", "stft", "mel", "resize",
    "front_end", "infer", "vocode",
)  # fmt: skip
FILES = ("recording.yaml", "recording.npz", "recording.csv", "latency.csv")
COLUMNS = ("prediction", "score", "margin")


class Capture:
    """A recording that is being made; a context manager. Arrays are written as they come.

    Args:
        name: of the recording.
        kind: ``tensors``: the network's inputs, floats; ``outputs``: of the network, floats, one
            array or a mapping of output names to arrays; ``predictions``: a class index, or
            (class index, score) or (class index, score, margin); ``frames``: the pixels after a
            stage, (H, W, 3) uint8 in the order R, G, B, or a mapping with the planes ``y``, ``u``
            and ``v``, (h, w) uint8 each.
        device: which board and software, in words.
        model: the ONNX file whose stack this is, or its SHA-256; by default MODEL above.
        after: for frames: ``decode``, ``resize`` or ``geometry`` (after crop and padding).
        match: ``name``: images are called as below the data folder; ``sha256``: by the digest of
            their file, whose path is then given to :meth:`add`.
        folder: where the files are written.

    Raises:
        ValueError: an argument has another value, or the folder has a recording.
    """

    def __init__(
        self,
        name: str,
        kind: str,
        device: str,
        model: str = "",
        after: str | None = None,
        match: str = "name",
        folder: str = ".",
    ) -> None:
        if kind not in KINDS:
            raise ValueError(f"kind: {kind!r} is none of {', '.join(KINDS)}")
        if match not in ("name", "sha256"):
            raise ValueError(f"match: {match!r} is neither name nor sha256")
        if (kind == "frames") != (after in AFTER):
            raise ValueError(f"after: for kind frames one of {', '.join(AFTER)}, else none")
        self.spec = {
            "schema": 1, "name": name, "device": device, "kind": kind, "match": match,
            "model": _digest_of_model(model or MODEL),
            "file": "recording.csv" if kind == "predictions" else "recording.npz",
        }  # fmt: skip
        if after is not None:
            self.spec["after"] = after
        self._folder = folder
        for file in FILES:
            if os.path.exists(os.path.join(folder, file)):
                raise ValueError(f"folder: {folder} has a {file}; give a new folder")
        self._stages = STAGES[: STAGES.index(_last(kind, after)) + 1]
        self._seen: set[str] = set()
        self._rows: list[Row] = []
        self._latencies: list[Row] = []
        os.makedirs(folder, exist_ok=True)
        self._file = None
        if kind != "predictions":
            place = os.path.join(folder, "recording.npz")
            self._file = zipfile.ZipFile(place, "x", zipfile.ZIP_DEFLATED, allowZip64=True)

    def __enter__(self) -> Capture:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Write what was added."""
        self.close()

    def add(self, image: str, value: Any, latency: Mapping[str, int] | None = None) -> None:
        """Record one image.

        Args:
            image: its path below the data folder; its file, where ``match`` is ``sha256``.
            value: what the board gave; see ``kind``.
            latency: nanoseconds of any of STAGES up to what is recorded; for images decode, color,
                resize and infer, or front_end for all before infer.

        Raises:
            ValueError: the image was added before, or the value is of another kind.
        """
        key = _sha256(image) if self.spec["match"] == "sha256" else image.replace("\\", "/")
        if key in self._seen:
            raise ValueError(f"{image}: was added before")
        for stage, ns in (latency or {}).items():
            if stage not in self._stages or int(ns) < 0:
                raise ValueError(
                    f"{image}: latency: nanoseconds of {', '.join(self._stages)}; got {stage}: {ns}"
                )
        if self.spec["kind"] == "predictions":
            self._rows.append(dict(_row(image, value), image=key))
        else:
            for name, array in _arrays(str(self.spec["kind"]), image, value).items():
                self._write(f"{key}/{name}" if name else key, array)
        if latency is not None:
            row: Row = {f"{stage}_ns": int(ns) for stage, ns in latency.items()}
            self._latencies.append(dict(row, image=key))
        self._seen.add(key)

    def close(self) -> None:
        """Write the manifest and the tables; nothing can be added afterwards."""
        if self._file is not None:
            self._file.close()
        else:
            _table(os.path.join(self._folder, "recording.csv"), self._rows)
        if self._latencies:
            _table(os.path.join(self._folder, "latency.csv"), self._latencies)
            self.spec["latency"] = "latency.csv"
        lines = [f"{k}: {json.dumps(v, ensure_ascii=False)}\n" for k, v in self.spec.items()]
        with open(os.path.join(self._folder, "recording.yaml"), "x", encoding="utf-8") as file:
            file.writelines(lines)

    def _write(self, name: str, array: Any) -> None:
        assert self._file is not None
        with self._file.open(f"{name}.npy", "w", force_zip64=True) as file:
            np.lib.format.write_array(file, np.ascontiguousarray(array), allow_pickle=False)


def _last(kind: str, after: str | None) -> str:
    """The last stage whose latency is known."""
    if after is not None:
        return "decode" if after == "decode" else "resize"
    return STAGES[STAGES.index("infer") - 1] if kind == "tensors" else STAGES[-1]


def _arrays(kind: str, image: str, value: Any) -> dict[str, NDArray[Any]]:
    """Return the arrays of an image by the name below it; no name for a single array."""
    named = hasattr(value, "items")
    found = {k: np.asarray(v) for k, v in value.items()} if named else {"": np.asarray(value)}
    if kind == "frames":
        if named and sorted(found) != sorted(PLANES):
            raise ValueError(f"{image}: planes are called y, u and v, got {', '.join(found)}")
        for array in found.values():
            flat = array.ndim == 2 if named else array.ndim == 3 and array.shape[2] == 3
            types = (np.uint8,) if named else (np.uint8, np.float32)
            if not flat or array.dtype not in types:
                wanted = "uint8 (h, w)" if named else "uint8 or float32 (H, W, 3)"
                raise ValueError(f"{image}: {wanted}, got {array.dtype} {array.shape}")
        return found
    if kind == "tensors" and named:
        raise ValueError(f"{image}: a tensor is one array")
    for array in found.values():
        if array.dtype.kind != "f":
            raise ValueError(f"{image}: floats, got {array.dtype}; dequantize INT8 before")
    return found


def _row(image: str, value: Any) -> Row:
    values = list(np.atleast_1d(np.asarray(value, dtype=np.float64)))
    if not 1 <= len(values) <= len(COLUMNS) or values[0] < 0 or values[0] != int(values[0]):
        raise ValueError(f"{image}: a class index, and a score and a margin; got {value!r}")
    row: Row = {COLUMNS[at]: float(one) for at, one in enumerate(values)}
    return dict(row, prediction=int(values[0]))


def _table(path: str, rows: list[Row]) -> None:
    columns = ["image", *sorted({name for row in rows for name in row} - {"image"})]
    with open(path, "x", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)


def _digest_of_model(model: str) -> str:
    if len(model) == 64 and not set(model) - set("0123456789abcdef"):
        return model
    if not model:
        raise ValueError("model: the ONNX file whose stack is recorded, or its SHA-256")
    return _sha256(model)


def _sha256(path: str) -> str:
    whole = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(2**20), b""):
            whole.update(block)
    return whole.hexdigest()
