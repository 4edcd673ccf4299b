"""Runs a sweep in rounds, with the options that still matter for its question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from simulator.errors import RunError
from simulator.experiments.common import TRAIN, done_of, rows_of
from simulator.experiments.race import Race, rounds
from simulator.experiments.session import Answers, Session, answers
from simulator.pipeline.executor import Done
from simulator.pipeline.plan import Arm
from simulator.pipeline.stack import Stack
from simulator.results.parts import Rows
from simulator.results.store import RunWriter
from simulator.tasks.task import Task

STOPPED = (
    "options were dropped as soon as they could no longer matter: each has figures of its own "
    "images (column n), which are not to be held against those of an option with another n, and "
    "intervals and p-values are those of a fixed number of images, and too short"
)


@dataclass(frozen=True, slots=True)
class Raced:
    """The samples of a race, in the order in which they were run.

    Attributes:
        done: with the outcomes of the stacks that were left: the training stack, then options.
        names: these stacks, for each sample.
    """

    done: Sequence[Done]
    names: Sequence[tuple[str, ...]]

    def answers(self, task: Task, *stacks: str) -> Answers:
        """Return the records of stacks, on the samples that all of them were run on."""
        found = [
            one
            if one.skipped is not None
            else replace(one, outcomes=tuple(one.outcomes[names.index(each)] for each in stacks))
            for one, names in zip(self.done, self.names, strict=True)
            if {*stacks} <= {*names}
        ]
        return answers(task, stacks, found)


def run_race(session: Session, run: RunWriter, stacks: Sequence[Stack], race: Race) -> Raced:
    """Run rounds of samples until the question is answered, or there are no more samples.

    Args:
        session: the model and the samples, already in a random order.
        run: the records are written to it; samples that it has are not run again.
        stacks: the training stack, then the options.
        race: the question; it is told every sample, and drops options after every round.

    Raises:
        DataError: no sample went through every stack.
        RunError: the records of an earlier attempt are of other options.
    """
    items, before = session.dataset.items, run.kept()
    by_name = {stack.side: stack for stack in stacks}
    done: list[Done] = []
    names: list[tuple[str, ...]] = []
    merged = None
    for start, stop in rounds(len(items)):
        if race.done or not race.alive:
            break
        now = (TRAIN, *race.alive)
        for item, rows in zip(items[start:stop], before[start:stop], strict=False):
            _refuse_other(run, rows, now)
            done.append(done_of(session.card.task, item, rows))
        if len(done) < stop:
            if merged is None or len(merged.arms) != len(now):
                merged = session.plan([by_name[name] for name in now])
            arms = merged.arms

            def keep(one: Done, arms: Sequence[Arm] = arms) -> None:
                run.add(rows_of(one, arms, timed=False))

            done = session.run(merged, keep, done, stop=stop)
        names += [now] * (len(done) - len(names))
        for one in done[start:]:
            _tell(race, one, now)
        race.judge()
    return Raced(done, names)


def _tell(race: Race, one: Done, names: Sequence[str]) -> None:
    if one.skipped is not None:
        race.skip()
        return
    train, *options = (outcome.record for outcome in one.outcomes)
    race.add(train, dict(zip(names[1:], options, strict=True)))


def _refuse_other(run: RunWriter, rows: Rows, names: Sequence[str]) -> None:
    if [row["side"] for row in rows] != [*names]:
        raise RunError(f"{run.folder}: its records are of other options; start a new run")


def per_option(raced: Raced, task: Task, options: Sequence[str]) -> Mapping[str, Answers]:
    """Return for each option its records and those of the training stack on the same samples."""
    return {option: raced.answers(task, TRAIN, option) for option in options}
