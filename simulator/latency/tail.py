"""Quality at the tail: rounds until the latencies are known, and a late answer is a wrong one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Unpack, cast

from simulator.errors import UserError
from simulator.experiments.job import Job, Options, Result
from simulator.experiments.session import Session
from simulator.latency import job as timing
from simulator.latency import summary
from simulator.latency import tail_figures as analysis
from simulator.latency.in_rounds import InRounds
from simulator.latency.pace import Fixed, Pace, Settling
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
"""Rounds after which ``auto`` gives up."""
MINUTES = 60.0
"""Minutes after which ``auto`` begins no further round."""


def tail(
    profiles: Sequence[str] = (),
    *,
    train: str | None = None,
    deploy: str | None = None,
    model: str | Path | None = None,
    overrides: Sequence[str] = (),
    deadlines_ms: Sequence[float] = (),
    rounds: int | Literal["auto"] = "auto",
    max_rounds: int = MOST,
    max_minutes: float = MINUTES,
    times: Sequence[str] = (),
    fail_on: Sequence[str] = (),
    **options: Unpack[Options],
) -> Result[TailSummary]:
    """Measure how good stacks are when late answers count as wrong.

    Args:
        profiles: the stacks: profiles' paths or built-in names.
        train: instead of *profiles*, a pair.
        deploy: likewise.
        model: a model card; the built-in model by default.
        overrides: ``STACK.KEY=VALUE``; STACK is ``deploy`` where there is one profile.
        deadlines_ms: thresholds besides the tails of the latencies themselves.
        rounds: passes over the images, or ``auto``: Algorithm 1 decides.
        max_rounds: of ``auto``.
        max_minutes: of ``auto``.
        times: ``[STACK=]FILE``: latencies that a device has logged, instead of measuring; see
            :func:`simulator.latency.recorded.load_times`.
        fail_on: gate rules, for example ``deploy.tail_quality@99 < 70%``.
        options: see :class:`simulator.Options`.

    Returns:
        The summary, and where the run was written.

    Raises:
        UserError: anything that the caller can fix; the message says how.

    Source:
        Yang et al., Quality at the Tail of Machine Learning Inference, arXiv 2212.13925.
    """
    _check(deadlines_ms, rounds, max_rounds, max_minutes)
    sides = timing.named(profiles, train, deploy, overrides)

    def pace(samples: int) -> Pace:
        if rounds == "auto":
            return Settling(Rule(), max_rounds, 60 * max_minutes, samples)
        return Fixed(rounds)

    tables = timing.logs(times, sides)
    watched = rounds == "auto"
    if not watched and set(tables) == set(sides):
        raise UserError("--rounds is for what is measured; a log has the rounds that it has")
    return timing.timed_job(
        Job("tail", model, options),
        sides,
        overrides,
        fail_on,
        _Tail(pace, tables, deadlines_ms, watched),
        {
            "profiles": list(profiles), "train": train, "deploy": deploy,
            "deadlines_ms": list(deadlines_ms), "rounds": rounds, "max_rounds": max_rounds,
            "max_minutes": max_minutes,
            "times": [f"{side}={path.resolve()}" for side, path in tables.items()],
        },
    )  # fmt: skip


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
    """The figures of Algorithms 1 and 2 besides the latencies."""

    shape = TailSummary

    def __init__(
        self,
        pace: Callable[[int], Pace],
        tables: Mapping[str, Path],
        deadlines_ms: Sequence[float],
        watched: bool,
    ) -> None:
        super().__init__(pace, tables)
        self._watched = watched
        self._deadlines = sorted(set(deadlines_ms))

    def check(self, sides: Mapping[str, Chosen], session: Session) -> None:
        """Refuse images that nobody has annotated."""
        super().check(sides, session)
        session.require_truth()

    def vocabulary(self, sides: Sequence[str], session: Session) -> dict[str, Sequence[str]]:
        """Return the names of the run's figures, to check gate rules before it is run."""
        return vocabulary(session.card.task, sides, self._deadlines)

    def measure(self, session: Session, stacks: Sequence[Stack], run: RunWriter) -> TailSummary:
        """Go through the rounds and work out the figures."""
        return cast("TailSummary", super().measure(session, stacks, run))

    def figures(self, session: Session, stacks: Sequence[Stack], timed: Timed) -> dict[str, Any]:
        """Judge every round under every threshold besides."""
        task, answers = session.card.task, timed.answers
        truths = [item.truth for item in answers.items]
        judges = {side: Quality(task, answers.of(side), truths) for side in answers.names}
        found, why = analysis.tail(
            timed.times, judges, self._deadlines, session.seed, task.resamples
        )
        latencies = super().figures(session, stacks, timed)
        own = {
            "tail": found,
            "better": analysis.better(found),
            "convergence": analysis.convergence(timed.times, Rule()),
            "missing": latencies["missing"] | why,
        }
        told = _findings(own, timed.times, self._watched)
        return {**latencies, **own, "warnings": [*latencies["warnings"], *told]}


def _findings(found: Mapping[str, Any], times: Mapping[str, Times], watched: bool) -> list[Notice]:
    told = []
    for side, one in found["convergence"].items():
        if watched and times[side].measured and one["done_after"] is None:
            words = (
                "the rounds or the minutes were used up before all instances had settled; "
                "--max-rounds and --max-minutes give more"
            )
            told.append(Notice(Kind.STOPPED_EARLY, words, (side,)))
        if times[side].rounds < 2:
            words = "one round cannot be split into training and test rounds"
            told.append(Notice(Kind.FEW_SAMPLES, words, (side,)))
    for side, judged in found["tail"].items():
        names = [
            name if name.endswith("ms") else f"p{name}"
            for name, one in judged["thresholds"].items()
            if one is not None and one["worst"] < one["forecast"]["ci95"][0]
        ]
        if names:
            words = (
                f"at {', '.join(names)} the worst round is worse than answers late "
                "one by one explain: whole rounds were slow"
            )
            told.append(Notice(Kind.SLOW_ROUNDS, words, (side,)))
    return told
