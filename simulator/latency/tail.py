"""Quality at the tail: rounds until the latencies are known, and a late answer is a wrong one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Unpack

import numpy as np

from simulator.errors import UserError
from simulator.experiments.job import Job, Options, Result
from simulator.experiments.session import Session
from simulator.latency import job as timing
from simulator.latency import tail_figures as analysis
from simulator.latency.in_rounds import InRounds
from simulator.latency.pace import Fixed, Pace, Settling
from simulator.latency.quality import Quality
from simulator.latency.stopping import Rule
from simulator.latency.summary import Timed
from simulator.latency.times import Times
from simulator.pipeline.stack import Chosen

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
) -> Result:
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


def template(
    session: Session, sides: Iterable[str], deadlines_ms: Sequence[float]
) -> dict[str, Any]:
    """Return a summary with no meaning, to check gate rules before a run."""
    return _Tail(lambda samples: Fixed(1), {}, deadlines_ms, False).shape(sides, session)


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

    command = "tail"

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

    def shape(self, sides: Iterable[str], session: Session) -> dict[str, Any]:
        """Add the figures of made-up rounds over the task's examples."""
        task = session.card.task
        truths, answers = zip(*task.examples(), strict=True)
        pairs = zip(answers, truths, strict=True)
        records = [task.records([answer], truth)[0] for answer, truth in pairs]
        times = dict.fromkeys(sides, Times(np.ones((MOST * 10, len(truths)), np.int64), {}))
        judges = dict.fromkeys(times, Quality(task, records, truths))
        found, _ = analysis.tail(times, judges, self._deadlines, seed=0, number=2)
        return super().shape(sides, session) | {"tail": found}

    def add(self, summary: dict[str, Any], session: Session, timed: Timed) -> None:
        """Judge every round under every threshold."""
        task, found = session.card.task, timed.answers
        truths = [item.truth for item in found.items]
        judges = {side: Quality(task, found.of(side), truths) for side in found.names}
        summary["tail"], why = analysis.tail(
            timed.times, judges, self._deadlines, session.seed, task.resamples
        )
        summary["better"] = analysis.better(summary["tail"])
        summary["convergence"] = analysis.convergence(timed.times, Rule())
        summary["missing"] |= why
        summary["warnings"] += _findings(summary, timed.times, self._watched)


def _findings(summary: Mapping[str, Any], times: Mapping[str, Times], watched: bool) -> list[str]:
    found = []
    for side, one in summary["convergence"].items():
        if watched and times[side].measured and one["done_after"] is None:
            found.append(
                f"{side}: the rounds or the minutes were used up before all instances had settled; "
                "--max-rounds and --max-minutes give more"
            )
        if times[side].rounds < 2:
            found.append(f"{side}: one round cannot be split into training and test rounds")
    for side, judged in summary["tail"].items():
        names = [
            name if name.endswith("ms") else f"p{name}"
            for name, one in judged["thresholds"].items()
            if one is not None and one["worst"] < one["forecast"]["ci95"][0]
        ]
        if names:
            found.append(
                f"{side}: at {', '.join(names)} the worst round is worse than answers late "
                "one by one explain: whole rounds were slow"
            )
    return found
