"""Runs samples in rounds, with the options that still matter for a question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from simulator.analysis.outcomes import at_chance, unjudged
from simulator.contract.recipe import Chain
from simulator.experiments.common import TRAIN
from simulator.experiments.race import Race, rounds
from simulator.experiments.record_store import RecordStore
from simulator.experiments.session import Session
from simulator.notices import Kind, Notice
from simulator.pipeline.executor import SampleResult
from simulator.pipeline.judge import TaskJudge
from simulator.pipeline.plan import Arm, Plan, plan
from simulator.pipeline.stack import Stack
from simulator.results.shared import Gate
from simulator.results.store import RunWriter

STOPPED = (
    "options were dropped as soon as they could no longer matter: each has figures of its own "
    "samples (column n), which are not to be held against those of an option with another n, and "
    "intervals and p-values are those of a fixed number of samples, and too short"
)


@dataclass(frozen=True, slots=True)
class Lane:
    """An option of a race, or what options are held against.

    Attributes:
        arm: as records call it.
        chain: its steps.
        against: the name of the lane that an option is held against; None: it is no option.
    """

    arm: Arm
    chain: Chain
    against: str | None = None


Lanes = Mapping[str, Lane]
"""By name: every option, and every lane that one is held against."""


def lanes_of(session: Session, stacks: Sequence[Stack]) -> Lanes:
    """Return the lanes of stacks that are all held against the first one."""
    first, *_ = stacks
    return {
        stack.side: Lane(
            session.arm(stack.side),
            session.disturbed(stack.chain),
            None if stack is first else first.side,
        )
        for stack in stacks
    }


def run_race(
    session: Session,
    run: RunWriter,
    lanes: Lanes,
    race: Race,
    first: Callable[[RecordStore], None] | None = None,
) -> RecordStore:
    """Run rounds of samples until the question is answered, or there are no more samples.

    Args:
        session: the model and the samples, already in a random order.
        run: the records are written to it; samples that it has are not run again.
        lanes: the options, and what they are held against.
        race: the question; it is told every sample, and drops options after every round.
        first: called with the samples of the first round, before options are dropped; with it
            latencies are recorded.

    Raises:
        DataError: no sample went through every stack.
        RunError: the records of an earlier attempt are of other options.
    """
    items, before = session.sealed(), run.records.earlier()
    done = RecordStore(session.card.task, run.records)
    merged = None
    for start, stop in rounds(len(items)):
        if race.done or not race.alive:
            break
        now = _together(lanes, race.alive)
        arms = [lanes[name].arm for name in now]
        for item, rows in zip(items[start:stop], before, strict=False):
            _tell(race, done.restore(item, rows, arms, now), now, lanes)
        if len(done) < stop:
            if merged is None or len(merged.arms) != len(now):
                merged = _plan(session, lanes, now)
            with closing(session.stream(merged, len(done), stop=stop)) as results:
                for one in results:
                    done.add(one, arms, first is not None, now)
                    _tell(race, one, now, lanes)
        session.require_some(done)
        if first and not start:
            first(done)
        race.judge()
    run.records.join()
    return done


def _together(lanes: Lanes, options: Sequence[str]) -> tuple[str, ...]:
    """The lanes that are still run: options behind what they are held against."""
    groups: dict[str, list[str]] = {}
    for option in options:
        groups.setdefault(lanes[option].against or TRAIN, []).append(option)
    return tuple(name for first, own in groups.items() for name in (first, *own))


def _plan(session: Session, lanes: Lanes, names: Sequence[str]) -> Plan:
    groups: list[list[int]] = []
    for at, name in enumerate(names):
        if lanes[name].against is None:
            groups.append([])
        groups[-1].append(at)
    judge = TaskJudge(session.card.task, tuple(map(tuple, groups)))
    merged = plan({lanes[name].arm: lanes[name].chain for name in names}, judge)
    session.show.planned(merged)
    return merged


def _tell(race: Race, one: SampleResult, names: Sequence[str], lanes: Lanes) -> None:
    if one.skipped is not None:
        failed = {names[arm] for arm in one.failed}
        race.skip([name for name in failed if lanes[name].against not in (None, *failed)])
        return
    records = {name: outcome.record for name, outcome in zip(names, one.outcomes, strict=True)}
    found = {name: (lanes[name].against, own) for name, own in records.items()}
    race.add({name: (records[to], own) for name, (to, own) in found.items() if to is not None})


def ended(race: Race, samples: int, undecided: str, notices: Iterable[Notice]) -> dict[str, Any]:
    """Return the fields of a summary that a race leaves: ``early``, ``gate`` and ``warnings``.

    Args:
        race: after the last round.
        samples: that there were to run.
        undecided: ``pass`` or ``fail``, for a rule that the samples do not decide.
        notices: of the run.
    """
    outcomes = race.outcomes(undecided)
    if at_chance(notices):
        outcomes = unjudged(outcomes)
    return {
        "early": race.early(samples),
        "gate": Gate.of(outcomes),
        "warnings": [Notice(Kind.FEW_SAMPLES, STOPPED)] if race.dropped else [],
    }
