"""SingleStream: one sample at a time, through every stack in turn, round after round."""

from __future__ import annotations

import gc
import os
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from simulator import machine
from simulator.contract.recipe import Chain
from simulator.contract.stage import timed_steps
from simulator.data.folder import Item
from simulator.errors import SampleError
from simulator.pipeline.executor import Executor
from simulator.pipeline.plan import Arm, plan
from simulator.pipeline.walk import Opened
from simulator.results.times import ABSENT, Ints

TURN = 32
"""How many samples go through one stack before the next stack has its turn."""
WARM_UP = 16
"""How many samples go through every stack untimed before the first round."""

Advance = Callable[[int], None]


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
    """

    number: int
    ns: Ints
    digests: NDArray[np.str_]
    failed: dict[tuple[int, int], str]
    conditions: RoundConditions


class PausesOfRound(TypedDict):
    """The collections of a round, and how many samples they hit."""

    count: int
    ms: float
    longest_ms: float
    samples: int


class RoundConditions(TypedDict):
    """What may have disturbed a round; see :meth:`SingleStream.round`."""

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


class SingleStream:
    """Sends the next sample when the previous one has been answered, as MLPerf's scenario does.

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
    """

    def __init__(
        self, executor: Executor, chains: Sequence[Chain], items: Sequence[Item], seed: int
    ) -> None:
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
        load, mhz = os.getloadavg()[0], machine.mhz()
        switches = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
        hit = 0
        gc.collect()
        with pauses() as paused:
            for which, turn in self._turns(number):
                if len(self._stacks) > 1:
                    self._settle(self._stacks[which], self._items[turn[-1]])
                for index in turn:
                    before = paused.count
                    try:
                        ns[which, index], digests[which, index] = self._answer(which, index)
                    except SampleError as error:
                        failed[which, int(index)] = str(error)
                    hit += paused.count > before
                advance(len(turn))
        preempted = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw - switches
        collections = PausesOfRound(
            count=paused.count, ms=paused.ns / 1e6, longest_ms=paused.longest / 1e6, samples=hit
        )
        conditions = RoundConditions(
            load=load, mhz=mhz, preempted=preempted, collections=collections
        )
        return Round(number, ns, digests, failed, conditions)

    def _turns(self, number: int) -> list[tuple[int, Ints]]:
        """(stack, samples) of every turn of a round, as indices."""
        order = np.random.default_rng((self._seed, number)).permutation(len(self._items))
        turns = []
        for at in range(0, len(order), TURN):
            first = number + at // TURN
            for step in range(len(self._stacks)):
                turns.append(((first + step) % len(self._stacks), order[at : at + TURN]))
        return turns

    def _answer(self, which: int, index: int) -> tuple[list[int], str]:
        opened = self._stacks[which]
        walk = opened.walk(self._executor.context(self._items[index]))
        ns = [ABSENT] * len(self._column)
        for stage, took in walk.times(opened.plan.paths[0]).items():
            if took < 0:
                raise SampleError(f"{stage}: the clock went backwards by {-took:,} ns")
            ns[self._column[stage]] = took
        (answer,) = walk.answers()
        return ns, answer.digest

    def _settle(self, stack: Opened, item: Item) -> None:
        with suppress(SampleError):  # the timed rounds report it
            stack.walk(self._executor.context(item))
