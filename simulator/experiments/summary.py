"""The content of ``summary.json`` of a pair."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from simulator.contract.stage import timed_steps
from simulator.model.card import Card
from simulator.notices import Kind, Notice, merged
from simulator.pipeline.executor import Done
from simulator.pipeline.stack import Stack
from simulator.profile import axes
from simulator.statistics.bootstrap import Resamples
from simulator.statistics.percentiles import (
    PERCENTILES,
    cannot_carry,
    figures,
    name,
    samples_needed,
)
from simulator.tasks.score import Record
from simulator.tasks.task import Task

SIDES = ("train", "deploy")
WORST = 10
SKIPPED_LISTED = 20
TOTAL = "total"
"""The name of all stages together in latency tables."""


def summarize(
    stacks: Sequence[Stack],
    done: Sequence[Done],
    card: Card,
    differing: Sequence[str],
    effects: Mapping[str, Any],
    self_check: Mapping[str, Any],
    notes: Sequence[Notice],
    seed: int,
) -> dict[str, Any]:
    """Return the content of a pair's summary.

    Args:
        stacks: train and deploy.
        done: every sample.
        card: the model card, for its task.
        differing: the axes on which the profiles differ.
        effects: see :func:`simulator.experiments.controls.axis_effects`.
        self_check: see :func:`simulator.experiments.controls.self_check`.
        notes: notices about the data set.
        seed: of the bootstrap, where the task needs one.

    Returns:
        The fields of :class:`simulator.results.pair.PairSummary`, without ``gate`` and pictures.
    """
    ran = [d for d in done if d.skipped is None]
    skipped = [d for d in done if d.skipped is not None]
    task = card.task
    train, deploy = ([d.outcomes[i].record for d in ran] for i in range(2))
    truths = [d.item.truth for d in ran]
    compared = task.compare(
        task.score(train, truths),
        task.score(deploy, truths),
        Resamples(len(ran), seed, task.resamples),
    )
    times, missing = latency(
        [[d.outcomes[i].ns for d in ran] for i in range(2)], card.modality.name
    )
    summary: dict[str, Any] = {
        "task": task.name,
        "metric": task.headline,
        "unit": task.unit,
        "model": card.spec.name,
        "samples": len(ran),
        "sample_unit": card.modality.unit,
        "skipped": len(skipped),
        "skipped_samples": [
            {"sample": d.item.name, "why": d.skipped} for d in skipped[:SKIPPED_LISTED]
        ],
        **compared,
        "axes": [_axis(axis, stacks, effects.get(axis)) for axis in differing],
        "worst_flips": worst_flips(ran, task),
        "latency_ms": times,
        "missing": missing,
        "controls": {"self": dict(self_check)},
        "warnings": [],
    }
    for stack in stacks:
        summary[stack.side] = {
            "profile": stack.profile.name,
            "overrides": list(stack.profile.overrides),
            **compared[stack.side],
        }
        summary[stack.side]["effective"] = {
            "compute": stack.effective.compute,
            **stack.effective.options,
        }
    summary["warnings"] = [
        *merged(notice for stack in stacks for notice in stack.labelled_notices),
        *notes,
        *_findings(task, summary),
    ]
    return summary


def vocabulary(card: Card) -> dict[str, Sequence[str]]:
    """Return the names of a pair's figures, to check gate rules before it is run."""
    return {**card.task.vocabulary(), "stage": (TOTAL, *timed_steps(card.modality.name))}


def latency(
    sides: Sequence[Sequence[Mapping[str, int]]], modality: str
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return ``latency_ms`` of the summary, and the reasons why some of its figures are None.

    Args:
        sides: of train and deploy the nanoseconds of every sample, by stage.
        modality: whose stages are listed.

    Returns:
        For each side and stage the figures of :func:`simulator.statistics.percentiles.figures`;
        and the reasons by the figures' paths in the summary.
    """
    table: dict[str, Any] = {}
    why: dict[str, str] = {}
    for side, samples in zip(SIDES, sides, strict=True):
        columns = {TOTAL: [sum(times.values()) for times in samples if "infer" in times]}
        for stage in timed_steps(modality):
            columns[stage] = [times[stage] for times in samples if stage in times]
        table[side] = {stage: figures(np.array(ns, np.int64)) for stage, ns in columns.items()}
        for stage, ns in columns.items():
            why |= {
                f"latency_ms.{side}.{stage}.{name(p)}": cannot_carry(len(ns), p)
                for p in PERCENTILES
                if 0 < len(ns) < samples_needed(p)
            }
    return table, why


def _axis(axis: str, stacks: Sequence[Stack], effect: Any) -> dict[str, Any]:
    entry: dict[str, Any] = {"axis": axis, "effect": effect}
    said = [axes.described(stack.profile, stack.choices, axis) for stack in stacks]
    flats = [own["values"] for own in said]
    entry["equal"] = len(axes.equal(flats))
    for stack, own, differs in zip(stacks, said, axes.unequal(flats), strict=True):
        entry[stack.side] = own | {"values": differs}
    return entry


def severity(task: Task, train: Record, deploy: Record) -> float:
    """Return how bad a change is; -inf where the task cannot say (NaN), so that it ranks last."""
    found = task.severity(train, deploy)
    return -math.inf if math.isnan(found) else found


def worst_flips(ran: Sequence[Done], task: Task) -> list[dict[str, Any]]:
    """Return the entries of the worst flips, the worst one first; at most :data:`WORST`."""
    flips = [d for d in ran if d.outcomes[1].record["changed"]]
    flips.sort(key=lambda d: -severity(task, *(o.record for o in d.outcomes)))
    return [
        {"sample": d.item.name, **task.flip(*(o.record for o in d.outcomes))} for d in flips[:WORST]
    ]


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
