"""``simulate diagnose``: which part is to blame, what is it called, what is to change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from simulator.command.experiment import Experiment
from simulator.contract import U8
from simulator.contract.recipe import Chain
from simulator.data.folder import Item, subset
from simulator.diagnose.blame import Blame, Sample, Values
from simulator.diagnose.declared import Declared
from simulator.diagnose.experiment import DiagnoseOptions
from simulator.diagnose.finding import Finding, Part
from simulator.diagnose.gap import SAME
from simulator.diagnose.names import Names
from simulator.diagnose.parts import DEPLOY, TRAIN, Parts, input_of, parts_of
from simulator.diagnose.repair import repaired
from simulator.errors import DataError, SampleError, UserError
from simulator.experiments.common import manifest, named, pair_of, refuse_missing, variants
from simulator.experiments.job import Job, Result
from simulator.experiments.pictures.decoded import writer
from simulator.experiments.running import run_and_keep
from simulator.experiments.session import Session
from simulator.experiments.summary import head
from simulator.modalities.image.shown import thumbnail
from simulator.notices import merged
from simulator.pipeline import recorded
from simulator.pipeline.adapted import refuse_together
from simulator.pipeline.own_front_end import OwnOutputs
from simulator.pipeline.plan import Plan
from simulator.pipeline.stack import Pair, Stack
from simulator.report.verdict import concluded
from simulator.results.diagnose import (
    DiagnoseSummary,
    FindingResult,
    InputPictures,
    PartResult,
    Repair,
)
from simulator.results.layout import LOOKS
from simulator.results.store import RunWriter

KEPT = 4
"""Samples whose inputs and outputs are looked into for names."""


def diagnose(experiment: Experiment[Any], asked: DiagnoseOptions) -> Result[DiagnoseSummary]:
    """Say which part of a deployment stack is to blame.

    Examples:
        >>> result = diagnose("pillow_fp32", "opencv_fp32", limit=1)
        >>> [part.state for part in result.summary.parts]
        ['differs', 'equal', 'equal']
    """
    job = Job(experiment, asked)
    pair = pair_of(asked.train, asked.deploy, asked.changes, asked.pixels)
    refuse_missing(pair.values())
    for side, stack in pair.items():
        refuse_together(side, *stack, "a diagnosis needs")
    folder = job.folder("diagnose", pair)
    job.refuse_taken(folder)
    with job.session(limited=False) as opened:
        session, absent = _recorded_only(opened, pair, asked.limit)
        session.card.refuse_second("a diagnosis takes")
        if session.under and session.under.condition.asks_each:
            raise UserError(
                f"--under {session.under.condition.text}: a diagnosis needs the same picture for "
                "both stacks; write on= and the profile of one of them"
            )
        stacks = [_of_any_classes(one, session) for one in session.stacks(variants(pair).values())]
        parts = parts_of(session, *stacks)
        mixtures = dict(parts.mixtures())
        plan = session.plan([*mixtures.values()], parts.asides())
        start = manifest(stacks, session, asked.changes) | {"request": job.request()}
        with job.writer(folder, start, session) as run:
            done = run_and_keep(session, plan, run, timed=False)
            values, seen = _values(session, parts, plan, done.ran)
            blame = Blame(session, parts, values, done, frozenset(mixtures))
            found = blame.results()
            looked = seen[:KEPT]
            session.show.say("what the differences are called")
            names = Names(Declared(session, pair, parts, looked), values.samples)
            findings = names.findings(found)
            found = _cleared(found, findings)
            repair = repaired(session, pair, parts, looked, findings)
            changed, units = blame.changed
            summary = DiagnoseSummary(
                **head(session.card, len(done.ran), len(done.skipped)),
                train=named(pair["train"]),
                deploy=named(pair["deploy"]),
                unit=session.card.unit,
                changed=changed,
                units=units,
                parts=found,
                findings=[_result(one) for one in findings],
                layers=names.layers,
                inputs=inputs_shown(session, parts, seen, values.samples, run),
                notes=names.notes,
                repair=repair,
                explained=_explained(blame, found, findings, repair),
                absent=absent,
                under=session.condition,
                warnings=[
                    *merged(notice for stack in stacks for notice in stack.labelled_notices),
                    *session.notes,
                ],
            )
            took = {"seconds": job.seconds(), "workers": session.workers}
            summary = concluded(summary.model_copy(update={"seconds": took["seconds"]}))
            run.finish(summary, took | session.ran())
    return Result(summary, folder)


def _of_any_classes(stack: Stack, session: Session) -> Stack:
    """Let a classifier's outputs that code gives have classes more or fewer: that has a name."""
    if session.card.task.name != "classification":
        return stack
    recipes = [
        replace(one, outputs={name: (*shape[:-1], None) for name, shape in one.outputs.items()})
        if isinstance(one, OwnOutputs)
        else one
        for one in stack.chain.recipes
    ]
    return replace(stack, chain=Chain(tuple(recipes)))


def _recorded_only(session: Session, pair: Pair, limit: int | None) -> tuple[Session, int]:
    """Keep the samples that both sides have, and of these a random subset.

    Returns:
        The session over these samples, and how many were not recorded.

    Raises:
        DataError: a recording has none of the samples, or is of another model.
    """
    items, wanted = session.dataset.items, tuple(session.source.wanted(session.card))
    for one in (found for side in pair.values() for found in recorded.recordings(*side).values()):
        there = tuple(item for item in items if one.holds(item, wanted))
        one.check(session.source.digest, there or items, wanted)
        items = there
    if not items:
        raise DataError("no sample was recorded on both sides; record the same ones")
    absent = len(session.dataset.items) - len(items)
    kept = subset(session.subset(items).dataset, limit, session.seed).items
    taken = replace(session.subset(kept).calibrating_on(kept, None), limit=limit)
    return taken, absent


def _values(
    session: Session, parts: Parts, plan: Plan, ran: Sequence[Item]
) -> tuple[Values, list[Item]]:
    """Look at inputs and outputs of every sample that went through, and can still be read."""
    session.show.say("comparing inputs and outputs")
    found, walked = Values(session, parts, KEPT), session.executor.walks(plan)
    seen = []
    for item in ran:
        try:
            found.see(walked(item))
            seen.append(item)
        except SampleError:  # the file is gone or changed since
            continue
    return found, seen


def _explained(
    blame: Blame, found: Sequence[PartResult], findings: Sequence[Finding], repair: Repair | None
) -> bool:
    """Whether nothing differs, or the findings explain all of it."""
    if blame.answers in SAME and all(one.state == "unknown" for one in found):
        return True
    if repair and repair.state != "unknown":
        return repair.state in SAME and not repair.changed
    known = {one.part.value for one in findings if one.certainty.sure}
    return all(one.state in SAME or one.part in known for one in found)


def _cleared(found: Sequence[PartResult], findings: Sequence[Finding]) -> list[PartResult]:
    """Parts that are not known are innocent where a slip of the answers explains all of it."""
    if not findings or any(one.part is not Part.POSTPROCESS for one in findings):
        return [*found]
    if not all(one.certainty.sure for one in findings):
        return [*found]
    cleared = "Not to blame: with the slip of the answers undone, all is equal."
    guilty = {"state": "differs", "told": ["It differs as its name below says."]}
    innocent = {"state": "rounding", "told": [cleared]}
    return [
        one.model_copy(update=guilty)
        if one.part == Part.POSTPROCESS.value
        else one.model_copy(update=innocent)
        if one.state == "unknown"
        else one
        for one in found
    ]


def _result(one: Finding) -> FindingResult:
    return FindingResult.model_validate(
        {
            "part": one.part.value, "name": one.name, "evidence": [*one.evidence],
            "certainty": one.certainty.value, "left": one.left, "change": dict(one.change),
            "code": one.code,
        }
    )  # fmt: skip


LONGEST = 224
"""Pixels of a picture's longer side."""


def inputs_shown(
    session: Session, parts: Parts, items: Sequence[Item], samples: Sequence[Sample], run: RunWriter
) -> InputPictures | None:
    """Write pictures of both inputs of the first sample that differs, as training's are shown.

    Returns:
        Their paths; None where no input differs, or one is no picture or not known.
    """
    card, draw = session.card, writer()
    show = card.modality.shown_input(parts.stacks[TRAIN].profile, card.spec)
    for item, sample in zip(items, samples, strict=False):
        train, deploy = (sample.get(input_of(side)) for side in (TRAIN, DEPLOY))
        if draw is None or show is None:
            return None
        if not (isinstance(train, np.ndarray) and isinstance(deploy, np.ndarray)):
            return None
        if np.array_equal(train, deploy):
            continue
        pictures = {TRAIN: show(train), DEPLOY: show(deploy)}
        if pictures[TRAIN].shape == pictures[DEPLOY].shape:
            pictures["difference"] = _difference(*pictures.values())
        paths = {name: f"{LOOKS}/{name}.png" for name in pictures}
        for name, pixels in pictures.items():
            run.write_file(paths[name], draw.png(thumbnail(pixels, LONGEST)[0]))
        return InputPictures(sample=item.name, **paths)
    return None


def _difference(train: U8, deploy: U8) -> U8:
    """The absolute difference, its largest levels white."""
    apart = np.abs(train.astype(np.int16) - deploy)
    return np.asarray(apart * (255 / max(1, int(apart.max()))), np.uint8)
