"""Files that may kill a decoder are decoded in worker processes, so that none ends the run."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, get_args

from simulator import registry
from simulator.closing import Closing
from simulator.contract import Backend
from simulator.contract.stage import STAGES
from simulator.errors import UserError, unknown
from simulator.profile.implementations import Choice
from simulator.worker import remote
from simulator.worker.client import Died, Worker

Isolate = Literal["auto", "always", "never"]
"""Which files are decoded in a worker: those of a format that the decoder was seen to die of
(:attr:`simulator.contract.Backend.dies_of`), all, or none."""


class Isolation(Closing):
    """Decoders in workers, which are started when the first file needs one; a context manager.

    Args:
        when: see :data:`Isolate`.

    Raises:
        UserError: there is no such value.
    """

    def __init__(self, when: str = "auto") -> None:
        if when not in get_args(Isolate):
            raise UserError(f"isolate: {unknown('value', when, get_args(Isolate))}")
        self.when = when
        self._pools: dict[str, WorkerPool] = {}

    def guarded(self, choice: Choice, method: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return a decoder's method; files that may kill it go to the same method in a worker.

        Args:
            choice: the decoder.
            method: one of the decoder that *choice* made here; it takes an
                :class:`simulator.contract.Encoded`.
        """
        backend = choice.backend
        if not self.watches(backend):
            return method
        pool = self._pools.setdefault(backend.name, WorkerPool(partial(registry.hire, backend)))
        apart = _Apart(pool, choice, method.__name__)
        return lambda image: apart(image) if self.takes(backend, image) else method(image)

    def apart(self, choice: Choice, method: str) -> Callable[[Any], Any]:
        """Return a method of an implementation that always runs in workers of its own.

        Args:
            choice: of a :class:`simulator.contract.FrontEnd`, or alike.
            method: its name.
        """
        key = json.dumps(choice.identity(), sort_keys=True)
        hire = partial(registry.hire_own, choice.backend, choice.offer, choice.options)
        return _Apart(self._pools.setdefault(key, WorkerPool(hire)), choice, method)

    def takes(self, backend: Backend, image: Any) -> bool:
        """Return whether a backend decodes a file in a worker.

        Args:
            backend: of the decoder.
            image: an :class:`simulator.contract.Encoded`.
        """
        risky = self.when == "always" or image.format in backend.dies_of
        return risky and self.watches(backend)

    def watches(self, backend: Backend) -> bool:
        """Return whether a backend decodes any file in a worker."""
        may = self.when == "always" or (self.when == "auto" and backend.dies_of)
        return bool(may) and registry.home(backend.name) is None

    def close(self) -> None:
        """End every worker."""
        for pool in self._pools.values():
            pool.close()


class WorkerPool(Closing):
    """Workers of one kind: as many as are used at once.

    Args:
        hire: gives a new one.
    """

    def __init__(self, hire: Callable[[], Worker]) -> None:
        self._hire = hire
        self._idle: list[Worker] = []
        self._all: list[Worker] = []
        self._lock = threading.Lock()

    @contextmanager
    def one(self) -> Iterator[Worker]:
        """Give a worker that nobody else uses."""
        with self._lock:
            worker = self._idle.pop() if self._idle else None
        if worker is None:
            worker = self._hire()
            self._all.append(worker)
        try:
            yield worker
        finally:
            with self._lock:
                self._idle.append(worker)

    def close(self) -> None:
        """End them."""
        with self._lock:
            for worker in self._all:
                registry.dismiss(worker)
            self._all, self._idle = [], []


class _Apart:
    """A method in the workers of a pool; each builds the implementation on first use."""

    def __init__(self, pool: WorkerPool, choice: Choice, method: str) -> None:
        self._pool, self._choice, self._method = pool, choice, method
        self._made: dict[Worker, Any] = {}

    def __call__(self, sample: Any) -> Any:
        with self._pool.one() as worker:
            made = self._made.get(worker) or self._made.setdefault(worker, self._in(worker))
            try:
                return getattr(made, self._method)(sample)
            except Died as error:
                first = sample[0] if isinstance(sample, list) else sample
                of_file = f"; the file is {first.name}" if first is not None else ""
                raise Died(f"{error}{of_file}") from error

    def _in(self, worker: Worker) -> Any:
        choice = self._choice
        number = choice.backend.of(choice.stage).index(choice.offer)
        spec, real = STAGES[choice.stage], choice.offer.make
        return remote.make(worker, spec, number, real, choice.options)
