r"""How accurate is a stack when a late answer counts as a wrong one?

  simulate tail --profile openvino_int8 --data val/ --deadline-ms 12 --deadline-ms 20
  simulate tail --train pillow_fp32 --deploy openvino_int8 --data val/ \
           --fail-on "deploy.tail_quality@99 < 70%"
  simulate tail --profile npu --data val/ --times npu_log.csv        # logged on the device

With --rounds auto, rounds over the images are measured until every image's latency distribution
is stable: Algorithm 1 of "Quality at the Tail of Machine Learning Inference", arXiv 2212.13925.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Literal

from simulator.cli import common

if TYPE_CHECKING:
    from simulator.experiments.job import Result
    from simulator.results.timed import TailSummary


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    common.stacks(parser)
    common.inputs(parser)
    add = parser.add_argument
    add(
        "--deadline-ms", dest="deadlines_ms", type=float, action="append", default=[],
        metavar="MS",
        help="a deadline, in addition to the latencies' own p99, p95 and p90; repeatable",
    )  # fmt: skip
    add(
        "--rounds", type=_rounds, default="auto", metavar="N",
        help="passes over the images; auto (the default): until all distributions are stable",
    )  # fmt: skip
    add(
        "--max-rounds", type=int, default=100, metavar="N",
        help="the largest number of rounds of auto; default 100",
    )  # fmt: skip
    add(
        "--max-minutes", type=float, default=60.0, metavar="M",
        help="minutes after which auto does not begin another round; default 60",
    )  # fmt: skip
    add(
        "--times", action="append", default=[], metavar="[STACK=]FILE",
        help="a CSV or Parquet table of latencies logged on a device, instead of measuring",
    )  # fmt: skip
    common.output(parser)
    common.gate(parser, "deploy.tail_quality@99 < 70%%")


def _rounds(text: str) -> int | Literal["auto"]:
    try:
        return "auto" if text == "auto" else int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"auto or a whole number expected, got {text!r}") from None


def run(options: argparse.Namespace) -> int:
    """Measure and print quality and latency."""
    from simulator.cli.progress import Bar
    from simulator.latency.tail import tail

    with Bar(options.explain_plan) as bar:
        result = tail(
            options.profiles,
            train=options.train,
            deploy=options.deploy,
            model=options.model,
            overrides=options.overrides,
            deadlines_ms=options.deadlines_ms,
            rounds=options.rounds,
            max_rounds=options.max_rounds,
            max_minutes=options.max_minutes,
            times=options.times,
            fail_on=options.fail_on,
            undecided=options.undecided,
            allow_failed=options.allow_failed,
            **common.shared(options, bar),
        )
    return show(result, options.json)


def show(result: Result[TailSummary], as_json: bool) -> int:
    """Print quality and latency; the exit code is the gate's."""
    from simulator.latency import screen as timed

    return common.show(result, as_json, timed.tail)
