"""The parts of ``summary.json`` that the timed experiments share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypedDict

from simulator import machine
from simulator.contract import Stage
from simulator.data.folder import Item
from simulator.errors import SampleError
from simulator.experiments.answers import Answers
from simulator.experiments.record_store import RecordStore
from simulator.experiments.session import Session
from simulator.experiments.summary import SKIPPED_LISTED, head, reference_of, running
from simulator.latency import figures
from simulator.latency.inputs import Inputs, influence
from simulator.latency.parts import tokens
from simulator.latency.servers import base
from simulator.latency.stream import OFFLINE, TURN, WARM_UP, Round, Sending
from simulator.latency.times import Times
from simulator.notices import Kind, Notice, merged
from simulator.pipeline.stack import Stack
from simulator.results.shared import Latency, Skipped
from simulator.results.timed import (
    LatencySummary,
    Machine,
    Percentile,
    Protocol,
    Ratio,
    Spread,
    TimedStack,
)


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
        sending: how the samples were sent.
        rows: what a round measured: stacks, or those of each server.
    """

    answers: Answers
    done: RecordStore
    times: dict[str, Times]
    rounds: Sequence[Round]
    inputs: Inputs
    odd: dict[str, int]
    sending: Sending
    rows: Sequence[str]


def summarize(session: Session, stacks: Sequence[Stack], timed: Timed) -> LatencySummary:
    """Return what rounds in SingleStream have given."""
    return LatencySummary(**latencies(session, stacks, timed), scenario="SingleStream")


def latencies(session: Session, stacks: Sequence[Stack], timed: Timed) -> dict[str, Any]:
    """Return the fields of a summary that rounds in any scenario give."""
    measured = [side for side, time in timed.times.items() if time.measured]
    several = len({base(side) for side in measured}) > 1
    known = {stack.side: stack for stack in stacks}
    return {
        **first_fields(session, stacks, timed.done),
        "stacks": {
            side: _timed_stack(known[base(side)], times) for side, times in timed.times.items()
        },
        "protocol": Protocol(
            warm_up=WARM_UP if measured else 0,
            turn=TURN if several and timed.sending.scenario != OFFLINE else None,
            interleaved=measured if several else [],
        ),
        **of_times(timed.times),
        "tokens": tokens(timed.rounds, timed.rows),
        "conditions": figures.conditions(timed.rounds),
        # in Offline a latency is that of the place in the queue
        "inputs": {} if timed.sending.scenario == OFFLINE else influence(timed.times, timed.inputs),
        "missing": figures.missing(timed.times),
        "warnings": [*notices(session, stacks, timed.answers.items), *_findings(timed)],
    }


class OfTimes(TypedDict):
    """The fields of a summary that follow from the latencies alone."""

    latency_ms: dict[str, dict[str, Latency]]
    percentiles: dict[str, dict[str, Percentile]]
    ratio: dict[str, Ratio]
    spread: dict[str, Spread]


def of_times(times: Mapping[str, Times]) -> OfTimes:
    """Return the fields of a summary that follow from the latencies alone."""
    return {
        "latency_ms": figures.table(times),
        "percentiles": figures.percentiles(times),
        "ratio": figures.ratios(times),
        "spread": figures.spread(times),
    }


def first_fields(session: Session, stacks: Sequence[Stack], done: RecordStore) -> dict[str, Any]:
    """Return the first fields: the task, the model, the samples and the machine.

    Args:
        session: the model and the samples.
        stacks: in the order of the outcomes.
        done: the samples of the untimed pass.
    """
    skipped, names = done.skipped, [stack.side for stack in stacks]
    host = machine.describe({})
    return {
        **head(session.card, len(done.ran), len(skipped)),
        **done.failures(names, reference_of(names)),
        "skipped_samples": [
            Skipped(sample=item.name, why=why) for item, why in skipped[:SKIPPED_LISTED]
        ],
        "machine": Machine(
            cpu=host["cpu"]["model"],
            **{key: host[key] for key in ("cores", "usable_cores", "platform")},
        ),
    }


def notices(session: Session, stacks: Sequence[Stack], items: Sequence[Item]) -> list[Notice]:
    """Return what is to be known of the stacks and of the samples, before anything was timed.

    Args:
        session: the model and the samples.
        stacks: those that were measured.
        items: the samples that were.
    """
    of_stacks = merged(notice for stack in stacks for notice in stack.labelled_notices)
    return [*of_stacks, *session.notes, *_decoded_here(session, stacks, items)]


def _decoded_here(session: Session, stacks: Sequence[Stack], items: Sequence[Item]) -> list[Notice]:
    """Say where decoders ran that have decoded files in a worker before time was measured."""
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


def _timed_stack(stack: Stack, times: Times) -> TimedStack:
    return TimedStack(
        **running(stack),
        times="measured" if times.measured else "recorded",
        source=times.source or None,
        rounds=times.rounds,
        queries=times.rounds * times.inferences,
        together=times.together,
        failed=times.failed,
    )


def _findings(timed: Timed) -> list[Notice]:
    found = _busy(timed.rounds)
    for side, times in timed.times.items():
        if times.failed:
            rows = [at for at, row in enumerate(timed.rows) if side in (row, base(row))]
            why = next(
                f"{timed.inputs.names[sample]}: {why}"
                for one in timed.rounds
                for (at, sample), why in one.failed.items()
                if at in rows
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
