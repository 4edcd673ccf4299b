"""Queries, one at a time, through every stack in turn, round after round."""

from __future__ import annotations

import gc
import math
import os
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Protocol, TypedDict

import numpy as np
from numpy.typing import NDArray

from simulator import machine
from simulator.contract.recipe import Chain, Context
from simulator.contract.stage import timed_steps
from simulator.data.folder import Item
from simulator.errors import SampleError
from simulator.pipeline.plan import Arm, Plan, plan
from simulator.pipeline.walk import Opened
from simulator.results.times import ABSENT, Ints

TURN = 32
"""How many samples go through one stack before the next stack has its turn."""
WARM_UP = 16
"""How many samples go through every stack untimed before the first round."""

SINGLE_STREAM, MULTI_STREAM, OFFLINE = "SingleStream", "MultiStream", "Offline"
SCENARIOS = (SINGLE_STREAM, MULTI_STREAM, OFFLINE)
"""MLPerf's scenarios that can be measured in rounds."""
PER_QUERY = 8
"""Samples of a query in MultiStream, as LoadGen has it."""

Advance = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Sending:
    """How the samples of a round are sent.

    Attributes:
        scenario: SingleStream: one sample, and the next when it is answered. MultiStream: so many
            samples at once, and the next query when all are answered. Offline: all at once.
        per_query: samples of a query in MultiStream; None: those of the stack's batch, or
            :data:`PER_QUERY` where it has none.

    Source:
        MLPerf Inference Rules, section "Scenarios".
    """

    scenario: str = SINGLE_STREAM
    per_query: int | None = None

    def together(self, batch: int) -> int:
        """Return how many samples have one latency in a stack with this batch."""
        if self.scenario == MULTI_STREAM:
            return self.per_query or (batch if batch > 1 else PER_QUERY)
        return batch


STREAM = Sending()
"""SingleStream."""


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """One pass of every stack over all samples.

    Attributes:
        number: from 0.
        ns: (stacks, samples, stages) nanoseconds in the order of the timed steps;
            :data:`ABSENT` where a stack has no such stage, or the sample failed.
        digests: (stacks, samples) of the network's output bytes; empty where the sample failed.
        failed: the reasons of failed inferences, by (stack, sample).
        conditions: what may have disturbed the round.
        parts: nanoseconds from the beginning of a sample until each part of its answer was there,
            by (stack, sample); only of answers that come in parts, one sample at a time.
    """

    number: int
    ns: Ints
    digests: NDArray[np.str_]
    failed: dict[tuple[int, int], str]
    conditions: RoundConditions
    parts: dict[tuple[int, int], tuple[int, ...]] = field(default_factory=dict)


class PausesOfRound(TypedDict):
    """The collections of a round, and how many samples they hit."""

    count: int
    ms: float
    longest_ms: float
    samples: int


class RoundConditions(TypedDict):
    """What may have disturbed a round; see :meth:`Stream.round`."""

    load: float
    mhz: list[float]
    preempted: int
    collections: PausesOfRound


@dataclass(slots=True)
class Pauses:
    """Collections of Python's garbage collector.

    Attributes:
        count: how many.
        ns: nanoseconds of all of them together.
        longest: nanoseconds of the longest one.
    """

    count: int = 0
    ns: int = 0
    longest: int = 0


@contextmanager
def pauses() -> Iterator[Pauses]:
    """Count the collections while the context is open."""
    found, start = Pauses(), 0

    def on_collection(phase: str, _: dict[str, int]) -> None:
        nonlocal start
        if phase == "start":
            start = time.perf_counter_ns()
        else:
            took = time.perf_counter_ns() - start
            found.count, found.ns = found.count + 1, found.ns + took
            found.longest = max(found.longest, took)

    gc.callbacks.append(on_collection)
    try:
        yield found
    finally:
        gc.callbacks.remove(on_collection)


class Reads(Protocol):
    """What reads samples and opens plans: an executor, or what a worker has in its place."""

    def open(self, plan: Plan, timed: bool = False) -> Opened:
        """Open a plan in this process."""

    def context(self, item: Item) -> Context:
        """Read a sample."""


class Stream:
    """Sends the next query when the previous one has been answered, as MLPerf's scenarios do.

    A query is one sample, or several that are sent together: then the latency of each is that of
    the whole query. Queries have the same samples in every round. In Offline all are sent at the
    beginning of a round, and stay in the order of the data set: the latency of a sample is the time
    until the batch is answered that it is in.

    Stacks take turns of :data:`TURN` samples, and the stack that begins changes from turn to turn,
    so that a drift of the machine affects all of them equally. With several stacks, one sample goes
    through untimed before each turn, as threads of the other runtime may still be spinning. Every
    round has its own random order of samples, the same for all stacks. A file's bytes are read
    into memory before the clock starts.

    Args:
        executor: reads the samples, and opens the stacks in this process.
        chains: of the stacks that are measured.
        items: the samples.
        seed: of the random orders.
        together: of each stack, how many samples are sent together; None: one.
        offline: whether all are sent at the beginning of a round.

    Source:
        Samples of a batch have the latency of the batch: Yang et al., Quality at the Tail of
        Machine Learning Inference, arXiv 2212.13925, end of section 2.1.
    """

    def __init__(
        self,
        executor: Reads,
        chains: Sequence[Chain],
        items: Sequence[Item],
        seed: int,
        together: Sequence[int] | None = None,
        offline: bool = False,
    ) -> None:
        self._together, self._offline = together or [1] * len(chains), offline
        self._executor, self._items, self._seed = executor, items, seed
        self._stacks = [
            executor.open(plan({Arm(str(at)): chain}), timed=True)
            for at, chain in enumerate(chains)
        ]
        self._column = {stage: index for index, stage in enumerate(timed_steps())}

    def warm_up(self) -> None:
        """Send some samples through every stack, untimed; a resumed run does this again."""
        for stack in self._stacks:
            for number in range(WARM_UP):
                self._settle(stack, self._items[number % len(self._items)])

    def round(self, number: int, advance: Advance = lambda _: None) -> Round:
        """Send every sample through every stack once.

        ``conditions`` of the round: ``collections`` of Python's garbage collector (``count``,
        ``ms``, ``longest_ms`` and the number of ``samples`` during which one ran), ``preempted``
        (involuntary context switches of the process), ``load`` (average of the minute before) and
        ``mhz`` (of the usable processors, before the round; empty where the system does not say).

        Args:
            number: of the round, from 0.
            advance: called after each turn with the number of samples in it.
        """
        shape = len(self._stacks), len(self._items)
        ns = np.full((*shape, len(self._column)), ABSENT, np.int64)
        digests = np.full(shape, "", "<U32")
        failed: dict[tuple[int, int], str] = {}
        parts: dict[tuple[int, int], tuple[int, ...]] = {}
        load, mhz = os.getloadavg()[0], machine.mhz()
        switches = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
        hit = 0
        gc.collect()
        with pauses() as paused:
            for which, turn in self._turns(number):
                if len(self._stacks) > 1:
                    self._settle(self._stacks[which], self._items[turn[-1]])
                waited = np.zeros(len(self._column), np.int64)
                for query in self._queries(which, turn):
                    for index in query:
                        before = paused.count
                        try:
                            ns[which, index], digests[which, index], until = self._answer(
                                which, index
                            )
                            if until and len(query) == 1 and not self._offline:
                                parts[which, int(index)] = until
                        except SampleError as error:
                            failed[which, int(index)] = str(error)
                        hit += paused.count > before
                    if len(query) > 1 or self._offline:
                        waited = _of_query(ns[which], query, waited if self._offline else 0)
                advance(len(turn))
        preempted = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw - switches
        collections = PausesOfRound(
            count=paused.count, ms=paused.ns / 1e6, longest_ms=paused.longest / 1e6, samples=hit
        )
        conditions = RoundConditions(
            load=load, mhz=mhz, preempted=preempted, collections=collections
        )
        return Round(number, ns, digests, failed, conditions, parts)

    def _turns(self, number: int) -> list[tuple[int, Ints]]:
        """(stack, samples) of every turn of a round, as indices; queries are not torn apart."""
        size = math.lcm(*self._together)
        blocks = np.arange(-(-len(self._items) // size))
        if not self._offline:
            blocks = np.random.default_rng((self._seed, number)).permutation(blocks)
        order = (blocks[:, None] * size + np.arange(size)).ravel()
        order = order[order < len(self._items)]
        step = len(order) if self._offline else max(1, TURN // size) * size
        turns = []
        for turn, at in enumerate(range(0, len(order), step)):
            for nth in range(len(self._stacks)):
                which = (number + turn + nth) % len(self._stacks)
                turns.append((which, order[at : at + step]))
        return turns

    def _queries(self, which: int, turn: Ints) -> list[Ints]:
        """The samples of a turn by the queries that they are in."""
        return np.split(turn, np.flatnonzero(np.diff(turn // self._together[which])) + 1)

    def _answer(self, which: int, index: int) -> tuple[list[int], str, tuple[int, ...]]:
        opened = self._stacks[which]
        walk = opened.walk(self._executor.context(self._items[index]))
        ns = [ABSENT] * len(self._column)
        for stage, took in walk.times(opened.plan.paths[0]).items():
            if took < 0:
                raise SampleError(f"{stage}: the clock went backwards by {-took:,} ns")
            ns[self._column[stage]] = took
        (answer,) = walk.answers()
        before = sum(took for took in ns[: self._column["infer"]] if took != ABSENT)
        return ns, answer.digest, tuple(before + took for took in answer.until)

    def _settle(self, stack: Opened, item: Item) -> None:
        with suppress(SampleError):  # the timed rounds report it
            stack.walk(self._executor.context(item))


def _of_query(ns: Ints, query: Ints, waited: Ints | int) -> Ints:
    """Give every answered sample of a query the time of all of them, and what was waited before.

    Args:
        ns: (samples, stages) of a stack; changed.
        query: indices of its samples.
        waited: (stages,) nanoseconds.

    Returns:
        (stages,) nanoseconds until the query was answered.
    """
    own = ns[query]
    there = own != ABSENT
    until: Ints = waited + np.where(there, own, 0).sum(axis=0)
    ns[query] = np.where(there, until, ABSENT)
    return until
