"""The search: every stack on every sample, or successive halving on samples."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.contract.recipe import Chain
from simulator.errors import UserError
from simulator.experiments.common import TRAIN
from simulator.experiments.record_store import RecordStore
from simulator.experiments.search.evaluate import Evaluation
from simulator.experiments.search.policy import Compared, Policy
from simulator.model.artifact import digest
from simulator.pipeline.stack import Stack
from simulator.repair.passes import Passes, Told, flips_of_all
from simulator.repair.space import EXACT, NAME, Candidate, Pick, Space, better_half, name_of
from simulator.results.repair import Rung
from simulator.results.times import ABSENT

SEARCH = "search"
"""The pass of the search half."""
FIRST = 8
"""Samples of the first round of halving, at least."""
FINAL = 16
"""Stacks that run on every sample of the search half at the end of halving."""
STEP = 0.1
"""Milliseconds: measured costs are rounded to this; what is less is noise between two runs."""
Rank = Callable[[str], tuple[Any, ...]]
"""What stacks are ordered by, the cheapest first; known after the first round."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a search has found.

    Attributes:
        evaluation: the training stack and the others on the samples.
        by: the stacks that could be built, by name.
        ms: what each option whose cost is measured costs, in milliseconds.
        rank: what stacks are ordered by.
    """

    evaluation: Evaluation
    by: Mapping[str, Candidate]
    ms: Mapping[Pick, float]
    rank: Rank

    @property
    def order(self) -> list[Candidate]:
        """The stacks that were not dropped, the cheapest first."""
        return [self.by[name] for name in sorted(self.evaluation.policy.alive, key=self.rank)]


def schedule(stacks: int, samples: int) -> list[int]:
    """Return on how many samples stacks have run at the end of each round; the last is on all.

    Halving has the same work in each round: the samples double as the stacks halve.

    Args:
        stacks: how many there are.
        samples: of the search half.

    Source:
        Jamieson and Talwalkar, AISTATS 2016 (arXiv 1502.07943): successive halving.
    """
    if stacks <= EXACT:
        return [samples]
    rounds = math.ceil(math.log2(stacks / FINAL))
    ends = [max(FIRST * 2**at, samples >> (rounds - at)) for at in range(rounds)]
    return [*(end for end in ends if end < samples), samples]


class Halving(Policy):
    """Drops the worse half of the stacks after each round; see :func:`schedule`.

    Args:
        names: of the stacks.
        rank: what they are ordered by.
        measures: how many of its first entries are costs.
        begun: told the number of each round, of how many, and of its stacks.

    Attributes:
        rungs: how it went.
    """

    def __init__(
        self,
        names: Sequence[str],
        rank: Rank,
        measures: int,
        begun: Callable[[int, int, int], None],
    ) -> None:
        super().__init__(dict.fromkeys(names, TRAIN))
        self.rungs: list[Rung] = []
        self._rank, self._measures, self._begun = rank, measures, begun
        self._samples = 0
        self._changed, self._units = Counter[str](), Counter[str]()

    def rounds(self, samples: int) -> Iterator[tuple[int, int]]:
        """Yield the rounds; the last one ends with the last sample."""
        self._samples, ends = samples, schedule(len(self.options), samples)
        for number, (start, stop) in enumerate(pairwise([0, *ends]), 1):
            self._begun(number, len(ends), len(self.alive))
            yield start, stop

    def judge(self) -> None:
        """Drop stacks, and note how many."""
        before = len(self.alive)
        super().judge()
        dropped = before - len(self.alive)
        self.rungs.append(Rung(samples=self._seen, stacks=before, dropped=dropped))

    def _add(self, options: Mapping[str, Compared]) -> None:
        for name, (_, record) in options.items():
            self._changed[name] += record["changed"]
            self._units[name] += record["units"]

    def _settled(self) -> dict[str, str]:
        """The worse half; the deployment as it is stays, to be compared with."""
        if self._seen == self._samples:
            return {}
        points = {
            name: (self._flips(name), self._rank(name)[: self._measures])
            for name in self.alive
            if name != NAME
        }
        best = {*better_half(points, max(FINAL, math.ceil(len(self.alive) / 2)) - 1), NAME}
        return {name: "others are better" for name in self.alive if name not in best}

    def _flips(self, name: str) -> float:
        return self._changed[name] / self._units[name] if self._units[name] else 0.0


def evaluated(
    passes: Passes,
    space: Space,
    name: str,
    own: bool,
    policy: Callable[[Sequence[str], Rank], Policy],
    told: Told,
) -> Found:
    """Run the stacks of a space that can be built, and measure their costs in the first round.

    Args:
        passes: what runs stacks, on the samples in the order in which they are taken.
        space: the stacks.
        name: of the pass.
        own: see :meth:`Passes.stacks`.
        policy: returns what drops stacks, given their names and what they are ordered by.
        told: the rates that the pass shows.

    Raises:
        UserError: the deployment as it is does not run, which all are compared with.
    """
    stacks = passes.stacks(space.candidates, own)
    ready = {stack.side for stack in stacks}
    by = {one.name: one for one in space.candidates if one.name in ready}
    if NAME not in by:
        why = passes.left_out.get(NAME, "it cannot run")
        raise UserError(f"the deployment as it is does not run with this model: {why}")
    ms: dict[Pick, float] = {}

    def price(first: RecordStore) -> None:
        ms.update(measured(space, first, stacks))

    def rank(name: str) -> tuple[Any, ...]:
        return space.rank(by[name].picks, ms)

    found = passes.evaluate(name, stacks, policy([*by], rank), told, price)
    return Found(found, by, ms, rank)


def search(passes: Passes, space: Space) -> Found:
    """Run the search.

    Args:
        passes: what runs stacks, on the search half.
        space: the stacks.
    """

    def begun(number: int, of: int, stacks: int) -> None:
        passes.session.show.stage(number, of + 2, f"search, {stacks} stacks")

    def halving(names: Sequence[str], rank: Rank) -> Halving:
        return Halving(names, rank, len(space.order), begun)

    return evaluated(passes, space, SEARCH, False, halving, flips_of_all)


def measured(space: Space, first: RecordStore, stacks: Sequence[Stack]) -> dict[Pick, float]:
    """Return by how many milliseconds each option whose cost is measured makes a sample slower.

    It is the median over samples of what a stack with the option takes more than the same stack
    without it, averaged over all such pairs of stacks, and rounded to :data:`STEP`. Stages that
    the option leaves as they are do not count: their times differ by noise alone.

    Args:
        space: the stacks.
        first: the samples of the first round, in which all of them ran.
        stacks: those that ran.
    """
    made = {stack.side: _made(stack.chain) for stack in stacks}
    ns = {
        name: {s: np.where(ns == ABSENT, 0, ns) for s, ns in first.records(name).ns().items()}
        for name in made
    }

    def slower(name: str, without: str) -> NDArray[np.int64]:
        """The nanoseconds that one stack takes more, in stages that the other does otherwise."""
        found = np.zeros(len(first.ran), np.int64)
        for stage in {*made[name], *made[without]}:
            if made[name].get(stage) != made[without].get(stage):
                found += ns[name].get(stage, 0)
                found -= ns[without].get(stage, 0)
        return found

    found = {}
    for pick in space.measured:
        apart = []
        for one in space.candidates:
            without = name_of(tuple(other for other in one.picks if other != pick))
            if pick in one.picks and one.name in ns and without in ns:
                apart.append(float(np.median(slower(one.name, without))) / 1e6)
        found[pick] = round(round(float(np.mean(apart)) / STEP) * STEP, 6) if apart else 0.0
    return found


def _made(chain: Chain) -> dict[str, str]:
    """What tells the recipes of each stage from others."""
    stages = dict.fromkeys(recipe.stage for recipe in chain.recipes)
    return {
        stage: digest([one.identity() for one in chain.recipes if one.stage == stage])
        for stage in stages
    }
