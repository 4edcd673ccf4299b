"""Write the report of a run: one HTML file that opens from disk, without a network.

simulate report runs/NAME

Every experiment writes its report at the end; use this for runs of an earlier version, or to
write the report to another file.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from simulator import cli
from simulator.cli import common


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("run", metavar="RUN", help="the run folder")
    parser.add_argument("--out", metavar="FILE", help="default: report.html in the run folder")


def run(options: argparse.Namespace) -> int:
    """Write the report and print its path."""
    out = Path(options.out) if options.out else None
    print(f"report: {common.report(Path(options.run), out)}")
    return cli.PASS
