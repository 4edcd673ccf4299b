r"""What does a model lose between the stack it was trained on and the stack it runs on?

Runs the same model on the same images through two stacks and compares the answers:

  simulate --train pillow_fp32 --deploy ascend_nv12_int8
  simulate --train pillow_fp32 --deploy openvino_int8 --model model.yaml --data val/ \
           --fail-on "flip_rate > 1%" --fail-on "delta.top1 < -0.5%"
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from simulator.cli import common

if TYPE_CHECKING:
    from simulator.experiments.job import Result
    from simulator.results.pair import PairSummary


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    common.pair(parser)
    common.inputs(parser)
    common.output(parser)
    add = parser.add_argument
    common.gate(parser, "flip_rate > 1%%")
    add("--strict", action="store_true", help="fail if an option is not in force")
    add("--quick", action="store_true", help="do not run each axis alone on every sample")
    add(
        "--until-decided", action="store_true",
        help="take the samples in a random order, and stop as soon as every --fail-on rule is "
        "decided; wrong in 5 %% of the runs at most",
    )  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Compare one pair and print the result."""
    from simulator.cli.progress import Bar
    from simulator.experiments.compare import compare

    deploy, pixels = common.deployment(options)
    with Bar(options.explain_plan) as bar:
        result = compare(
            options.train,
            deploy,
            pixels=pixels,
            model=options.model,
            overrides=options.overrides,
            fail_on=options.fail_on,
            undecided=options.undecided,
            allow_failed=options.allow_failed,
            strict=options.strict,
            quick=options.quick,
            until_decided=options.until_decided,
            **common.shared(options, bar),
        )
    return show(result, options.json)


def show(result: Result[PairSummary], as_json: bool) -> int:
    """Print the result; the exit code is the gate's."""
    from simulator.report.terminal import render

    return common.show(result, as_json, render)
