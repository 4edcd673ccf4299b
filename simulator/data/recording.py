"""Recordings: what a real device gave for each image, replayed here."""

from __future__ import annotations

import hashlib
import math
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from simulator.contract import Array
from simulator.contract.stage import device_steps
from simulator.data.folder import Item
from simulator.data.tally import some
from simulator.digests import sha256
from simulator.errors import DataError, ProfileError, SampleError, shortened
from simulator.files import LARGE, NPY, check_file, hash_file
from simulator.profile import messages
from simulator.profile.document import read

PLANES = ("y", "u", "v")
"""The arrays of a frame that was recorded as planes, below the name of its image."""
Rows = Mapping[str, Mapping[str, object]]
"""The rows of a table by image."""


class RecordingSpec(BaseModel):
    """The manifest, a YAML document beside the dump.

    ``kind``: the network's ``outputs``, ``predictions`` (class indices), ``tensors``, the
    network's inputs, or ``frames``: the pixels ``after`` a stage before that. ``file`` is an
    ``.npz`` with one array per image (``IMAGE/OUTPUT`` where the network has several outputs), or
    for predictions a ``.csv`` or ``.parquet`` table with the columns ``image`` and ``prediction``,
    and ``score`` and ``margin`` where they are known.
    ``latency`` is such a table with ``image`` and the nanoseconds of any timed stage up to the
    network, such as ``decode_ns`` and ``infer_ns``; a table of predictions may have these columns
    itself. ``match`` says whether images are called by their path below the data folder, or by the
    SHA-256 of their file.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    schema_: Literal[1] = Field(alias="schema")
    name: str
    device: str
    kind: Literal["outputs", "predictions", "tensors", "frames"]
    after: Literal["decode", "resize", "geometry"] | None = Field(
        None, description="the stage after which frames were taken; kind frames only"
    )
    file: str
    match: Literal["name", "sha256"]
    model: str = Field(description="SHA-256 of the ONNX file that was deployed")
    latency: str | None = None

    @model_validator(mode="after")
    def _frames_after_a_stage(self) -> RecordingSpec:
        if (self.kind == "frames") != (self.after is not None):
            raise ValueError("after is for kind frames, and needed there: decode, resize, geometry")
        return self


@dataclass(frozen=True)
class Recording:
    """A manifest whose files were found.

    It can be pickled; what was read of its files stays behind.

    Attributes:
        path: of the manifest.
        spec: its content.
        files: that the manifest names, by its key.
    """

    path: Path
    spec: RecordingSpec
    files: Mapping[str, Path]

    def __reduce__(self) -> tuple[type[Recording], tuple[Any, ...]]:
        return Recording, (self.path, self.spec, self.files)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the SHA-256 of the manifest and of each of its files."""
        whole = hashlib.sha256()
        for place in (self.path, *self.files.values()):
            whole.update(bytes.fromhex(hash_file(place)))
        return whole.hexdigest()

    def check(self, model: str, items: Sequence[Item], outputs: Sequence[str] = ()) -> None:
        """Check that this is a recording of the model and has every image.

        Args:
            model: SHA-256 of the ONNX file.
            items: the images that are needed.
            outputs: the network's outputs that are needed, where outputs were recorded.

        Raises:
            DataError: it is of another model, or images are missing; the first few are named.
        """
        if model != self.spec.model:
            models = f"{self.spec.model[:12]}…, but the model here is {model[:12]}…"
            again = "record again, or use that model"
            raise DataError(f"{self.path}: model: recorded with {models}; {again}")
        _ = self.stages
        missing = [item.name for item in items if not self.holds(item, outputs)]
        if missing:
            count = f"{len(missing)} of {len(items)} images are not in it"
            where = f"{self.files['file']}: {count}, matched by {self.spec.match}"
            raise DataError(f"{where}: {some(missing)}")

    def outputs(self, item: Item, names: Sequence[str]) -> dict[str, Array]:
        """Return the recorded outputs of an image; float32.

        Raises:
            SampleError: an array in the file is damaged, or an output is missing.
        """
        # The only output may be stored under the image's name alone.
        alone = len(names) == 1 and self._key(item) in self._arrays.files
        return {name: self.array(item, None if alone else name) for name in names}

    def array(self, item: Item, output: str | None = None) -> Array:
        """Return a recorded input, the only output, or one of several outputs of an image; float32.

        Raises:
            SampleError: the array is damaged, or is not in the file.
        """
        key = self._key(item) if output is None else f"{self._key(item)}/{output}"
        found = self._read(item, key)
        if found.dtype.kind != "f":
            raise SampleError(f"{self.spec.file}: {item.name}: expected floats, got {found.dtype}")
        return np.ascontiguousarray(found, np.float32)

    def frame(self, item: Item) -> dict[str, Array]:
        """Return the recorded pixels of an image.

        Returns:
            ``rgb``: (H, W, 3) uint8, or float32 where the board's resizer does not round; or
            ``y``, ``u`` and ``v``: (h, w) uint8 each.

        Raises:
            SampleError: an array is damaged, missing, or no picture.
        """
        key = self._key(item)
        alone = key in self._arrays.files
        names = {"rgb": key} if alone else {plane: f"{key}/{plane}" for plane in PLANES}
        found = {name: self._read(item, place) for name, place in names.items()}
        for name, array in found.items():
            fits = array.ndim == 3 and array.shape[2] == 3 if alone else array.ndim == 2
            if not fits or array.dtype not in ((np.uint8, np.float32) if alone else (np.uint8,)):
                raise SampleError(
                    f"{self.spec.file}: {item.name}: {name}: expected uint8 "
                    f"{'(H, W, 3)' if alone else '(h, w)'}, got {array.dtype} {array.shape}"
                )
        return found

    def _read(self, item: Item, key: str) -> Array:
        if key not in self._arrays.files:
            raise SampleError(f"{self.spec.file}: {item.name}: there is no array {key!r}")
        try:
            with NPY:
                found: Array = self._arrays[key]
        except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise SampleError(f"{self.spec.file}: {item.name}: {error}") from error
        return found

    def prediction(self, item: Item) -> tuple[int, float, float]:
        """Return class index, score and margin; NaN where they were not recorded."""
        row = self._rows[self._key(item)]
        prediction = row["prediction"]
        if not isinstance(prediction, int) or prediction < 0:
            raise SampleError(f"{self.spec.file}: {prediction!r} is not a class index")
        return prediction, _float(row.get("score")), _float(row.get("margin"))

    @cached_property
    def stages(self) -> tuple[str, ...]:
        """The stages whose latency was recorded, in pipeline order.

        Raises:
            DataError: a column belongs to no stage, or to a stage that runs here.
        """
        steps = device_steps()
        taken = steps[: steps.index("infer")] if self.spec.kind == "tensors" else steps
        if self.spec.after is not None:
            last = "decode" if self.spec.after == "decode" else "resize"
            taken = steps[: steps.index(last) + 1]
        rows = self._latencies
        columns = set(next(iter(rows.values()), ()))
        known = {"image", "prediction", "score", "margin", *(f"{s}_ns" for s in taken)}
        if odd := sorted(columns - known):
            raise DataError(
                f"{self.path}: column {odd[0]!r} of its latencies is none of "
                f"{', '.join(f'{stage}_ns' for stage in taken)} (nanoseconds)"
            )
        return tuple(stage for stage in taken if f"{stage}_ns" in columns)

    def latency(self, item: Item, stage: str) -> int:
        """Return a recorded latency in nanoseconds.

        Raises:
            SampleError: the table has none for this image.
        """
        value = self._latencies.get(self._key(item), {}).get(f"{stage}_ns")
        if not isinstance(value, int) or value < 0:
            raise SampleError(f"{stage}_ns: {value!r} is not a latency in nanoseconds")
        return value

    def holds(self, item: Item, outputs: Sequence[str] = ()) -> bool:
        """Whether an image was recorded, with the network's outputs that are needed."""
        key, kind, known = self._key(item), self.spec.kind, self._known
        if key in known and (kind != "outputs" or len(outputs) == 1):
            return True
        parts = {"frames": PLANES, "outputs": outputs}.get(kind)
        return parts is not None and all(f"{key}/{name}" in known for name in parts)

    @cached_property
    def _known(self) -> set[str]:
        return set(self._rows if self.spec.kind == "predictions" else self._arrays.files)

    @cached_property
    def _arrays(self) -> Any:
        file = self.files["file"]
        try:
            found = np.load(file, allow_pickle=False)
        except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise DataError(f"{file}: not an NPZ file of plain arrays") from error
        if not isinstance(found, np.lib.npyio.NpzFile):
            raise DataError(f"{file}: a single array; expected an NPZ file with one for each image")
        return found

    @cached_property
    def _rows(self) -> Rows:
        return _table(self.files["file"], ("image", "prediction"))

    @cached_property
    def _latencies(self) -> Rows:
        if "latency" in self.files:
            return _table(self.files["latency"], ("image",))
        return self._rows if self.spec.kind == "predictions" else {}

    def _key(self, item: Item) -> str:
        return item.name if self.spec.match == "name" else (item.sha256 or sha256(item.path) or "")


def load_recording(path: Path) -> Recording:
    """Load a recording's manifest.

    Raises:
        DataError: it is missing or malformed, or names a file that is missing.
    """
    try:
        document = read(path)
        spec = messages.checked(RecordingSpec, document.values, document.where, "recording")
    except ProfileError as error:
        raise DataError(str(error)) from error
    named = {"file": spec.file, "latency": spec.latency}
    files = {key: path.parent / name for key, name in named.items() if name is not None}
    for key, place in files.items():
        try:
            check_file(place, LARGE)
        except FileNotFoundError as error:
            raise DataError(f"{path}: {key}: there is no file {place}") from error
        except OSError as error:
            raise DataError(f"{path}: {key}: {shortened(str(place))}: {error.strerror}") from error
    return Recording(path, spec, files)


def _table(file: Path, columns: Sequence[str]) -> Rows:
    import pyarrow as pa
    from pyarrow import csv, parquet

    try:
        table = parquet.read_table(file) if file.suffix == ".parquet" else csv.read_csv(file)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{file}: not a table: {' '.join(str(error).split())}") from error
    missing = [name for name in columns if name not in table.column_names]
    if missing:
        has = ", ".join(table.column_names)
        raise DataError(f"{file}: no column {' and '.join(missing)}; it has {has}")
    found: dict[str, Mapping[str, object]] = {}
    for row in table.to_pylist():
        if found.setdefault(str(row["image"]), row) is not row:
            raise DataError(f"{file}: image {str(row['image'])!r} has more than one row")
    return found


def _float(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else math.nan
