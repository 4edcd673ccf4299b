"""The verdict of a run: may I ship, what do I lose, which step costs it, what to do next."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from simulator.report import repairs
from simulator.report.verdicts import audits, conditions, faults, identified, pairs, suites, timed
from simulator.report.verdicts.told import Told
from simulator.results.shared import Summary, Verdict

if TYPE_CHECKING:
    from simulator.results.audits import ReplaySummary

S = TypeVar("S", bound=Summary)
WORDS = {"ok": "OK", "not ok": "NOT OK", "undecided": "UNDECIDED"}
STYLES = {"ok": "bold green", "not ok": "bold red", "undecided": "bold yellow", None: "bold"}
"""Of the line on a terminal, by decision."""


def concluded(summary: S) -> S:
    """Return a summary with its verdict."""
    return summary.model_copy(update={"verdict": verdict(summary)})


def verdict(summary: Summary) -> Verdict:
    """Return the verdict of a finished run; it follows from the other fields of its summary."""
    told = _COMMANDS[summary.command](summary)
    return Verdict(
        decision=_decision(summary), lost=list(told.lost), cause=told.cause, next=told.next
    )


def line(found: Verdict) -> str:
    """Return a verdict as one line of text."""
    word = f"{WORDS[found.decision]}: " if found.decision else ""
    after = f" Next: {found.next}" if found.next else ""
    return word + " ".join([*found.lost, *filter(None, [found.cause])]) + after


def _decision(summary: Summary) -> Literal["ok", "not ok", "undecided"] | None:
    if summary.command == "replay":
        return _reproduced(cast("ReplaySummary", summary))
    if not summary.gate.rules:
        return None
    failed = any(rule.failed and not rule.undecided for rule in summary.gate.rules)
    if not failed and any(rule.undecided for rule in summary.gate.rules):
        return "undecided"
    return "not ok" if failed else "ok"


def _reproduced(summary: ReplaySummary) -> Literal["ok", "not ok"]:
    differs = any(pair.verdict == "different" for pair in summary.pairs)
    return "not ok" if differs or summary.contradictions else "ok"


_COMMANDS: dict[str, Callable[[Any], Told]] = {
    "run": pairs.run,
    "explain": pairs.explain,
    "sweep": suites.sweep,
    "worst": suites.worst,
    "repair": repairs.told,
    "robustness": conditions.robustness,
    "faults": faults.faults,
    "identify": identified.identify,
    "latency": timed.latency,
    "tail": timed.tail,
    "audit": audits.audit,
    "replay": audits.replay,
}
