"""What runs in a worker of the cluster: it takes samples down a plan, or does jobs."""

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

import simulator.errors
from simulator import machine, places, registry
from simulator.cluster.connection import RAY
from simulator.cluster.messages import (
    ArmAnswers,
    JobWork,
    Node,
    Sample,
    UnseenError,
    Versions,
    Work,
)
from simulator.cluster.payload import Content, Payload, missing, store, unpack
from simulator.contract.recipe import Context
from simulator.data.masks import MaskTruth
from simulator.errors import MissingLibrary, ProfileError, UserError, one_line
from simulator.files import LARGE
from simulator.pipeline.batched import Batched
from simulator.pipeline.executor import SampleResult, result_of
from simulator.pipeline.jobs import Do
from simulator.pipeline.look import Looked, look
from simulator.pipeline.plan import Plan
from simulator.pipeline.runtimes import RuntimePool
from simulator.pipeline.walk import Opened, StageError, Walk, context_of
from simulator.places import ByteSource, InMemory, Where

WALKS = 4
"""Samples whose values are kept, for those who ask for more of them."""
ASIDE = "aside"
"""The group of calls, with a thread of their own, that do not wait for the samples before them."""
P = ParamSpec("P")
T = TypeVar("T")


def _answered(
    call: Callable[Concatenate[WorkerActor, P], T],
) -> Callable[Concatenate[WorkerActor, P], T | Exception]:
    """Let a method of a worker return what the driver is to raise."""

    @wraps(call)
    def answer(self: WorkerActor, /, *given: P.args, **named: P.kwargs) -> T | Exception:
        try:
            return call(self, *given, **named)
        except (UnseenError, StageError) as error:
            return error
        except UserError as error:
            return _located(type(error).__name__, str(error))
        except OSError as error:
            where = f"{error.filename}: " if error.filename is not None else ""
            return _located(UserError.__name__, f"{where}{error.strerror or one_line(error)}")
        except ModuleNotFoundError as error:
            words = f"{one_line(error)}; install the same packages on every node"
            return _located(MissingLibrary.__name__, words)

    return answer


def _located(kind: str, message: str) -> UserError:
    """A user's error by its class in :mod:`simulator.errors`; each line names this machine."""
    found = getattr(simulator.errors, kind, UserError)
    lines = [f"{line} (on {socket.gethostname()})" for line in message.splitlines()]
    return ProfileError(lines) if found is ProfileError else found("\n".join(lines))


def _beside(call: Callable[P, T]) -> Callable[P, T]:
    """Let a method run beside samples; what ``ray.method`` does, without importing it here."""
    vars(call)["__ray_concurrency_group__"] = ASIDE
    return call


class WorkerActor:
    """One worker. Its methods return a user's error, and do not raise it.

    Those that take samples return an :class:`UnseenError` where one cannot be read from here.

    Args:
        isolate: which files are decoded in workers, see :mod:`simulator.pipeline.isolation`.
    """

    def __init__(self, isolate: str) -> None:
        self._isolate = isolate
        self._runtimes = RuntimePool(isolate=isolate)
        self._work: Work | JobWork | None = None
        self._opened: Opened | None = None
        self._do: Do[Any, Any] | None = None
        self._walks: OrderedDict[str, Walk] = OrderedDict()
        self._sent = Sent()

    @_answered
    def probe(self, payload: Payload, lacking: Sequence[str], *sent: Content) -> Looked:
        """Open a runtime: a payload of its choice, its artifact and the card's inputs."""
        store(payload, lacking, sent)
        choice, artifact, feeds, size = unpack(payload)
        return look(self._runtimes, choice, artifact, feeds, size)

    def missing(self, payload: Payload) -> list[str]:
        """Return the files of a payload that this machine lacks."""
        return missing(payload)

    @_answered
    def open(self, payload: Payload, lacking: Sequence[str], *sent: Content) -> Node:
        """Open the plan or the step of a payload, once its files are here.

        Args:
            payload: of a :class:`Work` or a :class:`JobWork`.
            lacking: the digests of the files that this machine lacks.
            sent: their content.

        Returns:
            Where this worker runs, with the versions of the libraries that its arms use here.
        """
        store(payload, lacking, sent)
        work: Work | JobWork = unpack(payload)
        versions = _versions(work.versions)
        self._walks.clear()
        self._work, self._opened, self._do = work, None, None
        if isinstance(work, Work):
            self._opened = Opened(_with_sent(work.plan, self._sent), self._runtimes)
        else:
            self._do = work.step.open(self._runtimes)
        node, model = RAY.get_runtime_context().get_node_id(), machine.processor()["model"]
        python = platform.python_version()
        return Node(socket.gethostname(), node, str(model), python, versions)

    @_answered
    def run(self, samples: Sequence[Sample], members: Sequence[Sample]) -> tuple[bytes, float]:
        """Take samples down the plan.

        Args:
            samples: these.
            members: others that are in batches with them.

        Returns:
            Pickled, for each sample what :meth:`again` returns; and the seconds.
        """
        start = time.perf_counter()
        found = self._found(samples, members)
        done = [self._one(sample, place) for sample, place in zip(samples, found, strict=True)]
        data = pickle.dumps(done, protocol=pickle.HIGHEST_PROTOCOL)
        return data, time.perf_counter() - start

    @_answered
    def do(self, arguments: Sequence[Any], samples: Sequence[Sample]) -> tuple[bytes, float]:
        """Do jobs.

        Args:
            arguments: of these.
            samples: those that one of them may read.

        Returns:
            Pickled, the result of each; and the seconds.
        """
        start = time.perf_counter()
        assert self._do is not None
        every = zip(samples, self._found(samples, ()), strict=True)
        places = {sample.item.name: (sample, place) for sample, place in every}
        done = [
            self._do(argument, lambda name: self._context(*places[name])) for argument in arguments
        ]
        data = pickle.dumps(done, protocol=pickle.HIGHEST_PROTOCOL)
        return data, time.perf_counter() - start

    @_beside
    @_answered
    def again(
        self, sample: Sample, members: Sequence[Sample]
    ) -> SampleResult | ArmAnswers | StageError:
        """Take one sample down the plan.

        Returns:
            Its result, or its answers where they are judged elsewhere, or why there is none.
        """
        return self._one(sample, *self._found([sample], members))

    @_beside
    @_answered
    def aside(self, sample: Sample, members: Sequence[Sample], name: str) -> Any:
        """Return the value at the end of one of the plan's asides."""
        (place,) = self._found([sample], members)
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
        self._work = self._opened = self._do = None
        self._walks.clear()
        self._runtimes.close()
        self._runtimes = RuntimePool(isolate=self._isolate)

    def _one(self, sample: Sample, place: Where) -> SampleResult | ArmAnswers | StageError:
        work, opened = self._work, self._opened
        assert isinstance(work, Work) and opened is not None
        try:
            walk = opened.walk(self._context(sample, place))
            if work.apart:
                times = tuple(walk.times(path) for path in work.plan.paths)
                return ArmAnswers(tuple(walk.answers()), times, walk.failed)
            return result_of(walk, replace(sample.item, truth=None), work.watch)
        except StageError as error:
            return error

    def _found(self, samples: Sequence[Sample], members: Sequence[Sample]) -> list[Where]:
        """Where samples are read; what was sent is there for their batches too, during this call.

        Raises:
            UnseenError: one of them is not to be seen from here.
        """
        found = [_where(sample) for sample in (*samples, *members)]
        every = zip((*samples, *members), found, strict=True)
        self._sent.data = {
            sample.item.name: place for sample, place in every if isinstance(place, InMemory)
        }
        return found[: len(samples)]

    def _context(self, sample: Sample, place: Where) -> Context:
        assert self._work is not None
        return context_of(self._work.modality, sample.item, place)


class Sent(threading.local):
    """The bytes that came with a call, by sample; each call has a thread."""

    def __init__(self) -> None:
        self.data: dict[str, InMemory] = {}


@dataclass(frozen=True, slots=True)
class OrSent(ByteSource):
    """A sample of a batch: what was sent of it, else what is there."""

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
        UnseenError: it cannot.
    """
    place = sample.item.path
    if sample.data is not None or sample.size is None:
        return sample.data or place
    if isinstance(sample.item.truth, MaskTruth) and not sample.item.truth.is_here():
        raise UnseenError
    try:
        if isinstance(place, ByteSource):
            return InMemory.of(place, LARGE)
        if place.stat().st_size == sample.size:
            return place
    except OSError:
        pass
    raise UnseenError


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
