"""Write the report of a run: one HTML file that opens from disk, without a network.

simulate report runs/NAME                     write it again
simulate report runs/A runs/B ... --out DIR   compare several models: sweeps, or runs of robustness
simulate report runs/NAME --charts DIR        write its charts as SVG files, too
simulate report runs/A runs/B --format markdown --table NAME   print a table of the runs' command

Every experiment writes its report at the end; use the first for runs of an earlier version, or to
write the report to another file. The second writes DIR/checkpoints.html, by recipe of training
(docs/checkpoints.md), or DIR/models.html (docs/conditions.md).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from simulator import cli
from simulator.cli import common
from simulator.errors import UserError, unknown


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
    parser.add_argument(
        "--allow-failed", metavar="SHARE",
        help="of several: the share of samples on which a model may fail that another one answers, "
        "e.g. 0.1%%; default: one such sample fails the gate, exit code 1",
    )  # fmt: skip
    parser.add_argument(
        "--format", choices=("text", "markdown", "latex", "csv"), default="text",
        help="print tables alone, in this form: of sweeps those of several models, else that of "
        "the runs' own command",
    )  # fmt: skip
    parser.add_argument(
        "--charts",
        metavar="DIR",
        help="of one run: write its charts of lines, points and bars, SVG",
    )
    parser.add_argument("--table", metavar="NAME", help="which of that command's tables")
    parser.add_argument(
        "--group", action="append", default=[], metavar="NAME=PATTERN",
        help="of several: compare the recipes that fit, such as large='*-large', as one group with "
        "the first group; repeatable",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="of several: print JSON, nothing else")


def run(options: argparse.Namespace) -> int:
    """Write the report and print its path."""
    from simulator.report import page
    from simulator.report.reading import read

    runs = [Path(run) for run in options.runs]
    if options.table or (options.format != "text" and _commands(runs) != {"sweep"}):
        print(_printed(runs, options.format, options.table), end="")
        return cli.PASS
    if len(runs) > 1:
        place = Path(options.out) if options.out else runs[0].parent
        place.mkdir(parents=True, exist_ok=True)
        form = "json" if options.json else options.format
        if (own := _compared(runs)) is not compare:
            return own(runs, place, form, options.allow_failed)
        return compare(runs, place, form, options.allow_failed, options.group)
    out = Path(options.out) if options.out else None
    print(f"report: {page.write(runs[0], out)}")
    if options.charts:
        for chart in page.drawn(page.sections_of(read(runs[0])), Path(options.charts)):
            print(f"chart: {chart}")
    return cli.PASS


def _compared(runs: Sequence[Path]) -> Callable[..., int]:
    """Return what compares runs of their command; that of sweeps refuses all others."""
    from simulator.command.experiment import EXPERIMENTS, place

    names = _commands(runs)
    known = [EXPERIMENTS.of(name) for name in names if name in EXPERIMENTS.names]
    own = known[0].compared if len(names) == len(known) == 1 else ""
    found: Callable[..., int] = place(own) if own else compare
    return found


def _commands(runs: Sequence[Path]) -> set[str]:
    from simulator.results.read import read_summary

    return {str(read_summary(run)[1].command) for run in runs}


def _printed(runs: Sequence[Path], form: str, table: str | None) -> str:
    """Return a table of finished runs of one command.

    Raises:
        UserError: their command has no such table, or no such form.
    """
    from simulator.command.experiment import EXPERIMENTS
    from simulator.results.read import read_summary

    summaries = [read_summary(run)[1] for run in runs]
    names = sorted({str(summary.command) for summary in summaries})
    known = [EXPERIMENTS.of(name) for name in names if name in EXPERIMENTS.names]
    if len(names) != 1 or not known or not known[0].formats:
        raise UserError(f"--format is for runs of one command that has tables, got {names[0]}")
    (experiment,) = known
    form = "markdown" if form == "text" else form
    if form not in experiment.formats:
        raise UserError(unknown("format", form, experiment.formats))
    if table is not None and table not in experiment.tables:
        raise UserError(unknown("table", table, experiment.tables))
    return str(experiment.printed(summaries, form, table))


def compare(
    runs: Sequence[Path],
    place: Path,
    form: str = "text",
    allow_failed: str | None = None,
    groups: Sequence[str] = (),
) -> int:
    """Compare the models of finished sweeps; write the page and print the tables.

    The exit code is that of the gate: whether a model fails on samples that another one answers.

    Args:
        runs: their folders.
        place: a folder for the page.
        form: what is printed: ``text``, ``json``, a form of tables, or ``quiet``: nothing.
        allow_failed: the share of samples that a model may fail on.
        groups: of recipes.
    """
    from simulator.checkpoints.compare import PAGE, checkpoints
    from simulator.checkpoints.screen import show
    from simulator.checkpoints.tables import every
    from simulator.report.table import FORMS

    found = checkpoints(runs, out=place, allow_failed=allow_failed, groups=groups)
    if form == "json":
        common.print_json(found)
    elif form == "text":
        show(found, common.console())
        print(f"report: {place / PAGE}")
    elif form != "quiet":
        print("\n".join(FORMS[form](table) for table in every(found)))
    return cli.PASS if found.gate.passed else cli.GATE_FAILED
