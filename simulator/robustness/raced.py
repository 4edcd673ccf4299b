"""Robustness runs that drop cells: a stack under a condition is run while it still matters.

A cell is held against the first stack under the same condition. What follows from several
conditions (NR, mCE, interactions, ...) would be of different samples, and is not measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from simulator.conditions.condition import AppliedCondition
from simulator.contract.recipe import Chain
from simulator.errors import UserError
from simulator.experiments.answers import Answers
from simulator.experiments.guessing import doubt
from simulator.experiments.racing import Lane, Lanes
from simulator.experiments.record_store import RecordStore
from simulator.experiments.session import Session, arm_of
from simulator.experiments.sweep.run import option_figures
from simulator.notices import Kind, Notice
from simulator.pipeline.stack import Stack
from simulator.results.suites import OptionFigures
from simulator.robustness.document import ConditionSuite
from simulator.robustness.figures import Measured
from simulator.robustness.records import CLEAN
from simulator.statistics.bootstrap import Floats, Resamples

WITHOUT = "clean"
"""The condition of a cell that has none."""


def asked_of(suite: ConditionSuite, stacks: Sequence[str]) -> tuple[ConditionSuite, list[Notice]]:
    """Return the part of a suite that a question can be asked of, and a notice of the rest.

    Args:
        suite: in whole.
        stacks: their names.

    Raises:
        UserError: there is nothing to ask of, or only one stack.
    """
    if len(stacks) < 2:
        raise UserError("--until-decided holds stacks against the first one; give two or more")
    parts = {"sequences": bool(suite.sequences), "system noise": suite.noise is not None}
    rest = " and ".join(name for name, there in parts.items() if there)
    if not suite.series:
        raise UserError(
            f"--until-decided asks of single conditions, and {suite.spec.name} has {rest} only; "
            "leave it out"
        )
    text = f"{suite.spec.name} has {rest}, which no question is asked of: they were not run"
    notices = [Notice(Kind.STOPPED_EARLY, text)] if rest else []
    return replace(suite, sequences=(), noise=None), notices


def cells(stacks: Sequence[str], conditions: Sequence[AppliedCondition]) -> dict[str, str]:
    """Return every cell, STACK/CONDITION, with the cell of the first stack it is held against."""
    first, *others = stacks
    texts = [WITHOUT, *(under.condition.text for under in conditions)]
    return {f"{side}/{text}": f"{first}/{text}" for text in texts for side in others}


def lanes(
    stacks: Sequence[Stack],
    conditions: Sequence[AppliedCondition],
    under_it: Callable[[Stack, AppliedCondition], Chain],
) -> Lanes:
    """Return the lanes of all cells, those of the first stack included.

    Args:
        stacks: the first one is what the others are held against.
        conditions: of the suite.
        under_it: returns a stack's chain under a condition.
    """
    against = cells([stack.side for stack in stacks], conditions)
    found = {}
    for under in (None, *conditions):
        for stack in stacks:
            name = f"{stack.side}/{under.condition.text if under else WITHOUT}"
            chain = under_it(stack, under) if under else stack.chain
            found[name] = Lane(arm_of(stack.side, under), chain, against.get(name))
    return found


def measured(session: Session, done: RecordStore, lanes: Lanes, stacks: Sequence[str]) -> Measured:
    """Return the metric of each stack without a condition, and which samples were skipped.

    Raises:
        UserError: the metric cannot be measured on these samples.
    """
    task = session.card.task
    first, metrics = f"{stacks[0]}/{WITHOUT}", {}
    for side in stacks:
        name = f"{side}/{WITHOUT}"
        found = done.answers(first, name)
        metrics[side, CLEAN] = _metric(session, found, name)
        if side == stacks[0]:
            session.notes.extend(doubt(session, found.score(name)))
    skipped = {item.name: why for item, why in done.skipped}
    of = {name: lane.arm.stack for name, lane in lanes.items()}
    failed = done.failures(stacks, stacks[0], of)
    return Measured(metrics, {}, len(done.ran), task.resamples, skipped, failed)


def figures(
    session: Session, done: RecordStore, against: dict[str, str], nc: Sequence[str]
) -> dict[str, OptionFigures]:
    """Return the figures of every cell, on the samples that it was run on.

    Args:
        session: the model.
        done: the samples.
        against: see :func:`cells`.
        nc: stacks that did not converge; their cells have no figures.
    """
    task, found = session.card.task, {}
    for name, first in against.items():
        if name.partition("/")[0] in nc:
            continue
        own = done.answers(first, name)
        draws = Resamples(len(own.items), session.seed, task.resamples)
        compared = task.compare(own.score(first), own.score(name), draws)
        one = option_figures(compared, task.headline)
        found[name] = one.model_copy(update={"samples": len(own.items)})
    return found


def _metric(session: Session, found: Answers, name: str) -> Floats:
    task = session.card.task
    figure = found.score(name).figure
    if figure is None:
        raise UserError(f"robustness measures {task.headline}; give data with labels")
    return Resamples(len(found.items), session.seed, task.resamples).of(figure)
