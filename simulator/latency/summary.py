"""The content of ``summary.json`` of the timed jobs, less the figures of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simulator import machine
from simulator.contract.stage import timed_steps
from simulator.experiments.session import Answers, Session
from simulator.experiments.summary import SKIPPED_LISTED
from simulator.latency import figures
from simulator.latency.inputs import Inputs, influence
from simulator.latency.single_stream import TURN, WARM_UP, Round
from simulator.latency.times import Times
from simulator.pipeline.executor import Done
from simulator.pipeline.stack import Stack, notes


@dataclass(frozen=True, slots=True)
class Timed:
    """What a timed job has found out before it works out its own figures.

    Attributes:
        answers: of the pass that is not timed.
        done: the samples of that pass, the skipped ones too.
        times: by stack.
        rounds: those that were measured here; none where all times were recorded.
        inputs: the samples.
        odd: for each stack how many timed answers had other bits than the untimed one.
    """

    answers: Answers
    done: Sequence[Done]
    times: dict[str, Times]
    rounds: Sequence[Round]
    inputs: Inputs
    odd: dict[str, int]


def template(sides: Iterable[str]) -> dict[str, Any]:
    """Return a summary of the right shape and no meaning, to check gate rules before a run."""
    none = np.zeros((1, 1), np.int64)
    times = dict.fromkeys(sides, Times(none, dict.fromkeys(timed_steps(), none)))
    return {
        "samples": 1,
        "skipped": 0,
        "latency_ms": figures.table(times),
        "percentiles": figures.percentiles(times),
        "ratio": {side: {"value": 1.0, "ci95": [1.0, 1.0]} for side in list(times)[1:]},
        "spread": {side: {"range": 0.0} for side in times},
    }


def summary_of(
    command: str, session: Session, stacks: Sequence[Stack], timed: Timed
) -> dict[str, Any]:
    """Return the part of ``summary.json`` that every timed job has.

    ``latency_ms``, ``percentiles``, ``ratio``, ``spread``, ``conditions`` and ``inputs`` are those
    of :mod:`simulator.latency.figures` and :mod:`simulator.figures.inputs`; ``missing`` says why
    figures are None, by their paths.
    """
    times = timed.times
    measured = [side for side, one in times.items() if one.measured]
    return {
        **head(command, "SingleStream", session, timed.done),
        "stacks": {stack.side: told(stack) | _counted(times[stack.side]) for stack in stacks},
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
            *notes(told for stack in stacks for told in stack.told),
            *session.notes,
            *_findings(timed),
        ],
    }


def head(command: str, scenario: str, session: Session, done: Sequence[Done]) -> dict[str, Any]:
    """Return what was run, on what: the samples of the untimed pass, and the machine."""
    skipped = [one for one in done if one.skipped is not None]
    return {
        "schema": 1,
        "command": command,
        "scenario": scenario,
        "task": session.card.task.name,
        "metric": session.card.task.headline,
        "model": session.card.spec.name,
        "samples": len(done) - len(skipped),
        "skipped": len(skipped),
        "skipped_samples": [
            {"sample": one.item.name, "why": one.skipped} for one in skipped[:SKIPPED_LISTED]
        ],
        "machine": _machine(),
    }


def told(stack: Stack) -> dict[str, Any]:
    """Return what a stack is, as its runtime says."""
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
    told = machine.describe({})
    return {
        "cpu": told["cpu"]["model"],
        "cores": told["cores"],
        "usable_cores": told["usable_cores"],
        "platform": told["platform"],
    }


def _findings(timed: Timed) -> list[str]:
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
            found.append(
                f"{side}: {times.failed} of {times.total.size:,} timed inferences failed; they "
                f"count as late, and in no percentile; the first: {why}"
            )
        if timed.odd.get(side):
            found.append(
                f"{side}: {timed.odd[side]:,} of {times.total.size:,} timed answers have other "
                "bits than the first; quality is that of the first answers"
            )
    return found


def _busy(rounds: Sequence[Round]) -> list[str]:
    cores = len(machine.usable())
    loads = sorted(one.conditions["load"] for one in rounds)
    if not loads or loads[len(loads) // 2] <= cores:
        return []
    return [
        f"the machine was busy (load {loads[len(loads) // 2]:.1f} on {cores} cores): the latencies "
        "are not those of the stacks alone"
    ]
