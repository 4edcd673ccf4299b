"""``simulate tail``: the quality of stacks when late answers count as wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from simulator.command.experiment import Experiment
from simulator.errors import UserError, unknown
from simulator.experiments.common import load_stacks
from simulator.experiments.guessing import doubt
from simulator.experiments.job import Job, Result
from simulator.experiments.session import Session
from simulator.latency import job, tail_figures
from simulator.latency.experiments import TailOptions
from simulator.latency.in_rounds import InRounds
from simulator.latency.job import in_batches, positive, timed_job
from simulator.latency.parts import arrivals, came_in_parts, in_parts
from simulator.latency.quality import Quality
from simulator.latency.recorded import check_table
from simulator.latency.servers import base
from simulator.latency.stopping import Pace, Rule
from simulator.latency.stream import MULTI_STREAM, SCENARIOS, SINGLE_STREAM, Sending
from simulator.latency.summary import Timed, latencies
from simulator.notices import Kind, Notice
from simulator.pipeline.stack import ResolvedProfile, Stack
from simulator.results.tail import TailSummary
from simulator.tasks.task import Task


def tail(experiment: Experiment[Any], asked: TailOptions) -> Result[TailSummary]:
    """Measure how good stacks are when late answers count as wrong.

    Source:
        Yang et al., Quality at the Tail of Machine Learning Inference, arXiv 2212.13925.

    Examples:
        >>> result = tail(["pillow_fp32"], rounds=3, deadlines_ms=[1000.0], limit=4)
        >>> list(result.summary.tail), result.records().num_rows
        (['deploy'], 4)
    """
    for ms in asked.deadlines_ms:
        positive("--deadline-ms", ms)
    rounds = asked.rounds
    if rounds != "auto" and (not isinstance(rounds, int) or rounds < 1):
        raise UserError(f"--rounds must be auto or at least 1, got {rounds}")
    if asked.max_rounds < 1:
        raise UserError(f"--max-rounds must be at least 1, got {asked.max_rounds}")
    positive("--max-minutes", asked.max_minutes)
    sides = load_stacks(asked.profiles, asked.train, asked.deploy, asked.changes)
    if asked.batch:
        sides = in_batches(sides, asked.batch)
    sending = _sending(asked, sides)
    tables = _logs(asked.times, sides)
    if rounds != "auto" and set(tables) == set(sides):
        raise UserError("--rounds is for stacks that are measured; every stack here has a log")
    logged = [f"{side}={path.resolve()}" for side, path in tables.items()]
    return timed_job(
        Job(experiment, asked.without(times=logged)), sides, _Tail(asked, tables, sending)
    )


def _sending(asked: TailOptions, sides: Mapping[str, ResolvedProfile]) -> Sending:
    """Return the scenario: as asked, or the one that the stacks' batches need.

    Raises:
        UserError: there is none of this name, or an option is not for it.
    """
    batches = any(profile.spec.runtime.samples > 1 for profile, _ in sides.values())
    scenario = asked.scenario or (MULTI_STREAM if batches else SINGLE_STREAM)
    if scenario not in SCENARIOS:
        raise UserError(unknown("scenario", scenario, SCENARIOS))
    if asked.samples_per_query is not None:
        if scenario != MULTI_STREAM:
            raise UserError(f"--samples-per-query is for {MULTI_STREAM}, and not for {scenario}")
        if asked.samples_per_query < 1:
            raise UserError(
                f"--samples-per-query must be at least 1, got {asked.samples_per_query}"
            )
    return Sending(scenario, asked.samples_per_query)


def _logs(given: Sequence[str], sides: Mapping[str, ResolvedProfile]) -> dict[str, Path]:
    """Read the values of ``--times``, ``[STACK=]FILE``, as files by stack.

    Raises:
        UserError: a stack is not one of the run's, or none is named where there are several.
        DataError: a file is not a table of recorded latencies.
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


def vocabulary(
    task: Task, sides: Sequence[str], deadlines_ms: Sequence[float]
) -> dict[str, Sequence[str]]:
    """Return the names of a run's figures, to check gate rules before it is run."""
    thresholds = tail_figures.names(deadlines_ms)
    return {
        **job.vocabulary(sides),
        "metric": task.vocabulary()["metric"],
        "threshold": thresholds,
        "tail quality": [f"tail_quality@{name}" for name in thresholds],
    }


class _Tail(InRounds[TailSummary]):
    """Adds the figures of Algorithms 1 and 2 to the latencies."""

    shape = TailSummary

    def __init__(self, asked: TailOptions, tables: Mapping[str, Path], sending: Sending) -> None:
        def pace(_: int) -> Pace:
            if asked.rounds == "auto":
                return Pace(asked.max_rounds, Rule(), 60 * asked.max_minutes)
            return Pace(asked.rounds)

        super().__init__(pace, tables, sending)
        self._automatic = asked.rounds == "auto"
        self._deadlines = sorted(set(asked.deadlines_ms))

    def check(self, sides: Mapping[str, ResolvedProfile], session: Session) -> None:
        """Refuse samples without ground truth."""
        super().check(sides, session)
        session.require_truth()

    def vocabulary(self, sides: Sequence[str], session: Session) -> dict[str, Sequence[str]]:
        """Return the names of the run's figures, to check gate rules before it is run."""
        return vocabulary(session.card.task, sides, self._deadlines)

    def summarize(self, session: Session, stacks: Sequence[Stack], timed: Timed) -> TailSummary:
        """Compute the latencies, and the quality under every threshold."""
        task, answers = session.card.task, timed.answers
        truths = [item.truth for item in answers.items]
        qualities = {side: Quality(task, answers.of(side), truths) for side in answers.names}
        qualities = {side: qualities[base(side)] for side in timed.times}
        times, metric = timed.times, task.headline
        after = (
            {side: arrivals(answers.of(base(side)), task.arrivals) for side in times}
            if task.arrivals
            else {}
        )
        if after and came_in_parts(after, timed.rounds, timed.rows):
            metric = task.metrics[-1]
            parts = {
                side: in_parts(timed.rounds, timed.rows.index(side), counts, metric)
                for side, counts in after.items()
            }
            times = {side: own for side, (own, _) in parts.items()}
            qualities = {side: quality for side, (_, quality) in parts.items()}
        found, why = tail_figures.tail(
            times, qualities, self._deadlines, session.seed, task.resamples
        )
        shared = latencies(session, stacks, timed)
        whole = TailSummary(
            **{
                **shared,
                "metric": metric,
                "scenario": self._sending.scenario,
                "missing": shared["missing"] | why,
            },
            tail=found,
            better=tail_figures.better({side: tail.curve for side, tail in found.items()}),
            convergence=tail_figures.convergence(timed.times),
        )
        notices = [
            *whole.warnings,
            *doubt(session, answers.score(answers.names[0])),
            *_findings(whole, self._automatic),
        ]
        return whole.model_copy(update={"warnings": notices})


def _findings(found: TailSummary, automatic: bool) -> Iterator[Notice]:
    for side, convergence in found.convergence.items():
        if automatic and found.stacks[side].times == "measured" and convergence.done_after is None:
            words = (
                f"the limit of rounds or minutes was reached before all {found.sample_unit}s had "
                "settled; --max-rounds and --max-minutes raise it"
            )
            yield Notice(Kind.STOPPED_EARLY, words, (side,))
        if convergence.rounds < 2:
            yield Notice(Kind.FEW_SAMPLES, tail_figures.ONE_ROUND, (side,))
    for side, judged in found.tail.items():
        names = [
            name if name.endswith("ms") else f"p{name}"
            for name, threshold in judged.thresholds.items()
            if threshold is not None and (threshold.worst or 0) < (threshold.forecast.ci95[0] or 0)
        ]
        if names:
            words = (
                f"at {', '.join(names)} the worst round is worse than expected if answers were "
                "late independently: whole rounds were slow"
            )
            yield Notice(Kind.SLOW_ROUNDS, words, (side,))
