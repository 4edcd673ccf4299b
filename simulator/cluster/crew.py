"""The workers of one kind: they are started, opened, given chunks, and replaced when they die."""

from __future__ import annotations

import logging
import pickle
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from simulator.cluster.chunks import DEATHS, Chunk, Chunks
from simulator.cluster.connection import Cluster, Needs, told
from simulator.cluster.hand import ASIDE, Hand
from simulator.cluster.mates import Mates
from simulator.cluster.member import Member
from simulator.cluster.messages import Failed, Lacking, Node, Stopped, Work
from simulator.cluster.parcel import Parcel, content, pack
from simulator.data.folder import Item
from simulator.errors import UserError, one_line

QUEUED = 2
"""Chunks that a worker has: one that it runs, one that waits."""
LOOK = 2.0
"""Seconds between two looks at the nodes while no worker has opened the plan."""
SLOW = 30.0
"""Seconds without a worker after which we say so."""
_log = logging.getLogger(__name__)


class Crew:
    """The workers that have the same resources.

    Args:
        cluster: where they run.
        who: the stacks that they run, for messages.
        needs: their resources.
        workers: how many there are at most.
        isolate: which files are decoded in workers, see :mod:`simulator.pipeline.isolation`.

    Attributes:
        ray: the library.
        who: see above.
        ran: told of each node where samples ran.
        reached: see :meth:`simulator.cluster.connection.Cluster.reached`.
        chunks: of the samples.
        mates: the samples that are in batches with others.

    Raises:
        UserError: no node has these resources.
    """

    def __init__(
        self, cluster: Cluster, who: str, needs: Needs, workers: int, isolate: str
    ) -> None:
        self._cluster, self.ray, self.who, self._needs = cluster, cluster.ray, who, needs
        self._isolate, self.reached = isolate, cluster.reached
        self.ran: Callable[[Node], Any] = lambda node: None
        capacity = cluster.capacity(needs) if needs or cluster.place else workers
        if not capacity:
            raise cluster.lacking(who, needs)
        self._most = min(workers, capacity)
        self._members: list[Member] = []
        self._stillborn, self._worked = 0, False
        self._seen = self._looked = time.monotonic()
        self._parcel: Parcel | None = None
        self._contents: dict[str, Any] = {}
        self._put: Any = None
        self._items: Sequence[Item] = ()
        self.chunks = Chunks(1, 0)

    def begin(self, work: Work, items: Sequence[Item]) -> None:
        """Give the crew a plan and samples; workers that already have the plan keep it."""
        self.mates = Mates(work.plan)
        self._items, self._seen = items, time.monotonic()
        workers = min(self._most, max(1, len(items)))
        self.chunks = Chunks(workers, len(items), self.mates.step, self.mates.place(items))
        parcel = pack(work)
        other = self._parcel is None or self._parcel.data != parcel.data
        # What an earlier run has left; a worker takes its calls in order, so that none comes late.
        stale = ("run", "missing", "open") if other else ("run",)
        for member in self._members:
            member.queue = deque(call for call in member.queue if call.name not in stale)
        if other:
            self._parcel, self._put, self._contents = parcel, self.ray.put(parcel), {}
            for member in self._members:
                member.opened = False
                member.call("missing", self._put)

    def fill(self) -> None:
        """Start workers that are missing, and give each its chunks."""
        for _ in range(len(self._members), self.chunks.workers):
            self._hire()
        for member in self._members:
            while member.opened and len(member.queue) < QUEUED:
                chunk = self.chunks.take()
                if chunk is None:
                    return
                items = [self._items[at] for at in chunk]
                mates = self.mates.of(items)
                member.call("run", member.samples(items), member.samples(mates), chunk=chunk)

    def refs(self) -> list[Any]:
        """Return what is awaited."""
        return [member.queue[0].ref for member in self._members if member.queue]

    def take(self, ref: Any) -> None:
        """Take in what has arrived.

        Raises:
            UserError: what a worker refuses, or it cannot be started.
        """
        for member in list(self._members):
            if member.queue and member.queue[0].ref == ref:
                self._arrived(member)

    def check(self) -> None:
        """Make sure that there are nodes for the workers, while none has opened the plan.

        Raises:
            UserError: there are none.
        """
        now = time.monotonic()
        if any(member.opened for member in self._members):
            self._seen = now
        elif now - self._looked > LOOK:
            self._looked = now
            if not self._cluster.capacity(self._needs):
                raise self._cluster.lacking(self.who, self._needs, lost=self._worked)
            if now - self._seen > SLOW:
                self._seen = now
                _log.warning("note: waiting for a free node for %s", self.who)

    def settled(self) -> Member:
        """Return a worker that has started.

        Raises:
            UserError: there is no node for it.
        """
        if not self._members:
            self._hire()
        member = self._members[0]
        while member.node is None:
            ref = member.queue[0].ref
            if self.ray.wait([ref], timeout=LOOK)[0]:
                self._arrived(member)
                member = self._members[0] if self._members else self._hire()
            else:
                self.check()
        return member

    def ready(self) -> Member:
        """Return a worker that has opened the plan.

        Raises:
            UserError: none can.
        """
        while True:
            for member in self._members:
                if member.opened:
                    return member
            self.fill()
            turn([self])

    def heard(self, member: Member) -> None:
        """Note that a worker has run samples."""
        if member.node is not None:
            self.ran(member.node)

    def bury(self, member: Member) -> None:
        """Forget a worker; what it still has goes back to the others."""
        if member in self._members:
            self._members.remove(member)
            self.ray.kill(member.actor)
        for call in reversed(member.queue):
            if call.name == "run":
                self.chunks.again(call.chunk)

    def killed(self, error: Exception) -> Stopped:
        """Return the result of a sample whose worker died too often, the last time of this."""
        why = self._cluster.signal(error)
        if isinstance(error, self.ray.exceptions.OutOfMemoryError):
            why = "its node had no memory left"
        return Stopped("worker", f"killed its worker {DEATHS} times" + (why and f": {why}"))

    def close(self) -> None:
        """End every worker; idle ones of an own cluster wait for the next run."""
        members, self._members = self._members, []
        if not self.ray.is_initialized():  # the cluster is gone, and they with it
            return
        with suppress(ConnectionError):
            for member in members:
                if self._cluster.place or member.queue:
                    self.ray.kill(member.actor)
                else:
                    member.actor.rest.remote()
                    kind = (self._needs, self._isolate)
                    self._cluster.idle.setdefault(kind, []).append(member.actor)

    def _hire(self) -> Member:
        idle = self._cluster.idle.get((self._needs, self._isolate))
        member = Member(idle.pop() if idle else self._started())
        self._members.append(member)
        member.call("where")
        if self._parcel is not None:
            member.call("missing", self._put)
        return member

    def _started(self) -> Any:
        made = self.ray.remote(concurrency_groups={ASIDE: 1})(Hand)
        try:
            return made.options(**self._cluster.options(self._needs)).remote(self._isolate)
        except ValueError as error:
            raise UserError(
                f"{self.who} needs {told(self._needs)}, which Ray refuses: {one_line(error)}; "
                "change runtime.resources"
            ) from error

    def _arrived(self, member: Member) -> None:
        call, errors = member.queue[0], self.ray.exceptions
        try:
            value = self.ray.get(call.ref)
        except errors.RayTaskError:
            raise
        except errors.ObjectLostError:  # what it returned was lost with its node
            member.queue.popleft()
            if call.name == "run":
                self.chunks.again(call.chunk)
                return
            self.bury(member)
            return
        except errors.RayError as error:  # it has ended, or Ray has ended it for its memory
            self._died(member, error)
            return
        member.queue.popleft()
        if isinstance(value, Failed):
            raise value.error(member.place)
        self._answered(member, call.name, call.chunk, value)

    def _answered(self, member: Member, name: str, chunk: Chunk, value: Any) -> None:
        """Take in what a worker has answered to a call."""
        if name == "where":
            member.node = value
        elif name == "missing":
            self._send(member, value)
        elif name == "open":
            member.opened, self._worked, self._stillborn = True, True, 0
            member.node = member.node and replace(member.node, versions=value)
        elif isinstance(value, Lacking):
            member.blind = True
            self.chunks.again(chunk)
        else:
            data, seconds = value
            self.heard(member)
            self.chunks.done(chunk, pickle.loads(data), seconds)

    def _send(self, member: Member, digests: Sequence[str]) -> None:
        """Send the files that a worker lacks; each is read here once."""
        assert self._parcel is not None
        units = {unit.digest: unit for unit in self._parcel.units}
        for digest in digests:
            if digest not in self._contents:
                self._contents[digest] = self.ray.put(content(units[digest]))
        # Ray puts what a reference stands for in place of an argument, but not inside of one.
        member.call("open", self._put, digests, *(self._contents[one] for one in digests))

    def _died(self, member: Member, error: Exception) -> None:
        """Give back what a dead worker had; the first call that it has not answered is suspect."""
        if all(call.name == "run" for call in member.queue):
            sample = self.chunks.died(member.queue.popleft().chunk)
            if sample is not None:
                self.chunks.skip(sample, self.killed(error))
        else:
            self._stillborn += 1
            if self._stillborn >= DEATHS:
                raise UserError(
                    f"--executor ray: {self.who}: a worker ended {DEATHS} times before it had "
                    f"opened its stacks: {one_line(error, 300)}"
                ) from error
        self.bury(member)
        _log.warning(
            "note: a worker ended on %s; what it had not finished is run again", member.place
        )


def turn(crews: Sequence[Crew]) -> None:
    """Wait until something arrives for one of the crews, and take it in.

    Raises:
        UserError: what a worker refuses, or there is no node for one.
    """
    refs = [ref for crew in crews for ref in crew.refs()]
    ray = crews[0].ray
    found, _ = ray.wait(refs, num_returns=1, timeout=LOOK) if refs else ((), ())
    if found:  # what else is there already
        found, _ = ray.wait(refs, num_returns=len(refs), timeout=0)
    for ref in found:
        for crew in crews:
            crew.take(ref)
    for crew in crews:
        crew.check()
