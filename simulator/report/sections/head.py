"""The first lines of a page: the question, the answer and the gate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from simulator.report.reading import Run
from simulator.report.rules import got
from simulator.report.sections.section import Badge
from simulator.report.verdict import verdict
from simulator.report.words import condition, named
from simulator.results.audits import AuditGate, AuditSummary
from simulator.results.pair import PairSummary
from simulator.results.robustness import RobustnessSummary
from simulator.results.shared import Gate, Summary
from simulator.results.suites import ExplainSummary, SweepSummary, WorstSummary
from simulator.results.timed import LatencySummary, LoadSummary, TailSummary

_GATELESS = ("explain", "sweep", "worst")


@dataclass(frozen=True, slots=True)
class Head:
    """The first lines.

    Attributes:
        title: of the page.
        question: one sentence.
        answers: a sentence each, the first one the answer.
        gate: the verdict.
        rules: a sentence for each rule of the gate.
    """

    title: str
    question: str
    answers: Sequence[str]
    gate: Badge
    rules: Sequence[str]


def head(run: Run) -> Head:
    """Return the first lines of a run's page."""
    name, question = _COMMANDS[run.command](run.summary)
    told = verdict(run.summary)
    answers = [*told.lost, *filter(None, [told.cause]), *_next(told.next)]
    badge, rules = _gate(run.command, run.summary.gate)
    return Head(name, f"{question}{_condition(run.summary)}", answers, badge, rules)


def _next(words: str | None) -> list[str]:
    return [f"Next: {words}"] if words else []


def _condition(summary: Summary) -> str:
    """What every stack was under; empty where there was no condition."""
    if summary.under is None:
        return ""
    return f" Every stack is under {condition(summary.under)}."


def _pair(summary: PairSummary) -> tuple[str, str]:
    model, train, deploy = summary.model, named(summary.train), named(summary.deploy)
    return (
        f"{model}: {train} → {deploy}",
        f"What does {model} lose when it moves from {train} to {deploy}?",
    )


def _explain(summary: ExplainSummary) -> tuple[str, str]:
    model, train, deploy = summary.model, named(summary.train), named(summary.deploy)
    return (
        f"{model}: {train} → {deploy}, axis by axis",
        f"Which of the {len(summary.axes)} differences between {train} and {deploy} costs what?",
    )


def _sweep(summary: SweepSummary) -> tuple[str, str]:
    return (
        f"{summary.model}: suite {summary.suite}",
        f"What does each option of {summary.suite} cost {summary.model}?",
    )


def _worst(summary: WorstSummary) -> tuple[str, str]:
    return (
        f"{summary.model}: worst case of {summary.suite}",
        f"How much can {summary.suite} cost {summary.model} when its options come together?",
    )


def _robustness(summary: RobustnessSummary) -> tuple[str, str]:
    first, *others = summary.stacks
    than = f"Do {' and '.join(others)} lose more than {first}" if others else f"Does {first} lose"
    return (
        f"{summary.model} under {summary.suite}",
        f"{than} of {summary.model}'s quality under the conditions of {summary.suite}?",
    )


def _latency(summary: LatencySummary | LoadSummary) -> tuple[str, str]:
    names = " and ".join(summary.stacks)
    return (
        f"Latency: {summary.model}",
        f"How long {'do' if len(summary.stacks) > 1 else 'does'} {names} take for an answer of "
        f"{summary.model} ({summary.scenario})?",
    )


def _tail(summary: TailSummary) -> tuple[str, str]:
    names = " and ".join(summary.stacks)
    return (
        f"Quality at the tail: {summary.model}",
        f"How good {'are' if len(summary.stacks) > 1 else 'is'} {names} when an answer that "
        "comes too late is a wrong one?",
    )


def _audit(summary: AuditSummary) -> tuple[str, str]:
    question = summary.summary or (
        f"May the stacks of {summary.name} be shipped in place of {summary.train}?"
    )
    return f"Audit {summary.name}", question


_COMMANDS: dict[str, Callable[[Any], tuple[str, str]]] = {
    "run": _pair,
    "explain": _explain,
    "sweep": _sweep,
    "worst": _worst,
    "robustness": _robustness,
    "latency": _latency,
    "tail": _tail,
    "audit": _audit,
}


def _gate(command: str, gate: Gate | AuditGate) -> tuple[Badge, list[str]]:
    rules = [
        f"{rule.rule}: {'failed' if rule.failed else 'passed'}; {got(rule)}" for rule in gate.rules
    ]
    if not rules:
        if command == "audit":
            return Badge("No gate", "none"), ["The document has no rules."]
        if command in _GATELESS:
            return Badge("No gate", "none"), [f"simulate {command} measures, and judges nothing."]
        return Badge("No gate", "none"), ["No rule was given: --fail-on makes a gate of this run."]
    if command == "audit":
        failed = sum(rule.failed for rule in gate.rules)
        rules = [f"{len(rules) - failed:,} of {len(rules):,} rules hold."]
    return (Badge("Passed", "good") if gate.passed else Badge("Failed", "bad")), rules
