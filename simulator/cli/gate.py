"""List the figures of a run that a gate rule can name, or apply rules to it; runs nothing.

A rule by which the run itself was stopped (--until-decided) keeps the outcome that it had there.

simulate gate --list runs/NAME
simulate gate runs/NAME --fail-on "delta.top1.high < 0 points"
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from simulator import cli
from simulator.cli import common
from simulator.command import options as groups
from simulator.command.parsing import add_options

if TYPE_CHECKING:
    from simulator.analysis.gate import Rule
    from simulator.results.shared import Gate, RuleOutcome


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("run", metavar="RUN", help="the folder of a finished run")
    add("--list", action="store_true", help="print every figure with its value")
    add("--json", action="store_true", help="print JSON")
    add_options(parser, groups.Gate)


def run(options: argparse.Namespace) -> int:
    """Print the figures, or what came of each rule; the exit code is the gate's."""
    from simulator.analysis import gate, outcomes
    from simulator.analysis.figures import by_name, of_run
    from simulator.notices import Kind
    from simulator.report import rules, terminal
    from simulator.results.read import read_summary
    from simulator.results.shared import STOPPED

    summary = read_summary(Path(options.run))[1]
    figures = [figure for figure in of_run(summary) if figure.held]
    named = by_name(figures)
    asked = gate.resolved(gate.read(options.fail_on, options.allow_failed), named)
    outcome = outcomes.evaluate(asked, summary, options.undecided)
    notes = []
    decided = getattr(summary, "decided", None)
    if decided is not None:
        own = gate.resolved(
            [gate.parse(rule_outcome.rule) for rule_outcome in summary.gate.rules], named
        )
        decisions = zip(own, summary.gate.rules, strict=True)
        known = {_words(rule): rule_outcome for rule, rule_outcome in decisions}
        judged = [
            _words(for_stack) for rule in asked for for_stack in outcomes.for_stacks(rule, summary)
        ]
        outcome = _as_decided(outcome, [known.get(one) for one in judged], options.undecided)
        if decided.samples < decided.of and any(one not in known for one in judged):
            notes = [STOPPED]
    listed = figures if options.list or not asked else []
    listed = [figure for figure in listed if not figure.about.hidden]
    if getattr(summary, "early", None) is not None:
        notes = [str(one) for one in summary.get("warnings", ()) if one.kind is Kind.FEW_SAMPLES]
    if options.json:
        values = {figure.names[0]: figure.value for figure in listed}
        common.print_json({"figures": values, "gate": outcome, "notes": notes})
        return cli.PASS if outcome.passed else cli.GATE_FAILED
    for figure in listed:
        print(f"{figure.names[0]:<44} {rules.number(figure.value, figure.about.unit)}")
    terminal.gate(summary.model_copy(update={"gate": outcome}), common.console())
    for note in notes:
        print(f"note: {note}")
    return cli.PASS if outcome.passed else cli.GATE_FAILED


def _words(rule: Rule) -> tuple[object, ...]:
    """A rule, however it is written."""
    return rule.name, rule.op, rule.limit, rule.times


def _as_decided(outcome: Gate, known: Sequence[RuleOutcome | None], undecided: str) -> Gate:
    """Return an outcome with what the run itself decided of each rule; None: it had no such."""
    from simulator.results.shared import Gate

    both = zip(known, outcome.rules, strict=True)
    failed = {"failed": undecided == "fail"}
    rules = (own if own and new.judged else new for own, new in both)
    return Gate.of([rule.model_copy(update=failed) if rule.undecided else rule for rule in rules])
