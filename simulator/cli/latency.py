r"""Measure stacks one sample at a time (MLPerf's SingleStream), in turns, and compare them.

Offline (samples per second) and Server (arrivals at a given rate, with queueing) are driven by
MLPerf's LoadGen:

simulate latency --profile openvino_int8 --profile ort_int8 --data val/
simulate latency --profile openvino_int8 --queries 6636 --fail-on "deploy.latency.p99 > 20ms"
simulate latency --profile openvino_int8 --scenario Server --qps 50 --deadline-ms 30
simulate latency --profile openvino_int8 --scenario Offline --batch 1,4,16,64
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from simulator.cli import common

if TYPE_CHECKING:
    from simulator.experiments.job import Result
    from simulator.results.timed import LatencySummary, LoadSummary


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    common.stacks(parser)
    common.inputs(parser)
    add = parser.add_argument
    add(
        "--scenario", default="SingleStream", metavar="NAME",
        help="SingleStream (the default), Offline or Server",
    )  # fmt: skip
    add(
        "--queries", type=int, default=1024, metavar="N",
        help="at least this many inferences of each stack; default 1024, enough for a p99",
    )  # fmt: skip
    add(
        "--seconds", type=float, default=0.0, metavar="S",
        help="Offline, Server: the load lasts at least this long",
    )  # fmt: skip
    add(
        "--qps", type=float, metavar="RATE",
        help="Server: arrivals per second; Offline: the expected rate",
    )  # fmt: skip
    add("--deadline-ms", type=float, metavar="MS", help="Server: the limit of the p99")
    add(
        "--batch", type=_numbers, default=(), metavar="N,...",
        help="Offline: measure every stack with each of these batches",
    )  # fmt: skip
    common.output(parser)
    common.gate(parser, "deploy.latency.p99 > 20ms")


def run(options: argparse.Namespace) -> int:
    """Measure and print the latencies."""
    from simulator.cli.progress import Bar
    from simulator.latency.measure import latency

    with Bar(options.explain_plan) as bar:
        result = latency(
            options.profiles,
            train=options.train,
            deploy=options.deploy,
            model=options.model,
            overrides=options.overrides,
            scenario=options.scenario,
            queries=options.queries,
            seconds=options.seconds,
            qps=options.qps,
            deadline_ms=options.deadline_ms,
            batch=options.batch,
            fail_on=options.fail_on,
            undecided=options.undecided,
            allow_failed=options.allow_failed,
            **common.shared(options, bar),
        )
    return show(result, options.json)


def _numbers(text: str) -> list[int]:
    try:
        return [int(one) for one in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"whole numbers with commas between them expected, got {text!r}"
        ) from None


def show(result: Result[LatencySummary] | Result[LoadSummary], as_json: bool) -> int:
    """Print the latencies; the exit code is the gate's."""
    from simulator.latency import screen

    if result.summary.scenario == "SingleStream":
        return common.show(result, as_json, screen.latency)
    return common.show(result, as_json, screen.served)
