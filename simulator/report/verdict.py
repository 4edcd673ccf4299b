"""The verdict of a run: may I ship, what do I lose, which step costs it, what to do next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from simulator.analysis.outcomes import at_chance
from simulator.command.experiment import EXPERIMENTS, place
from simulator.notices import Kind
from simulator.report import rules
from simulator.report.command import Asked, checked
from simulator.report.verdicts.told import Decision, Told
from simulator.report.words import failing, unanswered
from simulator.results.shared import ModelSummary, Summary, Verdict

S = TypeVar("S", bound=Summary)
NOT_OK = "NOT OK"
WORDS: Mapping[Decision, str] = {
    "ok": "OK", "not ok": NOT_OK, "undecided": "UNDECIDED", "not judged": "NOT JUDGED",
}  # fmt: skip
STYLES = {
    "ok": "bold green", "not ok": "bold red", "undecided": "bold yellow", "not judged": "bold red",
    None: "bold",
}  # fmt: skip
"""Of the line on a terminal, by decision."""


def concluded(summary: S, asked: Asked | None = None) -> S:
    """Return a summary with its verdict.

    Args:
        summary: of a finished run.
        asked: what it was asked; None where no command follows from it.
    """
    return summary.model_copy(update={"verdict": verdict(summary, asked)})


def verdict(summary: Summary, asked: Asked | None = None) -> Verdict:
    """Return the verdict of a finished run; it follows from the other fields of its summary.

    Where the training stack is no better than guessing, nothing is said of causes; an audit has
    other pairs.

    Args:
        summary: with a verdict before, whose next command then is that of this one.
        asked: what the run was asked.
    """
    told: Told = place(EXPERIMENTS.of(summary.command).verdict)(summary)
    notices = summary.notices
    decision = told.decision or _decision(summary)
    failed, skipped = _left_out(summary)
    changed = [notice.text for notice in notices if notice.kind is Kind.CHANGED]
    doubts = [f"{_capital(str(notice))}." for notice in at_chance(notices)]
    after, then = summary.verdict.next if summary.verdict else None, told.next
    doubtful = decision == "not judged" or (bool(doubts) and not summary.of_runs)
    if doubtful:
        then = checked
    if asked is not None:
        after = then(asked) if then else None
    if decision == "not judged":
        lost = [*doubts, *changed, *failed, *told.lost, *skipped]
        return Verdict(decision=decision, lost=lost, next=after)
    lost = [*changed, *failed, *told.lost, *skipped, *doubts, *rules.doubts(summary.gate.rules)]
    cause = None if doubtful else told.cause
    return Verdict(decision=decision, lost=lost, cause=cause, next=after)


def _left_out(summary: Summary) -> tuple[list[str], list[str]]:
    """What is said of samples that a stack, and that none could answer; an audit says it itself."""
    if not isinstance(summary, ModelSummary):
        return [], []
    return failing(summary), unanswered(summary)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def line(found: Verdict) -> str:
    """Return a verdict as one line of text, without the next command."""
    word = f"{WORDS[found.decision]}: " if found.decision else ""
    return word + " ".join([*found.lost, *filter(None, [found.cause])])


def _decision(summary: Summary) -> Decision | None:
    judged = [rule for rule in summary.gate.rules if rule.judged]
    failed = any(rule.failed and not rule.undecided for rule in judged)
    if not failed and at_chance(summary.notices):
        return "not judged"
    if not summary.gate.rules:
        return None
    if not failed and any(rule.undecided for rule in summary.gate.rules):
        return "undecided"
    return "not ok" if failed else "ok"
