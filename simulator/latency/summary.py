"""The parts of ``summary.json`` that the timed experiments share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from simulator import machine
from simulator.contract import Stage
from simulator.contract.stage import timed_steps
from simulator.data.folder import Item
from simulator.errors import SampleError
from simulator.experiments.failures import failures
from simulator.experiments.kept import Kept
from simulator.experiments.session import Answers, Session
from simulator.experiments.summary import SKIPPED_LISTED, TOTAL, reference_of
from simulator.latency import figures
from simulator.latency.inputs import Inputs, influence
from simulator.latency.single_stream import TURN, WARM_UP, Round
from simulator.latency.times import Times
from simulator.notices import Kind, Notice, merged
from simulator.pipeline.stack import Stack
from simulator.statistics.percentiles import PERCENTILES, name


@dataclass(frozen=True, slots=True)
class Timed:
    """The measurements of a timed experiment.

    Attributes:
        answers: the records of the untimed pass.
        done: the samples of that pass, skipped ones included.
        times: by stack.
        rounds: those that were measured here; empty where all times were recorded.
        inputs: the names and sizes of the samples.
        odd: for each stack how many timed outputs had other bits than the untimed ones.
    """

    answers: Answers
    done: Kept
    times: dict[str, Times]
    rounds: Sequence[Round]
    inputs: Inputs
    odd: dict[str, int]


def vocabulary(sides: Iterable[str]) -> dict[str, Sequence[str]]:
    """Return the names of a timed run's figures, to check gate rules before it is run."""
    stacks = list(sides)
    return {
        "stack": stacks,
        "other stack": stacks[1:],
        "stage": (TOTAL, *timed_steps()),
        "percentile": [name(p) for p in PERCENTILES],
    }


def in_rounds(session: Session, stacks: Sequence[Stack], timed: Timed) -> dict[str, Any]:
    """Return the fields of :class:`simulator.results.timed.LatencySummary`.

    The figures are those of :mod:`simulator.latency.figures` and :mod:`simulator.latency.inputs`.
    """
    times = timed.times
    measured = [side for side, one in times.items() if one.measured]
    return {
        **head(session, stacks, timed.done),
        "stacks": {stack.side: described(stack) | _counted(times[stack.side]) for stack in stacks},
        "protocol": {
            "warm_up": WARM_UP if measured else 0,
            "turn": TURN if len(measured) > 1 else None,
            "interleaved": measured if len(measured) > 1 else [],
        },
        "latency_ms": figures.table(times),
        "percentiles": figures.percentiles(times),
        "ratio": figures.ratios(times),
        "spread": figures.spread(times),
        "conditions": figures.conditions(timed.rounds),
        "inputs": influence(times, timed.inputs),
        "missing": figures.missing(times),
        "warnings": [
            *merged(notice for stack in stacks for notice in stack.labelled_notices),
            *session.notes,
            *in_process(session, stacks, timed.answers.items),
            *_findings(timed),
        ],
    }


def head(session: Session, stacks: Sequence[Stack], done: Kept) -> dict[str, Any]:
    """Return the first fields: the task, the model, the samples and the machine.

    Args:
        session: the model and the samples.
        stacks: in the order of the outcomes.
        done: the samples of the untimed pass.
    """
    skipped, names = done.skipped, [stack.side for stack in stacks]
    return {
        "task": session.card.task.name,
        "metric": session.card.task.headline,
        "model": session.card.spec.name,
        "samples": len(done.ran),
        **failures(done, names, reference_of(names)),
        "sample_unit": session.card.modality.unit,
        "skipped": len(skipped),
        "skipped_samples": [
            {"sample": item.name, "why": why} for item, why in skipped[:SKIPPED_LISTED]
        ],
        "machine": _machine(),
    }


def in_process(session: Session, stacks: Sequence[Stack], items: Sequence[Item]) -> list[Notice]:
    """Say where decoders ran that have decoded files in a worker before time was measured.

    Args:
        session: the model and the samples.
        stacks: those that were measured.
        items: the samples that were.
    """
    isolation = session.builder.runtimes.isolation
    choices = (stack.choices.get(Stage.DECODE) for stack in stacks)
    decoders = {choice.backend.name: choice.backend for choice in choices if choice}
    used = sorted(
        name
        for name, backend in decoders.items()
        if isolation.watches(backend)
        and any(isolation.takes(backend, source) for source in _sources(session, items))
    )
    if not used:
        return []
    files = "a file that kills its decoder was skipped before, in a worker"
    text = f"{', '.join(used)} decoded in this process while time was measured; {files}"
    return [Notice(Kind.IN_PROCESS, text)]


def _sources(session: Session, items: Sequence[Item]) -> Iterator[Any]:
    """The files that are still there."""
    for item in items:
        with suppress(SampleError):
            yield session.executor.context(item).source


def described(stack: Stack) -> dict[str, Any]:
    """Return a stack's profile, and the settings that are in force."""
    return {
        "profile": stack.profile.name,
        "overrides": list(stack.profile.overrides),
        "effective": {"compute": stack.effective.compute, **stack.effective.options},
    }


def _counted(times: Times) -> dict[str, Any]:
    return {
        "times": "measured" if times.measured else "recorded",
        "source": times.source or None,
        "rounds": times.rounds,
        "queries": int(times.total.size),
        "failed": times.failed,
    }


def _machine() -> dict[str, Any]:
    found = machine.describe({})
    return {
        "cpu": found["cpu"]["model"],
        "cores": found["cores"],
        "usable_cores": found["usable_cores"],
        "platform": found["platform"],
    }


def _findings(timed: Timed) -> list[Notice]:
    found = _busy(timed.rounds)
    live = [side for side, times in timed.times.items() if times.measured]
    for side, times in timed.times.items():
        if times.failed:
            row = live.index(side)
            why = next(
                f"{timed.inputs.names[sample]}: {why}"
                for one in timed.rounds
                for (at, sample), why in one.failed.items()
                if at == row
            )
            words = (
                f"{times.failed} of {times.total.size:,} timed inferences failed; they count as "
                f"late and are left out of percentiles; the first: {why}"
            )
            found.append(Notice(Kind.FAILED_INFERENCES, words, (side,)))
        if timed.odd.get(side):
            words = (
                f"{timed.odd[side]:,} of {times.total.size:,} timed outputs have other bits than "
                "the first; quality is computed from the first outputs"
            )
            found.append(Notice(Kind.NOT_DETERMINISTIC, words, (side,)))
    return found


def _busy(rounds: Sequence[Round]) -> list[Notice]:
    cores = len(machine.usable())
    loads = sorted(one.conditions["load"] for one in rounds)
    if not loads or loads[len(loads) // 2] <= cores:
        return []
    words = (
        f"the machine was busy (load {loads[len(loads) // 2]:.1f} on {cores} cores): other "
        "programs may have slowed the stacks down"
    )
    return [Notice(Kind.BUSY_MACHINE, words)]
