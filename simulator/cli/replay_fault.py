"""Run one fault of a finished run again, and compare every column of its row.

simulate replay-fault runs/NAME --fault 17

The exit code is 1 where a value is different.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from simulator import cli
from simulator.cli import common


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("run", metavar="RUN", help="the run folder of simulate faults")
    parser.add_argument("--fault", type=int, required=True, metavar="N", help="its number")
    common.allow_code(parser)
    parser.add_argument("--json", action="store_true", help="print the values as JSON")


def run(options: argparse.Namespace) -> int:
    """Run it, and print what was and what is."""
    from simulator.faults import screen
    from simulator.faults.replay import replay

    found = replay(Path(options.run), options.fault, options.allow_code)
    if options.json:
        common.print_json([
            {
                "fault": one.fault, "stack": one.stack, "sample": one.sample, "equal": one.equal,
                "then": {name: then for name, (then, _) in one.values.items()},
                "now": {name: now for name, (_, now) in one.values.items()},
            }
            for one in found
        ])  # fmt: skip
    else:
        screen.replayed(found, common.console())
    return cli.PASS if all(replayed.equal for replayed in found) else cli.GATE_FAILED
