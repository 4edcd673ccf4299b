"""Files of a folder, hostile ones too, through every decoder, each in a process of its own."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from simulator import registry
from simulator.contract import Array, Backend, Encoded, Stage
from simulator.contract.encoded import read_image
from simulator.contract.image_formats import format_of, suffixes
from simulator.contract.stage import STAGES
from simulator.errors import MissingLibrary, SampleError, SimulatorError, one_line
from simulator.testing.values import CannotMake, values
from simulator.worker import remote
from simulator.worker.client import Died

_HEAD = 512
"""Bytes by which a file without a suffix of ours is known."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a decoder made of a file.

    Attributes:
        kind: ``read``; ``refused``, which costs a run this sample; ``died`` and ``hung``, which do
            so behind ``--isolate`` only; ``broken``, an error that ends a run.
        reason: why it was not read.
        mean: levels in the mean from the first decoder that read it; None for that one.
        most: likewise the most.
        mib: memory that the process held at most, in MiB.
    """

    kind: Literal["read", "refused", "died", "hung", "broken"]
    reason: str = ""
    mean: float | None = None
    most: int | None = None
    mib: int = 0


@dataclass(frozen=True, slots=True)
class Tried:
    """A file: its format, or why it is refused before any decoder; and each decoder's outcome."""

    name: str
    format: str | None
    reason: str
    outcomes: dict[str, Outcome]


def decoders(names: Sequence[str] = ()) -> tuple[list[Backend], dict[str, str]]:
    """Return the decoders that run here, the reference first, and why others do not.

    Args:
        names: of backends; all by default.
    """
    able, unable = [], {}
    found = [registry.backend(name) for name in names] or registry.backends()
    for backend in found:
        if not backend.of(Stage.DECODE):
            continue
        try:
            options_of(backend)
            registry.check_installed(backend, "needs")
            if backend.device is not None:
                backend.device()
        except (MissingLibrary, CannotMake) as error:
            unable[backend.name] = str(error)
            continue
        able.append(backend)
    first = registry.reference(Stage.DECODE).name
    return sorted(able, key=lambda one: one.name != first), unable


def tried(folder: Path, able: Sequence[Backend], seconds: float, mib: int) -> Iterator[Tried]:
    """Give every image file below a folder to every decoder that reads its format.

    Args:
        folder: files are known by their suffix, or by their first bytes.
        able: the decoders, each with the first value of its fields, ``exif: ignore`` if it can.
        seconds: after which a decoder is ended.
        mib: of data that a decoder may hold; more is refused by the system.
    """
    with ExitStack() as kept:
        readers = [_Reader(backend, seconds, mib, kept) for backend in able]
        for path in sorted(one for one in folder.rglob("*") if one.is_file()):
            if path.suffix.lower() not in suffixes():
                with path.open("rb") as file:
                    known = format_of(file.read(_HEAD))
                if known is None or known.completed:  # by its suffix only: its header lies beside
                    continue
            name = str(path.relative_to(folder))
            try:
                image = read_image(name, path)
            except SampleError as error:
                yield Tried(name, None, str(error), {})
                continue
            yield Tried(name, image.format, "", _outcomes(image, readers))


def _outcomes(image: Encoded, readers: Sequence[_Reader]) -> dict[str, Outcome]:
    first: Array | None = None
    found = {}
    for reader in readers:
        if image.format not in reader.decoder.reads:
            continue
        outcome, pixels = reader.read(image)
        if pixels is not None and first is not None:
            off = np.abs(pixels.astype(np.int32) - first) if pixels.shape == first.shape else 255
            outcome = Outcome("read", "", float(np.mean(off)), int(np.max(off)), outcome.mib)
        first = pixels if first is None else first
        found[reader.name] = outcome
    return found


class _Reader:
    """A decoder in a worker of its own, which starts again where a file has ended it."""

    def __init__(self, backend: Backend, seconds: float, mib: int, kept: ExitStack) -> None:
        self.name, self._seconds, self._bytes = backend.name, seconds, mib * 2**20
        self._worker = registry.hire(backend, seconds)
        kept.callback(registry.dismiss, self._worker)
        offer = backend.of(Stage.DECODE)[0]
        spec, options = STAGES[Stage.DECODE], options_of(backend)
        self.decoder = remote.make(self._worker, spec, 0, offer.make, options)

    def read(self, image: Encoded) -> tuple[Outcome, Array | None]:
        begin = time.monotonic()
        try:
            self._worker.call("held")  # starts it
            begin = time.monotonic()
            resource.prlimit(self._worker.pid, resource.RLIMIT_DATA, (self._bytes, self._bytes))
            Path(f"/proc/{self._worker.pid}/clear_refs").write_text("5")
            raw = self.decoder.gives_raw
            pixels = self.decoder.raw(image).plane if raw else self.decoder.rgb(image).rgb
        except Died as error:
            slow = time.monotonic() - begin >= self._seconds
            return Outcome("hung" if slow else "died", str(error)), None
        except SampleError as error:
            return Outcome("refused", str(error), mib=_most(self._worker.pid)), None
        except SimulatorError as error:
            return Outcome("broken", one_line(error), mib=_most(self._worker.pid)), None
        return Outcome("read", mib=_most(self._worker.pid)), np.array(pixels)


def options_of(backend: Backend) -> dict[str, Any]:
    """Return the first value of each field of a decoder; ``exif: ignore`` if it can.

    Raises:
        CannotMake: a field is a file of the user's own.
    """
    offer = backend.of(Stage.DECODE)[0]
    tried = {name: values(admits) for name, admits in offer.options.items()}
    if empty := [name for name, some in tried.items() if not some]:
        raise CannotMake(f"needs {', '.join(empty)}: a file of your own")
    exif = "ignore" if "ignore" in tried["exif"] else tried["exif"][0]
    return {**{name: some[0] for name, some in tried.items()}, "exif": exif}


def _most(pid: int) -> int:
    """MiB that a process has held at most since its mark was set back."""
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) >> 10 for line in lines if line.startswith("VmHWM"))
    return 0
