"""List the figures of a run that a gate rule can name, or apply rules to it; runs nothing.

simulate gate --list runs/NAME
simulate gate runs/NAME --fail-on "delta.top1.high < 0 points"
"""

from __future__ import annotations

import argparse
from pathlib import Path

from simulator import cli
from simulator.cli import common


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("run", metavar="RUN", help="the folder of a finished run")
    add("--list", action="store_true", help="print every figure with its value")
    add("--json", action="store_true", help="print JSON")
    common.gate(parser, "flip_rate.low > 5%%")


def run(options: argparse.Namespace) -> int:
    """Print the figures, or what came of each rule; the exit code is the gate's."""
    from simulator.analysis import gate
    from simulator.analysis.figures import names
    from simulator.report import rules, terminal
    from simulator.results.read import read_summary
    from simulator.results.shared import Gate

    summary = read_summary(Path(options.run))[1]
    asked = [gate.parse(rule) for rule in options.fail_on]
    outcome = gate.evaluate(asked, summary, options.undecided)
    figures = names(summary) if options.list or not asked else {}
    if options.json:
        values = {name: value for name, (value, _) in figures.items()}
        common.print_json({"figures": values, "gate": outcome})
        return cli.PASS if outcome["passed"] else cli.GATE_FAILED
    with common.unread():
        for name, (value, unit) in figures.items():
            points = unit == "fraction" and "delta" in name
            print(f"{name:<44} {rules.number(value, 'points' if points else unit)}")
        found = summary.model_copy(update={"gate": Gate.model_validate(outcome)})
        terminal.gate(found, common.console())
    return cli.PASS if outcome["passed"] else cli.GATE_FAILED
