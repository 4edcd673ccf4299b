"""What the timed jobs share: naming their stacks, and the way to the run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any, Protocol, TypeVar

from simulator.analysis import gate
from simulator.contract import Stage
from simulator.errors import UserError
from simulator.experiments.common import manifest, refuse_missing, stacks_of
from simulator.experiments.job import Job, Result, judged
from simulator.experiments.session import Session, Variant
from simulator.experiments.summary import SIDES
from simulator.latency.recorded import check_table
from simulator.machine import sha256
from simulator.pipeline import recorded
from simulator.pipeline.stack import Chosen, Pair, Stack
from simulator.results.shared import Summary
from simulator.results.store import RunWriter

LOCATIONS = ("profiles", "train", "deploy", "times")
"""Arguments that say where something is; what is there is in the manifest already."""
LARGEST = 1e9
"""Milliseconds (11 days), seconds, minutes or arrivals a second."""
ONLY = SIDES[1]
"""The name of the stack in a run of one profile."""


def named(
    profiles: Sequence[str], train: str | None, deploy: str | None, overrides: Sequence[str]
) -> dict[str, Chosen]:
    """Load the stacks of a timed job: a pair, one profile, or several under their own names.

    Raises:
        ProfileError: what is wrong with any of them.
        UserError: neither a pair nor a profile was given, or an override is for none of them.
    """
    if train is not None and deploy is not None and not profiles:
        return stacks_of({"train": train, "deploy": deploy}, overrides)
    if train is not None or deploy is not None or not profiles:
        raise UserError("give --profile, once or more, or both --train and --deploy")
    if len(profiles) == 1:
        return stacks_of({ONLY: profiles[0]}, overrides)
    found: dict[str, str] = {}
    for reference in profiles:
        stem = re.sub(r"\.ya?ml$", "", Path(reference).name)
        plain = re.sub(r"[^\w-]+", "_", stem)
        numbered = (f"{plain}-{number}" for number in count(2))
        name = next(one for one in chain([plain], numbered) if one not in found)
        found[name] = reference
    return stacks_of(found, overrides)


def positive(option: str, value: float) -> None:
    """Refuse a length of time or a rate that makes no sense.

    Raises:
        UserError: it is not above 0, or too large for a clock of nanoseconds.
    """
    if not 0 < value < LARGEST:
        raise UserError(f"{option} must be above 0 and below {LARGEST:g}, got {value:g}")


def is_recorded(own: Chosen) -> bool:
    """Whether a stack's answers were recorded on a device, so that nothing of it is measured."""
    return recorded.recording(*own, Stage.RUNTIME) is not None


def logs(given: Sequence[str], sides: Mapping[str, Chosen]) -> dict[str, Path]:
    """Read ``[STACK=]FILE`` of each table of recorded latencies.

    Raises:
        UserError: a stack is not one of the run's, or none is named where there are several.
        DataError: a file is not such a table.
    """
    found: dict[str, Path] = {}
    for one in given:
        side, equals, file = one.partition("=")
        if not equals:
            side, file = next(iter(sides)), one
        if side not in sides or not file or (not equals and len(sides) > 1):
            raise UserError(
                f"--times {one}: STACK=FILE expected, with STACK one of {', '.join(sides)}"
            )
        if side in found:
            raise UserError(f"--times {one}: {side} has a log already")
        check_table(Path(file))
        found[side] = Path(file)
    return found


S = TypeVar("S", bound=Summary)
T_co = TypeVar("T_co", bound=Summary, covariant=True)


class Way(Protocol[T_co]):
    """How one of the timed jobs measures."""

    @property
    def shape(self) -> type[T_co]:
        """The model of its summary."""

    def check(self, sides: Mapping[str, Chosen], session: Session) -> None:
        """Refuse what cannot be done with this model and these samples."""

    def vocabulary(self, sides: Sequence[str], session: Session) -> Mapping[str, Sequence[str]]:
        """Return the names of the run's figures; see :func:`simulator.analysis.gate.check`."""

    def measure(self, session: Session, stacks: Sequence[Stack], run: RunWriter) -> T_co:
        """Measure, and return ``summary.json`` before its gate."""


def timed_job(
    job: Job,
    sides: Mapping[str, Chosen],
    overrides: Sequence[str],
    fail_on: Sequence[str],
    way: Way[S],
    own: Mapping[str, Any],
) -> Result[S]:
    """Run a timed job.

    Args:
        job: with the options that all jobs have.
        sides: the stacks by name.
        overrides: ``STACK.KEY=VALUE``, which are in *sides* already.
        fail_on: gate rules.
        way: how it measures.
        own: its further arguments, for another process that resumes the run.

    Raises:
        UserError: anything that the caller can fix; the message says how.
    """
    rules = [gate.parse(rule) for rule in fail_on]
    refuse_missing(sides.values())
    folder = job.folder(job.command, sides)
    job.refuse_taken(folder)
    asked = job.request(overrides=list(overrides), fail_on=list(fail_on), **own)
    with job.session() as session:
        way.check(sides, session)
        gate.check(rules, way.shape, way.vocabulary(list(sides), session))
        stacks = session.stacks(
            [Variant(side, chosen, _pair(sides, chosen)) for side, chosen in sides.items()]
        )
        start = manifest(stacks, session, overrides) | {
            "request": asked,
            "measuring": {name: value for name, value in own.items() if name not in LOCATIONS},
            "times": {one: sha256(Path(one.partition("=")[2])) for one in own.get("times", ())},
        }
        with job.writer(folder, start, session) as run:
            found = way.measure(session, stacks, run)
            took = {"seconds": job.seconds(), "workers": session.workers}
            summary = judged(found, rules, took | {"under": session.condition})
            run.finish(summary, took)
    return Result(summary, folder)


def _pair(sides: Mapping[str, Chosen], own: Chosen) -> Pair:
    """The profiles that calibration through ``train`` or ``deploy`` means."""
    return sides if set(sides) == set(SIDES) else {"train": own, "deploy": own}
