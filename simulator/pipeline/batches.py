"""Answers of a network that adapts, batch after batch, kept in the cache.

Every batch is kept as soon as it is answered, with the state of the network after it, so that what
is interrupted goes on there. A folder has for each batch ``00000.json``, ``00000.state`` (of the
last batch only, until all are answered) and ``00000-0.npy``, one array for each output.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from simulator.cache import entry
from simulator.cache import folder as cache_folder
from simulator.contract import Adapter, Array
from simulator.errors import ModelError, RunError
from simulator.files import NPY, TEXT, read_file, write_whole

OPEN = 16
"""Arrays that are open at a time; each holds a file descriptor."""


@dataclass(frozen=True, slots=True)
class Given:
    """The input of one sample.

    Attributes:
        name: of the sample.
        value: (1, ...); of several inputs each, by their names.
        following: the index of the sample after it in the order of all samples.
    """

    name: str
    value: Array | Mapping[str, Array]
    following: int


@dataclass(frozen=True, slots=True)
class Kept:
    """What the network answered to a sample.

    Attributes:
        outputs: (1, ...) by their names in the file.
        ns: nanoseconds of its batch divided by the samples of the batch.
    """

    outputs: Mapping[str, Array]
    ns: int


class Answers:
    """The answers to all samples.

    Args:
        folder: that holds every batch.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._batches = _read(folder)
        self._places = {
            name: (number, row)
            for number, batch in enumerate(self._batches)
            for row, name in enumerate(batch["samples"])
        }
        self._array = lru_cache(OPEN)(lambda name: np.load(folder / name, mmap_mode="r"))

    def of(self, name: str, value: Array | Mapping[str, Array]) -> Kept:
        """Return what was answered to a sample.

        Raises:
            ModelError: *value* is not the input that was answered.
        """
        number, row = self._places.get(name, (0, -1))
        batch = self._batches[number] if row >= 0 else {}
        if row < 0 or batch["inputs"][row] != stamp(value):
            raise ModelError(
                f"{name}: its input is not the one that the network adapted to; a step before the "
                "network gives other values each time"
            )
        with NPY:
            arrays = [self._array(f"{number:05}-{at}.npy") for at in range(len(batch["outputs"]))]
        outputs = {
            output: np.array(array[row : row + 1])
            for output, array in zip(batch["outputs"], arrays, strict=True)
        }
        return Kept(outputs, batch["ns"] // len(batch["samples"]))


def arrays_of(value: Array | Mapping[str, Array]) -> list[Array]:
    """Return the arrays of an input, or of several."""
    return [value] if isinstance(value, np.ndarray) else [*value.values()]


def stamp(value: Array | Mapping[str, Array]) -> str:
    """Return the BLAKE2b of an input."""
    whole = hashlib.blake2b(digest_size=16)
    for one in arrays_of(value):
        whole.update(np.ascontiguousarray(one).data)
    return whole.hexdigest()


def answers(
    key: str, size: int, opened: Callable[[Array], Adapter], given: Callable[[int], Iterator[Given]]
) -> Answers:
    """Find the answers in the cache, or let the network answer.

    Args:
        key: the digest of everything that they depend on.
        size: samples in a batch; the last one may have fewer.
        opened: returns the network, opened for inputs like those that it gets.
        given: the samples from this one on, in order, without those that have no input.

    Raises:
        ModelError: the network cannot answer a batch.
        RunError: the cache cannot be written.
    """
    work = cache_folder() / "adapting" / key[:32]

    def make(target: Path) -> None:
        _answer(work, size, opened, given)
        for file in _records_first(work):
            if file.suffix != ".state":
                os.replace(file, target / file.name)
            else:
                file.unlink()
        work.rmdir()

    with alone(work):
        return Answers(entry(f"adapted/{key[:32]}", make))


def _records_first(work: Path) -> list[Path]:
    """The files of a folder of work; after a kill no batch counts as done without its arrays."""
    return sorted(work.iterdir(), key=lambda file: (file.suffix != ".json", file.name))


@contextmanager
def alone(work: Path) -> Iterator[None]:
    """Hold the lock of a folder of work; other processes wait for what this one makes."""
    lock = work.with_suffix(".lock")
    with ExitStack() as opened:
        try:
            work.parent.mkdir(parents=True, exist_ok=True)
            file = opened.enter_context(lock.open("w"))
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError as error:
            raise RunError(f"{lock}: cannot be written: {error.strerror or error}") from error
        yield
        lock.unlink(missing_ok=True)


def _answer(
    work: Path,
    size: int,
    opened: Callable[[Array], Adapter],
    given: Callable[[int], Iterator[Given]],
) -> None:
    """Answer the batches that are not answered yet."""
    work.mkdir(exist_ok=True)
    done = _read(work)
    number = len(done)
    samples = given(done[-1]["following"] if done else 0)
    adapter: Adapter | None = None
    while batch := list(islice(samples, size)):
        values = joined([one.value for one in batch])
        if adapter is None:
            adapter = opened(values)
            if done:
                adapter.restore(read_file(work / f"{number - 1:05}.state", TEXT))
        begun = time.perf_counter_ns()
        outputs = adapter.answer(values)
        ns = time.perf_counter_ns() - begun
        _keep(work, number, batch, outputs, ns, adapter.state())
        number += 1


def _keep(
    work: Path,
    number: int,
    batch: Sequence[Given],
    outputs: Mapping[str, Array],
    ns: int,
    state: bytes,
) -> None:
    """Write a batch; it counts when its last file, the JSON, is there."""
    for at, (name, array) in enumerate(outputs.items()):
        if len(array) != len(batch):
            raise ModelError(
                f"output {name!r} has {len(array)} rows for {len(batch)} samples; adaptation takes "
                "networks that answer each sample of a batch in a row of its own"
            )
        np.save(work / f"{number:05}-{at}.npy", array)
    write_whole(work / f"{number:05}.state", state)
    written = {
        "samples": [given.name for given in batch],
        "inputs": [stamp(given.value) for given in batch],
        "outputs": list(outputs),
        "ns": ns,
        "following": batch[-1].following,
    }
    write_whole(work / f"{number:05}.json", json.dumps(written).encode())
    (work / f"{number - 1:05}.state").unlink(missing_ok=True)


def joined(values: Sequence[Any]) -> Any:
    """Return the inputs of a batch as one array; of several inputs each, by their names.

    Raises:
        ModelError: they are not of one shape.
    """
    if not isinstance(values[0], np.ndarray):
        return {name: joined([value[name] for value in values]) for name in values[0]}
    shapes = {value.shape for value in values}
    if len(shapes) > 1:
        several = " and ".join(str(shape) for shape in sorted(shapes)[:2])
        raise ModelError(f"a batch needs inputs of one shape, got {several}; use batch: 1")
    return np.concatenate(values)


def _read(folder: Path) -> list[dict[str, Any]]:
    """What is known of each batch, in order."""
    files = (folder / f"{number:05}.json" for number in range(10**5))
    found = []
    for file in files:
        if not file.is_file():
            break
        found.append(json.loads(read_file(file, TEXT)))
    return found
