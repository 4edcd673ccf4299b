"""``simulate latency``: the latencies of several stacks, in MLPerf's scenarios."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from simulator.command.experiment import Experiment
from simulator.contract import Load, Scenario
from simulator.errors import UserError, unknown
from simulator.experiments.common import load_stacks
from simulator.experiments.job import Job, Result
from simulator.experiments.session import Session
from simulator.latency.experiments import LatencyOptions
from simulator.latency.in_rounds import InRounds
from simulator.latency.job import in_batches, is_recorded, positive, timed_job
from simulator.latency.stopping import Pace
from simulator.latency.summary import Timed, summarize
from simulator.latency.under_load import UnderLoad
from simulator.pipeline.stack import Stack
from simulator.results.timed import LatencySummary, LoadSummary
from simulator.statistics.percentiles import MS

ROUNDS = 5
"""The smallest number of rounds; a ratio's interval and the spread are computed over rounds."""


def latency(
    experiment: Experiment[Any], asked: LatencyOptions
) -> Result[LatencySummary] | Result[LoadSummary]:
    """Measure the latency of stacks.

    Examples:
        >>> result = latency(["pillow_fp32", "opencv_fp32"], queries=20)
        >>> list(result.summary.stacks)
        ['pillow_fp32', 'opencv_fp32']
    """
    queries, scenario = asked.queries, asked.scenario
    if queries < 1:
        raise UserError(f"--queries must be at least 1, got {queries}")
    if scenario not in list(Scenario):
        raise UserError(unknown("scenario", scenario, list(Scenario)))
    load = _load(Scenario(scenario), asked)
    if asked.batch and scenario != Scenario.OFFLINE:
        raise UserError("--batch is for Offline: the others send one sample at a time")
    sides = load_stacks(asked.profiles, asked.train, asked.deploy, asked.changes)
    if asked.batch:
        sides = in_batches(sides, asked.batch)
    if asked.limit is None and not all(map(is_recorded, sides.values())):
        asked = asked.without(limit=max(1, queries // ROUNDS))
    job = Job(experiment, asked)
    if load is not None:
        return timed_job(job, sides, UnderLoad(load))
    rounds = _Latency(lambda samples: Pace(max(ROUNDS, math.ceil(queries / samples))), None)
    return timed_job(job, sides, rounds)


class _Latency(InRounds[LatencySummary]):
    shape = LatencySummary

    def summarize(self, session: Session, stacks: Sequence[Stack], timed: Timed) -> LatencySummary:
        return summarize(session, stacks, timed)


def _load(scenario: Scenario, asked: LatencyOptions) -> Load | None:
    """Return the load of Offline or Server; None in SingleStream."""
    deadline_ms = asked.deadline_ms
    given = {"--seconds": asked.seconds or None, "--qps": asked.qps, "--deadline-ms": deadline_ms}
    if scenario is Scenario.SINGLE_STREAM:
        if any(value is not None for value in given.values()):
            raise UserError("--qps, --deadline-ms and --seconds are for Offline and Server")
        return None
    for option, value in given.items():
        if value is not None:
            positive(option, value)
    if scenario is Scenario.SERVER:
        if missing := [option for option in ("--qps", "--deadline-ms") if given[option] is None]:
            raise UserError(f"Server needs {' and '.join(missing)}")
    elif deadline_ms is not None:
        raise UserError("--deadline-ms is for Server: Offline sends all samples at once")
    elif asked.seconds and asked.qps is None:
        raise UserError("Offline with --seconds needs --qps, the expected rate")
    deadline = None if deadline_ms is None else max(1, round(deadline_ms * MS))
    return Load(scenario, 1, asked.queries, asked.seconds, 0, asked.qps, deadline)
