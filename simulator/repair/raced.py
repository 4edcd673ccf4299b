"""Repairs that drop stacks: each runs until its gate is decided, or a cheaper one passes.

Every stack is judged on the same samples, in a random order, with bounds that hold for all stacks
at once and whenever one looks; see :mod:`simulator.experiments.search.questions`. So what is chosen
by them needs no confirmation on other samples, and there is no search half.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from simulator.experiments.answers import Answers
from simulator.experiments.common import TRAIN
from simulator.experiments.guessing import doubt
from simulator.experiments.search.gate import SequentialGate
from simulator.experiments.search.questions import CheapestPassing
from simulator.experiments.search.stopping import ALPHA
from simulator.notices import Kind, Notice
from simulator.repair import confirm
from simulator.repair.confirm import FINALISTS, Gate
from simulator.repair.passes import Passes, flips, latency
from simulator.repair.search import Search
from simulator.repair.space import NAME, Space
from simulator.repair.summary import Outcome
from simulator.report.words import AT_ANY_TIME
from simulator.results.json_text import finite
from simulator.results.repair import Confirmation
from simulator.statistics.bootstrap import Resamples

RACE = "race"
"""The pass in which all stacks run."""
METHOD = f"betting: for all stacks at once, {AT_ANY_TIME}"
OWN_SAMPLES = (
    "stacks were dropped as soon as they could no longer be the answer: each has figures of its "
    "own {unit}s (column n), which are not to be held against those of a stack with another n; "
    "intervals hold for all {family:,} stacks at once, whenever each was dropped"
)


def race(passes: Passes, space: Space, rules: Gate) -> tuple[Outcome, SequentialGate]:
    """Run all stacks until they are decided.

    Args:
        passes: what runs stacks, on samples in a random order.
        space: the stacks.
        rules: the gate, of means over samples.

    Returns:
        What was found, and what came of the rules of the stack that is the answer, or nearest.
    """
    session, task = passes.session, passes.session.card.task
    search = Search(passes, space, own=True)
    by, options = search.by, dict.fromkeys(search.by, TRAIN)
    judge = CheapestPassing(options, rules.rules, task, search.rank)
    session.show.stage(1, 1, f"{len(by)} stacks, until they are decided")
    search.run(RACE, judge)
    found = search.evaluation
    own = {name: found.of(name) for name in judge.order}
    session.notes.extend(doubt(session, found.reference))
    if judge.dropped:
        unit = session.card.modality.unit
        told = OWN_SAMPLES.format(unit=unit, family=len(by))
        session.notes.append(Notice(Kind.FEW_SAMPLES, told))
    chosen = judge.chosen(rules.undecided)
    near = _nearest_first(judge, own)
    nearest = chosen or near[0]
    left = {*(judge.answer() or near)[:FINALISTS], nearest}
    shown = [name for name in judge.order if name in left]
    confirmed = {
        name: _confirmed(name, own[name], judge, rules, session.seed)
        for name in dict.fromkeys([NAME, *shown])
    }
    order = [by[name] for name in judge.order]
    how: dict[str, Any] = {
        "early": judge.early(len(session.dataset.items)),
        "skipped": len(found.records.skipped),
        "skipped_in_search": 0,
        "exact": False,
        "rungs": [],
        "searched": 0,
        "family": len(by),
        "latency_ms": latency(found.records, (TRAIN, *confirmed)),
    }
    passed = {name: judge.passes(name) for name in shown}
    outcome = Outcome(order, own, (), search.ms, passed, confirmed, chosen, by[nearest], {}, how)
    return outcome, judge.gates[nearest]


def _nearest_first(judge: CheapestPassing, own: Mapping[str, Answers]) -> list[str]:
    """The stacks that were not decided, or else all: those that ran longest, with fewest flips."""
    some = [name for name in judge.order if name in judge.alive] or judge.order
    return sorted(some, key=lambda name: (-len(own[name].items), flips(own[name], name)))


def _confirmed(
    name: str, own: Answers, judge: CheapestPassing, rules: Gate, seed: int
) -> Confirmation:
    """The figures of a stack at its decision, with ends that hold for all stacks at any time."""
    decision, alpha = judge.gates[name], ALPHA / len(judge.options)
    own = _until(own, decision.compared) if decision.done else own
    task = own.task
    one = finite(confirm.compared(own, name, Resamples(len(own.items), seed, task.resamples)))
    decision.write_bounds(one, own.of(TRAIN), own.of(name), task, METHOD, alpha)
    gate = decision.gate(rules.judge(one), rules.undecided)
    none = dict.fromkeys(("p", "p_holm", "delta_p_holm"))
    return Confirmation.model_validate(one | none | {"passes": gate.passed, "rules": gate.rules})


def _until(found: Answers, samples: int) -> Answers:
    """The first samples of a stack: those that decided it."""
    return replace(
        found,
        items=found.items[:samples],
        records=tuple(record[:samples] for record in found.records),
        digests=found.digests[:, :samples],
    )
