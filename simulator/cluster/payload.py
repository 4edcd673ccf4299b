"""Plans as bytes for another machine: files are named by their content, and sent where they lack.

A worker takes a file from the path that it had here, if that holds the same bytes there too, else
from its own cache, else it is sent.
"""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path, PurePath
from typing import Any

from simulator import cache
from simulator.contract.model_format import format_of
from simulator.errors import ModelError, UserError, one_line
from simulator.files import LARGE, hash_file, read_file
from simulator.model.artifact import Artifact
from simulator.pipeline.batched import Batched
from simulator.profile.implementations import Choice, again

Content = tuple[tuple[str, bytes], ...]
"""Files of one unit: names below its folder, and their bytes."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One file, with those that it needs beside it; or a folder.

    Attributes:
        digest: SHA-256 of the names and contents of its files.
        source: where it is on the machine that sends it.
        name: of the file in its folder; empty for a folder.
    """

    digest: str
    source: str
    name: str


@dataclass(frozen=True, slots=True)
class Payload:
    """A pickled value and the files that it names."""

    data: bytes
    units: tuple[Unit, ...]


def pack(value: Any) -> Payload:
    """Pickle a value for another machine.

    Raises:
        OSError: a file that it names cannot be read.
        UserError: something in it cannot be pickled.
    """
    file = io.BytesIO()
    writer = _Writer(file)
    try:
        writer.dump(value)
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        raise UserError(
            "--executor ray: a step is no plain data, so that it cannot be sent: "
            f"{one_line(error)}; use --executor local"
        ) from error
    return Payload(file.getvalue(), tuple(writer.units.values()))


def content(unit: Unit) -> Content:
    """Read the files of a unit, on the machine that sends them.

    Raises:
        OSError: one cannot be read.
        UserError: they are others than when the unit was described.
    """
    folder, files = _files(Path(unit.source))
    found = tuple((file.relative_to(folder).as_posix(), read_file(file, LARGE)) for file in files)
    if _together((name, hashlib.sha256(data).hexdigest()) for name, data in found) != unit.digest:
        raise UserError(f"{unit.source}: has changed since the run began; start it again")
    return found


def missing(payload: Payload) -> list[str]:
    """Return the digests of the units that are not on this machine."""
    return [unit.digest for unit in payload.units if _place(unit) is None]


def store(payload: Payload, digests: Sequence[str], sent: Sequence[Content]) -> None:
    """Put the files of some units of a payload into the cache of this machine."""
    units = {unit.digest: unit for unit in payload.units}
    for digest, files in zip(digests, sent, strict=True):
        cache.entry(_entry(units[digest]), partial(_write, files))


def _write(files: Content, folder: Path) -> None:
    for name, data in files:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)


def unpack(payload: Payload) -> Any:
    """Read a value back; every unit must be on this machine."""
    units = {unit.digest: unit for unit in payload.units}
    return _Reader(io.BytesIO(payload.data), units).load()


class _File:
    """Stands for a path in a pickle."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit


class _Writer(pickle.Pickler):
    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self.units: dict[str, Unit] = {}

    def persistent_id(self, value: Any) -> Any:
        return value.unit.digest if isinstance(value, _File) else None

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, Artifact) and value.format not in ("recording", "code"):
            return Artifact, (self._file(value.path), value.key, value.format)
        runs_code = isinstance(value, Choice) and getattr(value.offer.make, "runs_code", False)
        if isinstance(value, Choice) and value.files and not runs_code:
            number = value.backend.of(value.stage).index(value.offer)
            files = {name: self._file(Path(value.options[name])) for name in value.files}
            options = {**value.options, **files}
            return _choice, (
                value.stage, value.backend.name, number, options, value.facts, dict(value.files),
            )  # fmt: skip
        if isinstance(value, Batched) and value.items:  # samples are no files of the plan
            return _batched, (replace(value, items=()), pickle.dumps(value.items))
        if isinstance(value, PurePath) and Path(value).is_file():
            return Path, (self._file(Path(value)),)
        return NotImplemented

    def _file(self, path: Path) -> _File:
        unit = _unit(path)
        self.units[unit.digest] = unit
        return _File(unit)


class _Reader(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, units: Mapping[str, Unit]) -> None:
        super().__init__(file)
        self._units = units

    def persistent_load(self, digest: str) -> Path:
        found = _place(self._units[digest])
        if found is None:
            raise FileNotFoundError(f"{self._units[digest].source}: was not sent")
        return found


def _batched(step: Batched, items: bytes) -> Batched:
    return replace(step, items=pickle.loads(items))


def _choice(
    stage: str, name: str, number: int, options: dict[str, object], facts: tuple[str, ...],
    files: dict[str, str],
) -> Choice:  # fmt: skip
    """Rebuild a choice whose files are elsewhere here."""
    return again(stage, name, number, options | {k: str(options[k]) for k in files}, facts, files)


def _entry(unit: Unit) -> str:
    return f"cluster/{unit.digest[:24]}"


def _place(unit: Unit) -> Path | None:
    """Where a unit is on this machine; None if it is not."""
    source = Path(unit.source)
    try:
        if _unit(source).digest == unit.digest:
            return source
    except (OSError, ModelError):  # it is not there, or another file is
        pass
    kept = cache.found(_entry(unit))
    return kept and (kept / unit.name if unit.name else kept)


def _unit(path: Path) -> Unit:
    """Describe a file or a folder; one that did not change is read once.

    Raises:
        OSError: it cannot be read.
    """
    folder, files = _files(path)
    stamps = tuple((file, *_stamp(file)) for file in files)
    name = path.relative_to(folder).as_posix() if path != folder else ""
    return Unit(_digest(folder, stamps), str(path), name)


@lru_cache(maxsize=64)
def _digest(folder: Path, files: tuple[tuple[Path, int, int], ...]) -> str:
    return _together((file.relative_to(folder).as_posix(), hash_file(file)) for file, *_ in files)


def _together(files: Iterable[tuple[str, str]]) -> str:
    """The SHA-256 of files: of the name of each, and its own."""
    found = hashlib.sha256()
    for name, digest in files:
        found.update(f"{name}\0{digest}\0".encode())
    return found.hexdigest()


def _stamp(file: Path) -> tuple[int, int]:
    found = file.stat()
    return found.st_mtime_ns, found.st_size


def _files(path: Path) -> tuple[Path, list[Path]]:
    """The folder of a unit, and its files: a folder's, an entry's of the cache, or a model's."""
    if path.is_dir():
        return path, sorted(file for file in path.rglob("*") if file.is_file())
    root = cache.folder().resolve()
    if path.resolve().is_relative_to(root):
        return path.parent, sorted(file for file in path.parent.rglob("*") if file.is_file())
    format = format_of(path)
    return path.parent, sorted({path, *(format.files(path) if format else ())})
