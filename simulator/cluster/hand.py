"""What runs in a worker of the cluster: it opens a plan, and takes samples down it."""

from __future__ import annotations

import os
import pickle
import shutil
import socket
import tempfile
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import simulator.errors
from simulator import machine, registry
from simulator.closing import Closing
from simulator.cluster.connection import RAY
from simulator.cluster.parcel import Content, Parcel, missing, store, unpack
from simulator.contract.recipe import Context
from simulator.data.folder import Item
from simulator.errors import SampleError, UserError
from simulator.modalities.modality import Modality
from simulator.pipeline.executor import outcomes_of
from simulator.pipeline.inference import Answered
from simulator.pipeline.plan import Plan
from simulator.pipeline.runtimes import RuntimePool
from simulator.pipeline.walk import Opened, StageError, Walk, Watch

WALKS = 4
"""Samples whose values are kept, for those who ask for more of them."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a worker is to do with every sample.

    Attributes:
        plan: the arms that run on this worker, and every aside.
        modality: reads the samples.
        watch: called where the worker has all arms; None without one.
        apart: whether other arms run on other workers, so that the answers are judged elsewhere.
        versions: of the libraries that the arms use, by backend, where the plan was made.
    """

    plan: Plan
    modality: Modality
    watch: Watch | None
    apart: bool
    versions: Mapping[str, Mapping[str, str | None]]


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample on its way to a worker.

    Attributes:
        item: the sample.
        size: bytes of its file where it was listed; None: it could not be read there.
        data: these bytes, where the worker cannot read the file; else None.
    """

    item: Item
    size: int | None
    data: bytes | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """Where a worker runs.

    Attributes:
        host: the name of the machine.
        node: Ray's name of the node.
        processor: the model.
    """

    host: str
    node: str
    processor: str


@dataclass(frozen=True, slots=True)
class Raw:
    """The answers of some arms for a sample, with the times of their stages in ns."""

    answers: tuple[Answered, ...]
    times: tuple[dict[str, int], ...]


@dataclass(frozen=True, slots=True)
class Stopped:
    """A stage failed on a sample: which one, and why."""

    stage: str
    reason: str

    def error(self) -> StageError:
        """Return the error to raise in the driver."""
        return StageError(self.stage, self.reason)


@dataclass(frozen=True, slots=True)
class Failed:
    """A user's error, as text: the class of :mod:`simulator.errors`, and the message."""

    kind: str
    message: str

    def error(self, where: str) -> UserError:
        """Return the error to raise in the driver."""
        found = getattr(simulator.errors, self.kind, UserError)
        lines = "\n".join(f"{line} (on {where})" for line in self.message.splitlines())
        return found([lines]) if self.kind == "ProfileError" else found(lines)


@dataclass(frozen=True, slots=True)
class Lacking:
    """The worker cannot read the file of a sample."""


class Hand(Closing):
    """One worker; each of its calls returns a :class:`Failed` in place of a user's error.

    Args:
        isolate: which files are decoded in workers, see :mod:`simulator.pipeline.isolation`.
    """

    def __init__(self, isolate: str) -> None:
        self._runtimes = RuntimePool(isolate=isolate)
        self._work: Work | None = None
        self._opened: Opened | None = None
        self._walks: OrderedDict[str, Walk] = OrderedDict()

    def where(self) -> Node:
        """Return where this worker runs."""
        node = RAY.get_runtime_context().get_node_id()
        return Node(socket.gethostname(), node, str(machine.processor()["model"]))

    def missing(self, parcel: Parcel) -> list[str]:
        """Return the files of a parcel that this machine lacks."""
        return missing(parcel)

    def open(self, parcel: Parcel, sent: Mapping[str, Content]) -> Failed | None:
        """Open the plan of a parcel, once its files are here.

        Args:
            parcel: of a :class:`Work`.
            sent: the content of the files that this machine lacks, by digest.
        """
        try:
            for unit in parcel.units:
                if unit.digest in sent:
                    store(unit, sent[unit.digest])
            work: Work = unpack(parcel)
            _refuse_versions(work.versions)
            self._walks.clear()
            self._work, self._opened = work, Opened(work.plan, self._runtimes)
        except UserError as error:
            return Failed(type(error).__name__, str(error))
        return None

    def run(self, samples: Sequence[Sample]) -> tuple[bytes, float] | list[int] | Failed:
        """Take samples down the plan.

        Returns:
            Pickled, for each sample a :class:`Stopped`; or a :class:`Raw`; or the outcomes and what
            the watch returned; and the seconds. Or the positions of samples whose files this worker
            cannot read.
        """
        start = time.perf_counter()
        lacking = [at for at, one in enumerate(samples) if one.data is None and not _is_here(one)]
        if lacking:
            return lacking
        try:
            found = [self._one(sample) for sample in samples]
        except UserError as error:
            return Failed(type(error).__name__, str(error))
        data = pickle.dumps(found, protocol=pickle.HIGHEST_PROTOCOL)
        return data, time.perf_counter() - start

    def again(self, sample: Sample) -> Any:
        """Take one sample down the plan; see :meth:`run` for what is returned."""
        if sample.data is None and not _is_here(sample):
            return Lacking()
        try:
            return self._one(sample)
        except UserError as error:
            return Failed(type(error).__name__, str(error))

    def aside(self, sample: Sample, name: str) -> Any:
        """Return the value at the end of one of the plan's asides."""
        if sample.data is None and not _is_here(sample):
            return Lacking()
        assert self._opened is not None
        try:
            walk = self._walks.get(sample.item.name)
            if walk is None:
                walk = Walk(self._opened, self._context(sample))
                self._walks[sample.item.name] = walk
                if len(self._walks) > WALKS:
                    self._walks.popitem(last=False)
            return walk.aside(name)
        except StageError as error:
            return Stopped(error.stage, error.reason)
        except UserError as error:
            return Failed(type(error).__name__, str(error))

    def close(self) -> None:
        """Close every runtime."""
        self._runtimes.close()

    def _one(self, sample: Sample) -> Any:
        work, opened = self._work, self._opened
        assert work is not None and opened is not None
        try:
            walk = opened.walk(self._context(sample))
            if work.apart:
                times = tuple(walk.times(path) for path in work.plan.paths)
                return Raw(tuple(walk.answers()), times)
            outcomes = outcomes_of(work.plan, walk)
            return outcomes, work.watch(walk, outcomes) if work.watch else None
        except StageError as error:
            return Stopped(error.stage, error.reason)

    def _context(self, sample: Sample) -> Context:
        assert self._work is not None
        item, modality = sample.item, self._work.modality
        try:
            if sample.data is None:
                source = modality.read(item.name, item.path)
            else:
                with _Sent(sample) as path:
                    source = modality.read(item.name, path)
        except SampleError as error:
            raise StageError("read", error) from error
        return Context(item.name, source, item.truth, item)


class _Sent:
    """The file of a sample that was sent, while it is read."""

    def __init__(self, sample: Sample) -> None:
        self._sample = sample

    def __enter__(self) -> Path:
        assert self._sample.data is not None
        self._folder = tempfile.mkdtemp(prefix="simulate-sample-")
        path = Path(self._folder) / self._sample.item.path.name
        path.write_bytes(self._sample.data)
        return path

    def __exit__(self, *error: object) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


def _is_here(sample: Sample) -> bool:
    """Whether a file is on this machine as it was listed; one that nobody can read is not sent."""
    if sample.size is None:
        return True
    try:
        return os.stat(sample.item.path).st_size == sample.size
    except OSError:
        return False


def _refuse_versions(wanted: Mapping[str, Mapping[str, str | None]]) -> None:
    """Refuse other versions of libraries than where the plan was made.

    Raises:
        UserError: one differs; a library that is not there is left to the backend itself.
    """
    for name, versions in wanted.items():
        here = registry.versions(registry.backend(name))
        for library, version in versions.items():
            if version is not None and here.get(library) not in (None, version):
                raise UserError(
                    f"{library} is {here[library]}, and {version} where the run was started; "
                    "install the same version on every node"
                )


def sample_of(item: Item) -> Sample:
    """Return a sample that is taken from shared storage."""
    try:
        return Sample(item, os.stat(item.path).st_size)
    except OSError:
        return Sample(item, None)


def with_data(sample: Sample) -> Sample:
    """Return a sample with the bytes of its file."""
    try:
        return replace(sample, data=sample.item.path.read_bytes())
    except OSError:  # the worker says why it cannot be read
        return replace(sample, size=None)
