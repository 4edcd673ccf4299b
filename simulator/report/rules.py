"""Gate rules in words, for reports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from simulator.report.axis_words import UNCLAIMED, known
from simulator.report.words import count, title
from simulator.results.shared import RuleOutcome
from simulator.tasks.figures import Delta
from simulator.typed import Unit

if TYPE_CHECKING:
    from simulator.results.audits import AuditedPair, AuditedStack, PairFlips

_DOUBTS = 3
"""So many outcomes are told one by one."""
PASSED, FAILED, ERROR, UNDECIDED = "passed", "FAILED", "ERROR", "undecided"
NOT_JUDGED = "NOT JUDGED"


def verdict(outcome: RuleOutcome) -> str:
    """Return what came of a rule; an error is one that could not be judged, which fails too."""
    if not outcome.judged:
        return NOT_JUDGED
    if outcome.undecided:
        return UNDECIDED
    if outcome.reason is not None:
        return ERROR
    return FAILED if outcome.failed else PASSED


def got(outcome: RuleOutcome) -> str:
    """Return the figure and how sure its side of the limit is, or why there is no figure."""
    if outcome.reason is not None:
        return str(outcome.reason)
    doubt = f", {sure(outcome)}" if outcome.chance else ""
    return f"got {number(outcome.value, outcome.unit)}{doubt}"


def doubts(outcomes: Sequence[RuleOutcome]) -> list[str]:
    """Return a sentence for the first rules whose outcomes may be chance, and how many more are."""
    doubtful = [outcome for outcome in outcomes if outcome.chance]
    told = [f"{_where(one)}{one.rule} {_came(one)}, {sure(one)}." for one in doubtful[:_DOUBTS]]
    more = len(doubtful) - len(told)
    return [*told, f"So may {count(more, 'more outcome')}."] if more else told


def _came(outcome: RuleOutcome) -> str:
    if outcome.undecided:
        return "is undecided"
    return "fails" if outcome.failed else "passes"


def _where(outcome: RuleOutcome) -> str:
    """The pair of an audit, before its rule."""
    deploy, model = (getattr(outcome, name, None) for name in ("deploy", "model"))
    return f"{deploy} ({model}): " if deploy and model else ""


def sure(outcome: RuleOutcome) -> str:
    """Return what cannot be excluded of a rule that chance may turn, and what would decide it."""
    low, high = outcome.ci95 or (None, None)
    value = outcome.value or 0.0
    above = value > outcome.limit or (value == outcome.limit and outcome.failed)
    doubted = outcome.failed and not outcome.undecided
    words = "which chance may explain:" if doubted else "but"
    words += f" {number(low if above else high, outcome.unit)} cannot be excluded"
    if not outcome.more:
        return words
    more = count(outcome.more, f"more {outcome.more_of}")
    return f"{words}; {more} would decide it if the figure stays"


def number(value: float | None, unit: Unit) -> str:
    """Return a figure in its unit."""
    if value is None:
        return "-"
    if unit is Unit.POINTS:
        return f"{100 * value:+.4g} points"
    if unit is Unit.SHARE:
        return f"{100 * value:.4g} %"
    if isinstance(value, int):
        return f"{value:,}"
    bare = unit in (Unit.COUNT, Unit.RATIO, Unit.PROBABILITY)
    return f"{value:.6g} {'' if bare else unit.value}".rstrip()


def points(delta: Delta | None) -> str:
    """Return a delta in points, with its interval where it has one."""
    if delta is None or delta.value is None:
        return "-"
    found = f"{100 * delta.value:+.2f} points"
    if delta.ci95:
        low, high = (end or 0.0 for end in delta.ci95)
        found += f" ({100 * low:+.2f} to {100 * high:+.2f})"
    return found


def flips(found: PairFlips) -> str:
    """Return flips of how many, with the interval where there is one."""
    if found.rate is None:
        return f"{found.count:,} of {found.units:,}"
    text = f"{found.count:,} of {found.units:,} = {found.rate:.2%}"
    if found.ci95:
        low, high = found.ci95
        text += f" ({low:.2%} to {high:.2%})"
    return text


def latency(pair: AuditedPair) -> str:
    """Return the highest percentile that both sides carry, train → deploy."""
    train, deploy = pair.latency_ms.train, pair.latency_ms.deploy
    for key in reversed(deploy.keys()):
        if train[key] is not None and deploy[key] is not None:
            return f"{key} {train[key]:.2f} → {deploy[key]:.2f} ms"
    return "-"


def units(pairs: Sequence[AuditedPair]) -> str:
    """Return the word for the samples of an audit: images, where all of them are images."""
    words = {pair.sample_unit for pair in pairs}
    return f"{words.pop() if len(words) == 1 else 'sample'}s"


def cells(pair: AuditedPair, stack: AuditedStack) -> list[str]:
    """Return what was found of a pair: images, flips, delta, latency, evidence.

    Args:
        pair: of an audit's summary.
        stack: its deployment stack, of the same.
    """
    failed = [f", {side} fails on {one.count:,}" for side, one in pair.failed.items() if one.count]
    skipped = "".join([*failed, f", {pair.skipped:,} skipped" if pair.skipped else ""])
    delta = points(pair.delta)
    return [
        f"{pair.samples:,}{skipped}",
        flips(pair.flips),
        f"{title(pair.task, pair.metric)} {delta}" if pair.delta else delta,
        latency(pair),
        evidence(stack, pair.differing),
    ]


def evidence(stack: AuditedStack, differing: Sequence[str] = ()) -> str:
    """Return the axes of a stack that are not known to be native, by kind of evidence.

    Args:
        stack: of an audit's summary.
        differing: axes on which nothing may be silent: not claimed is said of them.
    """
    kinds: dict[str, list[str]] = {}
    for axis, kind in stack.evidence.items():
        word = known(kind, axis in stack.claimed)
        if word != "native" and (word != UNCLAIMED or axis in differing):
            kinds.setdefault(word, []).append(axis)
    words = "; ".join(f"{kind}: {', '.join(axes)}" for kind, axes in kinds.items())
    return words or ("native" if stack.claimed else "nothing is claimed")


def notes(pairs: Iterable[AuditedPair], strict: bool = False) -> list[str]:
    """Return the notices of all pairs; what several say is told once.

    Args:
        pairs: of an audit.
        strict: only those that ``--strict`` refuses.
    """
    where: dict[str, list[str]] = {}
    for pair in pairs:
        for warning in pair.warnings:
            if not strict or warning.is_strict:
                where.setdefault(str(warning), []).append(f"{pair.model} / {pair.deploy}")
    return [f"{', '.join(names)}: {said}" for said, names in where.items()]
