"""Run the conformance checks of every stage."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from simulator import registry
from simulator.contract import Backend, Offer
from simulator.contract.stage import STAGES, named, stages
from simulator.errors import MissingLibrary
from simulator.testing.subject import Check, first
from simulator.testing.suite import Mark, Verdict, verdict
from simulator.testing.values import CannotMake
from simulator.testing.work import first_job
from simulator.testing.workshop import Workshop


def checks_of(stage: str) -> tuple[Check, ...]:
    """Return the checks of a stage, as its entry in the stage table names them.

    Raises:
        UserError: there is no such stage, or a check does not load.
    """
    return tuple(named(reference) for reference in STAGES[stage].proofs)


def proved_stages() -> tuple[str, ...]:
    """Return the names of the stages that have checks, in pipeline order."""
    return tuple(spec.name for spec in stages() if spec.proofs)


@dataclass(frozen=True, slots=True)
class Finding(Verdict):
    """The outcome of one check of one offer; it can also be that it cannot run on this machine.

    Attributes:
        stage: the offer's stage.
        options: the options that distinguish the offer from the backend's others for that stage.
    """

    stage: str
    options: str


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
    with tempfile.TemporaryDirectory() as folder, registry.keeping():
        workshop = workshop or Workshop(Path(folder), registered())
        for offer in backend.offers:
            STAGES.require(offer.stage)
        for stage in proved_stages():
            for offer in backend.of(stage):
                yield from _offer(backend, offer, workshop)


def registered() -> list[Backend]:
    """Return every backend whose module loads; others cannot help."""
    found = []
    for name in registry.BACKENDS.points:
        with suppress(Exception):
            found.append(registry.backend(name))
    return found


def _offer(backend: Backend, offer: Offer, workshop: Workshop) -> Iterator[Finding]:
    checks, options = checks_of(offer.stage), _short(backend, offer)
    try:
        subject = first(backend, offer, workshop)
        first_job(subject)
    except (MissingLibrary, CannotMake) as error:
        yield Finding(checks[0].__name__, Mark.CANNOT, str(error), offer.stage, options)
        return
    except Exception:  # the checks report what is wrong
        pass
    for check in checks:
        try:
            found = verdict(check, subject)
        except (MissingLibrary, CannotMake) as error:
            found = Verdict(check.__name__, Mark.CANNOT, str(error))
        yield Finding(found.check, found.mark, found.remark, offer.stage, options)


def _short(backend: Backend, offer: Offer) -> str:
    others = [other.options for other in backend.of(offer.stage) if other is not offer]
    told = []
    for name, admits in offer.options.items():
        if any(str(other.get(name)) != str(admits) for other in others):
            values = admits if isinstance(admits, tuple) else (admits,)
            told.append(f"{name}={'|'.join(str(value) for value in values)}")
    return " ".join(told)
