"""The search: every stack on every sample, or successive halving on samples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from simulator.data.folder import Item
from simulator.errors import UserError
from simulator.experiments.common import TRAIN
from simulator.repair.passes import Ns, Part, Passes, flips, joined
from simulator.repair.space import EXACT, NAME, Candidate, Pick, Space, better_half, name_of
from simulator.results.repair import Rung

FIRST = 8
"""Samples of the first round of halving, at least."""
FINAL = 16
"""Stacks that run on every sample of the search half at the end of halving."""
STEP = 0.1
"""Milliseconds: measured costs are rounded to this; what is less is noise between two runs."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a search has found.

    Attributes:
        part: the records of the training stack and of those of the last round.
        candidates: the stacks of the last round, the cheapest first.
        rounds: how it went.
        ms: what each option whose cost is measured costs, in milliseconds.
    """

    part: Part
    candidates: tuple[Candidate, ...]
    rounds: list[Rung]
    ms: Mapping[Pick, float]


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


def search(passes: Passes, space: Space, items: Sequence[Item]) -> Found:
    """Run the search.

    Args:
        passes: what runs stacks.
        space: the stacks.
        items: the samples of the search half, in the order in which they are taken.
    """
    alive, parts, rounds = list(space.candidates), list[Part](), list[Rung]()
    ms: dict[Pick, float] = {}
    ends = schedule(len(alive), len(items))
    start = 0
    for number, end in enumerate(ends, 1):
        passes.session.show.stage(number, len(ends) + 2, f"search, {len(alive)} stacks")
        parts.append(passes.run(f"search-{number}", alive, items[start:end], own=False))
        ran = parts[-1].answers.names
        alive = [one for one in alive if one.name in ran]
        if number == 1:
            refuse_bare(alive, passes)
            ms = measured(space, parts[0])
        count, start = len(alive), end
        if end < len(items):
            alive = _kept(space, joined(parts, [one.name for one in alive]), alive, ms)
        rounds.append(Rung(samples=end, stacks=count, dropped=count - len(alive)))
    alive.sort(key=lambda one: space.rank(one.picks, ms))
    whole = joined(parts, [TRAIN, *(one.name for one in alive)])
    return Found(whole, tuple(alive), rounds, ms)


def refuse_bare(alive: Sequence[Candidate], passes: Passes) -> None:
    """Refuse a search without the deployment as it is, which all are compared with."""
    if not alive or alive[0].name != NAME:
        why = passes.left_out.get(NAME, "it cannot run")
        raise UserError(f"the deployment as it is does not run with this model: {why}")


def _kept(
    space: Space, part: Part, alive: Sequence[Candidate], ms: Mapping[Pick, float]
) -> list[Candidate]:
    """The better half; the deployment as it is stays, to be compared with."""
    points = {
        one.name: (flips(part.answers, one.name), space.rank(one.picks, ms)[: len(space.order)])
        for one in alive
        if one.picks
    }
    best = {*better_half(points, max(FINAL, math.ceil(len(alive) / 2)) - 1), NAME}
    return [one for one in alive if one.name in best]


def measured(space: Space, part: Part) -> dict[Pick, float]:
    """Return by how many milliseconds each option whose cost is measured makes a sample slower.

    It is the median over samples of what a stack with the option takes more than the same stack
    without it, averaged over all such pairs of stacks, and rounded to :data:`STEP`. Stages that
    the option leaves as they are do not count: their times differ by noise alone.

    Args:
        space: the stacks.
        part: of the first round, in which all of them ran.
    """
    found = {}
    for pick in space.measured:
        apart = []
        for one in space.candidates:
            without = name_of(tuple(other for other in one.picks if other != pick))
            if pick in one.picks and one.name in part.ns and without in part.ns:
                apart.append(float(np.median(_slower(part, one.name, without))) / 1e6)
        found[pick] = round(round(float(np.mean(apart)) / STEP) * STEP, 6) if apart else 0.0
    return found


def _slower(part: Part, name: str, without: str) -> Ns:
    """The nanoseconds that one stack takes more than another, in stages that they do otherwise."""
    slower = np.zeros(len(part.answers.items), np.int64)
    for stage in {*part.made[name], *part.made[without]}:
        if part.made[name].get(stage) != part.made[without].get(stage):
            slower += part.ns[name].get(stage, 0)
            slower -= part.ns[without].get(stage, 0)
    return slower
