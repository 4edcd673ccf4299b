"""``simulate tail``: the quality of stacks when late answers count as wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from simulator.command.experiment import Experiment
from simulator.errors import UserError
from simulator.experiments.common import load_stacks
from simulator.experiments.guessing import doubt
from simulator.experiments.job import Job, Result
from simulator.experiments.session import Session
from simulator.latency import job as timing
from simulator.latency import summary
from simulator.latency import tail_figures as analysis
from simulator.latency.experiments import TailOptions
from simulator.latency.in_rounds import InRounds
from simulator.latency.pace import FixedRounds, RoundPolicy, UntilSettled
from simulator.latency.quality import Quality
from simulator.latency.stopping import Rule
from simulator.latency.summary import Timed
from simulator.latency.times import Times
from simulator.notices import Kind, Notice
from simulator.pipeline.stack import Chosen, Stack
from simulator.results.store import RunWriter
from simulator.results.timed import TailSummary
from simulator.tasks.task import Task

MOST = 100
"""The largest number of rounds of ``auto``."""
MINUTES = 60.0
"""Minutes after which ``auto`` does not begin another round."""


def tail(experiment: Experiment[Any], asked: TailOptions) -> Result[TailSummary]:
    """Measure how good stacks are when late answers count as wrong.

    Source:
        Yang et al., Quality at the Tail of Machine Learning Inference, arXiv 2212.13925.

    Examples:
        >>> result = tail(["pillow_fp32"], rounds=3, deadlines_ms=[1000.0], limit=4)
        >>> list(result.summary.tail), result.records().num_rows
        (['deploy'], 4)
    """
    rounds = asked.rounds
    _check(asked.deadlines_ms, rounds, asked.max_rounds, asked.max_minutes)
    sides = load_stacks(asked.profiles, asked.train, asked.deploy, asked.overrides)

    def policy(samples: int) -> RoundPolicy:
        if rounds == "auto":
            return UntilSettled(Rule(), asked.max_rounds, 60 * asked.max_minutes, samples)
        return FixedRounds(rounds)

    tables = timing.logs(asked.times, sides)
    automatic = rounds == "auto"
    if not automatic and set(tables) == set(sides):
        raise UserError("--rounds is for stacks that are measured; every stack here has a log")
    measurement = _Tail(policy, tables, asked.deadlines_ms, automatic)
    logged = [f"{side}={path.resolve()}" for side, path in tables.items()]
    return timing.timed_job(Job(experiment, asked.without(times=logged)), sides, measurement)


def vocabulary(
    task: Task, sides: Sequence[str], deadlines_ms: Sequence[float]
) -> dict[str, Sequence[str]]:
    """Return the names of a run's figures, to check gate rules before it is run."""
    thresholds = analysis.names(deadlines_ms)
    return {
        **summary.vocabulary(sides),
        "metric": task.vocabulary()["metric"],
        "threshold": thresholds,
        "tail quality": [f"tail_quality@{name}" for name in thresholds],
    }


def _check(
    deadlines_ms: Sequence[float], rounds: int | str, max_rounds: int, max_minutes: float
) -> None:
    for ms in deadlines_ms:
        timing.positive("--deadline-ms", ms)
    if rounds != "auto" and (not isinstance(rounds, int) or rounds < 1):
        raise UserError(f"--rounds must be auto or at least 1, got {rounds}")
    if max_rounds < 1:
        raise UserError(f"--max-rounds must be at least 1, got {max_rounds}")
    timing.positive("--max-minutes", max_minutes)


class _Tail(InRounds):
    """Adds the figures of Algorithms 1 and 2 to the latencies."""

    shape = TailSummary

    def __init__(
        self,
        policy: Callable[[int], RoundPolicy],
        tables: Mapping[str, Path],
        deadlines_ms: Sequence[float],
        automatic: bool,
    ) -> None:
        super().__init__(policy, tables)
        self._automatic = automatic
        self._deadlines = sorted(set(deadlines_ms))

    def check(self, sides: Mapping[str, Chosen], session: Session) -> None:
        """Refuse samples without ground truth."""
        super().check(sides, session)
        session.require_truth()

    def vocabulary(self, sides: Sequence[str], session: Session) -> dict[str, Sequence[str]]:
        """Return the names of the run's figures, to check gate rules before it is run."""
        return vocabulary(session.card.task, sides, self._deadlines)

    def measure(self, session: Session, stacks: Sequence[Stack], run: RunWriter) -> TailSummary:
        """Measure the rounds and compute the figures."""
        return cast("TailSummary", super().measure(session, stacks, run))

    def figures(self, session: Session, stacks: Sequence[Stack], timed: Timed) -> dict[str, Any]:
        """Return the fields of the summary: the latencies, and quality under every threshold."""
        task, answers = session.card.task, timed.answers
        truths = [item.truth for item in answers.items]
        qualities = {side: Quality(task, answers.of(side), truths) for side in answers.names}
        found, why = analysis.tail(
            timed.times, qualities, self._deadlines, session.seed, task.resamples
        )
        latencies = super().figures(session, stacks, timed)
        quality = {
            "tail": found,
            "better": analysis.better(found),
            "convergence": analysis.convergence(timed.times, Rule()),
            "missing": latencies["missing"] | why,
        }
        notices = doubt(session, answers.score(answers.names[0]))
        notices += _findings(quality, timed.times, self._automatic, session.card.modality.unit)
        return {**latencies, **quality, "warnings": [*latencies["warnings"], *notices]}


def _findings(
    found: Mapping[str, Any], times: Mapping[str, Times], automatic: bool, unit: str
) -> list[Notice]:
    notices = []
    for side, one in found["convergence"].items():
        if automatic and times[side].measured and one["done_after"] is None:
            words = (
                f"the limit of rounds or minutes was reached before all {unit}s had settled; "
                "--max-rounds and --max-minutes raise it"
            )
            notices.append(Notice(Kind.STOPPED_EARLY, words, (side,)))
        if times[side].rounds < 2:
            words = "one round cannot be split into training and test rounds"
            notices.append(Notice(Kind.FEW_SAMPLES, words, (side,)))
    for side, judged in found["tail"].items():
        names = [
            name if name.endswith("ms") else f"p{name}"
            for name, one in judged["thresholds"].items()
            if one is not None and one["worst"] < one["forecast"]["ci95"][0]
        ]
        if names:
            words = (
                f"at {', '.join(names)} the worst round is worse than expected if answers were "
                "late independently: whole rounds were slow"
            )
            notices.append(Notice(Kind.SLOW_ROUNDS, words, (side,)))
    return notices
