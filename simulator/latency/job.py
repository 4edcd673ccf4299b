"""What the timed experiments share: how they are run, whatever it is that they measure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from simulator.analysis import gate
from simulator.command.options import declared, given
from simulator.contract import Stage
from simulator.contract.stage import timed_steps
from simulator.digests import sha256
from simulator.errors import UserError
from simulator.experiments.common import manifest, refuse_missing, variants
from simulator.experiments.job import Job, Result, judged
from simulator.experiments.session import Session
from simulator.latency.experiments import TimedOptions
from simulator.latency.times import TOTAL
from simulator.pipeline import recorded
from simulator.pipeline.adapted import refuse_adapting
from simulator.pipeline.stack import ResolvedProfile, Stack
from simulator.profile.implementations import choose
from simulator.results.shared import Summary
from simulator.results.store import RunWriter
from simulator.statistics.percentiles import PERCENTILES, name

LARGEST = 1e9
"""The limit for milliseconds (11 days), seconds, minutes and arrivals per second."""
S = TypeVar("S", bound=Summary)


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


def is_recorded(chosen: ResolvedProfile) -> bool:
    """Return whether a stack was recorded on a device, so that it is not measured here."""
    return recorded.recording(*chosen, Stage.RUNTIME) is not None


def in_batches(
    sides: Mapping[str, ResolvedProfile], batches: Sequence[int]
) -> dict[str, ResolvedProfile]:
    """Return every stack with each of several batches.

    Raises:
        UserError: a batch is no positive number, comes twice, or is not for the stack's runtime.
    """
    words = ",".join(map(str, batches))
    if min(batches) < 1 or len(set(batches)) < len(batches):
        raise UserError(f"--batch: different numbers from 1 up expected, got {words}")
    found = {}
    for side, (profile, _) in sides.items():
        for size in batches:
            runtime = profile.spec.runtime.model_copy(update={"batch": size})
            spec = profile.spec.model_copy(update={"runtime": runtime})
            made = replace(profile, spec=spec)
            found[f"{side}-batch{size}"] = made, choose(made)
    return found


class Measurement(ABC, Generic[S]):
    """How one of the timed experiments measures.

    Attributes:
        shape: the model of its summary.
    """

    shape: ClassVar[type[Summary]]

    @abstractmethod
    def check(self, sides: Mapping[str, ResolvedProfile], session: Session) -> None:
        """Raise a UserError if it is not possible with these stacks, this model or these data."""

    def vocabulary(self, sides: Sequence[str], session: Session) -> dict[str, Sequence[str]]:
        """Return the names of the run's figures; see :func:`simulator.analysis.gate.check`."""
        return vocabulary(sides)

    @abstractmethod
    def measure(self, session: Session, stacks: Sequence[Stack], run: RunWriter) -> S:
        """Measure, and return the summary without its gate."""


def vocabulary(sides: Sequence[str]) -> dict[str, Sequence[str]]:
    """Return the names of figures that every timed run has."""
    return {
        "stack": sides,
        "other stack": sides[1:],
        "stage": (TOTAL, *timed_steps()),
        "percentile": [name(p) for p in PERCENTILES],
    }


def timed_job(
    job: Job, sides: Mapping[str, ResolvedProfile], measurement: Measurement[S]
) -> Result[S]:
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
    logs = [Path(one.partition("=")[2]) for one in getattr(asked, "times", ())]
    own = declared(type(asked)).keys() - declared(TimedOptions).keys() - {"times"}
    with job.session() as session:
        measurement.check(sides, session)
        gate.check(rules, measurement.shape, measurement.vocabulary(list(sides), session))
        stacks = session.stacks(variants(sides).values())
        start = manifest(stacks, session, asked.changes) | {
            "request": job.request(),
            "measuring": {one.name: value for one, value in given(asked) if one.name in own},
            "times": dict(zip(getattr(asked, "times", ()), map(sha256, logs), strict=True)),
        }
        with job.writer(folder, start, session) as run:
            found = measurement.measure(session, stacks, run)
            took = {"seconds": job.seconds(), "workers": session.workers}
            summary = judged(found, rules, took | {"under": session.condition}, asked.undecided)
            run.finish(summary, took)
    return Result(summary, folder)
