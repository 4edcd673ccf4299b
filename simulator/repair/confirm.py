"""Confirmation: the finalists on samples that the search has not seen, and what each change gives.

The search sees one half of the samples; whatever is said of a stack is measured on the other one.
Several finalists are several tests, so that intervals are simultaneous and p-values are Holm's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from typing import Any

from simulator.analysis import attribute, gate, outcomes
from simulator.analysis.attribute import Game, Subset
from simulator.analysis.figures import AnySummary
from simulator.experiments.answers import Answers
from simulator.experiments.common import TRAIN
from simulator.experiments.failures import tallied
from simulator.experiments.search.space import Picks
from simulator.repair.passes import flips
from simulator.repair.search import Search
from simulator.repair.space import NAME, name_of
from simulator.report.words import SIGNIFICANT
from simulator.results.json_text import finite
from simulator.results.repair import Confirmation, Judged, Repaired
from simulator.results.shared import Gate as Verdict
from simulator.results.shared import RuleOutcome
from simulator.statistics import special
from simulator.statistics.bootstrap import RATE, Floats, Resamples, effect, interval
from simulator.tasks.figures import Figures
from simulator.tasks.score import flip_rate

FINALISTS = 4
"""The cheapest stacks that pass the search are confirmed, and the one with the fewest flips; where
fewer pass, those with the fewest flips of the others take their places."""
DRAWS = 200
"""Resamples for the gate in the search, where intervals decide nothing."""
SHARED = 4
"""Up to so many changes are shares told, which need every subset of them."""
_NOT = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


def read(rules: Sequence[str], allow_failed: str | None) -> list[gate.Rule]:
    """Read rules of what must hold, as the gate knows them: what must not.

    Raises:
        UserError: one of them is no rule.
    """
    return [
        rule if isinstance(rule, gate.Borne) else replace(rule, op=_NOT[rule.op])
        for rule in gate.read(rules, allow_failed)
    ]


@dataclass(frozen=True, slots=True)
class Gate:
    """What a stack must fulfil.

    Attributes:
        rules: of what must not be, see :func:`read`.
        undecided: see :func:`simulator.analysis.outcomes.evaluate`.
        shape: of the figures, as the task has them.
    """

    rules: Sequence[gate.Rule]
    undecided: str
    shape: type[Judged] = Judged

    def checked(self, shape: type[Judged], vocabulary: Mapping[str, Sequence[str]]) -> Gate:
        """Return the same; see :func:`simulator.analysis.gate.check`."""
        return replace(self, rules=gate.check(self.rules, shape, vocabulary), shape=shape)

    def judge(self, figures: AnySummary) -> Verdict:
        """Return whether a stack passes, and what came of each rule."""
        return outcomes.evaluate(self.rules, figures, self.undecided, self.shape)


def compared(found: Answers, name: str, draws: Resamples) -> Figures:
    """Return the figures of a stack against training, as :class:`Judged` has them."""
    both = found.task.compare(found.score(TRAIN), found.score(name), draws)
    count, pair = len(found.items), (TRAIN, name)
    failed = tallied(found.broken, pair, TRAIN, dict.fromkeys(pair, count))["failed"]
    return {
        "samples": count,
        "failed": {TRAIN: failed[TRAIN], NAME: failed[name]},
        **{key: both[key] for key in ("labelled", "delta", "flips")},
        "metric": both["deploy"]["metric"],
    }


def finalists(search: Search, rules: Gate, seed: int) -> dict[str, bool]:
    """Return the stacks that are confirmed, and whether each passes in the search."""
    seen, names = search.evaluation.shared, [candidate.name for candidate in search.alive]
    draws = Resamples(len(seen.items), seed, DRAWS)
    passes = cache(lambda name: rules.judge(finite(compared(seen, name, draws))).passed)
    passing = list(islice(filter(passes, names), FINALISTS))
    least = sorted(names, key=lambda name: flips(seen, name))
    left = [name for name in least if name not in passing]
    more = max(FINALISTS - len(passing), int(left[:1] == least[:1]))
    taken = {*passing, *left[:more]}
    return {name: passes(name) for name in names if name in taken}


def confirmed(
    found: Answers, names: Sequence[str], rules: Gate, seed: int
) -> dict[str, Confirmation]:
    """Return the figures of the finalists, of samples that the search has not seen.

    Args:
        found: their records.
        names: of the finalists. With the deployment as it is they are the family: what is shown
            of it holds together with the others.
        rules: the gate.
        seed: of the bootstrap.
    """
    every = list(dict.fromkeys([NAME, *names]))
    draws = Resamples(len(found.items), seed, found.task.resamples)
    whole = {name: finite(compared(found, name, draws)) for name in every}
    p = {name: _chance(whole[name], rules.rules) for name in every}
    p_delta = {name: _delta_p(whole[name], found.task.headline) for name in every}
    holm, holm_delta = (_holm(of) for of in (p, p_delta))
    confirmations = {}
    for name in every:
        one = whole[name]
        one["flips"]["ci95"] = _simultaneous(found, name, one["flips"], draws, len(every))
        gate = rules.judge(one)
        confirmations[name] = Confirmation.model_validate(
            one
            | {
                "passes": gate.passed, "rules": gate.rules, "p": p[name], "p_holm": holm.get(name),
                "delta_p_holm": holm_delta.get(name),
            }
        )  # fmt: skip
    return confirmations


def _chance(one: Figures, rules: Sequence[gate.Rule]) -> float | None:
    """P(so few flips | a flip rate at the limit of the first rule ``flip_rate < ...``)."""
    limits = [r.limit for r in rules if r.name == "flips.rate" and r.op in (">", ">=")]
    count, units = one["flips"]["count"], one["flips"]["units"]
    if not limits or units != one["samples"] or not 0 < limits[0] < 1:
        return None
    return float(special.bdtr(count, units, limits[0]))


def _delta_p(one: Figures, metric: str) -> float | None:
    delta = one["delta"].get(metric)
    return delta["p"] if delta else None


def _holm(p_values: Mapping[str, float | None]) -> dict[str, float]:
    return attribute.holm({name: p for name, p in p_values.items() if p is not None})


def _simultaneous(
    found: Answers, name: str, flipped: Figures, draws: Resamples, family: int
) -> list[float] | None:
    """The interval of a flip rate at 1 - 0.05 / family."""
    if not flipped["units"]:
        return None
    drawn = flip_rate(found.of(name), draws)
    return list(interval(drawn, draws.number, RATE, confidence=1 - 0.05 / family))


def settled(gate: Verdict, p: float | None, undecided: str) -> Verdict:
    """Return the gate of an answer, a rule that it passes by chance alone undecided.

    Args:
        gate: by the figures.
        p: of the answer's flips, after Holm's correction; None where there is no such test.
        undecided: see :func:`simulator.analysis.outcomes.evaluate`.
    """

    def sure(outcome: RuleOutcome) -> bool:
        if p is not None and outcome.rule.startswith("flip_rate"):
            return p < SIGNIFICANT
        return not outcome.chance

    undecided_one = {"undecided": True, "failed": undecided == "fail"}
    rules = [
        rule if rule.failed or sure(rule) else rule.model_copy(update=undecided_one)
        for rule in gate.rules
    ]
    return Verdict.of(rules)


def answer(
    names: Mapping[str, bool], found: Mapping[str, Confirmation], rank: Callable[[str], Any]
) -> tuple[str | None, str]:
    """Return the cheapest finalist that passes, and the nearest where none does.

    Args:
        names: the finalists.
        found: what was confirmed of each.
        rank: what finalists are ordered by, the cheapest least.
    """
    passing = [name for name in names if found[name].passes]
    if passing:
        best = min(passing, key=rank)
        return best, best

    def behind(name: str) -> tuple[float, Any]:
        rate = found[name].flips.rate
        return math.inf if rate is None else rate, rank(name)

    return None, min(names, key=behind)


def subsets(picks: Picks) -> list[Picks]:
    """Return the parts of an answer that are run to tell what each change gives."""
    names = list(dict.fromkeys("/".join(pick) for pick in picks))
    by = {"/".join(pick): pick for pick in picks}
    wanted = attribute.subsets(names)
    if len(names) > SHARED:
        wanted = [s for s in wanted if len(s) in (0, 1, len(names) - 1, len(names))]
    return [tuple(by[name] for name in names if name in s) for s in wanted]


def repaired(found: Answers, picks: Picks, seed: int) -> dict[str, dict[str, Repaired]]:
    """Return what each change gives back, by its name and by figure.

    Args:
        found: the records of the stacks of :func:`subsets` that can be built and run.
        picks: the changes of the answer.
        seed: of the bootstrap.
    """
    task = found.task
    draws = Resamples(len(found.items), seed, task.resamples)
    by = {"/".join(pick): pick for pick in picks}

    def stack(some: Subset) -> str:
        return name_of(tuple(by[name] for name in by if name in some))

    games = found.games(stack, draws)
    rate = games["flip_rate"]
    games["flip_rate"] = lambda some: -rate(some)
    ran = {some for some in attribute.subsets(list(by)) if stack(some) in found.names}
    whole: dict[str, dict[str, Repaired]] = {name: {} for name in by}
    for figure, game in games.items():
        for name, repaired in _shares(list(by), game, ran, seed, draws.number).items():
            whole[name][figure] = repaired
    return whole


def _shares(
    names: Sequence[str], game: Game, ran: set[Subset], seed: int, number: int
) -> dict[str, Repaired]:
    """What each change gives; None where a stack that it needs is not among those that ran."""
    every, none = frozenset(names), frozenset[str]()
    complete = len(names) <= SHARED and len(ran) == 2 ** len(names)
    shares = attribute.shapley(names, game, seed=seed).values if complete else None

    def gained(some: Subset, without: Subset) -> Figures | None:
        return told(game(some) - game(without)) if {some, without} <= ran else None

    def told(figure: Floats) -> Figures:
        return effect(figure, number).told()

    return {
        name: Repaired.model_validate(
            finite(
                {
                    "alone": gained(frozenset({name}), none),
                    "last": gained(every, every - {name}),
                    "share": None if shares is None else told(shares[at]),
                }
            )
        )
        for at, name in enumerate(names)
    }
