"""The content of ``summary.json`` of a pair."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypedDict

import numpy as np

from simulator.contract.stage import timed_steps
from simulator.experiments.record_store import RecordStore
from simulator.model.card import Card
from simulator.model.said import described
from simulator.notices import Kind, Notice, merged
from simulator.pipeline.stack import Stack
from simulator.profile import axes
from simulator.results.pair import Axis, AxisEffect, AxisSide, SelfCheck
from simulator.results.shared import Running
from simulator.results.times import ABSENT, Ints, total
from simulator.statistics.bootstrap import Resamples
from simulator.statistics.percentiles import figures, not_carried, samples_needed
from simulator.tasks.score import Score
from simulator.tasks.task import Task
from simulator.tasks.view import Told

SIDES = ("train", "deploy")
SKIPPED_LISTED = 20
TOTAL = "total"
"""The name of all stages together in latency tables."""


class Head(TypedDict):
    """The first fields of the summary of one model on one data set."""

    task: str
    metric: str
    model: str
    samples: int
    sample_unit: str
    skipped: int


def head(card: Card, samples: int, skipped: int) -> Head:
    """Return what a summary says first.

    Args:
        card: the model card.
        samples: how many went through every stack.
        skipped: how many no stack could answer.
    """
    return Head(
        task=card.task.name,
        metric=card.task.headline,
        model=card.spec.name,
        samples=samples,
        sample_unit=card.modality.unit,
        skipped=skipped,
    )


def running(stack: Stack) -> Running:
    """Return a stack's profile, and the settings that are in force."""
    return Running(
        profile=stack.profile.name,
        overrides=list(stack.profile.overrides),
        effective={"compute": stack.effective.compute, **stack.effective.options},
    )


def summarize(
    stacks: Sequence[Stack],
    done: RecordStore,
    card: Card,
    differing: Sequence[str],
    effects: Mapping[str, AxisEffect],
    self_check: SelfCheck,
    notes: Sequence[Notice],
    doubt: Callable[[Score], list[Notice]],
    flips: Sequence[Told],
    seed: int,
) -> dict[str, Any]:
    """Return the content of a pair's summary.

    Args:
        stacks: train and deploy.
        done: every sample, with the outcomes of train and deploy.
        card: the model card, for its task.
        differing: the axes on which the profiles differ.
        effects: see :func:`simulator.experiments.controls.axis_effects`.
        self_check: see :func:`simulator.experiments.controls.self_check`.
        notes: notices about the data set.
        doubt: see :func:`simulator.experiments.guessing.doubt`.
        flips: the worst ones; see :func:`simulator.experiments.moments.worst_flips`.
        seed: of the bootstrap, where the task needs one.

    Returns:
        The fields of :class:`simulator.results.pair.PairSummary`, without ``gate`` and pictures.
    """
    ran, skipped = done.ran, done.skipped
    task = card.task
    train, deploy = map(done.records, SIDES)
    truths = [item.truth for item in ran]
    trained = task.score(train, truths)
    compared = task.compare(
        trained, task.score(deploy, truths), Resamples(len(ran), seed, task.resamples)
    )
    times, missing = latency([train.ns(), deploy.ns()], card.modality.name)
    summary: dict[str, Any] = {
        **head(card, len(ran), len(skipped)),
        "unit": card.unit,
        "skipped_samples": [
            {"sample": item.name, "why": why} for item, why in skipped[:SKIPPED_LISTED]
        ],
        **done.failures(SIDES, SIDES[0]),
        **compared,
        "axes": [_axis(axis, stacks, card, effects.get(axis)) for axis in differing],
        "worst_flips": flips,
        "latency_ms": times,
        "missing": missing,
        "controls": {"self": self_check},
        "pictures": [],
        "warnings": [],
    }
    for stack in stacks:
        summary[stack.side] = {**running(stack), **summary[stack.side]}
    summary["warnings"] = [
        *merged(notice for stack in stacks for notice in stack.labelled_notices),
        *notes,
        *doubt(trained),
        *_findings(task, summary),
    ]
    return summary


def reference_of(stacks: Sequence[str]) -> str | None:
    """Return the training stack of a pair; None of other stacks, which are each other's peers."""
    return SIDES[0] if tuple(stacks) == SIDES else None


def vocabulary(card: Card) -> dict[str, Sequence[str]]:
    """Return the names of a pair's figures, to check gate rules before it is run."""
    stages = (TOTAL, *timed_steps(card.modality.name))
    return {**card.task.vocabulary(), "stack": SIDES, "stage": stages}


def latency(
    sides: Sequence[Mapping[str, Ints]], modality: str
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return ``latency_ms`` of the summary, and the reasons why some of its figures are None.

    Args:
        sides: of train and deploy by stage the nanoseconds of every sample, see
            :func:`simulator.results.times.from_map`.
        modality: whose stages are listed.

    Returns:
        For each side and stage the figures of :func:`simulator.statistics.percentiles.figures`;
        and the reasons by the figures' paths in the summary.
    """
    table: dict[str, Any] = {}
    why: dict[str, str] = {}
    for side, stages in zip(SIDES, sides, strict=True):
        none = np.zeros(0, np.int64)
        ran = stages["infer"] != ABSENT if "infer" in stages else []
        columns = {TOTAL: total(stages)[ran]}
        for stage in timed_steps(modality):
            ns = stages.get(stage, none)
            columns[stage] = ns[ns != ABSENT]
        table[side] = {stage: figures(ns) for stage, ns in columns.items()}
        for stage, ns in columns.items():
            reasons = not_carried(len(ns)) if len(ns) else {}
            why |= {f"latency_ms.{side}.{stage}.{key}": reason for key, reason in reasons.items()}
    return table, why


def _axis(axis: str, stacks: Sequence[Stack], card: Card, effect: AxisEffect | None) -> Axis:
    said = [described(stack.profile, stack.choices, axis, card) for stack in stacks]
    equal = axes.equal([own.values for own in said])
    train, deploy = (AxisSide.model_validate(asdict(own.without(equal))) for own in said)
    return Axis(axis=axis, effect=effect, train=train, deploy=deploy, equal=len(equal))


def _findings(task: Task, summary: Mapping[str, Any]) -> list[Notice]:
    found = []
    check, metric = summary["controls"]["self"], summary["metric"]
    if not check["bit_equal"]:
        words = (
            f"a side against itself is not bit-equal over {check['samples']} "
            f"{summary['sample_unit']}s ({check['flips']} flips): part of every figure here is "
            "noise of the stack itself"
        )
        found.append(Notice(Kind.NOT_DETERMINISTIC, words))
    if summary["labelled"] == 0:
        words = f"no labels: {metric} and what follows from it are left out"
        found.append(Notice(Kind.UNLABELLED, words))
    elif summary["train"]["metric"][metric] is None:
        words = f"nothing is annotated that {metric} could be measured on"
        found.append(Notice(Kind.UNLABELLED, words))
    found += [Notice(Kind.FINDING, line) for line in task.view().findings(summary)]
    if summary["samples"] < samples_needed(0.9):
        words = (
            f"{summary['samples']} {summary['sample_unit']}s cannot carry a p90 latency; it needs "
            f"{samples_needed(0.9)}"
        )
        found.append(Notice(Kind.FEW_SAMPLES, words))
    return found
