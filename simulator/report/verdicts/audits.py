"""The verdict of an audit, and of a replay: how many pairs pass every rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from simulator.report.verdicts.told import Told
from simulator.report.words import (
    PAGE,
    between,
    chance,
    count,
    failing,
    points,
    some,
    title,
    unanswered,
)

if TYPE_CHECKING:
    from simulator.results.audits import AuditedPair, AuditSummary, ReplaySummary


_NAMED = 5
"""Name at most this many pairs or rules; the tables after the verdict have all."""


def audit(summary: AuditSummary) -> Told:
    """How many pairs pass every rule, and which rules fail where."""
    pairs, rules = summary.pairs, summary.gate.rules
    failed = [rule for rule in rules if rule.failed and not rule.undecided]
    undecided = [rule for rule in rules if rule.undecided]
    passes = "passes" if len(pairs) == 1 else "pass"
    lost = f"{len(pairs)} of {count(len(pairs), 'pair')} {passes} every rule."
    if not rules:
        lost = "Nothing was judged: the document has no rules."
    elif broken := failed or undecided:
        does = ("fail", "fails") if failed else ("are undecided", "is undecided")
        where = list(dict.fromkeys(f"{rule.deploy} ({rule.model})" for rule in broken))
        lost = (
            f"{len(broken)} of {count(len(rules), 'rule')} {does[len(broken) == 1]}, on "
            f"{len(where)} of {count(len(pairs), 'pair')}: {some(where, _NAMED)}."
        )
    causes = [
        f"{word}: {some(list(dict.fromkeys(rule.rule for rule in found)), _NAMED, '; ')}."
        for word, found in {"Failed": failed, "Undecided": undecided}.items()
        if found
    ]
    folders = [pair.folder for pair in pairs if not pair.passed]
    page = [f"The page of the first is {folders[0]}/{PAGE}."] if folders else []
    skipped = dict.fromkeys(sentence for pair in pairs for sentence in unanswered(pair))
    said = [*_failing(pairs), lost, *_most_changed(pairs), *[*skipped][:_NAMED], *page]
    return Told(said, " ".join(causes) or None)


def _failing(pairs: Sequence[AuditedPair]) -> list[str]:
    """Which stacks fail where the others answer, the worst one first."""
    worst = sorted(
        pairs, key=lambda pair: -sum(failed.rate or 0 for failed in pair.failed.values())
    )
    told = {
        sentence: None
        for pair in worst
        for sentence in failing(pair, {"deploy": f"{pair.deploy} ({pair.model})"})
    }
    more = len(told) - _NAMED
    return [*told][:_NAMED] + ([f"{count(more, 'more stack')} fail on some."] if more > 0 else [])


def _most_changed(pairs: Sequence[AuditedPair]) -> list[str]:
    """What is lost on the pair that changes most answers."""
    if not pairs:
        return []
    most = max(pairs, key=lambda pair: pair.flips.rate or 0)
    if not most.flips.count:
        return ["No answer changes."]
    where = f" on {most.deploy} ({most.model})" if len(pairs) > 1 else ""
    lost = f"Most answers change{where}" if len(pairs) > 1 else "Answers that change"
    lost += f": {most.flips.count:,} of {most.flips.units:,}{between(most.flips.ci95)}"
    if delta := most.delta:
        lost += f"; {title(most.task, most.metric)} {points(delta)} points{chance(delta.ci95)}"
    return [f"{lost}."]


def replay(summary: ReplaySummary) -> Told:
    """How many pairs a bundle gives again."""
    kinds = dict.fromkeys(pair.verdict for pair in summary.pairs)
    found = [
        f"{sum(pair.verdict == kind for pair in summary.pairs)} of "
        f"{count(len(summary.pairs), 'pair')} {kind}"
        for kind in kinds
    ]
    lost = [f"{'; '.join(found)}."]
    if summary.contradictions:
        lost.append(f"The bundle contradicts itself in {len(summary.contradictions)} places.")
    differs = bool(summary.contradictions) or "different" in kinds
    return Told(lost, decision="not ok" if differs else "ok")
