"""Measures in rounds: every stack and sample once untimed, then timed for several rounds."""

from __future__ import annotations

import gc
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa

from simulator.contract import Stage
from simulator.contract.recipe import Boundary
from simulator.contract.stage import timed_steps
from simulator.data.folder import Item
from simulator.errors import DataError, SampleError, UserError
from simulator.experiments.answers import Answers
from simulator.experiments.running import run_and_keep
from simulator.experiments.session import Session
from simulator.latency import rounds
from simulator.latency.inputs import Inputs
from simulator.latency.job import Measurement, is_recorded
from simulator.latency.recorded import load_times
from simulator.latency.servers import APART, Servers, base, joint
from simulator.latency.stopping import Pace
from simulator.latency.stream import (
    OFFLINE,
    SINGLE_STREAM,
    STREAM,
    Round,
    Sending,
    Stream,
)
from simulator.latency.summary import Timed
from simulator.latency.times import Times, of_rounds, of_stages
from simulator.pipeline import recorded
from simulator.pipeline.adapted import refuse_together
from simulator.pipeline.plan import Arm, plan
from simulator.pipeline.stack import ResolvedProfile, Stack
from simulator.results.store import RunWriter
from simulator.results.timed import LatencySummary
from simulator.results.times import ABSENT, Ints

SAMPLES = "samples.parquet"
R = TypeVar("R", bound=LatencySummary)


class InRounds(Measurement[R]):
    """Measures round after round, in SingleStream unless another scenario is given.

    The untimed pass gives the predictions and finds samples that have to be skipped. Rounds of an
    earlier attempt are kept; each new round is written to disk before the next begins.

    Args:
        pace: a function from the number of samples to what decides the number of rounds.
        tables: recorded latencies, by stack; such a stack is not measured. None where the
            experiment takes no recorded latencies.
        sending: how the samples of a round are sent.
    """

    def __init__(
        self,
        pace: Callable[[int], Pace],
        tables: Mapping[str, Path] | None,
        sending: Sending = STREAM,
    ) -> None:
        self._pace, self._tables, self._sending = pace, tables, sending

    def check(self, sides: Mapping[str, ResolvedProfile], session: Session) -> None:
        """Refuse batches in SingleStream, and a recorded stack without latencies.

        Raises:
            UserError: a stack has batches that its queries do not have.
            DataError: saying how to give them.
        """
        for side, chosen in sides.items():
            self._check(side, chosen)
            replayed = recorded.recording(*chosen, Stage.RUNTIME)
            if replayed is None or replayed.stages or side in (self._tables or {}):
                continue
            how = f"give --times {side}=FILE"
            if self._tables is None:
                how = "simulate tail takes latencies with --times"
            raise DataError(f"{replayed.path}: no latency was recorded; {how}")

    def _check(self, side: str, chosen: ResolvedProfile) -> None:
        if self._sending.scenario == SINGLE_STREAM:
            refuse_together(side, *chosen, f"{SINGLE_STREAM} sends")
            return
        if is_recorded(chosen) or side in (self._tables or {}):
            raise UserError(f"{side}: {self._sending.scenario} needs a stack that runs here")
        batch = chosen[0].spec.runtime.samples
        if (query := self._sending.together(batch)) % batch:
            raise UserError(f"{side}: queries of {query} samples cannot be batches of {batch}")

    def measure(self, session: Session, stacks: Sequence[Stack], run: RunWriter) -> R:
        """Measure the rounds and compute the figures.

        Raises:
            DataError: every sample was skipped, all timed inferences of a stack failed, or recorded
                latencies cannot be used.
            ModelError: a runtime fails; the rounds before are kept.
        """
        names = [stack.side for stack in stacks]
        done = run_and_keep(session, session.plan(stacks), run, timed=False)
        found = done.answers(*names)
        inputs = _inputs(session, stacks, found.items)
        fed = {f"{inputs.unit}.{side}": sizes for side, sizes in inputs.fed.items()}
        run.write_table(SAMPLES, pa.table({"sample": list(inputs.names), **inputs.sizes, **fed}))
        times = self._recorded(stacks, found.items)
        live = [stack for stack in stacks if stack.side not in times]
        measured = self._measure(session, live, found.items, run) if live else []
        rows = _rows(session, live)
        of_live = dict(zip(rows, of_rounds(measured, self._together(session, live)), strict=True))
        if session.executor.servers:
            times |= _joint(of_live)
        rounds.merge(run, times, inputs.names)
        times |= of_live
        names += [row for row in rows if row not in names]
        for name in names:
            _refuse_failed(name, times[name], found.items, measured)
        odd = _changed_answers(found, rows, measured)
        session.show.say("computing the figures")
        ordered = {name: times[name] for name in names}
        return self.summarize(
            session, stacks, Timed(found, done, ordered, measured, inputs, odd, self._sending, rows)
        )

    @abstractmethod
    def summarize(self, session: Session, stacks: Sequence[Stack], timed: Timed) -> R:
        """Compute the figures."""

    def _recorded(self, stacks: Sequence[Stack], items: Sequence[Item]) -> dict[str, Times]:
        """The times of stacks that were recorded on a device."""
        found = {side: load_times(path, items) for side, path in (self._tables or {}).items()}
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

    def _together(self, session: Session, live: Sequence[Stack]) -> list[int]:
        found = [self._sending.together(stack.profile.spec.runtime.samples) for stack in live]
        return found * max(1, session.executor.servers)

    def _stream(
        self, session: Session, live: Sequence[Stack], items: Sequence[Item]
    ) -> Stream | Servers:
        """Return what measures a round: this process, or every server of the cluster."""
        chains = [session.disturbed(stack.chain) for stack in live]
        together = self._together(session, live)[: len(live)]
        how = items, session.seed, together, self._sending.scenario == OFFLINE
        if session.executor.servers:
            return Servers(
                session.executor, " and ".join(stack.side for stack in live), chains, *how
            )
        return Stream(session.executor, chains, *how)

    def _measure(
        self, session: Session, live: Sequence[Stack], items: Sequence[Item], run: RunWriter
    ) -> list[Round]:
        pace = self._pace(len(items))
        sides, samples = _rows(session, live), [item.name for item in items]
        measured = rounds.kept(run.folder, sides, samples)
        together = self._together(session, live)
        stream = self._stream(session, live, items)
        each = len(sides) * len(items)
        if not pace.enough(of_rounds(measured, together)):
            session.show.say("warming up")
            stream.warm_up()
            gc.freeze()  # do not scan existing objects in every round again: that takes 0.1 s
        try:
            while not pace.enough(of_rounds(measured, together)):
                before = len(measured) * each
                session.show.say(f"round {len(measured) + 1}{pace.progress}")

                def advance(now: int, before: int = before) -> None:
                    session.show.advance(before + now, pace.rounds * each)

                one = stream.round(len(measured), advance)
                rounds.keep(run, one, sides, samples)
                measured.append(one)
        finally:
            gc.unfreeze()
        return measured


def _rows(session: Session, live: Sequence[Stack]) -> list[str]:
    """The names of what a round measures: the stacks, or those of each server."""
    servers = session.executor.servers
    ends = [f"{APART}{server}" for server in range(1, servers + 1)] or [""]
    return [f"{stack.side}{end}" for end in ends for stack in live]


def _joint(of_live: Mapping[str, Times]) -> dict[str, Times]:
    """The times of each stack on all servers, from those of each server."""
    found: dict[str, list[Times]] = {}
    for row, own in of_live.items():
        found.setdefault(base(row), []).append(own)
    return {side: joint(each) for side, each in found.items()}


def _inputs(session: Session, stacks: Sequence[Stack], items: Sequence[Item]) -> Inputs:
    modality, sizes = session.card.modality, []
    for item in items:
        try:
            sizes.append(modality.sizes(modality.read(item.name, item.path)))
        except SampleError as error:
            raise DataError(f"{item.path}: {error}; it could be read before") from error
    measures = {name: [size[name] for size in sizes] for name in sizes[0]}
    fed = {stack.side: _fed(session, stack, items) for stack in stacks if _is_free(session, stack)}
    varied = {side: sizes for side, sizes in fed.items() if np.ptp(sizes)}
    return Inputs([item.name for item in items], measures, modality.length, varied, modality.fed)


def _is_free(session: Session, stack: Stack) -> bool:
    """Whether a network that runs here may get inputs of several sizes."""
    sizes = [size for feed in session.card.feeds for size in feed.shape]
    return not all(isinstance(size, int) for size in sizes) and stack.chain.has(Boundary.INPUT)


def _fed(session: Session, stack: Stack, items: Sequence[Item]) -> Ints:
    """(n,) how many values the first input of the network has, of all inferences of a sample."""
    chain = session.disturbed(stack.chain).until(Boundary.INPUT)
    opened, found = session.executor.open(plan({Arm("fed"): chain})), []
    for item in items:
        try:
            (value,) = opened.walk(session.executor.context(item)).answers()
        except SampleError as error:
            raise DataError(f"{item.path}: {error}; it could be read before") from error
        rows = value if isinstance(value, tuple) else (value,)
        firsts = (next(iter(one.values())) if isinstance(one, Mapping) else one for one in rows)
        found.append(sum(np.size(first) for first in firsts))
    return np.array(found, np.int64)


def _refuse_failed(
    name: str, times: Times, items: Sequence[Item], measured: Sequence[Round]
) -> None:
    if times.answered().size:
        return
    why = next(
        f"{items[sample].name}: {why}"
        for one in measured
        for (_, sample), why in one.failed.items()
    )
    raise DataError(f"{name}: all {times.total.size:,} timed inferences failed; the first: {why}")


def _changed_answers(
    found: Answers, live: Sequence[str], measured: Sequence[Round]
) -> dict[str, int]:
    """For each stack how many timed outputs have other bits than the untimed ones."""
    counts = {}
    for which, side in enumerate(live):
        first = found.digests[found.row(base(side))].astype(np.str_)
        timed = np.stack([one.digests[which] for one in measured])
        counts[side] = int(np.count_nonzero((timed != first) & (timed != "")))
    return counts
