"""Runs the samples of a plan and writes their records, for one run or for several that share it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Any, Protocol

from simulator.data.folder import Item
from simulator.experiments.decision import Decision
from simulator.experiments.record_store import RecordStore
from simulator.experiments.session import Session
from simulator.pipeline.executor import Outcome, SampleResult
from simulator.pipeline.plan import Arm, Plan
from simulator.pipeline.walk import Walk, Watch
from simulator.results.parts import Rows
from simulator.results.store import RunWriter
from simulator.tasks.task import Task


class Watcher(Protocol):
    """Observes samples while they are processed.

    It is called for each sample, perhaps from several threads at once. Pickled, it becomes what
    does the same in another process.
    """

    def __call__(self, walk: Walk, outcomes: Mapping[int, Outcome]) -> Any:
        """Return data about a sample."""

    def keep(self, done: SampleResult, seen: Any) -> None:
        """Store these data, None for a sample of an earlier attempt; in the order of samples."""


@dataclass(slots=True)
class Recorder:
    """Records the samples of one run, which takes all arms of a plan, or some.

    Attributes:
        run: the records are written to it.
        names: its arms, as records call them.
        timed: whether latencies are recorded; they differ from run to run.
        task: makes the records.
        arms: the indices of its arms in the plan; None: it takes all.
        watch: observes its samples; of several runs all have one, or none.
        decision: the run may stop when this is done; it is told of the first two arms.
        done: its samples so far.
        finished: how many of them an earlier attempt had finished.
    """

    run: RunWriter
    names: Sequence[Arm]
    timed: bool
    task: Task
    arms: Sequence[int] | None = None
    watch: Watcher | None = None
    decision: Decision | None = None
    done: RecordStore = field(init=False)
    finished: int = 0
    _stacks: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.done = RecordStore(self.task, self.run.folder)
        self._stacks = tuple(arm.stack for arm in self.names)

    def take(self, one: SampleResult, seen: Any = None) -> None:
        """Take a sample, and what was observed of it; it is written if it was not finished."""
        if self.watch:
            self.watch.keep(one, seen)
        if self.decision:
            self.decision.tell(one.part((0, 1)))
        if len(self.done) >= self.finished:
            self.run.add(rows_of(one, self.names, self.timed))
        self.done.append(one, self._stacks)


def run_recorded(session: Session, merged: Plan, recorders: Sequence[Recorder]) -> None:
    """Run every sample that one of the runs lacks.

    Args:
        session: the model and the samples.
        merged: the plan of all runs.
        recorders: of the runs.

    Raises:
        DataError: of one run no sample went through every stack.
    """
    before = [chain(one.run.kept(), repeat(None)) for one in recorders]
    for item, *several in zip(session.sealed(), *before, strict=False):
        whole = [rows for rows in several if rows is not None]
        for one, rows in zip(recorders, several, strict=True):
            one.finished += rows is not None
        if len(whole) == len(recorders):
            for one, rows in zip(recorders, whole, strict=True):
                one.take(done_of(one.task, item, rows))
    watches = tuple(one.watch for one in recorders if one.watch)
    watch = _Watching(watches) if watches else None
    with closing(session.stream(merged, len(recorders[0].done), watch)) as results:
        while not all(one.decision and one.decision.done for one in recorders):
            if (done := next(results, None)) is None:
                break
            for at, one in enumerate(recorders):
                part = done if one.arms is None else done.part(one.arms)
                one.take(part, done.seen[at] if done.seen else None)
    for one in recorders:
        session.require_some(one.done)


def run_and_keep(session: Session, merged: Plan, run: RunWriter, timed: bool) -> RecordStore:
    """Run a plan and write its records; samples that an earlier attempt finished are skipped.

    Args:
        session: the model and the samples.
        merged: the plan.
        run: the records are written to it.
        timed: whether latencies are recorded; they differ from run to run.

    Returns:
        The samples in order, those of the earlier attempt included.

    Raises:
        DataError: no sample went through every stack.
    """
    recorder = Recorder(run, merged.arms, timed, session.card.task)
    run_recorded(session, merged, [recorder])
    return recorder.done


@dataclass(frozen=True, slots=True)
class _Watching:
    watches: tuple[Watch, ...]

    def __call__(self, walk: Walk, outcomes: Mapping[int, Outcome]) -> list[Any]:
        return [one(walk, outcomes) for one in self.watches]


def rows_of(done: SampleResult, arms: Sequence[Arm], timed: bool) -> Rows:
    """Return a sample's records, one per arm.

    Args:
        done: the sample.
        arms: in the order of its outcomes.
        timed: whether latencies are recorded; they differ from run to run.
    """
    shared = {"sample": done.item.name}
    cells = [
        {**shared, "side": arm.stack, "condition": arm.condition or None, "trial": arm.trial}
        for arm in arms
    ]
    if done.skipped is not None:
        return [
            {
                **cell,
                "skipped": done.failed.get(at, done.skipped),
                "failed": at in done.failed or not done.failed,
            }
            for at, cell in enumerate(cells)
        ]
    return [
        {
            **cell,
            **outcome.record,
            "digest": outcome.digest,
            "ns": list(outcome.ns.items()) if timed else None,
        }
        for cell, outcome in zip(cells, done.outcomes, strict=True)
    ]


def done_of(task: Task, item: Item, rows: Rows) -> SampleResult:
    """Return a sample's result from its records, one per arm; inverse of :func:`rows_of`."""
    if rows[0]["skipped"] is not None:
        failed = {at: row["skipped"] for at, row in enumerate(rows) if row["failed"]}
        why = next(iter(failed.values()))
        return SampleResult(item, (), why, failed=failed if len(failed) < len(rows) else {})
    outcomes = [
        Outcome(
            {column.name: row[column.name] for column in task.columns},
            row["digest"],
            dict(row["ns"] or ()),
        )
        for row in rows
    ]
    return SampleResult(item, tuple(outcomes))
