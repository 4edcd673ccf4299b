"""The first lines of a page: the question, the answer and the gate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from simulator.report.reading import Run
from simulator.report.rules import got
from simulator.report.sections.section import Badge
from simulator.report.words import SIGNIFICANT, between, condition, ends, points, share, title
from simulator.results.audits import AuditGate, AuditSummary
from simulator.results.pair import PairSummary
from simulator.results.shared import Gate, Profile, Summary
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
    name, question, answers = _COMMANDS[run.command](run.summary)
    verdict, rules = _gate(run.command, run.summary.gate)
    return Head(name, f"{question}{_condition(run.summary)}", answers, verdict, rules)


def _condition(summary: Summary) -> str:
    """What every stack was under; empty where there was no condition."""
    if summary.under is None:
        return ""
    return f" Every stack is under {condition(summary.under)}."


Words = tuple[str, str, Sequence[str]]


def _pair(summary: PairSummary) -> Words:
    model, train, deploy = summary.model, _named(summary.train), _named(summary.deploy)
    flips, unit = summary.flips, summary.unit
    units = "answers" if unit == "image" else f"{unit}s"
    answers = [
        f"{flips.count:,} of {flips.units:,} {units} change"
        + (f": {share(flips.rate, 2)}{between(flips.ci95)}." if flips.units else ".")
    ]
    metric = summary.metric
    if delta := summary.delta.get(metric):
        old, new = (side.metric[metric] for side in (summary.train, summary.deploy))
        name = title(summary.task, metric)
        answers.append(
            f"{name} stays at {share(new, 2)}{_interval(delta.ci95)}."
            if delta.value == 0
            else f"{name} goes from {share(old, 2)} to {share(new, 2)}, {points(delta)} "
            f"points{_chance(delta.ci95)}."
        )
    return (
        f"{model}: {train} → {deploy}",
        f"What does {model} lose when it moves from {train} to {deploy}?",
        answers,
    )


def _explain(summary: ExplainSummary) -> Words:
    model, train, deploy = summary.model, _named(summary.train), _named(summary.deploy)
    answers = []
    for metric, blame in summary.blame.items():
        name = title(summary.task, metric)
        shares = {axis: blame.shapley[axis] for axis in summary.axes}
        most = max(shares, key=lambda axis: abs(shares[axis].value or 0))
        found = shares[most]
        clear = found.p_holm is not None and found.p_holm < SIGNIFICANT
        answers.append(
            f"Of {points(blame['total'])} points of {name}, {most} has the largest share: "
            f"{points(found)} points{_interval(found.ci95)}"
            + ("." if clear else ", no more than chance explains (Holm).")
        )
    answers = answers or ["Nothing was measured that an axis could be blamed for."]
    return (
        f"{model}: {train} → {deploy}, axis by axis",
        f"Which of the {len(summary.axes)} differences between {train} and {deploy} costs what?",
        answers,
    )


def _sweep(summary: SweepSummary) -> Words:
    metric, columns = summary.metric, summary.columns
    name = title(summary.task, metric)
    answers = [f"{name} on {_named(summary.train)}: {share(summary[metric], 2)}."]
    if columns:
        worst = max(columns, key=lambda one: columns[one].max_drop)
        lost = 100 * columns[worst].max_drop
        answers.insert(0, f"The most is lost by {worst}: {lost:.2f} points of {name}.")
    return (
        f"{summary.model}: suite {summary.suite}",
        f"What does each option of {summary.suite} cost {summary.model}?",
        answers,
    )


def _worst(summary: WorstSummary) -> Words:
    metric = summary.metric
    answers = ["No combination was tried."]
    if summary.path:
        deepest = max(summary.path, key=lambda step: float(step.drop))
        added = [step.added for step in summary.path]
        picks = ", ".join(added[: summary.path.index(deepest) + 1])
        answers = [f"{100 * deepest.drop:.2f} points of {title(summary.task, metric)}, by {picks}."]
    return (
        f"{summary.model}: worst case of {summary.suite}",
        f"How much can {summary.suite} cost {summary.model} when its options come together?",
        answers,
    )


def _latency(summary: LatencySummary | LoadSummary) -> Words:
    answers = []
    for side, rows in summary.latency_ms.items():
        known = [(name, rows["total"][name]) for name in ("p50", "p90", "p99")]
        words = ", ".join(f"{name} {ms:.2f} ms" for name, ms in known if ms is not None)
        answers.append(f"{side}: {words or 'no figure'}.")
    names = " and ".join(summary.stacks)
    return (
        f"Latency: {summary.model}",
        f"How long {'do' if len(summary.stacks) > 1 else 'does'} {names} take for an answer of "
        f"{summary.model} ({summary.scenario})?",
        answers,
    )


def _tail(summary: TailSummary) -> Words:
    metric, answers = title(summary.task, summary.metric), []
    for side, found in summary.tail.items():
        under = [
            f"{share(one.worst, 2)} in the worst round at {one.ms:.2f} ms ({_deadline(name)})"
            for name, one in found.thresholds.items()
            if one is not None and one.ms is not None
        ]
        answers.append(
            f"{side}: {metric} {share(found.quality, 2)} without a deadline"
            + (f", {under[0]}." if under else ".")
        )
    names = " and ".join(summary.stacks)
    return (
        f"Quality at the tail: {summary.model}",
        f"How good {'are' if len(summary.stacks) > 1 else 'is'} {names} when an answer that "
        "comes too late is a wrong one?",
        answers,
    )


def _audit(summary: AuditSummary) -> Words:
    pairs = summary.pairs
    failed = [f"{pair.deploy} ({pair.model})" for pair in pairs if not pair.passed]
    answers = [
        f"No: {len(failed)} of {len(pairs)} {'fails' if len(failed) == 1 else 'fail'}: "
        f"{', '.join(failed)}."
    ]
    if not summary.gate.rules:
        answers = ["Nothing was judged: the document has no rules."]
    elif not failed:
        answers = [f"Yes, by the rules below: {len(pairs)} of {len(pairs)}."]
    question = summary.summary or (
        f"May the stacks of {summary.name} be shipped in place of {summary.train}?"
    )
    return f"Audit {summary.name}", question, answers


_COMMANDS: dict[str, Callable[[Any], Words]] = {
    "run": _pair,
    "explain": _explain,
    "sweep": _sweep,
    "worst": _worst,
    "latency": _latency,
    "tail": _tail,
    "audit": _audit,
}


def _deadline(name: str) -> str:
    return "deadline" if name.endswith("ms") else f"its p{name}"


def _named(side: Profile) -> str:
    return " +".join([side.profile, *side.overrides])


def _interval(ci95: Sequence[float | None] | None) -> str:
    words = ends(ci95)
    return "" if words == "–" else f" (95 % interval {words})"


def _chance(ci95: Sequence[float | None] | None) -> str:
    known = [end for end in ci95 or () if end is not None]
    if len(known) < 2:
        return ""
    low, high = known
    words = "which chance may explain" if low <= 0 <= high else "more than chance explains"
    return f"{_interval(ci95)}, {words}"


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
