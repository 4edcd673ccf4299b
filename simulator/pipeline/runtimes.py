"""A pool of opened runtimes; where there are too many, the least recently used one is closed."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from simulator import registry
from simulator.closing import Closing
from simulator.contract import MissingLibrary, Runtime, Unsupported
from simulator.contract.injection import Injector
from simulator.contract.model_format import MODEL_FORMATS
from simulator.contract.recipe import Runtimes
from simulator.errors import ModelError, one_line
from simulator.model.artifact import Artifact, digest
from simulator.model.onnxfile import load
from simulator.pipeline.isolation import Isolation
from simulator.profile.implementations import Choice
from simulator.spent import Work, spending

Lease = Callable[[], AbstractContextManager[Runtime]]
NAMED_NODES = 3
"""Name at most this many nodes in an error; of a frequent operator, none is the likely cause."""
LIMIT = 32
"""Runtimes that stay open, unless a plan needs more of them at once."""


@dataclass(slots=True)
class _Slot:
    """One runtime; None while it is being opened."""

    opening: threading.Lock = field(default_factory=threading.Lock)
    runtime: Runtime | None = None
    users: int = 0


class RuntimePool(Closing):
    """Opens runtimes on first use and keeps the most recently used; a context manager.

    What puts faults into them is leased here as well.

    Args:
        limit: how many stay open. One that is in use is never closed.
        isolate: which files are decoded in workers, see :mod:`simulator.pipeline.isolation`.

    Attributes:
        isolation: the decoders in workers.
    """

    def __init__(self, limit: int = LIMIT, isolate: str = "auto") -> None:
        self.isolation = Isolation(isolate)
        self._limit = limit
        self._slots: OrderedDict[str, _Slot] = OrderedDict()
        self._injectors: dict[str, Injector] = {}
        self._lock = threading.Lock()

    def make_room(self, runtimes: int) -> None:
        """Keep at least *runtimes* open: a plan uses all of its runtimes for every sample."""
        self._limit = max(self._limit, runtimes)

    def of(self, choice: Choice, artifact: Artifact) -> Lease:
        """Return a function whose result is a context manager with the opened runtime.

        The runtime stays open inside the context. Entering it raises ModelError where the backend
        cannot open the artifact, with its reason, and MissingLibrary where it cannot run here.
        """
        return partial(self._use, key_of(choice, artifact), choice, artifact)

    def injector(self, choice: Choice, artifact: Artifact) -> Injector:
        """Return what puts faults into an artifact; it is opened once, and closed with the pool.

        Raises:
            Unsupported: nothing reaches this runtime or this artifact; the message says why.
        """
        key, taken = key_of(choice, artifact), getattr(choice.offer.make, "takes", "")
        if artifact.format in MODEL_FORMATS and artifact.format != taken:
            raise Unsupported(
                f"no faults can be put into {artifact.path.name}: {choice.backend.name} is reached "
                f"in {MODEL_FORMATS[taken].about} only"
            )
        with self._lock:
            if key not in self._injectors:
                self._injectors[key] = registry.injector(
                    choice.backend, choice.offer, artifact.path, choice.options
                )
            return self._injectors[key]

    def guarded(self, choice: Choice, method: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return a decoder's method, guarded by :attr:`isolation`."""
        return self.isolation.guarded(choice, method)

    def apart(self, choice: Choice, method: str) -> Callable[[Any], Any]:
        """Return a method of an implementation, which runs in workers of its own."""
        return self.isolation.apart(choice, method)

    def here(self) -> Runtimes:
        """Return the same pool, with every decoder in this process: for measuring time."""
        return _Here(self)

    @contextmanager
    def _use(self, key: str, choice: Choice, artifact: Artifact) -> Iterator[Runtime]:
        with self._lock:
            slot = self._slots.setdefault(key, _Slot())
            self._slots.move_to_end(key)
            slot.users += 1
        try:
            self._close_superfluous()
            yield slot.runtime or self._opened(slot, choice, artifact)
        finally:
            with self._lock:
                slot.users -= 1
            self._close_superfluous()

    def close(self) -> None:
        """Close every runtime, and end the workers."""
        self.isolation.close()
        with self._lock:
            slots = list(self._slots.values())
            self._slots.clear()
            injectors = list(self._injectors.values())
            self._injectors.clear()
        for injector in injectors:
            injector.close()
        for slot in slots:
            if slot.runtime is not None:
                slot.runtime.close()

    def __len__(self) -> int:
        return sum(slot.runtime is not None for slot in self._slots.values())

    @staticmethod
    def _opened(slot: _Slot, choice: Choice, artifact: Artifact) -> Runtime:
        with spending(Work.OPENING), slot.opening:
            if slot.runtime is None:
                try:
                    slot.runtime = choice.make(artifact.path)
                except MissingLibrary:
                    raise
                except Exception as error:  # a runtime may raise anything
                    reason = one_line(error)
                    raise ModelError(
                        f"{choice.backend.name} cannot open {artifact.path}: {reason}"
                        f"{_nodes_of(artifact, reason)}"
                    ) from error
            return slot.runtime

    def _close_superfluous(self) -> None:
        """Close runtimes above the limit that are not in use, the least recently used first."""
        if len(self._slots) <= self._limit:
            return
        idle = []
        with self._lock:
            for key, slot in list(self._slots.items()):
                if len(self._slots) <= self._limit:
                    break
                if not slot.users:
                    del self._slots[key]
                    idle.append(slot.runtime)
        for runtime in idle:
            if runtime is not None:
                runtime.close()


@dataclass(frozen=True, slots=True)
class _Here:
    pool: RuntimePool

    def of(self, choice: Choice, artifact: Artifact) -> Lease:
        return self.pool.of(choice, artifact)

    def make_room(self, runtimes: int) -> None:
        self.pool.make_room(runtimes)

    def guarded(self, choice: Choice, method: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return method

    def apart(self, choice: Choice, method: str) -> Callable[[Any], Any]:
        return self.pool.apart(choice, method)


def key_of(choice: Choice, artifact: Artifact) -> str:
    """Return the key of an opened runtime: a digest of its artifact and its options."""
    return digest([artifact.key, choice.identity()])


def _nodes_of(artifact: Artifact, reason: str) -> str:
    """The nodes whose operator an error names, where the error does not name the nodes itself."""
    if artifact.format != "onnx":
        return ""
    nodes = [n.name or n.output[0] for n in load(artifact.path).graph.node
             if re.search(rf"\b{re.escape(n.op_type)}\b", reason)]  # fmt: skip
    if not nodes or len(nodes) > NAMED_NODES or any(name in reason for name in nodes):
        return ""
    return f" (node {', '.join(map(repr, nodes))})"
