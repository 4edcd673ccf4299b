"""List runs: what each asked, its gate, its commit (+: with changes), and when it began.

simulate runs [DIR]          a table, the newest first
simulate runs [DIR] --html   write DIR/index.html: each question with the history of its gate
"""

from __future__ import annotations

import argparse
from pathlib import Path

from simulator import cli
from simulator.cli import common


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("folder", nargs="?", default="runs", metavar="DIR", help="default: runs")
    parser.add_argument("--html", action="store_true", help="write DIR/index.html instead")


def run(options: argparse.Namespace) -> int:
    """List the runs."""
    from rich.markup import escape

    from simulator.experiments.runs import listed, write_index

    folder = Path(options.folder)
    found = listed(folder)
    if options.html:
        print(f"index: {write_index(found, folder)}")
        return cli.PASS
    table = common.table("run", "question", "gate", "commit", "begun")
    for one in found:
        name = str(one.folder.relative_to(folder))
        begun = one.created[:16].replace("T", " ")  # without seconds and time zone
        table.add_row(*map(escape, (name, one.question, one.verdict, one.commit, begun)))
    common.console().print(table, highlight=False)
    return cli.PASS
