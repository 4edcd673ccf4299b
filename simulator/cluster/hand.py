"""What runs in a worker of the cluster: it opens a plan, and takes samples down it."""

from __future__ import annotations

import pickle
import platform
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from simulator import machine, places, registry
from simulator.cluster.connection import RAY
from simulator.cluster.messages import (
    Failed,
    Judged,
    Lacking,
    Node,
    Raw,
    Sample,
    Stopped,
    Versions,
    Work,
)
from simulator.cluster.parcel import Content, Parcel, missing, store, unpack
from simulator.contract.recipe import Context
from simulator.data.masks import MaskTruth
from simulator.errors import MissingLibrary, UserError, one_line
from simulator.files import LARGE
from simulator.pipeline.batched import Batched
from simulator.pipeline.executor import outcomes_of, reasons
from simulator.pipeline.look import Looked, look
from simulator.pipeline.plan import Plan
from simulator.pipeline.runtimes import RuntimePool
from simulator.pipeline.walk import Opened, StageError, Walk, context_of
from simulator.places import InMemory, Place, Where

WALKS = 4
"""Samples whose values are kept, for those who ask for more of them."""
ASIDE = "aside"
"""The group of calls, with a thread of their own, that do not wait for the samples before them."""
P = ParamSpec("P")
T = TypeVar("T")


class _UnseenError(Exception):
    """A sample cannot be read where the worker runs."""


def _answered(
    call: Callable[Concatenate[Hand, P], T],
) -> Callable[Concatenate[Hand, P], T | Failed | Stopped | Lacking]:
    """Let a method of a worker return what it raises for the driver."""

    @wraps(call)
    def answer(self: Hand, /, *given: P.args, **named: P.kwargs) -> T | Failed | Stopped | Lacking:
        try:
            return call(self, *given, **named)
        except _UnseenError:
            return Lacking()
        except StageError as error:
            return Stopped(error.stage, error.reason)
        except UserError as error:
            return Failed(type(error).__name__, str(error))
        except OSError as error:
            where = f"{error.filename}: " if error.filename is not None else ""
            return Failed(UserError.__name__, f"{where}{error.strerror or one_line(error)}")
        except ModuleNotFoundError as error:
            words = f"{one_line(error)}; install the same packages on every node"
            return Failed(MissingLibrary.__name__, words)

    return answer


def _beside(call: Callable[P, T]) -> Callable[P, T]:
    """Let a method run beside samples; what ``ray.method`` does, without importing it here."""
    vars(call)["__ray_concurrency_group__"] = ASIDE
    return call


class Hand:
    """One worker. Its methods return a :class:`Failed` in place of a user's error.

    Those that take samples return a :class:`Lacking` where one cannot be read from here.

    Args:
        isolate: which files are decoded in workers, see :mod:`simulator.pipeline.isolation`.
    """

    def __init__(self, isolate: str) -> None:
        self._isolate = isolate
        self._runtimes = RuntimePool(isolate=isolate)
        self._work: Work | None = None
        self._opened: Opened | None = None
        self._walks: OrderedDict[str, Walk] = OrderedDict()
        self._sent = Sent()

    def where(self) -> Node:
        """Return where this worker runs."""
        node = RAY.get_runtime_context().get_node_id()
        model = str(machine.processor()["model"])
        return Node(socket.gethostname(), node, model, platform.python_version())

    @_answered
    def look(self, parcel: Parcel, sent: Mapping[str, Content]) -> Looked:
        """Open a runtime: a parcel of its choice, its artifact and the card's inputs."""
        _store(parcel, sent)
        choice, artifact, feeds, size = unpack(parcel)
        return look(self._runtimes, choice, artifact, feeds, size)

    def missing(self, parcel: Parcel) -> list[str]:
        """Return the files of a parcel that this machine lacks."""
        return missing(parcel)

    @_answered
    def open(self, parcel: Parcel, lacking: Sequence[str], *sent: Content) -> Versions:
        """Open the plan of a parcel, once its files are here.

        Args:
            parcel: of a :class:`Work`.
            lacking: the digests of the files that this machine lacks.
            sent: their content.

        Returns:
            The versions of the libraries that its arms use here.
        """
        _store(parcel, dict(zip(lacking, sent, strict=True)))
        work: Work = unpack(parcel)
        found = _versions(work.versions)
        self._walks.clear()
        self._work = work
        self._opened = Opened(_with_sent(work.plan, self._sent), self._runtimes)
        return found

    @_answered
    def run(self, samples: Sequence[Sample], mates: Sequence[Sample]) -> tuple[bytes, float]:
        """Take samples down the plan.

        Args:
            samples: these.
            mates: others that are in batches with them.

        Returns:
            Pickled, for each sample a :class:`Stopped`, a :class:`Raw` or a :class:`Judged`; and
            the seconds.
        """
        start = time.perf_counter()
        found = self._found(samples, mates)
        done = [self._one(sample, place) for sample, place in zip(samples, found, strict=True)]
        data = pickle.dumps(done, protocol=pickle.HIGHEST_PROTOCOL)
        return data, time.perf_counter() - start

    @_beside
    @_answered
    def again(self, sample: Sample, mates: Sequence[Sample]) -> Any:
        """Take one sample down the plan; see :meth:`run` for what is returned."""
        return self._one(sample, *self._found([sample], mates))

    @_beside
    @_answered
    def aside(self, sample: Sample, mates: Sequence[Sample], name: str) -> Any:
        """Return the value at the end of one of the plan's asides."""
        (place,) = self._found([sample], mates)
        assert self._opened is not None
        walk = self._walks.get(sample.item.name)
        if walk is None:
            walk = Walk(self._opened, self._context(sample, place))
            self._walks[sample.item.name] = walk
            if len(self._walks) > WALKS:
                self._walks.popitem(last=False)
        return walk.aside(name)

    def rest(self) -> None:
        """Forget the plan, and close every runtime."""
        self._work = self._opened = None
        self._walks.clear()
        self._runtimes.close()
        self._runtimes = RuntimePool(isolate=self._isolate)

    def _one(self, sample: Sample, place: Where) -> Any:
        work, opened = self._work, self._opened
        assert work is not None and opened is not None
        try:
            walk = opened.walk(self._context(sample, place))
            if work.apart:
                times = tuple(walk.times(path) for path in work.plan.paths)
                failed = {at: Stopped(one.stage, one.reason) for at, one in walk.failed.items()}
                return Raw(tuple(walk.answers()), times, failed)
            outcomes = outcomes_of(walk)
            seen = work.watch(walk, outcomes) if work.watch else None
            return Judged(outcomes, reasons(walk), seen)
        except StageError as error:
            return Stopped(error.stage, error.reason)

    def _found(self, samples: Sequence[Sample], mates: Sequence[Sample]) -> list[Where]:
        """Where samples are read; what was sent is there for their batches too, during this call.

        Raises:
            _UnseenError: one of them is not to be seen from here.
        """
        found = [_where(sample) for sample in (*samples, *mates)]
        every = zip((*samples, *mates), found, strict=True)
        self._sent.data = {
            sample.item.name: place for sample, place in every if isinstance(place, InMemory)
        }
        return found[: len(samples)]

    def _context(self, sample: Sample, place: Where) -> Context:
        assert self._work is not None
        return context_of(self._work.modality, sample.item, place)


class Sent(threading.local):
    """The bytes that came with a call, by sample; each call has a thread.

    Attributes:
        data: see above.
    """

    def __init__(self) -> None:
        self.data: dict[str, InMemory] = {}


@dataclass(frozen=True, slots=True)
class OrSent(Place):
    """A sample of a batch: what was sent of it, else what is there.

    Attributes:
        name: of the sample.
        there: where it is.
        sent: what came with the call.
    """

    name: str
    there: Where
    sent: Sent

    @property
    def suffix(self) -> str:
        """The ending of the file that is there."""
        return self.there.suffix

    def read(self, most: int) -> bytes:
        """Return the bytes."""
        return places.read(self.sent.data.get(self.name, self.there), most)

    def __str__(self) -> str:
        return str(self.there)


def _with_sent(plan: Plan, sent: Sent) -> Plan:
    """A plan whose batches read their samples from what was sent, where it was."""
    nodes = tuple(
        replace(node, recipe=_reading(node.recipe, sent))
        if isinstance(node.recipe, Batched)
        else node
        for node in plan.nodes
    )
    return replace(plan, nodes=nodes)


def _reading(recipe: Batched, sent: Sent) -> Batched:
    items = tuple(replace(item, path=OrSent(item.name, item.path, sent)) for item in recipe.items)
    return replace(recipe, items=items)


def _where(sample: Sample) -> Where:
    """Where this worker reads a sample. One that nobody can read is not sent.

    Raises:
        _UnseenError: it cannot.
    """
    place = sample.item.path
    if sample.data is not None or sample.size is None:
        return sample.data or place
    if isinstance(sample.item.truth, MaskTruth) and not sample.item.truth.is_here():
        raise _UnseenError
    try:
        if isinstance(place, Place):
            return InMemory.of(place, LARGE)
        if place.stat().st_size == sample.size:
            return place
    except OSError:
        pass
    raise _UnseenError


def _store(parcel: Parcel, sent: Mapping[str, Content]) -> None:
    for unit in parcel.units:
        if unit.digest in sent:
            store(unit, sent[unit.digest])


def _versions(wanted: Mapping[str, Mapping[str, str | None]]) -> Versions:
    """Return the versions of libraries here.

    Args:
        wanted: those where the plan was made, by backend.

    Raises:
        UserError: one differs; a library that is not there is left to the backend itself.
    """
    found: dict[str, str | None] = {}
    for name, versions in wanted.items():
        here = registry.versions(registry.backend(name))
        found |= here
        for library, version in versions.items():
            if version is not None and here.get(library) not in (None, version):
                raise UserError(
                    f"{library} is {here[library]}, and {version} where the run was started; "
                    "install the same version on every node"
                )
    return tuple(sorted(found.items()))
