"""Going through rounds: every stack and sample untimed once, then timed until it is enough."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from simulator.contract import Stage
from simulator.contract.stage import timed_steps
from simulator.data.folder import Item
from simulator.errors import DataError, SampleError
from simulator.experiments.common import run_and_keep
from simulator.experiments.session import Answers, Session, answers
from simulator.latency import rounds
from simulator.latency.inputs import Inputs
from simulator.latency.pace import Pace
from simulator.latency.recorded import load_times
from simulator.latency.single_stream import Round, SingleStream
from simulator.latency.summary import Timed, in_rounds, vocabulary
from simulator.latency.times import Times, of_rounds, of_stages
from simulator.pipeline import recorded
from simulator.pipeline.stack import Chosen, Stack
from simulator.results.store import RunWriter
from simulator.results.timed import LatencySummary
from simulator.results.times import ABSENT

SAMPLES = "samples.parquet"


class InRounds:
    """Measures in SingleStream, round after round.

    Args:
        pace: from the number of samples to what says when to stop.
        tables: recorded latencies, by stack; it is not measured then. None: the job takes none.
    """

    shape: ClassVar[type[LatencySummary]] = LatencySummary

    def __init__(self, pace: Callable[[int], Pace], tables: Mapping[str, Path] | None) -> None:
        self._pace, self._tables = pace, tables

    def check(self, sides: Mapping[str, Chosen], session: Session) -> None:
        """Refuse a recorded stack that nobody has timed."""
        for side, own in sides.items():
            replayed = recorded.recording(*own, Stage.RUNTIME)
            if replayed is None or replayed.stages or side in (self._tables or {}):
                continue
            how = f"give --times {side}=FILE" if self._tables is not None else "tail takes --times"
            raise DataError(f"{replayed.path}: no latency was recorded; {how}")

    def vocabulary(self, sides: Sequence[str], session: Session) -> dict[str, Sequence[str]]:
        """Return the names of the run's figures, to check gate rules before it is run."""
        return vocabulary(sides)

    def measure(self, session: Session, stacks: Sequence[Stack], run: RunWriter) -> LatencySummary:
        """Go through the rounds and work out the figures."""
        timed = go_through(session, stacks, run, self._pace, self._tables)
        session.show.say("working out the figures")
        return self.shape.model_validate(self.figures(session, stacks, timed))

    def figures(self, session: Session, stacks: Sequence[Stack], timed: Timed) -> dict[str, Any]:
        """Return what the summary is made of."""
        return in_rounds(session, stacks, timed)


def go_through(
    session: Session,
    stacks: Sequence[Stack],
    run: RunWriter,
    pace: Callable[[int], Pace],
    tables: Mapping[str, Path] | None,
) -> Timed:
    """Run every sample once untimed, then round after round in SingleStream.

    The untimed pass gives the answers and sorts out samples that cannot go through. Rounds that an
    earlier attempt has finished are taken over; each new one is durable before the next begins.

    Args:
        session: the model and the samples.
        stacks: to be measured.
        run: where records and rounds go.
        pace: from the number of samples to what says when to stop.
        tables: recorded latencies, by stack; it is not measured then.

    Raises:
        DataError: no sample went through, or recorded latencies cannot be used.
        ModelError: a runtime refuses to run; the rounds before are kept.
    """
    names = [stack.side for stack in stacks]
    done = run_and_keep(session, session.plan(stacks), run, timed=False)
    found = answers(session.card.task, names, done)
    inputs = _inputs(session, found.items)
    run.write_table(SAMPLES, _table(inputs))
    known = _recorded(stacks, found.items, tables)
    live = [stack for stack in stacks if stack.side not in known]
    measured = _measure(session, live, found.items, run, pace(len(found.items))) if live else []
    rounds.merge(run, known, inputs.names)
    taken = of_rounds(measured, len(live)) if live else []
    times = dict(zip((stack.side for stack in live), taken, strict=True))
    odd = _odd(found, list(times), measured)
    ordered = {name: times[name] if name in times else known[name] for name in names}
    for name, one in ordered.items():
        if not one.answered().size:
            why = next(
                f"{found.items[sample].name}: {why}"
                for rounded in measured
                for (_, sample), why in rounded.failed.items()
            )
            raise DataError(
                f"{name}: none of {one.total.size:,} timed inferences came through; one: {why}"
            )
    return Timed(found, done, ordered, measured, inputs, odd)


def _measure(
    session: Session, live: Sequence[Stack], items: Sequence[Item], run: RunWriter, pace: Pace
) -> list[Round]:
    sides, samples = [stack.side for stack in live], [item.name for item in items]
    measured = rounds.kept(run.folder, sides, samples)
    chains = [session.builder.disturbed(stack.chain) for stack in live]
    stream = SingleStream(session.executor, chains, items, session.seed)
    each, total = len(live) * len(items), pace.most * len(live) * len(items)
    if not pace.enough(of_rounds(measured, len(live)) if measured else []):
        session.show.say("warming up")
        stream.warm_up()
        gc.freeze()  # what is there now lives on: collecting it anew in each round takes 0.1 s
    try:
        while not pace.enough(of_rounds(measured, len(live)) if measured else []):
            session.show.say(f"round {len(measured) + 1}{pace.words}")
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
            raise DataError(f"{item.path}: {error}, a moment after it was run") from error
    measures = {name: [one[name] for one in sizes] for name in sizes[0]}
    return Inputs([item.name for item in items], measures)


def _table(inputs: Inputs) -> pa.Table:
    return pa.table({"sample": list(inputs.names), **inputs.sizes})


def _odd(found: Answers, live: Sequence[str], measured: Sequence[Round]) -> dict[str, int]:
    odd = {}
    for which, side in enumerate(live):
        first = found.digests[found.row(side)]
        said = np.stack([one.digests[which] for one in measured])
        odd[side] = int(np.count_nonzero((said != first) & (said != "")))
    return odd
