"""Measures in rounds: every stack and sample once untimed, then timed for several rounds."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from simulator.contract import Scenario, Stage
from simulator.contract.stage import timed_steps
from simulator.data.folder import Item
from simulator.errors import DataError, SampleError
from simulator.experiments.common import run_and_keep
from simulator.experiments.session import Answers, Session, answers
from simulator.latency import rounds
from simulator.latency.inputs import Inputs
from simulator.latency.pace import RoundPolicy
from simulator.latency.recorded import load_times
from simulator.latency.single_stream import Round, SingleStream
from simulator.latency.summary import Timed, in_rounds, vocabulary
from simulator.latency.times import Times, of_rounds, of_stages
from simulator.pipeline import recorded
from simulator.pipeline.adapted import refuse_together
from simulator.pipeline.stack import Chosen, Stack
from simulator.results.store import RunWriter
from simulator.results.timed import LatencySummary
from simulator.results.times import ABSENT

SAMPLES = "samples.parquet"


class InRounds:
    """Measures in SingleStream, round after round.

    Args:
        policy: a function from the number of samples to what decides the number of rounds.
        tables: recorded latencies, by stack; such a stack is not measured. None where the
            experiment takes no recorded latencies.
    """

    shape: ClassVar[type[LatencySummary]] = LatencySummary

    def __init__(
        self, policy: Callable[[int], RoundPolicy], tables: Mapping[str, Path] | None
    ) -> None:
        self._policy, self._tables = policy, tables

    def check(self, sides: Mapping[str, Chosen], session: Session) -> None:
        """Refuse batches, and a recorded stack without latencies.

        Raises:
            UserError: a stack has batches.
            DataError: saying how to give them.
        """
        for side, chosen in sides.items():
            refuse_together(side, *chosen, f"{Scenario.SINGLE_STREAM} sends")
            replayed = recorded.recording(*chosen, Stage.RUNTIME)
            if replayed is None or replayed.stages or side in (self._tables or {}):
                continue
            how = f"give --times {side}=FILE"
            if self._tables is None:
                how = "simulate tail takes latencies with --times"
            raise DataError(f"{replayed.path}: no latency was recorded; {how}")

    def vocabulary(self, sides: Sequence[str], session: Session) -> dict[str, Sequence[str]]:
        """Return the names of the run's figures, to check gate rules before it is run."""
        return vocabulary(sides)

    def measure(self, session: Session, stacks: Sequence[Stack], run: RunWriter) -> LatencySummary:
        """Measure the rounds and compute the figures."""
        timed = measure_rounds(session, stacks, run, self._policy, self._tables)
        session.show.say("computing the figures")
        return self.shape.model_validate(self.figures(session, stacks, timed))

    def figures(self, session: Session, stacks: Sequence[Stack], timed: Timed) -> dict[str, Any]:
        """Return the fields of the summary."""
        return in_rounds(session, stacks, timed)


def measure_rounds(
    session: Session,
    stacks: Sequence[Stack],
    run: RunWriter,
    policy: Callable[[int], RoundPolicy],
    tables: Mapping[str, Path] | None,
) -> Timed:
    """Run every sample once untimed, then in timed rounds in SingleStream.

    The untimed pass gives the predictions and finds samples that have to be skipped. Rounds of an
    earlier attempt are kept; each new round is written to disk before the next begins.

    Args:
        session: the model and the samples.
        stacks: the stacks to be measured.
        run: records and rounds are written to it.
        policy: a function from the number of samples to what decides the number of rounds.
        tables: recorded latencies, by stack; such a stack is not measured.

    Raises:
        DataError: every sample was skipped, all timed inferences of a stack failed, or recorded
            latencies cannot be used.
        ModelError: a runtime fails; the rounds before are kept.
    """
    names = [stack.side for stack in stacks]
    done = run_and_keep(session, session.plan(stacks), run, timed=False)
    found = answers(session.card.task, names, done)
    inputs = _inputs(session, found.items)
    run.write_table(SAMPLES, _table(inputs))
    known = _recorded(stacks, found.items, tables)
    live = [stack for stack in stacks if stack.side not in known]
    measured = _measure(session, live, found.items, run, policy(len(found.items))) if live else []
    rounds.merge(run, known, inputs.names)
    taken = of_rounds(measured, len(live)) if live else []
    times = dict(zip((stack.side for stack in live), taken, strict=True))
    odd = _changed_answers(found, list(times), measured)
    ordered = {name: times[name] if name in times else known[name] for name in names}
    for name, one in ordered.items():
        if not one.answered().size:
            why = next(
                f"{found.items[sample].name}: {why}"
                for rounded in measured
                for (_, sample), why in rounded.failed.items()
            )
            raise DataError(
                f"{name}: all {one.total.size:,} timed inferences failed; the first: {why}"
            )
    return Timed(found, done, ordered, measured, inputs, odd)


def _measure(
    session: Session,
    live: Sequence[Stack],
    items: Sequence[Item],
    run: RunWriter,
    policy: RoundPolicy,
) -> list[Round]:
    sides, samples = [stack.side for stack in live], [item.name for item in items]
    measured = rounds.kept(run.folder, sides, samples)
    chains = [session.disturbed(stack.chain) for stack in live]
    stream = SingleStream(session.executor, chains, items, session.seed)
    each, total = len(live) * len(items), policy.max_rounds * len(live) * len(items)
    if not policy.enough(of_rounds(measured, len(live)) if measured else []):
        session.show.say("warming up")
        stream.warm_up()
        gc.freeze()  # do not scan existing objects in every round again: that takes 0.1 s
    try:
        while not policy.enough(of_rounds(measured, len(live)) if measured else []):
            session.show.say(f"round {len(measured) + 1}{policy.progress}")
            before = len(measured) * each
            one = stream.round(len(measured), partial(_advance, session, before, total))
            rounds.keep(run, one, sides, samples)
            measured.append(one)
    finally:
        gc.unfreeze()
    return measured


def _advance(session: Session, before: int, total: int, now: int) -> None:
    session.show.advance(before + now, total)


def _recorded(
    stacks: Sequence[Stack], items: Sequence[Item], tables: Mapping[str, Path] | None
) -> dict[str, Times]:
    found = {side: load_times(path, items) for side, path in (tables or {}).items()}
    steps = timed_steps()
    for stack in stacks:
        replayed = recorded.recording(stack.profile, stack.choices, Stage.RUNTIME)
        if stack.side in found or replayed is None:
            continue
        ns = np.full((1, len(items), len(steps)), ABSENT, np.int64)
        for stage in replayed.stages:
            column = steps.index(stage)
            ns[0, :, column] = [replayed.latency(item, stage) for item in items]
        found[stack.side] = of_stages(ns, replayed.path.name)
    return found


def _inputs(session: Session, items: Sequence[Item]) -> Inputs:
    modality, sizes = session.card.modality, []
    for item in items:
        try:
            sizes.append(modality.sizes(modality.read(item.name, item.path)))
        except SampleError as error:
            raise DataError(f"{item.path}: {error}; it could be read before") from error
    measures = {name: [one[name] for one in sizes] for name in sizes[0]}
    return Inputs([item.name for item in items], measures, modality.length)


def _table(inputs: Inputs) -> pa.Table:
    return pa.table({"sample": list(inputs.names), **inputs.sizes})


def _changed_answers(
    found: Answers, live: Sequence[str], measured: Sequence[Round]
) -> dict[str, int]:
    """For each stack how many timed outputs have other bits than the untimed ones."""
    counts = {}
    for which, side in enumerate(live):
        first = found.digests[found.row(side)].astype(np.str_)
        timed = np.stack([one.digests[which] for one in measured])
        counts[side] = int(np.count_nonzero((timed != first) & (timed != "")))
    return counts
