"""Rounds on several servers at once: each is a process of the cluster that measures every stack."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from simulator.contract.recipe import Chain, Context, Recipe
from simulator.data.folder import Item
from simulator.latency.stream import (
    Advance,
    PausesOfRound,
    Round,
    RoundConditions,
    Stream,
)
from simulator.latency.times import Times
from simulator.pipeline.executor import Executor
from simulator.pipeline.jobs import Do, Job, JobStep, Read
from simulator.pipeline.plan import Plan
from simulator.pipeline.runtimes import RuntimePool
from simulator.pipeline.walk import Opened

APART = "@"
"""Stands between the name of a stack and the number of the server that measured it."""


def base(side: str) -> str:
    """Return the stack of a name such as ``deploy@2``."""
    return side.partition(APART)[0]


@dataclass(frozen=True, eq=False)
class ServerRounds(JobStep[int, Round]):
    """Measures a round, whose number is the argument; the stacks stay open from round to round.

    Attributes:
        who: the stacks, for messages.
        chains: of the stacks.
        items: the samples.
        seed: see :class:`simulator.latency.stream.Stream`, as for the others.
        together: likewise.
        offline: likewise.
    """

    who: str
    chains: tuple[Chain, ...]
    items: tuple[Item, ...]
    seed: int
    together: tuple[int, ...]
    offline: bool

    @property
    def recipes(self) -> tuple[Recipe, ...]:
        """The steps of all stacks."""
        return tuple(recipe for chain in self.chains for recipe in chain.recipes)

    def open(self, runtimes: RuntimePool) -> Do[int, Round]:
        """Open the stacks, which are warmed up before the first round."""
        reader, streams = _Reader(runtimes), list[Stream]()

        def do(number: int, read: Read) -> Round:
            reader.read = read
            if not streams:
                how = self.chains, self.items, self.seed, self.together, self.offline
                streams.append(Stream(reader, *how))
                streams[0].warm_up()
                gc.freeze()
            return streams[0].round(number)

        return do


class Servers:
    """Measures rounds on every server at the same time; the others wait for the slowest.

    Args:
        executor: has the servers.
        who: the stacks, for messages.
        chains: of the stacks.
        items: the samples.
        how: see :class:`ServerRounds`.
    """

    def __init__(
        self,
        executor: Executor,
        who: str,
        chains: Sequence[Chain],
        items: Sequence[Item],
        *how: Any,
    ) -> None:
        seed, together, offline = how
        self._executor, self._items = executor, tuple(items)
        self._step = ServerRounds(who, tuple(chains), self._items, seed, tuple(together), offline)

    def warm_up(self) -> None:
        """Do nothing: each server warms up before its first round."""

    def round(self, number: int, advance: Advance = lambda _: None) -> Round:
        """Measure a round; see :meth:`Stream.round`."""
        found = self._executor.everywhere(self._step, Job(self._items, number))
        advance(len(found) * len(self._items) * len(self._step.chains))
        return side_by_side(found)


class _Reader:
    """Reads samples and opens plans as an executor does, in a worker."""

    def __init__(self, runtimes: RuntimePool) -> None:
        self._runtimes = runtimes
        self.read: Any = None

    def open(self, plan: Plan, timed: bool = False) -> Opened:
        """Open a plan here."""
        return Opened(plan, self._runtimes.here() if timed else self._runtimes)

    def context(self, item: Item) -> Context:
        """Read a sample."""
        found: Context = self.read(item.name)
        return found


def side_by_side(rounds: Sequence[Round]) -> Round:
    """Return the rounds that servers measured at the same time as one with all their stacks."""
    stacks = len(rounds[0].ns)
    every = [one.conditions for one in rounds]
    pauses = [one["collections"] for one in every]
    return Round(
        rounds[0].number,
        np.concatenate([one.ns for one in rounds]),
        np.concatenate([one.digests for one in rounds]),
        {
            (server * stacks + stack, sample): why
            for server, one in enumerate(rounds)
            for (stack, sample), why in one.failed.items()
        },
        conditions=RoundConditions(
            load=max(one["load"] for one in every),
            mhz=[value for one in every for value in one["mhz"]],
            preempted=sum(one["preempted"] for one in every),
            collections=PausesOfRound(
                count=sum(one["count"] for one in pauses),
                ms=sum(one["ms"] for one in pauses),
                longest_ms=max(one["longest_ms"] for one in pauses),
                samples=sum(one["samples"] for one in pauses),
            ),
        ),
        parts={
            (server * stacks + stack, sample): until
            for server, one in enumerate(rounds)
            for (stack, sample), until in one.parts.items()
        },
    )


def joint(each: Sequence[Times]) -> Times:
    """Return the times of servers that share the samples: of a round each answers one in turn.

    Args:
        each: of the same stack, one for each server; all have measured every sample.
    """
    rounds, samples = each[0].total.shape
    queries = np.arange(samples) // each[0].together
    who = ((np.arange(rounds)[:, None] + queries) % len(each))[None]

    def chosen(values: Sequence[Any]) -> Any:
        return np.take_along_axis(np.stack(values), who, axis=0)[0]

    stages = {name: chosen([one.stages[name] for one in each]) for name in each[0].stages}
    return replace(each[0], total=chosen([one.total for one in each]), stages=stages)
