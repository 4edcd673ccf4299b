"""The first lines of a page: the question, the answer and the gate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simulator.report.command import Asked
from simulator.report.reading import Run
from simulator.report.rules import got
from simulator.report.sections.section import Badge
from simulator.report.verdict import WORDS, verdict
from simulator.report.words import condition, named, points, share, title
from simulator.results.pair import PairSummary
from simulator.results.shared import Gate, Summary

if TYPE_CHECKING:
    from simulator.results.audits import AuditGate, AuditSummary
    from simulator.results.faults import FaultsSummary
    from simulator.results.identify import IdentifySummary
    from simulator.results.repair import RepairSummary
    from simulator.results.robustness import RobustnessSummary
    from simulator.results.suites import ExplainSummary, SweepSummary, WorstSummary
    from simulator.results.timed import LatencySummary, LoadSummary, TailSummary

_KINDS = {"ok": "good", "not ok": "bad", "undecided": "undecided", "not judged": "bad"}
_GATELESS = ("explain", "sweep", "worst", "identify")


@dataclass(frozen=True, slots=True)
class Figure:
    """A number that is seen first.

    Attributes:
        name: of what.
        value: the number, of both stacks where it has two.
        more: a word on it.
        kind: ``good`` or ``bad`` where it is that, and more than chance.
    """

    name: str
    value: str
    more: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Head:
    """The first lines.

    Attributes:
        title: of the page.
        question: one sentence.
        answers: a sentence each, the first one the answer.
        figures: what is seen first of a pair.
        gate: the verdict; None where there is no rule.
        rules: a sentence for each rule of the gate.
    """

    title: str
    question: str
    answers: Sequence[str]
    figures: Sequence[Figure]
    gate: Badge | None
    rules: Sequence[str]


def head(run: Run) -> Head:
    """Return the first lines of a run's page."""
    name, question = _COMMANDS[run.command](run.summary)
    request = run.manifest.request
    told = verdict(run.summary, Asked(request.arguments, run.folder) if request else None)
    answers = [*told.lost, *filter(None, [told.cause]), *_next(told.next)]
    rules = _gate(run.command, run.summary.gate)
    badge = Badge(WORDS[told.decision], _KINDS[told.decision]) if told.decision else None
    figures = _figures(run.summary) if isinstance(run.summary, PairSummary) else []
    return Head(name, f"{question}{_condition(run.summary)}", answers, figures, badge, rules)


def _figures(summary: PairSummary) -> list[Figure]:
    """Changed answers, the headline metric and the p90 latency, as far as they are known."""
    flips, found = summary.flips, []
    for stack, one in summary.failed.items():
        if one.count:
            found.append(Figure(f"{stack} fails on", f"{one.count:,} of {one.of:,}",
                                share(one.rate, 2), "bad"))  # fmt: skip
    changed = f"{flips.count:,} of {flips.units:,}"
    units = "answers" if summary.unit == "image" else f"{summary.unit}s"
    if flips.units:
        found.append(Figure(f"{units} changed", changed, share(flips.rate, 2)))
    if delta := summary.delta.get(summary.metric):
        metric = summary.metric
        old, new = (share(side.metric[metric], 2) for side in (summary.train, summary.deploy))
        name = title(summary.task, metric)
        moved = f"{points(delta)} points"
        found.append(Figure(name, f"{old} → {new}", moved, _kind(delta.value, delta.ci95)))
    slow = [rows["total"].p90 for rows in (summary.latency_ms.train, summary.latency_ms.deploy)
            if "total" in rows and rows["total"].p90 is not None]  # fmt: skip
    if len(slow) == 2:
        times = f"{slow[1] / slow[0]:.2f} times" if slow[0] else ""
        found.append(Figure("p90 latency", f"{slow[0]:.2f} → {slow[1]:.2f} ms", times))
    return found


def _kind(value: float | None, ci95: Sequence[float | None] | None) -> str:
    """Whether an effect is good or bad; neither where chance may explain it."""
    known = [end for end in ci95 or () if end is not None]
    if value is None or len(known) < 2 or known[0] <= 0 <= known[1]:
        return ""
    return "good" if value > 0 else "bad"


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


def _repair(summary: RepairSummary) -> tuple[str, str]:
    train, deploy = named(summary.train), named(summary.deploy)
    return (
        f"{summary.model}: repair {deploy}",
        f"What must change in {deploy}, at the least cost, for {' and '.join(summary.rules)} "
        f"against {train}?",
    )


def _robustness(summary: RobustnessSummary) -> tuple[str, str]:
    first, *others = summary.stacks
    than = f"Do {' and '.join(others)} lose more than {first}" if others else f"Does {first} lose"
    return (
        f"{summary.model} under {summary.suite}",
        f"{than} of {summary.model}'s quality under the conditions of {summary.suite}?",
    )


def _faults(summary: FaultsSummary) -> tuple[str, str]:
    names = " and ".join(summary.stacks)
    return (
        f"{summary.model} with {summary.campaign}",
        f"What do faults in the hardware do to the answers of {names}?",
    )


def _identify(summary: IdentifySummary) -> tuple[str, str]:
    return (
        f"{summary.model}: who made {summary.recording}?",
        f"Which stack gives what {summary.device} gave for {summary.model}?",
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
    "repair": _repair,
    "robustness": _robustness,
    "faults": _faults,
    "identify": _identify,
    "latency": _latency,
    "tail": _tail,
    "audit": _audit,
}


def _gate(command: str, gate: Gate | AuditGate) -> list[str]:
    """A sentence for each rule; why there is none."""
    if not gate.rules:
        if command == "audit":
            return ["The document has no rules."]
        if command in _GATELESS:
            return [f"simulate {command} measures, and judges nothing."]
        return ["No rule was given: --fail-on makes a gate of this run."]
    if command == "audit":
        failed = sum(rule.failed for rule in gate.rules)
        return [f"{len(gate.rules) - failed:,} of {len(gate.rules):,} rules hold."]
    return outcomes(gate)


def outcomes(gate: Gate | AuditGate) -> list[str]:
    """Return a sentence for each rule of a gate."""
    return [
        f"{rule.rule}: {'failed' if rule.failed else 'passed'}; {got(rule)}" for rule in gate.rules
    ]
