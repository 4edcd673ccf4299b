"""Run the conformance checks of every stage."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from simulator import registry
from simulator.contract import Backend, Offer
from simulator.contract.stage import STAGES, named, stages
from simulator.errors import MissingLibrary
from simulator.testing.subject import Failed, Subject, first
from simulator.testing.values import CannotMake, one_line
from simulator.testing.work import first_job
from simulator.testing.workshop import Workshop

Check = Callable[[Subject], str | None]
"""Raises Failed, or returns a remark or None; its name and docstring say what it requires."""


def checks_of(stage: str) -> tuple[Check, ...]:
    """Return the checks of a stage, as its entry in the stage table names them.

    Raises:
        UserError: there is no such stage, or a check does not load.
    """
    return tuple(named(reference) for reference in STAGES[stage].proofs)


def proved_stages() -> tuple[str, ...]:
    """Return the names of the stages that have checks, in pipeline order."""
    return tuple(spec.name for spec in stages() if spec.proofs)


class Mark(StrEnum):
    """The outcome of a check."""

    PASSED = "passed"
    FAILED = "failed"
    CANNOT = "cannot"


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check of one offer.

    Attributes:
        stage: the offer's stage.
        options: the options that distinguish the offer from the backend's others for that stage.
        check: the check's name.
        mark: passed, failed, or cannot run on this machine.
        remark: the reason, or other information for the user; may be empty.
    """

    stage: str
    options: str
    check: str
    mark: Mark
    remark: str


def prove(backend: Backend, workshop: Workshop | None = None) -> Iterator[Finding]:
    """Run every check on every offer of a backend.

    Args:
        backend: the backend to check.
        workshop: makes the model files for its runtimes; by default a new one with every
            registered backend as a helper.

    Raises:
        MissingLibrary: the backend cannot run here; the message gives the reason.
        UserError: it offers a stage that is not in the table, or a check does not load.
    """
    registry.require(backend)
    with tempfile.TemporaryDirectory() as folder:
        workshop = workshop or Workshop(Path(folder), registered())
        for offer in backend.offers:
            STAGES.require(offer.stage)
        for stage in proved_stages():
            for offer in backend.of(stage):
                yield from _offer(backend, offer, workshop)


def registered() -> list[Backend]:
    """Return every backend whose module loads; others cannot help."""
    found = []
    for name in registry.entry_points():
        with suppress(Exception):
            found.append(registry.backend(name))
    return found


def _offer(backend: Backend, offer: Offer, workshop: Workshop) -> Iterator[Finding]:
    short = _short(backend, offer)
    try:
        subject = first(backend, offer, workshop)
        first_job(subject)
    except (MissingLibrary, CannotMake) as error:
        first_check = checks_of(offer.stage)[0].__name__
        yield Finding(offer.stage, short, first_check, Mark.CANNOT, str(error))
        return
    except Exception:  # the checks report what is wrong
        pass
    for check in checks_of(offer.stage):
        mark, remark = Mark.PASSED, ""
        try:
            remark = check(subject) or ""
        except Failed as error:
            mark, remark = Mark.FAILED, str(error)
        except (MissingLibrary, CannotMake) as error:
            mark, remark = Mark.CANNOT, str(error)
        except Exception as error:  # a crash is a failure, never "not applicable"
            mark, remark = Mark.FAILED, one_line(error)
        yield Finding(offer.stage, short, check.__name__, mark, remark)


def _short(backend: Backend, offer: Offer) -> str:
    others = [other.options for other in backend.of(offer.stage) if other is not offer]
    told = []
    for name, admits in offer.options.items():
        if any(str(other.get(name)) != str(admits) for other in others):
            values = admits if isinstance(admits, tuple) else (admits,)
            told.append(f"{name}={'|'.join(str(value) for value in values)}")
    return " ".join(told)
