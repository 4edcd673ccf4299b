"""``simulate latency``: the latencies of several stacks, in MLPerf's scenarios."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from simulator.contract import Load, Scenario
from simulator.errors import UserError, unknown
from simulator.experiments.common import load_stacks
from simulator.experiments.job import Job, Options, Result
from simulator.experiments.keywords import explicit
from simulator.latency import job as timing
from simulator.latency.in_rounds import InRounds
from simulator.latency.pace import FixedRounds
from simulator.latency.under_load import UnderLoad
from simulator.pipeline.stack import Chosen
from simulator.profile.implementations import choose
from simulator.results.timed import LatencySummary, LoadSummary
from simulator.statistics.percentiles import MS

QUERIES = 1024
"""MLPerf's ``min_query_count`` of SingleStream; more than the 662 that a p99 needs."""
ROUNDS = 5
"""The smallest number of rounds; a ratio's interval and the spread are computed over rounds."""


@explicit()
def latency(
    profiles: Sequence[str] = (),
    *,
    train: str | None = None,
    deploy: str | None = None,
    model: str | Path | None = None,
    overrides: Sequence[str] = (),
    scenario: str = Scenario.SINGLE_STREAM,
    queries: int = QUERIES,
    seconds: float = 0.0,
    qps: float | None = None,
    deadline_ms: float | None = None,
    batch: Sequence[int] = (),
    fail_on: Sequence[str] = (),
    undecided: str = "fail",
    allow_failed: str | None = None,
    **options: Unpack[Options],
) -> Result[LatencySummary] | Result[LoadSummary]:
    """Measure the latency of stacks.

    Args:
        profiles: the stacks: profiles' paths or built-in names.
        train: instead of *profiles*, a pair.
        deploy: likewise.
        model: a model card; the built-in model by default.
        overrides: ``STACK.KEY=VALUE``; STACK is ``deploy`` where there is one profile.
        scenario: MLPerf's ``SingleStream``, one sample at a time; or ``Offline``, all at once, or
            ``Server``, arrivals of a Poisson process, which LoadGen drives.
        queries: at least this many inferences of each stack. Without ``limit``, a subset of
            ``queries / 5`` samples is drawn, so that each is measured in five rounds.
        seconds: Offline and Server: the load lasts at least this long.
        qps: Server: arrivals per second. Offline: the expected rate, needed with *seconds*.
        deadline_ms: Server: the limit that LoadGen checks the p99 against.
        batch: Offline: measure every stack with each of these batches; a stack's name then ends in
            ``-batch4``.
        fail_on: gate rules, for example ``deploy.latency.p99 > 20ms``.
        undecided: ``pass`` or ``fail``, for a rule on a figure that the samples do not give.
        allow_failed: the share of samples on which the deployment alone may fail, ``0.1%``; none
            by default, so that one such sample fails the gate.
        options: see :class:`simulator.Options`.

    Returns:
        The summary, and where the run was written.

    Raises:
        UserError: anything that the caller can fix; the message says how.

    Examples:
        >>> result = latency(["pillow_fp32", "opencv_fp32"], queries=20)
        >>> list(result.summary.stacks)
        ['pillow_fp32', 'opencv_fp32']
    """
    if queries < 1:
        raise UserError(f"--queries must be at least 1, got {queries}")
    if scenario not in list(Scenario):
        raise UserError(unknown("scenario", scenario, list(Scenario)))
    single = scenario == Scenario.SINGLE_STREAM
    if single and (qps is not None or deadline_ms is not None or seconds):
        raise UserError("--qps, --deadline-ms and --seconds are for Offline and Server")
    load = None if single else _load(Scenario(scenario), queries, seconds, qps, deadline_ms)
    under_load = None if load is None else UnderLoad(load)
    if batch and scenario != Scenario.OFFLINE:
        raise UserError("--batch is for Offline: the others send one sample at a time")
    sides = load_stacks(profiles, train, deploy, overrides)
    if batch:
        sides = _in_batches(sides, batch)
    if options.get("limit") is None and not all(map(timing.is_recorded, sides.values())):
        options["limit"] = max(1, queries // ROUNDS)
    job = Job("latency", model, options)
    own = {
        "profiles": list(profiles), "train": train, "deploy": deploy, "scenario": scenario,
        "queries": queries, "seconds": seconds, "qps": qps, "deadline_ms": deadline_ms,
        "batch": list(batch),
    }  # fmt: skip
    if under_load is not None:
        return timing.timed_job(
            job, sides, overrides, fail_on, undecided, allow_failed, under_load, own
        )
    rounds = InRounds(lambda samples: FixedRounds(max(ROUNDS, math.ceil(queries / samples))), None)
    return timing.timed_job(job, sides, overrides, fail_on, undecided, allow_failed, rounds, own)


def _in_batches(sides: Mapping[str, Chosen], batches: Sequence[int]) -> dict[str, Chosen]:
    """Return every stack with each of several batches.

    Raises:
        UserError: a batch is no positive number, comes twice, or is not for the stack's runtime.
    """
    if min(batches) < 1 or len(set(batches)) < len(batches):
        raise UserError(f"--batch: different numbers from 1 up expected, got {_words(batches)}")
    found = {}
    for side, (profile, _) in sides.items():
        for size in batches:
            runtime = profile.spec.runtime.model_copy(update={"batch": size})
            spec = profile.spec.model_copy(update={"runtime": runtime})
            made = replace(profile, spec=spec)
            found[f"{side}-batch{size}"] = made, choose(made)
    return found


def _words(batches: Sequence[int]) -> str:
    return ",".join(map(str, batches))


def _load(
    scenario: Scenario, queries: int, seconds: float, qps: float | None, deadline_ms: float | None
) -> Load:
    given = {"--seconds": seconds or None, "--qps": qps, "--deadline-ms": deadline_ms}
    for option, value in given.items():
        if value is not None:
            timing.positive(option, value)
    if scenario is Scenario.SERVER:
        if missing := [option for option in ("--qps", "--deadline-ms") if given[option] is None]:
            raise UserError(f"Server needs {' and '.join(missing)}")
    elif deadline_ms is not None:
        raise UserError("--deadline-ms is for Server: Offline sends all samples at once")
    elif seconds and qps is None:
        raise UserError("Offline with --seconds needs --qps, the expected rate")
    deadline = None if deadline_ms is None else max(1, round(deadline_ms * MS))
    return Load(scenario, 1, queries, seconds, 0, qps, deadline)
