"""Two finished runs of the same question: what changed between them, and which answers with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from simulator.audit.differences import differences
from simulator.errors import RunError
from simulator.model.card import Card
from simulator.report.reading import Run
from simulator.results.read import read_manifest, read_run
from simulator.results.runs import RunsCompared, StackAgain
from simulator.statistics.bootstrap import Resamples, effect, ratio
from simulator.statistics.paired import clopper_pearson
from simulator.tasks.figures import Delta
from simulator.tasks.score import Record
from simulator.tasks.task import Task

_TOTAL = "total"


def compare_runs(
    old: str | Path, new: str | Path, *, model: str | Path | None = None, seed: int = 0
) -> RunsCompared:
    """Hold the records of one run against those of another; nothing is run.

    Only stacks of the same name are compared, on the samples that went through both runs. Runs in
    which a stack answers a sample more than once (under conditions, or in trials) are refused:
    those answers are not independent, and an interval that takes them so is too short.

    Args:
        old: the folder of the earlier run, for example with the old driver.
        new: the folder of the later run.
        model: the model card, where it no longer lies where the runs found it.
        seed: of the bootstrap.

    Returns:
        What changed in the inputs and around them, and for each stack which answers changed.

    Raises:
        RunError: one of them is no finished run with records, answers a sample more than once, or
            they have nothing in common.
        UserError: the model card cannot be used.
    """
    before, after = (_opened(Path(folder)) for folder in (old, new))
    task = Card(Path(model or read_manifest(after.folder)["model"]["card"])).task
    if before.summary.get("task") != after.summary.get("task"):
        raise RunError(f"{old} and {new} are of different tasks")
    sides = [one for one in _sides(before) if one in set(_sides(after))]
    if not sides:
        raise RunError(
            f"{old} and {new} have no stack in common: {', '.join(_sides(before))}; "
            f"{', '.join(_sides(after))}"
        )
    manifests = [read_manifest(run.folder) for run in (before, after)]
    changed = differences(manifests[0], manifests[1], sides)
    stacks = {side: _stack(task, side, before, after, seed) for side in sides}
    return RunsCompared(
        old=str(before.folder),
        new=str(after.folder),
        task=task.name,
        inputs=list(changed.inputs),
        surroundings=list(changed.surroundings),
        stacks={side: one for side, one in stacks.items() if one is not None},
    )


def _opened(folder: Path) -> Run:
    return Run(folder, *read_run(folder))


def _sides(run: Run) -> list[str]:
    return list(dict.fromkeys(run.records["side"].to_pylist()))


def _stack(task: Task, side: str, before: Run, after: Run, seed: int) -> StackAgain | None:
    """One stack on the samples that went through both runs; None where there is none."""
    one, other = (_by_sample(run, side) for run in (before, after))
    common = [key for key in one if key in other]
    if not common:
        return None
    pairs = [(one[key], other[key]) for key in common]
    changed = np.array([not task.same(*pair) for pair in pairs])
    count = int(changed.sum())
    return StackAgain(
        samples=len(common),
        changed=count,
        ci95=list(clopper_pearson(count, len(common))),
        equal_outputs=sum(old["digest"] == new["digest"] for old, new in pairs),
        first=[key for key, is_changed in zip(common, changed, strict=True) if is_changed][:5],
        delta=_deltas(task, pairs, seed),
        latency_ms=[_latency(run, side) for run in (before, after)],
    )


def _by_sample(run: Run, side: str) -> dict[str, Record]:
    rows = run.side(side).to_pylist()
    found = {row["sample"]: row for row in rows}
    if len(found) < len(rows):
        raise RunError(
            f"{run.folder}: compare-runs takes runs in which each stack answers each sample once"
        )
    return found


def _deltas(
    task: Task, pairs: Sequence[tuple[Record, Record]], seed: int
) -> dict[str, Delta | None]:
    """Metrics that are means over samples, new less old, on the same samples."""
    found: dict[str, Delta | None] = {}
    for metric, column in task.means().items():
        known = [(a[column], b[column]) for a, b in pairs if a[column] is not None]
        known = [pair for pair in known if pair[1] is not None]
        if not known:
            found[metric] = None
            continue
        moved = np.array([float(b) - float(a) for a, b in known])
        drawn = Resamples(len(known), seed).of(ratio(moved, np.ones(len(known))))
        value = effect(drawn, len(known))
        found[metric] = Delta(
            value=value.value, ci95=list(value.ci95), p=value.p, method="bootstrap over samples"
        )
    return found


def _latency(run: Run, side: str) -> float | None:
    """The median of the whole, ms; None where nothing was timed."""
    rows = run.side(side)
    if "ns" not in rows.column_names:
        return None
    taken = [sum(value for _, value in ns) for ns in pc.drop_null(rows["ns"]).to_pylist()]
    return float(np.median(taken)) / 1e6 if taken else None


def lines(found: RunsCompared) -> Mapping[str, list[str]]:
    """Return what to print: what changed in the inputs, around them, and in the answers."""
    answers = []
    for side, one in found.stacks.items():
        low, high = (100 * (end or 0.0) for end in one.ci95)
        said = (
            f"{side}: {one.changed:,} of {one.samples:,} answers differ ({low:.2f} to {high:.2f} %)"
            f"; {one.equal_outputs:,} outputs are equal to the last bit"
        )
        for metric, delta in one.delta.items():
            if delta and delta.value is not None and delta.ci95:
                ends = " to ".join(f"{100 * (end or 0.0):+.2f}" for end in delta.ci95)
                said += f"; {metric} {100 * delta.value:+.2f} points ({ends})"
        times = one.latency_ms
        if times[0] and times[1]:
            said += f"; median {times[0]:.2f} → {times[1]:.2f} ms"
        answers.append(said + (f"; first: {', '.join(one.first)}" if one.first else ""))
    return {"inputs": found.inputs, "surroundings": found.surroundings, "answers": answers}
