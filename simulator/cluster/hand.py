"""What runs in a worker of the cluster: it opens a plan, and takes samples down it."""

from __future__ import annotations

import pickle
import socket
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import simulator.errors
from simulator import machine, registry
from simulator.cluster.connection import RAY
from simulator.cluster.parcel import Content, Parcel, missing, store, unpack
from simulator.contract.recipe import Context
from simulator.data.folder import Item
from simulator.errors import MissingLibrary, UserError, one_line
from simulator.files import LARGE
from simulator.modalities.modality import Modality
from simulator.pipeline.executor import outcomes_of
from simulator.pipeline.inference import Answered
from simulator.pipeline.look import look
from simulator.pipeline.plan import Plan
from simulator.pipeline.runtimes import RuntimePool
from simulator.pipeline.walk import Opened, StageError, Walk, Watch, context_of
from simulator.places import InMemory, Place, Where, size_of

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
        size: bytes of its file; 0 if it is no file of its own; None: the driver cannot read it.
        data: its bytes, where the worker cannot read them; else None.
    """

    item: Item
    size: int | None
    data: InMemory | None = None


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


class Hand:
    """One worker; each of its calls returns a :class:`Failed` in place of a user's error.

    Args:
        isolate: which files are decoded in workers, see :mod:`simulator.pipeline.isolation`.
    """

    def __init__(self, isolate: str) -> None:
        self._isolate = isolate
        self._runtimes = RuntimePool(isolate=isolate)
        self._work: Work | None = None
        self._opened: Opened | None = None
        self._walks: OrderedDict[str, Walk] = OrderedDict()

    def where(self) -> Node:
        """Return where this worker runs."""
        node = RAY.get_runtime_context().get_node_id()
        return Node(socket.gethostname(), node, str(machine.processor()["model"]))

    def look(self, parcel: Parcel, sent: Mapping[str, Content]) -> Any:
        """Open a runtime: a parcel of its choice, its artifact and the card's inputs."""
        try:
            _store(parcel, sent)
            choice, artifact, feeds, size = unpack(parcel)
            return look(self._runtimes, choice, artifact, feeds, size)
        except UserError as error:
            return Failed(type(error).__name__, str(error))
        except ModuleNotFoundError as error:
            return _other_packages(error)

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
            _store(parcel, sent)
            work: Work = unpack(parcel)
            _refuse_versions(work.versions)
            self._walks.clear()
            self._work, self._opened = work, Opened(work.plan, self._runtimes)
        except UserError as error:
            return Failed(type(error).__name__, str(error))
        except ModuleNotFoundError as error:
            return _other_packages(error)
        return None

    def run(self, samples: Sequence[Sample]) -> tuple[bytes, float] | Lacking | Failed:
        """Take samples down the plan.

        Returns:
            Pickled, for each sample a :class:`Stopped`; or a :class:`Raw`; or the outcomes and what
            the watch returned; and the seconds. Or that a sample is not to be seen from here.
        """
        start = time.perf_counter()
        places = [_where(sample) for sample in samples]
        if None in places:
            return Lacking()
        try:
            found = [self._one(one, place) for one, place in zip(samples, places, strict=True)]
        except UserError as error:
            return Failed(type(error).__name__, str(error))
        data = pickle.dumps(found, protocol=pickle.HIGHEST_PROTOCOL)
        return data, time.perf_counter() - start

    def again(self, sample: Sample) -> Any:
        """Take one sample down the plan; see :meth:`run` for what is returned."""
        place = _where(sample)
        if place is None:
            return Lacking()
        try:
            return self._one(sample, place)
        except UserError as error:
            return Failed(type(error).__name__, str(error))

    def aside(self, sample: Sample, name: str) -> Any:
        """Return the value at the end of one of the plan's asides."""
        place = _where(sample)
        if place is None:
            return Lacking()
        assert self._opened is not None
        try:
            walk = self._walks.get(sample.item.name)
            if walk is None:
                walk = Walk(self._opened, self._context(sample.item, place))
                self._walks[sample.item.name] = walk
                if len(self._walks) > WALKS:
                    self._walks.popitem(last=False)
            return walk.aside(name)
        except StageError as error:
            return Stopped(error.stage, error.reason)
        except UserError as error:
            return Failed(type(error).__name__, str(error))

    def rest(self) -> None:
        """Forget the plan, and close every runtime."""
        self._work = self._opened = None
        self._walks.clear()
        self._runtimes.close()
        self._runtimes = RuntimePool(isolate=self._isolate)

    def _one(self, sample: Sample, place: Where | None) -> Any:
        work, opened = self._work, self._opened
        assert work is not None and opened is not None and place is not None
        try:
            walk = opened.walk(self._context(sample.item, place))
            if work.apart:
                times = tuple(walk.times(path) for path in work.plan.paths)
                return Raw(tuple(walk.answers()), times)
            outcomes = outcomes_of(work.plan, walk)
            return outcomes, work.watch(walk, outcomes) if work.watch else None
        except StageError as error:
            return Stopped(error.stage, error.reason)

    def _context(self, item: Item, place: Where) -> Context:
        assert self._work is not None
        return context_of(self._work.modality, item, place)


def _where(sample: Sample) -> Where | None:
    """Where this worker reads a sample; None if it cannot. One that nobody can read is not sent."""
    place = sample.item.path
    if sample.data is not None or sample.size is None:
        return sample.data or place
    try:
        if isinstance(place, Place):
            return InMemory.of(place, LARGE)
        return place if place.stat().st_size == sample.size else None
    except OSError:
        return None


def _other_packages(error: ModuleNotFoundError) -> Failed:
    words = f"{one_line(error)}; install the same packages on every node"
    return Failed(MissingLibrary.__name__, words)


def _store(parcel: Parcel, sent: Mapping[str, Content]) -> None:
    for unit in parcel.units:
        if unit.digest in sent:
            store(unit, sent[unit.digest])


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
    """Return a sample that the worker reads where it is."""
    place = item.path
    return Sample(item, 0 if isinstance(place, Place) else size_of(place))


def with_data(sample: Sample) -> Sample:
    """Return a sample with its bytes."""
    try:
        return replace(sample, data=InMemory.of(sample.item.path, LARGE))
    except OSError:  # the worker says why it cannot be read
        return replace(sample, size=None)
