"""Robustness runs that drop cells: a stack under a condition is run while it still matters.

A cell is held against the first stack under the same condition. What follows from several
conditions (NR, mCE, interactions, ...) would be of different samples, and is not measured.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from simulator.conditions.condition import AppliedCondition
from simulator.contract.recipe import Chain
from simulator.errors import UserError
from simulator.experiments.guessing import doubt
from simulator.experiments.search.evaluate import Arms, Evaluation
from simulator.experiments.session import Session, arm_of
from simulator.experiments.sweep.run import option_figures
from simulator.notices import Kind, Notice
from simulator.pipeline.stack import Stack
from simulator.results.suites import OptionFigures
from simulator.robustness.document import ConditionSuite
from simulator.robustness.figures import Measured
from simulator.robustness.records import CLEAN
from simulator.statistics.bootstrap import Floats, Resamples
from simulator.tasks.score import Score

WITHOUT = "clean"
"""The condition of a cell that has none."""


def asked_of(suite: ConditionSuite, stacks: Sequence[str]) -> tuple[ConditionSuite, list[Notice]]:
    """Return the part of a suite that a question can be asked of, and a notice of the rest.

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


def arms(
    stacks: Sequence[Stack],
    conditions: Sequence[AppliedCondition],
    under_it: Callable[[Stack, AppliedCondition], Chain],
) -> Arms:
    """Return what runs in all cells, those of the first stack included.

    Args:
        stacks: the first one is what the others are held against.
        conditions: of the suite.
        under_it: returns a stack's chain under a condition.
    """
    return {
        f"{stack.side}/{under.condition.text if under else WITHOUT}": (
            arm_of(stack.side, under),
            under_it(stack, under) if under else stack.chain,
        )
        for under in (None, *conditions)
        for stack in stacks
    }


def measured(session: Session, found: Evaluation, stacks: Sequence[str]) -> Measured:
    """Return the metric of each stack without a condition, and which samples were skipped.

    Raises:
        UserError: the metric cannot be measured on these samples.
    """
    first, *others = (f"{side}/{WITHOUT}" for side in stacks)
    scores = {first: found.reference} | {name: found.of(name).score(name) for name in others}
    metrics = {
        (side, CLEAN): _metric(session, score)
        for side, score in zip(stacks, scores.values(), strict=True)
    }
    session.notes.extend(doubt(session, found.reference))
    done, task = found.records, session.card.task
    skipped = {item.name: why for item, why in done.skipped}
    of = {name: arm.stack for name, (arm, _) in found.arms.items()}
    failed = done.failures(stacks, stacks[0], of)
    return Measured(metrics, {}, len(done.ran), task.resamples, skipped, failed)


def figures(found: Evaluation, metric: str, nc: Collection[str]) -> dict[str, OptionFigures]:
    """Return the figures of every cell, on the samples that it was run on."""
    return {
        name: option_figures(found, name, metric)
        for name in found.policy.options
        if name.partition("/")[0] not in nc
    }


def _metric(session: Session, score: Score) -> Floats:
    task = session.card.task
    if score.figure is None:
        raise UserError(f"robustness measures {task.headline}; give data with labels")
    return Resamples(len(score.records), session.seed, task.resamples).of(score.figure)
