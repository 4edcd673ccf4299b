"""Write the report of a run: one HTML file that opens from disk, without a network.

simulate report runs/NAME                     write it again
simulate report runs/A runs/B ... --out DIR   compare several models: sweeps, or runs of robustness
simulate report runs/NAME --charts DIR        write its charts as SVG files, too
simulate report runs/A ... --format markdown  print tables: of several sweeps a comparison, else one
                                              of the runs' command (--table)

Every experiment writes its report at the end; use the first for runs of an earlier version, or to
write the report to another file. The second writes DIR/checkpoints.html, by recipe of training
(docs/checkpoints.md), or DIR/models.html (docs/conditions.md).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simulator import cli
from simulator.cli import common
from simulator.errors import UserError, unknown

if TYPE_CHECKING:
    from simulator.command.experiment import Experiment
    from simulator.results.shared import Summary


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "runs", nargs="+", metavar="RUN", help="a run folder; of sweeps and robustness several"
    )
    parser.add_argument(
        "--out", metavar="PLACE",
        help="of one run a file, by default report.html in its folder; of several a folder, by "
        "default the one that they are in",
    )  # fmt: skip
    common.form(
        parser,
        "print tables alone, in this form: of several sweeps those that compare them, else that of "
        "the runs' own command",
    )
    parser.add_argument(
        "--table", metavar="NAME",
        help="which of the command's own tables; as Markdown, unless --format says otherwise",
    )  # fmt: skip
    parser.add_argument(
        "--charts", metavar="DIR",
        help="of one run: write its charts of lines, points and bars, SVG",
    )  # fmt: skip
    parser.add_argument(
        "--group", action="append", default=[], metavar="NAME=PATTERN",
        help="of several sweeps: compare the recipes that fit, such as large='*-large', as one "
        "group with the first group; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--allow-failed", metavar="SHARE",
        help="of several sweeps: the share of samples on which a model may fail that another one "
        "answers, e.g. 0.1%%; default: one such sample fails the gate, exit code 1",
    )  # fmt: skip
    parser.add_argument(
        "--json", action="store_true", help="of several sweeps: print JSON, nothing else"
    )


def run(options: argparse.Namespace) -> int:
    """Write the report and print its path, or print tables."""
    runs = [Path(run) for run in options.runs]
    printed = options.format != "text" or options.table is not None
    if len(runs) == 1 and not printed:
        _refuse(options, "group", "allow_failed", "json")
        return _written(runs[0], options.out, options.charts)
    from simulator.checkpoints.screen import compare

    experiment, summaries = _opened(runs)
    own = _compared(experiment) if len(runs) > 1 else None
    if printed and (own is not compare or options.table is not None):
        _refuse(options, "charts", "out", "group", "allow_failed", "json")
        print(_printed(experiment, summaries, options.format, options.table), end="")
        return cli.PASS
    if own is None:
        raise UserError(
            "several runs of one command that compares models, such as sweep, expected, got runs "
            f"of {_commands(summaries)}; give one run"
        )
    _refuse(options, "charts", *["json"] * printed)
    place = Path(options.out) if options.out else runs[0].parent
    place.mkdir(parents=True, exist_ok=True)
    if own is not compare:
        _refuse(options, "group", "allow_failed", "json")
        return own(runs, place, common.console())
    form = "json" if options.json else options.format
    return compare(runs, place, common.console(), form, options.allow_failed, options.group)


_FOR = {
    "charts": "the page of one run", "out": "a page; tables are printed", "group": "several sweeps",
    "allow_failed": "several sweeps", "json": "several sweeps without --format",
}  # fmt: skip


def _refuse(options: argparse.Namespace, *names: str) -> None:
    """Refuse options that would change nothing."""
    for name in names:
        if getattr(options, name):
            raise UserError(f"--{name.replace('_', '-')} is for {_FOR[name]}; leave it out")


def _written(run: Path, out: str | None, charts: str | None) -> int:
    """Write the page of one run, and its charts."""
    from simulator.report import page
    from simulator.report.reading import read

    print(f"report: {page.write(run, Path(out) if out else None)}")
    if charts:
        for chart in page.drawn(page.sections_of(read(run)), Path(charts)):
            print(f"chart: {chart}")
    return cli.PASS


def _opened(runs: Sequence[Path]) -> tuple[Experiment[Any] | None, list[Summary]]:
    """Return the command of all runs, None where they have several; and their summaries."""
    from simulator.command.experiment import EXPERIMENTS
    from simulator.results.read import read_summary

    summaries = [read_summary(run)[1] for run in runs]
    (name, *others) = {str(summary.command) for summary in summaries}
    known = not others and name in EXPERIMENTS.names
    return (EXPERIMENTS.of(name) if known else None), summaries


def _commands(summaries: Sequence[Summary]) -> str:
    return ", ".join(sorted({str(summary.command) for summary in summaries}))


def _compared(experiment: Experiment[Any] | None) -> Callable[..., int] | None:
    """Return what compares runs of a command; None where nothing does."""
    from simulator.command.experiment import place

    if experiment is None or not experiment.compared:
        return None
    found: Callable[..., int] = place(experiment.compared)
    return found


def _printed(
    experiment: Experiment[Any] | None, summaries: Sequence[Summary], form: str, table: str | None
) -> str:
    """Return a table of finished runs of one command.

    Raises:
        UserError: their command has no such table, or no such form.
    """
    if experiment is None or not experiment.tables:
        raise UserError(
            f"runs of one command that has tables expected, got runs of {_commands(summaries)}; "
            "leave out --format and --table"
        )
    form = common.form_of(form, table)
    if table is not None and table not in experiment.tables:
        raise UserError(unknown("table", table, experiment.tables))
    return experiment.printed(summaries, form, table)
