r"""Measure stacks under every condition of a suite: corruptions, noise, faults.

  simulate robustness --suite imagenet-c --train pillow_fp32 --deploy openvino_int8 \
           --model model.yaml --data val/ --fail-on "deploy.NCI.fog > 20%"
  simulate robustness --suite mine.yaml --profile a --profile b --profile c --format latex

A suite of conditions is a YAML file (docs/conditions.md). Each sample is disturbed once for every
condition, and all stacks get it. The first stack is the one that the others are compared with, and
of several models the first one, or the one of --reference.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from simulator import cli
from simulator.cli import common

if TYPE_CHECKING:
    from simulator.experiments.job import Result
    from simulator.results.robustness import RobustnessSummary


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add(
        "--suite", required=True, metavar="SUITE",
        help="a suite of conditions: a path or a built-in name",
    )  # fmt: skip
    common.stacks(parser)
    add("--model", action="append", default=[], metavar="CARD", help="a model card; repeatable")
    add(
        "--reference", metavar="MODEL",
        help="the model that CE, CD and FR are relative to and the others are compared with: a "
        "model card, or the folder of a finished run; the first model by default",
    )  # fmt: skip
    common.inputs(parser, model=False, under=False)
    common.output(parser)
    add(
        "--format", choices=("text", "markdown", "latex", "csv"), default="text",
        help="format of the table; markdown and latex: a row per stack, as in the papers",
    )  # fmt: skip
    add(
        "--table", choices=("conditions", "robustmq"), default="conditions",
        help="with --format: a column per condition, or RobustMQ's columns by bit-width",
    )  # fmt: skip
    common.gate(parser, "deploy.NCI.fog > 20%%")
    common.until_decided(parser)


def run(options: argparse.Namespace) -> int:
    """Measure and print the table."""
    from simulator.cli.progress import Bar
    from simulator.robustness.run import robustness

    with Bar(options.explain_plan) as bar:
        shared = common.shared(options, bar)
        results = robustness(
            options.suite,
            options.profiles,
            train=options.train,
            deploy=options.deploy,
            models=options.model or [None],
            reference=options.reference,
            overrides=options.overrides,
            fail_on=options.fail_on,
            undecided=options.undecided,
            allow_failed=options.allow_failed,
            until_decided=options.until_decided,
            **shared,
        )
    return show(results, options.json, options.format, options.table)


def show(
    results: Sequence[Result[RobustnessSummary]],
    as_json: bool,
    form: str = "text",
    table: str = "conditions",
) -> int:
    """Print the table; the exit code is the gate's."""
    from simulator.robustness import screen, tables

    summaries = [result.summary for result in results]
    if as_json:
        common.print_json(summaries)
    elif form != "text":
        print(tables.printed(summaries, form, table), end="")
    for result in results:
        lines = f"run: {result.folder}\nreport: {common.report_of(result.folder)}"
        if form == "text" and not as_json:
            common.lead(result.summary)
            screen.show(result.summary, common.console())
            print(lines)
        elif not as_json:
            print(lines, file=sys.stderr)
    passed = all(summary.gate.passed for summary in summaries)
    return cli.PASS if passed else cli.GATE_FAILED
