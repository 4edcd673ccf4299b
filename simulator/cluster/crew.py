"""The workers of one kind: they are started, opened, given chunks, and replaced when they die."""

from __future__ import annotations

import logging
import pickle
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from simulator.cluster.chunks import DEATHS, Chunk, Chunks
from simulator.cluster.connection import Cluster, Needs
from simulator.cluster.hand import (
    Failed,
    Hand,
    Lacking,
    Node,
    Raw,
    Stopped,
    sample_of,
    with_data,
)
from simulator.cluster.parcel import Parcel, content
from simulator.data.folder import Item
from simulator.errors import UserError, one_line

QUEUED = 2
"""Chunks that a worker has: one that it runs, one that waits."""
SLOW = 30.0
"""Seconds without a worker after which the nodes are looked at again."""
KILLED = Stopped("worker", f"killed its worker {DEATHS} times")
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Member:
    """A worker of a crew.

    Attributes:
        actor: Ray's handle.
        node: where it runs; None until it has said so.
        opened: whether it has opened the parcel of the crew.
        blind: whether it cannot read the samples' files, so that their bytes are sent.
        queue: its calls, in order: what is awaited, what it is, and the chunk.
    """

    actor: Any
    node: Node | None = None
    opened: bool = False
    blind: bool = False
    queue: deque[tuple[Any, str, Chunk]] = field(default_factory=deque)


class Crew:
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
        self,
        cluster: Cluster,
        who: str,
        needs: Needs,
        workers: int,
        isolate: str,
    ) -> None:
        self._cluster, self.ray, self._who, self._needs = cluster, cluster.ray, who, needs
        self._isolate = isolate
        self.ran: Callable[[Node], Any] = lambda node: None
        capacity = cluster.capacity(needs) if needs or cluster.place else workers
        if not capacity:
            raise cluster.lacking(who, needs)
        self.most = min(workers, capacity)
        self._members: list[Member] = []
        self._stillborn = 0
        self._seen = time.monotonic()
        self._parcel: Parcel | None = None
        self._contents: dict[str, Any] = {}
        self._put: Any = None
        self._items: Sequence[Item] = ()
        self.chunks = Chunks(1, 0)

    def begin(self, parcel: Parcel, items: Sequence[Item]) -> None:
        """Give the crew a plan and samples; workers that already have the plan keep it."""
        self._items, self._seen = items, time.monotonic()
        self.chunks = Chunks(min(self.most, max(1, len(items))), len(items))
        other = self._parcel is None or self._parcel.data != parcel.data
        # What an earlier run has left; a worker takes its calls in order, so that none comes late.
        stale = ("run", "missing", "open") if other else ("run",)
        for member in self._members:
            member.queue = deque(call for call in member.queue if call[1] not in stale)
        if other:
            self._parcel, self._put, self._contents = parcel, self.ray.put(parcel), {}
            for member in self._members:
                member.opened = False
                self._open(member)

    def fill(self) -> None:
        """Start workers that are missing, and give each its chunks."""
        for _ in range(len(self._members), self.chunks.workers):
            self._hire()
        for member in self._members:
            while member.opened and len(member.queue) < QUEUED:
                chunk = self.chunks.take()
                if chunk is None:
                    return
                self._run(member, chunk)

    def refs(self) -> list[Any]:
        """Return what is awaited."""
        return [member.queue[0][0] for member in self._members if member.queue]

    def take(self, ref: Any) -> None:
        """Take in what has arrived.

        Raises:
            UserError: what a worker refuses, or it cannot be started.
        """
        for member in list(self._members):
            if member.queue and member.queue[0][0] == ref:
                self._arrived(member)

    def check(self) -> None:
        """Make sure that there are nodes for the workers, where none has come for long.

        Raises:
            UserError: there are none.
        """
        if any(member.opened for member in self._members):
            self._seen = time.monotonic()
        elif time.monotonic() - self._seen > SLOW:
            self._seen = time.monotonic()
            if not self._cluster.capacity(self._needs):
                raise self._cluster.lacking(self._who, self._needs)
            _log.warning("note: waiting for a free node for %s", self._who)

    def look(self, parcel: Parcel) -> Any:
        """Return what a worker says of a runtime that it opens.

        Raises:
            UserError: the worker refuses it, or dies of it.
        """
        for _ in range(DEATHS):
            if not self._members:
                self._hire()
            member = self._members[0]
            try:
                self._settle(member)
                units = {unit.digest: unit for unit in parcel.units}
                lacking = self.ray.get(member.actor.missing.remote(parcel))
                sent = {digest: content(units[digest]) for digest in lacking}
                found = self.ray.get(member.actor.look.remote(parcel, sent))
            except self.ray.exceptions.RayActorError:
                self._bury(member)
                continue
            if isinstance(found, Failed):
                raise found.error(self._place(member))
            return found
        raise UserError(f"{self._who}: killed its worker {DEATHS} times while it was opened")

    def aside(self, item: Item, name: str) -> Any:
        """Return the value at the end of an aside for a sample.

        Raises:
            StageError: a stage failed, or its worker dies of it.
        """
        return self._ask(item, "aside", name)

    def again(self, item: Item) -> Raw:
        """Run the arms on a sample.

        Raises:
            StageError: a stage failed, or its worker dies of it.
        """
        found: Raw = self._ask(item, "again")
        return found

    def _ask(self, item: Item, name: str, *given: Any) -> Any:
        """Call a worker beside its chunks, and wait for it."""
        for _ in range(DEATHS):
            member = self._somebody()
            sample = sample_of(item)
            sample = with_data(sample) if member.blind else sample
            call = getattr(member.actor, name).options(concurrency_group="aside")
            try:
                found = self.ray.get(call.remote(sample, *given))
                if isinstance(found, Lacking):
                    member.blind = True
                    found = self.ray.get(call.remote(with_data(sample), *given))
            except self.ray.exceptions.RayActorError:
                self._bury(member)
                continue
            if isinstance(found, Failed):
                raise found.error(self._place(member))
            if isinstance(found, Stopped):
                raise found.error()
            if member.node is not None:
                self.ran(member.node)
            return found
        raise KILLED.error()

    def close(self) -> None:
        """End every worker; idle ones of an own cluster wait for the next run."""
        for member in self._members:
            if self._cluster.place or member.queue:
                self.ray.kill(member.actor)
            else:
                member.actor.rest.remote()
                self._cluster.idle.setdefault((self._needs, self._isolate), []).append(member.actor)
        self._members = []

    def _settle(self, member: Member) -> None:
        """Wait until a worker has started.

        Raises:
            UserError: there is no node for it.
        """
        while member.node is None and member.queue:
            ref = member.queue[0][0]
            if self.ray.wait([ref], timeout=SLOW)[0]:
                member.node = self.ray.get(ref)
                member.queue.popleft()
            else:
                self.check()

    def _hire(self) -> None:
        idle = self._cluster.idle.get((self._needs, self._isolate))
        options = self._cluster.options(self._needs)
        made = self.ray.remote(concurrency_groups={"aside": 1})(Hand).options(**options)
        member = Member(idle.pop() if idle else made.remote(self._isolate))
        self._members.append(member)
        self._call(member, "where", member.actor.where)
        if self._parcel is not None:
            self._open(member)

    def _open(self, member: Member) -> None:
        self._call(member, "missing", member.actor.missing, self._put)

    def _call(self, member: Member, kind: str, call: Any, *given: Any) -> None:
        member.queue.append((call.remote(*given), kind, range(0)))

    def _run(self, member: Member, chunk: Chunk) -> None:
        samples = [sample_of(self._items[at]) for at in chunk]
        if member.blind:
            samples = [with_data(sample) for sample in samples]
        member.queue.append((member.actor.run.remote(samples), "run", chunk))

    def _arrived(self, member: Member) -> None:
        ref, kind, chunk = member.queue[0]
        errors = self.ray.exceptions
        try:
            value = self.ray.get(ref)
        except errors.RayActorError as error:
            self._died(member, error)
            return
        except errors.RayTaskError:
            raise
        except errors.RayError:  # what it returned was lost with its node
            member.queue.popleft()
            if kind == "run":
                self.chunks.again(chunk)
                return
            self._bury(member)
            return
        member.queue.popleft()
        if isinstance(value, Failed):
            raise value.error(self._place(member))
        if kind == "where":
            member.node = value
        elif kind == "missing":
            self._send(member, value)
        elif kind == "open":
            member.opened, self._stillborn = True, 0
        else:
            self._ended(member, chunk, value)

    def _ended(self, member: Member, chunk: Chunk, value: Any) -> None:
        """Take in a chunk's results; where the worker cannot read a file, send it."""
        if isinstance(value, Lacking):
            member.blind = True
            self.chunks.again(chunk)
            return
        data, seconds = value
        if member.node is not None:
            self.ran(member.node)
        self.chunks.done(chunk, pickle.loads(data), seconds)

    def _send(self, member: Member, digests: Iterable[str]) -> None:
        """Send the files that a worker lacks; each is read here once."""
        assert self._parcel is not None
        units = {unit.digest: unit for unit in self._parcel.units}
        for digest in digests:
            if digest not in self._contents:
                self._contents[digest] = self.ray.put(content(units[digest]))
        sent = {digest: self._contents[digest] for digest in digests}
        self._call(member, "open", member.actor.open, self._put, sent)

    def _died(self, member: Member, error: Exception) -> None:
        """Give back what a dead worker had; the first call that it has not answered is suspect."""
        opening = [kind for _, kind, _ in member.queue if kind != "run"]
        if not opening:
            sample = self.chunks.died(member.queue.popleft()[2])
            if sample is not None:
                self.chunks.skip(sample, KILLED)
        else:
            self._stillborn += 1
            if self._stillborn >= DEATHS:
                raise UserError(
                    f"--executor ray: {self._who}: a worker ended {DEATHS} times before it had "
                    f"opened its stacks: {one_line(error, 300)}"
                ) from error
        self._bury(member)
        _log.warning(
            "note: a worker ended on %s; what it had not finished is run again", self._place(member)
        )

    def _bury(self, member: Member) -> None:
        """Forget a worker; what it still has goes back to the others."""
        if member in self._members:
            self._members.remove(member)
            self.ray.kill(member.actor)
        for _, kind, chunk in reversed(member.queue):
            if kind == "run":
                self.chunks.again(chunk)

    def _somebody(self) -> Member:
        """A worker that has opened the plan."""
        while True:
            for member in self._members:
                if member.opened:
                    return member
            self.fill()
            turn([self])

    def _place(self, member: Member) -> str:
        return member.node.host if member.node else "a node of the cluster"


def turn(crews: Sequence[Crew], seconds: float = 5.0) -> None:
    """Wait until something arrives for one of the crews, and take it in.

    Raises:
        UserError: what a worker refuses, or there is no node for one.
    """
    refs = [ref for crew in crews for ref in crew.refs()]
    ray = crews[0].ray
    found, _ = ray.wait(refs, num_returns=1, timeout=seconds) if refs else ((), ())
    if found:  # what else is there already
        found, _ = ray.wait(refs, num_returns=len(refs), timeout=0)
    for ref in found:
        for crew in crews:
            crew.take(ref)
    for crew in crews:
        crew.check()
