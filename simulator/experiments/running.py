"""Runs the samples of a plan and writes their records, for one run or for several that share it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from simulator.data.folder import Item
from simulator.experiments.record_store import RecordStore
from simulator.experiments.session import Session
from simulator.pipeline.executor import Outcome, SampleResult
from simulator.pipeline.plan import Arm, Plan
from simulator.pipeline.walk import Walk, Watch
from simulator.results.record_table import Row
from simulator.results.store import RunWriter
from simulator.tasks.task import Task

if TYPE_CHECKING:
    from simulator.experiments.search.policy import Policy


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
        policy: is told of every sample; the run may stop when it is done. None: it runs them all.
        done: its samples so far.
    """

    run: RunWriter
    names: Sequence[Arm]
    timed: bool
    task: Task
    arms: Sequence[int] | None = None
    watch: Watcher | None = None
    policy: Policy | None = None
    done: RecordStore = field(init=False)
    _stacks: tuple[str, ...] = field(init=False)
    _earlier: Iterator[Sequence[Row]] = field(init=False)

    def __post_init__(self) -> None:
        self.done = RecordStore(self.task, self.run.records)
        self._earlier = self.run.records.earlier()
        self._stacks = tuple(arm.stack for arm in self.names)

    def run_as(self, arms: Mapping[str, Arm]) -> None:
        """Take the next samples of other arms, which the results have by other names."""
        self.names, self._stacks = tuple(arms.values()), tuple(arms)

    @property
    def decided(self) -> bool:
        """Whether further samples change nothing."""
        return self.policy is not None and self.policy.done

    def restore(self, items: Sequence[Item]) -> None:
        """Take the next samples, as far as an earlier attempt has finished them."""
        for item, rows in zip(items, self._earlier, strict=False):
            self._tell(self.done.restore(item, rows, self.names, self._stacks), None)

    def take(self, number: int, result: SampleResult, seen: Any) -> None:
        """Take a sample, and what was observed of it; it is written if it was not finished."""
        if number < len(self.done):
            if self.watch:
                self.watch.keep(result, seen)
            return
        self._tell(result, seen)
        self.done.add(result, self.names, self.timed, self._stacks)

    def _tell(self, result: SampleResult, seen: Any) -> None:
        if self.watch:
            self.watch.keep(result, seen)
        if self.policy:
            self.policy.tell(result, self._stacks)


def run_recorded(session: Session, merged: Plan, recorders: Sequence[Recorder]) -> None:
    """Run every sample that one of the runs lacks.

    Args:
        session: the model and the samples.
        merged: the plan of all runs.
        recorders: of the runs.

    Raises:
        DataError: of one run no sample went through every stack.
    """
    for recorder in recorders:
        recorder.restore(session.sealed())
    run_samples(session, merged, recorders)
    for recorder in recorders:
        session.require_some(recorder.done)
        recorder.run.records.join()


def run_samples(
    session: Session, merged: Plan, recorders: Sequence[Recorder], stop: int | None = None
) -> None:
    """Run the samples that one of the runs lacks, while one of them is not decided.

    Args:
        session: the model and the samples.
        merged: the plan of all runs.
        recorders: of the runs.
        stop: the first sample not to run; None: all are run.
    """
    start = min(len(recorder.done) for recorder in recorders)
    watches = tuple(recorder.watch for recorder in recorders if recorder.watch)
    watch = _Watching(watches) if watches else None
    with closing(session.stream(merged, start, watch, stop)) as results:
        number = start
        while not all(recorder.decided for recorder in recorders):
            if (done := next(results, None)) is None:
                break
            for at, recorder in enumerate(recorders):
                part = done if recorder.arms is None else done.part(recorder.arms)
                recorder.take(number, part, done.seen[at] if done.seen else None)
            number += 1


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
        return [watch(walk, outcomes) for watch in self.watches]
