"""The first lines of a page: the question, the answer and the gate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from simulator.command.experiment import EXPERIMENTS, Experiment
from simulator.report.command import Asked
from simulator.report.reading import Run
from simulator.report.rules import got
from simulator.report.sections.section import Badge
from simulator.report.verdict import WORDS, verdict
from simulator.report.words import condition, points, share, title
from simulator.results.pair import PairSummary
from simulator.results.shared import Gate, Summary

_KINDS = {"ok": "good", "not ok": "bad", "undecided": "undecided", "not judged": "bad"}


@dataclass(frozen=True, slots=True)
class Tile:
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
    figures: Sequence[Tile]
    gate: Badge | None
    rules: Sequence[str]


def head(run: Run) -> Head:
    """Return the first lines of a run's page."""
    experiment = EXPERIMENTS.of(run.command)
    name, question = experiment.question(run.summary)
    request = run.manifest.request
    told = verdict(run.summary, Asked(request.arguments, run.folder) if request else None)
    next_step = [f"Next: {told.next}"] if told.next else []
    answers = [*told.lost, *filter(None, [told.cause]), *next_step]
    rules = _gate(experiment, run.summary)
    badge = Badge(WORDS[told.decision], _KINDS[told.decision]) if told.decision else None
    figures = _figures(run.summary) if isinstance(run.summary, PairSummary) else []
    return Head(name, f"{question}{_condition(run.summary)}", answers, figures, badge, rules)


def _figures(summary: PairSummary) -> list[Tile]:
    """Changed answers, the headline metric and the p90 latency, as far as they are known."""
    flips, found = summary.flips, []
    for stack, failed in summary.failed.items():
        if failed.count:
            found.append(Tile(f"{stack} fails on", f"{failed.count:,} of {failed.of:,}",
                                share(failed.rate, 2), "bad"))  # fmt: skip
    changed = f"{flips.count:,} of {flips.units:,}"
    units = "answers" if summary.unit == "image" else f"{summary.unit}s"
    if flips.units:
        found.append(Tile(f"{units} changed", changed, share(flips.rate, 2)))
    if delta := summary.delta.get(summary.metric):
        metric = summary.metric
        old, new = (share(side.metric[metric], 2) for side in (summary.train, summary.deploy))
        name = title(summary.task, metric)
        moved = f"{points(delta)} points"
        found.append(Tile(name, f"{old} → {new}", moved, _kind(delta.value, delta.ci95)))
    slow = [rows["total"].p90 for rows in (summary.latency_ms.train, summary.latency_ms.deploy)
            if "total" in rows and rows["total"].p90 is not None]  # fmt: skip
    if len(slow) == 2:
        times = f"{slow[1] / slow[0]:.2f} times" if slow[0] else ""
        found.append(Tile("p90 latency", f"{slow[0]:.2f} → {slow[1]:.2f} ms", times))
    return found


def _kind(value: float | None, ci95: Sequence[float | None] | None) -> str:
    """Whether an effect is good or bad; neither where chance may explain it."""
    known = [end for end in ci95 or () if end is not None]
    if value is None or len(known) < 2 or known[0] <= 0 <= known[1]:
        return ""
    return "good" if value > 0 else "bad"


def _condition(summary: Summary) -> str:
    """What every stack was under; empty where there was no condition."""
    if summary.under is None:
        return ""
    return f" Every stack is under {condition(summary.under)}."


def _gate(experiment: Experiment[Any], summary: Summary) -> list[str]:
    """A sentence for each rule; why there is none."""
    rules = summary.gate.rules
    if rules and summary.of_runs:
        return [f"{sum(not rule.failed for rule in rules):,} of {len(rules):,} rules hold."]
    if rules:
        return outcomes(summary.gate)
    if summary.of_runs:
        return ["The document has no rules."]
    if not experiment.gate:
        return []
    return ["No rule was given: --fail-on makes a gate of this run."]


def outcomes(gate: Gate) -> list[str]:
    """Return a sentence for each rule of a gate."""
    return [
        f"{rule.rule}: {'failed' if rule.failed else 'passed'}; {got(rule)}" for rule in gate.rules
    ]
