"""The content of ``summary.json``: one pair of stacks, one honest answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from simulator.contract.stage import timed_steps
from simulator.latency.figures import cannot_carry, figures
from simulator.model.card import Card
from simulator.pipeline.executor import Done
from simulator.pipeline.stack import Stack
from simulator.pipeline.stack import notes as stack_notes
from simulator.profile import axes
from simulator.statistics.bootstrap import Resamples
from simulator.statistics.percentiles import PERCENTILES, name, samples_needed
from simulator.tasks.task import Task

SCHEMA = 1
SIDES = ("train", "deploy")
WORST = 10
SKIPPED_LISTED = 20


def summarize(
    stacks: Sequence[Stack],
    done: Sequence[Done],
    card: Card,
    differing: Sequence[str],
    effects: Mapping[str, Any],
    self_check: Mapping[str, Any],
    notes: Sequence[str],
    seed: int,
) -> dict[str, Any]:
    """Bring a pair's results together.

    Args:
        stacks: train and deploy.
        done: every sample.
        card: the model card, for its task.
        differing: the axes on which the profiles differ.
        effects: see :func:`simulator.experiments.controls.axis_effects`.
        self_check: see :func:`simulator.experiments.controls.self_check`.
        notes: what the data set has to say.
        seed: of the bootstrap, where the task needs one.

    Returns:
        ``summary.json`` without ``gate``.
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
    times, missing = latency([[d.outcomes[i].ns for d in ran] for i in range(2)])
    summary: dict[str, Any] = {
        "schema": SCHEMA,
        "task": task.name,
        "metric": task.headline,
        "unit": task.unit,
        "model": card.spec.name,
        "samples": len(ran),
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
        *stack_notes(told for stack in stacks for told in stack.told),
        *notes,
        *_findings(task, summary),
    ]
    return summary


def template(task: Task) -> dict[str, Any]:
    """Return a summary of the right shape and no meaning, to check gate rules before a run."""
    truth, prediction = task.examples()[0]
    records = task.records([prediction], truth)
    score = task.score(records, [truth])
    compared = task.compare(score, score, Resamples(1, number=1))
    times = dict.fromkeys(timed_steps(), 0)
    return {
        "samples": 1,
        "skipped": 0,
        **compared,
        "latency_ms": latency([[times], [times]])[0],
    }


def latency(sides: Sequence[Sequence[Mapping[str, int]]]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return ``latency_ms`` per side and stage, and why figures of it are None, by their paths.

    See :func:`simulator.latency.figures.figures`.
    """
    table: dict[str, Any] = {}
    why: dict[str, str] = {}
    for side, samples in zip(SIDES, sides, strict=True):
        columns = {"total": [sum(times.values()) for times in samples if "infer" in times]}
        for stage in timed_steps():
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
    flats = [axes.flat(axes.value(s.profile, s.choices, axis)) for s in stacks]
    for stack, own, other in zip(stacks, flats, reversed(flats), strict=True):
        kind, source = axes.evidence(stack.profile, stack.choices, axis)
        differs = {k: v for k, v in own.items() if k not in other or other[k] != v}
        entry[stack.side] = {"values": differs, "evidence": str(kind), "source": source}
    return entry


def worst_flips(ran: Sequence[Done], task: Task) -> list[dict[str, Any]]:
    """Return what is to be said of the changed answers that are worst, the worst one first."""
    flips = [d for d in ran if d.outcomes[1].record["changed"]]
    flips.sort(key=lambda d: -task.severity(*(o.record for o in d.outcomes)))
    return [
        {"sample": d.item.name, **task.flip(*(o.record for o in d.outcomes))} for d in flips[:WORST]
    ]


def _findings(task: Task, summary: Mapping[str, Any]) -> list[str]:
    found = []
    check = summary["controls"]["self"]
    if not check["bit_equal"]:
        found.append(
            f"a side against itself is not bit-equal over {check['samples']} samples "
            f"({check['flips']} flips): part of every figure here is noise of the stack itself"
        )
    if summary["labelled"] == 0:
        found.append(f"no labels: {summary['metric']} and what follows from it are left out")
    elif summary["train"]["metric"][summary["metric"]] is None:
        found.append(f"nothing is annotated that {summary['metric']} could be measured on")
    found += task.view().findings(summary)
    if summary["samples"] < samples_needed(0.9):
        found.append(
            f"{summary['samples']} samples cannot carry a p90 latency; it needs "
            f"{samples_needed(0.9)}"
        )
    return found
