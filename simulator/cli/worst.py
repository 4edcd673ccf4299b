r"""Combine a suite's options step by step, each time the one that loses most.

simulate worst --suite sysnoise --data val/
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from simulator.cli import common

if TYPE_CHECKING:
    from simulator.experiments.job import Result
    from simulator.results.suites import WorstSummary


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    common.suite(parser)
    common.inputs(parser)
    common.output(parser)
    parser.add_argument(
        "--until-decided", action="store_true",
        help="take the samples in a random order, and drop a combination when it can no longer be "
        "the worst of its step. The worst of a step is lost in 5 %% of the runs at most",
    )  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Search and print the options of each step."""
    from simulator.cli.progress import Bar
    from simulator.experiments.worst import worst

    with Bar(options.explain_plan) as bar:
        result = worst(
            options.suite,
            train=options.train,
            model=options.model,
            until_decided=options.until_decided,
            **common.shared(options, bar),
        )
    return show(result, options.json)


def show(result: Result[WorstSummary], as_json: bool) -> int:
    """Print the options of each step."""
    from simulator.report import blame

    return common.show(result, as_json, blame.worst)
