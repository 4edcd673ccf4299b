"""Shared by the timed experiments: loading their stacks, and running them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from simulator.analysis import gate
from simulator.command.options import given
from simulator.contract import Stage
from simulator.digests import sha256
from simulator.errors import UserError
from simulator.experiments.common import manifest, refuse_missing, variants
from simulator.experiments.job import Job, Result, judged
from simulator.experiments.session import Session
from simulator.latency.recorded import check_table
from simulator.pipeline import recorded
from simulator.pipeline.adapted import refuse_adapting
from simulator.pipeline.stack import Chosen, Stack
from simulator.results.shared import Summary
from simulator.results.store import RunWriter

LARGEST = 1e9
"""The limit for milliseconds (11 days), seconds, minutes and arrivals per second."""


def positive(option: str, value: float) -> None:
    """Check a duration or a rate.

    Args:
        option: its name, for the message.
        value: in any unit.

    Raises:
        UserError: it is not above 0, or not below :data:`LARGEST`.
    """
    if not 0 < value < LARGEST:
        raise UserError(f"{option} must be above 0 and below {LARGEST:g}, got {value:g}")


def is_recorded(chosen: Chosen) -> bool:
    """Return whether a stack was recorded on a device, so that it is not measured here."""
    return recorded.recording(*chosen, Stage.RUNTIME) is not None


def logs(given: Sequence[str], sides: Mapping[str, Chosen]) -> dict[str, Path]:
    """Read the values of ``--times``.

    Args:
        given: ``[STACK=]FILE`` of each table of recorded latencies.
        sides: the stacks of the run.

    Returns:
        The files, by stack.

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
            raise UserError(f"--times {one}: {side} already has a log")
        check_table(Path(file))
        found[side] = Path(file)
    return found


S = TypeVar("S", bound=Summary)
T_co = TypeVar("T_co", bound=Summary, covariant=True)


class Measurement(Protocol[T_co]):
    """How one of the timed experiments measures."""

    @property
    def shape(self) -> type[T_co]:
        """The model of its summary."""

    def check(self, sides: Mapping[str, Chosen], session: Session) -> None:
        """Raise a UserError if it is not possible with these stacks, this model or these data."""

    def vocabulary(self, sides: Sequence[str], session: Session) -> Mapping[str, Sequence[str]]:
        """Return the names of the run's figures; see :func:`simulator.analysis.gate.check`."""

    def measure(self, session: Session, stacks: Sequence[Stack], run: RunWriter) -> T_co:
        """Measure, and return the summary without its gate."""


def timed_job(job: Job, sides: Mapping[str, Chosen], measurement: Measurement[S]) -> Result[S]:
    """Run a timed experiment.

    Args:
        job: the call.
        sides: the stacks by name.
        measurement: how it measures.

    Raises:
        UserError: anything that the caller can fix; the message says how.
    """
    asked = job.asked
    rules = gate.read(asked.fail_on, asked.allow_failed)
    for side, (_, choices) in sides.items():
        refuse_adapting(side, choices, "measuring latencies needs")
    refuse_missing(sides.values())
    folder = job.folder(job.experiment.name, sides)
    job.refuse_taken(folder)
    own = vars(type(asked))["__annotations__"].keys() - {"times"}  # the manifest has its digests
    with job.session() as session:
        measurement.check(sides, session)
        gate.check(rules, measurement.shape, measurement.vocabulary(list(sides), session))
        stacks = session.stacks(variants(sides).values())
        start = manifest(stacks, session, asked.overrides) | {
            "request": job.request(),
            "measuring": {one.name: value for one, value in given(asked) if one.name in own},
            "times": {
                one: sha256(Path(one.partition("=")[2])) for one in getattr(asked, "times", ())
            },
        }
        with job.writer(folder, start, session) as run:
            found = measurement.measure(session, stacks, run)
            took = {"seconds": job.seconds(), "workers": session.workers}
            summary = judged(found, rules, took | {"under": session.condition}, asked.undecided)
            run.finish(summary, took)
    return Result(summary, folder)
