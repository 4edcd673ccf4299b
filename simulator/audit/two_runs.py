"""Two finished runs of the same question: what changed between them, and which answers with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from simulator.audit.differences import differences, requested
from simulator.errors import RunError, one_line
from simulator.model.card import Card
from simulator.report.reading import Run
from simulator.results.read import DAMAGE, open_run, read_manifest
from simulator.results.runs import RunsCompared, StackAgain
from simulator.results.times import from_map, total
from simulator.statistics.bootstrap import RESAMPLES, effect, resampled_mean
from simulator.statistics.paired import clopper_pearson
from simulator.tasks.figures import Delta
from simulator.tasks.score import Columns, Record, agree, each, numbers
from simulator.tasks.task import Task

_FIRST = 5
"""Changed samples that are named."""
_SLICE = 4096
"""Records that are in memory as Python objects."""


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
    try:
        return _compared(old, new, model, seed)
    except DAMAGE as error:
        what = f"{type(error).__name__}: {one_line(error)}"
        raise RunError(f"{old} or {new}: of another version, or damaged: {what}") from error


def _compared(
    old: str | Path, new: str | Path, model: str | Path | None, seed: int
) -> RunsCompared:
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
        inputs=[*requested(*manifests), *changed.inputs],
        surroundings=list(changed.surroundings),
        stacks={side: stack for side, stack in stacks.items() if stack is not None},
    )


def _opened(folder: Path) -> Run:
    return Run(folder, *open_run(folder))


def _sides(run: Run) -> list[str]:
    assert run.records is not None
    found: list[str] = run.records["side"].unique().to_pylist()
    return found


class _Answers(Columns):
    """Records of one stack of a run."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def column(self, name: str) -> pa.ChunkedArray:
        """Return (records,) of one column."""
        return self._table[name]

    def has(self, name: str) -> bool:
        """Whether there is such a column."""
        return name in self._table.column_names

    def at(self, which: NDArray[np.intp]) -> _Answers:
        """Return some of them, in an order of their own."""
        return _Answers(self._table.take(pa.array(which)))

    def __getitem__(self, at: Any) -> Any:
        """Return one record."""
        return self._table.slice(at, 1).to_pylist()[0]

    def __iter__(self) -> Iterator[Record]:
        for batch in self._table.to_batches(_SLICE):
            yield from batch.to_pylist()

    def __len__(self) -> int:
        return int(self._table.num_rows)


def _of(run: Run, side: str, task: Task) -> _Answers:
    """A stack's records of the samples that went through: the columns that are compared.

    Raises:
        RunError: it answers a sample more than once.
    """
    assert run.records is not None
    names = run.records.column_names
    if type(task).flipped is Task.flipped:
        compared = {"sample", "digest", "ns", *task.answer, *task.means().values()}
        names = [name for name in names if name in compared]
    found = _Answers(run.side(side, names))
    if pc.count_distinct(found.column("sample")).as_py() < len(found):
        raise RunError(
            f"{run.folder}: compare-runs takes runs in which each stack answers each sample once"
        )
    return found


def _stack(task: Task, side: str, before: Run, after: Run, seed: int) -> StackAgain | None:
    """One stack on the samples that went through both runs; None where there is none."""
    answers, other = (_of(run, side, task) for run in (before, after))
    place = pc.index_in(answers.column("sample"), value_set=other.column("sample").combine_chunks())
    there = place.is_valid().to_numpy().astype(np.bool_)
    if not there.any():
        return None
    old = answers.at(np.flatnonzero(there))
    new = other.at(place.drop_null().to_numpy().astype(np.intp))
    changed = _changed(task, old, new)
    count = int(changed.sum())
    first = old.at(np.flatnonzero(changed)[:_FIRST]).column("sample").to_pylist()
    return StackAgain(
        samples=len(old),
        changed=count,
        ci95=list(clopper_pearson(count, len(old))),
        equal_outputs=len(old) - int(_differ(old, new, "digest").sum()),
        first=first,
        fails=_only_failed(after, before, side),
        answers=_only_failed(before, after, side),
        delta=_deltas(task, old, new, seed),
        latency_ms=[_latency(found) for found in (answers, other)],
    )


def _only_failed(run: Run, other: Run, side: str) -> int:
    """On how many samples of both runs a stack failed in this one, and not in the other."""
    assert other.records is not None
    found = _failed(run, side) - _failed(other, side)
    return len(found & set(other.records["sample"].to_pylist())) if found else 0


def _failed(run: Run, side: str) -> set[str]:
    """The samples on which a stack failed."""
    assert run.records is not None
    if "failed" not in run.records.column_names:
        return set()
    mine, failed = pc.equal(run.records["side"], side), pc.fill_null(run.records["failed"], False)
    found: set[str] = set(run.records["sample"].filter(pc.and_(mine, failed)).to_pylist())
    return found


def _changed(task: Task, old: _Answers, new: _Answers) -> NDArray[np.bool_]:
    """Which answers differ, as :meth:`Task.flipped` says."""
    if type(task).flipped is not Task.flipped:
        return np.array([task.flipped(*pair) for pair in zip(old, new, strict=True)], np.bool_)
    changed = np.zeros(len(old), np.bool_)
    for name in task.answer:
        changed |= _differ(old, new, name) if old.has(name) and new.has(name) else True
    return changed


def _differ(old: _Answers, new: _Answers, name: str) -> NDArray[np.bool_]:
    """Where a column differs; NaN equals itself, and so does what is not there."""
    one, other = old.column(name), new.column(name)
    if pa.types.is_nested(one.type) or one.type != other.type:
        pairs = zip(each(old, name), each(new, name), strict=True)
        return np.array([not agree({name: a}, {name: b}, [name]) for a, b in pairs], np.bool_)
    same = pc.fill_null(pc.equal(one, other), pc.and_(one.is_null(), other.is_null()))
    if pa.types.is_floating(one.type):
        both = pc.and_(one.is_null(nan_is_null=True), other.is_null(nan_is_null=True))
        same = pc.or_(same, pc.and_(both, pc.and_(one.is_valid(), other.is_valid())))
    differ: NDArray[np.bool_] = ~same.to_numpy().astype(np.bool_)
    return differ


def _deltas(task: Task, old: _Answers, new: _Answers, seed: int) -> dict[str, Delta | None]:
    """Metrics that are means over samples, new less old, on the same samples."""
    found: dict[str, Delta | None] = {}
    for metric, column in task.means().items():
        (before, had), (after, has) = numbers(old, column), numbers(new, column)
        moved = (after - before)[had & has]
        if not len(moved):
            found[metric] = None
            continue
        value = effect(resampled_mean(moved, seed), RESAMPLES)
        found[metric] = Delta(**value.told(), method=value.method)
    return found


def _latency(found: _Answers) -> float | None:
    """The median of the whole, ms; None where nothing was timed."""
    if not found.has("ns"):
        return None
    whole = total(from_map(found.column("ns").drop_null()))
    return float(np.median(whole)) / 1e6 if len(whole) else None


def lines(found: RunsCompared) -> Mapping[str, list[str]]:
    """Return what to print: what changed in the inputs, around them, and in the answers."""
    answers = []
    for side, one in found.stacks.items():
        low, high = (100 * (end or 0.0) for end in one.ci95)
        said = (
            f"{side}: {one.changed:,} of {one.samples:,} answers differ ({low:.2f} to {high:.2f} %)"
            f"; {one.equal_outputs:,} outputs are equal to the last bit"
        )
        for word, number in (("fails now on", one.fails), ("answers now", one.answers)):
            said += f"; {word} {number:,} more" if number else ""
        for metric, delta in one.delta.items():
            if delta and delta.value is not None and delta.ci95:
                ends = " to ".join(f"{100 * (end or 0.0):+.2f}" for end in delta.ci95)
                said += f"; {metric} {100 * delta.value:+.2f} points ({ends})"
        times = one.latency_ms
        if times[0] and times[1]:
            said += f"; median {times[0]:.2f} → {times[1]:.2f} ms"
        answers.append(said + (f"; first: {', '.join(one.first)}" if one.first else ""))
    return {"inputs": found.inputs, "surroundings": found.surroundings, "answers": answers}
