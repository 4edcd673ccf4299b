r"""Try every option of a suite against the training stack, for one model or several.

  simulate sweep --suite sysnoise --model a.yaml --model b.yaml --data val/ --out runs/two

Several models are then compared, by the recipe that their cards name (docs/checkpoints.md).
A suite is a YAML file (docs/suites.md); sysnoise and robustmq-s are built in.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from simulator import cli
from simulator.cli import common

if TYPE_CHECKING:
    from simulator.experiments.job import Result
    from simulator.results.suites import SweepSummary


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    common.suite(parser)
    parser.add_argument(
        "--set", dest="overrides", action="append", default=[], metavar="train.KEY=VALUE",
        help="override one field of the training stack, and so of every option",
    )  # fmt: skip
    parser.add_argument(
        "--model", action="append", default=[], metavar="CARD", help="a model card; repeatable"
    )
    common.inputs(parser, model=False)
    common.output(parser)
    common.gate(parser, "flip_rate > 2%%")
    common.until_decided(parser)
    parser.add_argument(
        "--format",
        choices=("text", "markdown", "latex", "csv", "options"),
        default="text",
        help="format of the table; options: Markdown with a row per option",
    )


def run(options: argparse.Namespace) -> int:
    """Sweep and print the table."""
    from simulator.cli.progress import Bar
    from simulator.experiments.sweep import sweep

    with Bar(options.explain_plan) as bar:
        results = sweep(
            options.suite,
            train=options.train,
            overrides=options.overrides,
            models=options.model or [None],
            fail_on=options.fail_on,
            undecided=options.undecided,
            allow_failed=options.allow_failed,
            until_decided=options.until_decided,
            **common.shared(options, bar),
        )
    code = show(results, options.json, options.format)
    if len(results) > 1 and options.out:
        quiet = options.json or options.format != "text"
        code = max(code, _compare(results, Path(options.out), options.allow_failed, quiet))
    return code


def _compare(
    results: Sequence[Result[SweepSummary]], out: Path, allow_failed: str | None, quiet: bool
) -> int:
    """Compare the models; those that cannot be compared have their own reports all the same."""
    from simulator.cli import report
    from simulator.errors import UserError

    try:
        folders = [one.folder for one in results]
        return report.compare(folders, out, False, allow_failed, quiet)
    except UserError as error:
        print(f"note: the models are not compared: {error}", file=sys.stderr)
        return cli.PASS


def show(results: Sequence[Result[SweepSummary]], as_json: bool, form: str = "text") -> int:
    """Print the table."""
    from simulator.report.sweep import render

    summaries = [result.summary for result in results]
    if as_json:
        common.print_json(summaries)
    else:
        if form == "text":
            for summary in summaries:
                common.lead(summary, summary.model if len(summaries) > 1 else "")
        render(summaries, form, common.console())
    for result in results:
        lines = [f"run: {result.folder}", f"report: {common.report_of(result.folder)}"]
        if form == "text" and not as_json:
            print("\n".join(lines))
        elif not as_json:
            left_out = (f"{option}: {why}" for option, why in result.summary.left_out.items())
            notes = [
                f"note {result.summary.model}: {note}"
                for note in (*left_out, *result.summary.warnings)
            ]
            print("\n".join([*notes, *lines]), file=sys.stderr)
    return max((common.verdict(summary) for summary in summaries), default=cli.PASS)
