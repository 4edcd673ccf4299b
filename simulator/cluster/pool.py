"""The workers of one kind: each has a thread here, which opens it, feeds it, and replaces it."""

from __future__ import annotations

import logging
import pickle
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from simulator.cluster.actor import ASIDE, WorkerActor
from simulator.cluster.chunks import DEATHS, BatchMembers, Chunk, Chunks
from simulator.cluster.connection import Cluster, Needs, told
from simulator.cluster.messages import (
    ArmAnswers,
    JobWork,
    Node,
    Sample,
    UnseenError,
    Work,
    sample_of,
    with_data,
)
from simulator.cluster.payload import Payload, content, pack
from simulator.data.folder import Item
from simulator.errors import UserError, one_line
from simulator.pipeline.jobs import Job
from simulator.pipeline.walk import StageError

QUEUED = 2
"""Chunks that a worker has: one that it runs, one that waits."""
PAUSE = 2.0
"""Seconds between two looks at the nodes while no worker has opened the plan."""
SLOW = 30.0
"""Seconds without a worker after which we say so."""
_log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(eq=False, slots=True)
class _Worker:
    """A worker as the driver sees it.

    Attributes:
        actor: Ray's handle.
        opened: the payload that it has opened.
        node: where it runs; None until it has opened one.
        blind: whether it cannot read the samples' files, so that their bytes are sent.
    """

    actor: Any
    opened: Payload | None = None
    node: Node | None = None
    blind: bool = False

    def samples(self, items: Iterable[Item]) -> list[Sample]:
        """Return samples as this worker needs them."""
        found = map(sample_of, items)
        return [with_data(sample) for sample in found] if self.blind else list(found)


class WorkerPool:
    """The workers that have the same resources.

    Args:
        cluster: where they run.
        who: the stacks that they run, for messages.
        needs: their resources.
        workers: how many there are at most.
        isolate: which files are decoded in workers, see :mod:`simulator.pipeline.isolation`.

    Attributes:
        ran: told of each node where samples ran.
        chunks: of the samples.

    Raises:
        UserError: no node has these resources.
    """

    def __init__(
        self, cluster: Cluster, who: str, needs: Needs, workers: int, isolate: str
    ) -> None:
        self._cluster, self._ray, self._who, self._needs = cluster, cluster.ray, who, needs
        self._isolate = isolate
        self.ran: Callable[[Node], Any] = lambda node: None
        capacity = cluster.capacity(needs) if needs or cluster.place else workers
        if not capacity:
            raise cluster.lacking(who, needs)
        self._most = min(workers, capacity)
        self._lock = threading.Lock()
        self._all: list[_Worker] = []
        self._idle: list[_Worker] = []
        self._threads: list[threading.Thread] = []
        self._payload: Payload | None = None
        self._put: Any = None
        self._contents: dict[str, object] = {}
        self._seen, self._worked = time.monotonic(), False
        self.chunks = Chunks(1, 0)

    def begin(self, work: Work, items: Sequence[Item]) -> None:
        """Give the pool a plan and samples; workers that already have the plan keep it."""
        self._stop()
        self._members = members = BatchMembers(work.plan)

        def run(worker: _Worker, chunk: Chunk) -> Any:
            some = [items[at] for at in chunk]
            return worker.actor.run.remote(worker.samples(some), worker.samples(members.of(some)))

        self._begin(work, run, len(items), members.step, members.place(items))

    def begin_jobs(self, work: JobWork, jobs: Sequence[Job[Any]]) -> None:
        """Give the pool a step and jobs; workers that already have the step keep it."""
        self._stop()

        def do(worker: _Worker, chunk: Chunk) -> Any:
            some = [jobs[at] for at in chunk]
            samples = {item.name: item for job in some for item in job.samples}
            arguments = [job.argument for job in some]
            return worker.actor.do.remote(arguments, worker.samples(samples.values()))

        self._begin(work, do, len(jobs))

    def _begin(
        self,
        work: Work | JobWork,
        run: Callable[[_Worker, Chunk], Any],
        count: int,
        step: int = 1,
        place: int = 0,
    ) -> None:
        """Start a thread for each worker, which gives it chunks by *run*."""
        self._give(work)
        self._run = run
        workers = min(self._most, count)
        self.chunks = Chunks(workers, count, step, place)
        self._seen = time.monotonic()
        self._threads = [
            threading.Thread(target=self._serve, args=(self.chunks,), daemon=True)
            for _ in range(workers)
        ]
        for thread in self._threads:
            thread.start()

    def _give(self, work: Work | JobWork) -> None:
        payload = pack(work)
        if self._payload is None or self._payload.data != payload.data:
            self._payload, self._put, self._contents = payload, self._ray.put(payload), {}

    def everywhere(self, work: JobWork, job: Job[Any], servers: int) -> list[Any]:
        """Do one job in so many workers at the same time, in the same order each time.

        Raises:
            UserError: there is no room for so many, or one of them ends.
        """
        self._stop()
        if servers > self._most:
            raise UserError(
                f"--executor ray: {servers} servers expected, and the cluster has room for "
                f"{self._most}; give --workers {self._most}"
            )
        self._give(work)
        workers = [self._ready() for _ in range(servers)]
        asked = [
            worker.actor.do.remote([job.argument], worker.samples(job.samples))
            for worker in workers
        ]
        try:
            found = [pickle.loads(self._get(ref)[0])[0] for ref in asked]
        except UnseenError:
            for worker in workers:
                worker.blind = True
            self._idle += reversed(workers)
            return self.everywhere(work, job, servers)
        except self._ray.exceptions.RayError as error:
            raise UserError(
                f"--executor ray: {self._who}: a server ended while it was measured: "
                f"{one_line(error)}; simulate resume goes on behind the last round"
            ) from error
        for worker in workers:
            self._heard(worker)
        self._idle += reversed(workers)
        return found

    def probe(self, payload: Payload) -> Any:
        """Return what a worker says of a runtime that it opens.

        Args:
            payload: a choice, its artifact, the card's inputs and the samples of an inference.

        Raises:
            UserError: the worker refuses it, or dies of it.
        """

        def probe(worker: _Worker) -> Any:
            found = self._waited(worker.actor.probe.remote(*self._shipped(worker, payload)))
            self._idle.append(worker)
            return found

        try:
            return self._tried(self._taken, probe)
        except StageError as error:
            raise UserError(
                f"{self._who}: killed its worker {DEATHS} times while it was opened"
            ) from error

    def again(self, item: Item) -> ArmAnswers:
        """Run the arms on a sample.

        Raises:
            StageError: none of them has an answer, or the worker dies of it.
        """
        found: ArmAnswers = self._asked(item, "again")
        return found

    def aside(self, item: Item, name: str) -> Any:
        """Return the value at the end of an aside for a sample.

        Raises:
            StageError: a stage failed, or the worker dies of it.
        """
        return self._asked(item, "aside", name)

    def close(self) -> None:
        """End every worker; idle ones of an own cluster wait for the next run."""
        self.chunks.close()
        if not self._ray.is_initialized():  # the cluster is gone, and they with it
            return
        with suppress(ConnectionError):
            for worker in list(self._all):
                if self._cluster.place or worker not in self._idle:
                    self._ray.kill(worker.actor)
                else:
                    worker.actor.rest.remote()
                    kind = (self._needs, self._isolate)
                    self._cluster.idle.setdefault(kind, []).append(worker.actor)
        self._stop()
        self._all, self._idle = [], []

    def _stop(self) -> None:
        """End the threads of the last run; they wait for the chunks that are on their way."""
        self.chunks.close()
        for thread in self._threads:
            thread.join()
        self._threads = []

    def _serve(self, chunks: Chunks) -> None:
        """Keep one worker busy until all samples are done; a thread of its own."""
        try:
            while (chunk := chunks.take(wait=True)) is not None:
                chunks.give_back(chunk)
                worker = self._ready()
                if self._feed(worker, chunks):
                    self._idle.append(worker)
        except BaseException as error:
            chunks.close(error)

    def _feed(self, worker: _Worker, chunks: Chunks) -> bool:
        """Let a worker run chunks until nothing is left, or until it dies; return if it lives."""
        calls: deque[tuple[Chunk, Any]] = deque()
        errors = self._ray.exceptions
        while True:
            while len(calls) < QUEUED and (chunk := chunks.take(wait=not calls)) is not None:
                calls.append((chunk, self._run(worker, chunk)))
            if not calls:
                return True
            chunk, ref = calls.popleft()
            try:
                data, seconds = self._get(ref)
            except (UnseenError, errors.ObjectLostError) as error:  # lost with its node
                worker.blind |= isinstance(error, UnseenError)
                chunks.give_back(chunk)
            except errors.RayError as error:  # it has ended, or Ray has ended it for its memory
                chunks.give_back(*(one for one, _ in calls))
                chunks.died(chunk, self._killed(error))
                self._bury(worker)
                return False
            else:
                self._heard(worker)
                chunks.done(chunk, pickle.loads(data), seconds)

    def _asked(self, item: Item, method: str, *given: Any) -> Any:
        """Call a worker's method with a sample, beside its chunks, and wait for the answer."""

        def ask(worker: _Worker) -> Any:
            (sample,) = worker.samples([item])
            members = worker.samples(self._members.of([item]))
            try:
                found = self._get(getattr(worker.actor, method).remote(sample, members, *given))
            except UnseenError:
                worker.blind = True
                return ask(worker)
            self._heard(worker)
            return found

        with self._cluster.reached():
            return self._tried(self._shared, ask)

    def _tried(self, choose: Callable[[], _Worker], attempt: Callable[[_Worker], T]) -> T:
        """Do something with a worker, and with another one where it dies of it.

        Raises:
            StageError: so many died; its cause is why the last one did.
        """
        for left in reversed(range(DEATHS)):
            worker = choose()
            try:
                return attempt(worker)
            except self._ray.exceptions.RayError as error:
                self._bury(worker)
                if not left:
                    raise self._killed(error) from error
        raise AssertionError

    def _shared(self) -> _Worker:
        """Return a worker that has opened the plan, which another thread may use, too."""
        for worker in list(self._all):
            if worker.opened is self._payload:
                return worker
        worker = self._ready()
        self._idle.append(worker)
        return worker

    def _ready(self) -> _Worker:
        """Return a worker that has opened the plan, and that no other thread uses.

        Raises:
            UserError: none can.
        """
        try:
            return self._tried(self._taken, self._open)
        except StageError as error:
            raise UserError(
                f"--executor ray: {self._who}: a worker ended {DEATHS} times before it had opened "
                f"its stacks: {one_line(error.__cause__ or error, 300)}"
            ) from error

    def _open(self, worker: _Worker) -> _Worker:
        assert self._payload is not None
        if worker.opened is not self._payload:
            shipped = self._shipped(worker, self._payload)
            worker.node = self._waited(worker.actor.open.remote(*shipped))
            worker.opened, self._worked = self._payload, True
        return worker

    def _shipped(self, worker: _Worker, payload: Payload) -> list[Any]:
        """Return a payload with those of its files that a worker lacks; each is read here once."""
        put = self._put if payload is self._payload else payload
        lacking = self._waited(worker.actor.missing.remote(put))
        with self._lock:
            for unit in payload.units:
                if unit.digest in lacking and unit.digest not in self._contents:
                    self._contents[unit.digest] = self._ray.put(content(unit))
        # Ray puts what a reference stands for in place of an argument, but not inside of one.
        return [put, lacking, *(self._contents[digest] for digest in lacking)]

    def _taken(self) -> _Worker:
        """Take a worker that nobody uses; one is started where there is none."""
        with self._lock:
            if self._idle:
                return self._idle.pop()
            idle = self._cluster.idle.get((self._needs, self._isolate))
            worker = _Worker(idle.pop() if idle else self._started())
            self._all.append(worker)
            return worker

    def _started(self) -> Any:
        made = self._ray.remote(concurrency_groups={ASIDE: 1})(WorkerActor)
        try:
            return made.options(**self._cluster.options(self._needs)).remote(self._isolate)
        except ValueError as error:
            raise UserError(
                f"{self._who} needs {told(self._needs)}, which Ray refuses: {one_line(error)}; "
                "change runtime.resources"
            ) from error

    def _waited(self, ref: Any) -> Any:
        """Return what a worker answers that may not have a node yet.

        Raises:
            UserError: there is no node for it, and no other worker has opened the plan.
        """
        while not self._ray.wait([ref], timeout=PAUSE)[0]:
            now = time.monotonic()
            if any(worker.opened is self._payload for worker in list(self._all)):
                self._seen = now
            elif not self._cluster.capacity(self._needs):
                raise self._cluster.lacking(self._who, self._needs, lost=self._worked)
            elif now - self._seen > SLOW:
                self._seen = now
                _log.warning("note: waiting for a free node for %s", self._who)
        return self._get(ref)

    def _get(self, ref: Any) -> Any:
        """Return what a worker answers, or raise it."""
        try:
            found = self._ray.get(ref)
        except self._ray.exceptions.RayTaskError as error:
            raise RuntimeError(f"a worker of {self._who} failed") from error
        if isinstance(found, Exception):
            raise found
        return found

    def _heard(self, worker: _Worker) -> None:
        if worker.node is not None:
            self.ran(worker.node)

    def _bury(self, worker: _Worker) -> None:
        """Forget a worker that has died."""
        with self._lock:
            if worker not in self._all:
                return
            self._all.remove(worker)
            if worker in self._idle:
                self._idle.remove(worker)
        self._ray.kill(worker.actor)
        _log.warning(
            "note: a worker ended on %s; what it had not finished is run again",
            worker.node.host if worker.node else "a node of the cluster",
        )

    def _killed(self, error: Exception) -> StageError:
        """Return the error of a sample whose worker died too often, the last time of this."""
        why = self._cluster.signal(error)
        if isinstance(error, self._ray.exceptions.OutOfMemoryError):
            why = "its node had no memory left"
        return StageError("worker", f"killed its worker {DEATHS} times" + (why and f": {why}"))
