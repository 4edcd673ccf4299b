"""The search: every stack on every sample, or successive halving on samples."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.command.options import Progress
from simulator.contract.recipe import Chain
from simulator.errors import UserError
from simulator.experiments.common import TRAIN
from simulator.experiments.record_store import RecordStore
from simulator.experiments.search.evaluate import Evaluation
from simulator.experiments.search.policy import Compared, Policy
from simulator.experiments.search.space import Pick
from simulator.model.artifact import digest
from simulator.repair.passes import Passes
from simulator.repair.space import EXACT, NAME, Candidate, Space, better_half, name_of
from simulator.results.repair import Rung
from simulator.results.times import ABSENT

FIRST = 8
"""Samples of the first round of halving, at least."""
FINAL = 16
"""Stacks that run on every sample of the search half at the end of halving."""
STEP = 0.1
"""Milliseconds: measured costs are rounded to this; what is less is noise between two runs."""
Rank = tuple[Any, ...]
"""What stacks are ordered by, the cheapest first; see :meth:`Space.rank`."""


def schedule(stacks: int, samples: int) -> list[int]:
    """Return on how many samples stacks have run at the end of each round; the last is on all.

    Halving has the same work in each round: the samples double as the stacks halve.

    Source:
        Jamieson and Talwalkar, AISTATS 2016 (arXiv 1502.07943): successive halving.
    """
    if stacks <= EXACT:
        return [samples]
    rounds = math.ceil(math.log2(stacks / FINAL))
    ends = [max(FIRST * 2**at, samples >> (rounds - at)) for at in range(rounds)]
    return [*(end for end in ends if end < samples), samples]


class Halving(Policy):
    """Drops the worse half of the stacks after each round; see :func:`schedule`."""

    def __init__(self, names: Sequence[str], cost: Callable[[str], Rank], show: Progress) -> None:
        super().__init__(dict.fromkeys(names, TRAIN))
        self.rungs: list[Rung] = []
        self._cost, self._show, self._samples = cost, show, 0
        self._changed, self._units = Counter[str](), Counter[str]()

    def rounds(self, samples: int) -> Iterator[tuple[int, int]]:
        """Yield the rounds; the last one ends with the last sample."""
        self._samples, ends = samples, schedule(len(self.options), samples)
        for number, (start, stop) in enumerate(pairwise([0, *ends]), 1):
            self._show.stage(number, len(ends) + 2, f"search, {len(self.alive)} stacks")
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
            name: (self._changed[name] / max(self._units[name], 1), self._cost(name))
            for name in self.alive
            if name != NAME
        }
        best = {*better_half(points, max(FINAL, math.ceil(len(self.alive) / 2)) - 1), NAME}
        return {name: "others are better" for name in self.alive if name not in best}


class Search:
    """The stacks of a space that can be built, and what came of them.

    Args:
        passes: what runs stacks, on samples in the order in which they are taken.
        space: the stacks.
        own: see :meth:`Passes.stacks`.

    Attributes:
        by: the stacks, by name.
        ms: what each option whose cost is measured costs, in milliseconds.
        evaluation: what came of them; there after :meth:`run`.

    Raises:
        UserError: the deployment as it is does not run, which all are compared with.
    """

    evaluation: Evaluation

    def __init__(self, passes: Passes, space: Space, own: bool) -> None:
        self._passes, self._space = passes, space
        self._stacks = passes.stacks(space.candidates, own)
        ready = {stack.side for stack in self._stacks}
        self.by = {
            candidate.name: candidate for candidate in space.candidates if candidate.name in ready
        }
        self.ms: dict[Pick, float] = {}
        if NAME not in self.by:
            why = passes.left_out.get(NAME, "it cannot run")
            raise UserError(f"the deployment as it is does not run with this model: {why}")

    def run(self, name: str, policy: Policy) -> None:
        """Run the stacks, in a pass of this name, and measure costs in the first round."""
        self.evaluation = self._passes.evaluate(name, self._stacks, policy, self._measure)

    def rank(self, name: str) -> Rank:
        """Return what stacks are ordered by, the cheapest first; known after the first round."""
        return self._space.rank(self.by[name].picks, self.ms)

    def cost(self, name: str) -> Rank:
        """Return the measures of cost of a stack; likewise."""
        return self.rank(name)[: len(self._space.order)]

    @property
    def alive(self) -> list[Candidate]:
        """The stacks that were not dropped, the cheapest first."""
        return [self.by[name] for name in sorted(self.evaluation.policy.alive, key=self.rank)]

    def _measure(self, first: RecordStore) -> None:
        """Fill in by how many milliseconds options whose cost is measured make a sample slower.

        It is the median over samples of what a stack with the option takes more than the same
        stack without it, averaged over all such pairs of stacks, and rounded to :data:`STEP`.
        Stages that the option leaves as they are do not count: their times differ by noise alone.
        """
        made = {stack.side: _made(stack.chain) for stack in self._stacks}
        ns = {
            name: {s: np.where(ns == ABSENT, 0, ns) for s, ns in first.records(name).ns().items()}
            for name in made
        }

        def slower(name: str, without: str) -> NDArray[np.int64]:
            found = np.zeros(len(first.ran), np.int64)
            for stage in {*made[name], *made[without]}:
                if made[name].get(stage) != made[without].get(stage):
                    found += ns[name].get(stage, 0)
                    found -= ns[without].get(stage, 0)
            return found

        for pick in self._space.measured:
            apart = []
            for candidate in self.by.values():
                without = name_of(tuple(other for other in candidate.picks if other != pick))
                if pick in candidate.picks and without in self.by:
                    apart.append(float(np.median(slower(candidate.name, without))) / 1e6)
            self.ms[pick] = round(round(float(np.mean(apart)) / STEP) * STEP, 6) if apart else 0.0


def _made(chain: Chain) -> dict[str, str]:
    """What tells the recipes of each stage from others."""
    stages = dict.fromkeys(recipe.stage for recipe in chain.recipes)
    return {
        stage: digest([one.identity() for one in chain.recipes if one.stage == stage])
        for stage in stages
    }
