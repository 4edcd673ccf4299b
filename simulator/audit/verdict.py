"""Whether a replay gives the recorded result: bit by bit, within the stated noise, or not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simulator.analysis.gate import TIMES
from simulator.audit.answers import Counted, Measure, SideAnswers
from simulator.audit.differences import Differences, differences
from simulator.audit.trees import close, differing
from simulator.experiments.summary import SIDES
from simulator.report.words import some
from simulator.results.audits import ReplayedFigure, ReplayedSide
from simulator.results.json_text import JsonObject
from simulator.tasks.score import agree

BIT_EQUAL, WITHIN, DIFFERENT = "bit-equal", "equal within stated noise", "different"
_FIGURES = ("samples", "labelled", "flips", "delta", "train.metric", "deploy.metric")
"""What of a pair's summary follows from its records alone."""
_NAMED = 10
"""Name at most this many fields."""
_SLACK = 1e-12
"""How far a figure may leave an interval by rounding alone."""


@dataclass(frozen=True, slots=True)
class PairRun:
    """The run of a pair.

    Attributes:
        manifest: the content of ``manifest.json``.
        summary: of a pair, as JSON.
        answers: by side.
        contradictions: fields of the audit's own summary that do not follow from its pairs.
    """

    manifest: JsonObject
    summary: JsonObject
    answers: Mapping[str, SideAnswers]
    contradictions: Sequence[str] = ()


def compare(old: PairRun, new: PairRun, measure: Measure) -> dict[str, object]:
    """Hold a replayed pair against the recorded one.

    ``bit-equal``: the same samples, and every output digest and every column of every record is
    the same, on both sides. ``equal within stated noise``: the inputs are the same (model, images,
    labels, profiles), the same samples went through, the recorded figures follow from the recorded
    answers, every figure is within its recorded 95 % interval, every rule comes out as it did,
    *and* either no answer is another one (see :meth:`simulator.audit.answers.Measure.same`), or
    something around explains it (a version, a flag of the processor; or the recorded run was not
    bit-equal to itself). ``different`` is all else.

    Returns:
        The fields of :class:`simulator.results.audits.ReplayedPair`, but for the pair's names.

    Raises:
        RunError: the recorded answers are none of this task's.
    """
    sides = {side: _side(old.answers[side], new.answers[side], measure) for side in SIDES}
    figures = _figures(old.summary, new.summary)
    rules = _rules(old.summary, new.summary)
    changed = differences(old.manifest, new.manifest)
    if _all(sides, "outputs"):
        verdict, reason = _same(differing(old.summary, new.summary, _FIGURES), rules)
    elif why := _incomparable(sides, changed):
        verdict, reason = DIFFERENT, why
    else:
        counted = measure.count(old.answers)
        figures += _metrics(new.summary, counted)
        mismatched = differing(old.summary, counted.summary, _FIGURES)
        bit_equal = old.summary["controls"]["self"]["bit_equal"]
        explained = bool(changed.surroundings) or not bit_equal
        verdict, reason = _judge(sides, figures, rules, mismatched, explained)
    if old.contradictions:
        verdict, other = DIFFERENT, some(old.contradictions, _NAMED)
        reason += "; the bundle states what does not follow from its records, pairs and document: "
        reason += other
    return {
        "verdict": verdict, "reason": reason, "sides": sides, "figures": figures, "rules": rules,
        "changed": {"inputs": [*changed.inputs], "surroundings": [*changed.surroundings]},
    }  # fmt: skip


def unreadable(reason: str) -> dict[str, object]:
    """Return what :func:`compare` does of a pair whose recorded summary cannot be read."""
    return {
        "verdict": DIFFERENT, "reason": reason, "sides": {}, "figures": [], "rules": [],
        "changed": {"inputs": [], "surroundings": []},
    }  # fmt: skip


def _side(old: SideAnswers, new: SideAnswers, measure: Measure) -> ReplayedSide:
    both = old.digests.keys() & new.digests.keys()
    ran = [name for name in both if (old.digests[name] is None) == (new.digests[name] is None)]

    def identical(name: str) -> bool:
        before, after = old.records[name], new.records[name]
        columns = before.keys() | after.keys()
        return old.digests[name] == new.digests[name] and agree(before, after, columns)

    return ReplayedSide(
        samples=len(old.digests.keys() | new.digests.keys()),
        matched=len(ran),
        outputs=sum(map(identical, ran)),
        answers=sum(measure.same(old, new, name) for name in ran),
    )


def _all(sides: Mapping[str, ReplayedSide], key: str) -> bool:
    return all(side[key] == side.samples for side in sides.values())


def _same(mismatched: Sequence[str], rules: Sequence[str]) -> tuple[str, str]:
    """The verdict where every record is the same: then every figure must be, too."""
    if mismatched or rules:
        other = some([*mismatched, *rules], _NAMED)
        return DIFFERENT, f"every record is the same, but the bundle has other values for: {other}"
    return BIT_EQUAL, "every output, every record and every figure is the same"


def _incomparable(sides: Mapping[str, ReplayedSide], changed: Differences) -> str:
    """Why two runs are not of the same audit; empty: they are."""
    if not _all(sides, "matched"):
        most = max(side.samples - side.matched for side in sides.values())
        return f"{most:,} samples went through in one of the two runs only"
    return "outputs differ, and so do the inputs" if changed.inputs else ""


def _judge(
    sides: Mapping[str, ReplayedSide],
    figures: Sequence[ReplayedFigure],
    rules: Sequence[str],
    mismatched: Sequence[str],
    explained: bool,
) -> tuple[str, str]:
    same = _all(sides, "answers")
    other = max(side.samples - side.answers for side in sides.values())
    words = "outputs differ, but no answer does" if same else f"{other:,} answers differ"
    if mismatched:
        return (
            DIFFERENT,
            f"{words}; the bundle's own records give other values for: {some(mismatched, _NAMED)}",
        )
    if against := _against(figures, rules, same or explained):
        return DIFFERENT, f"{words}, {against}"
    return WITHIN, (
        f"{words}; every figure is within its recorded 95 % interval, and every rule has the "
        "same outcome"
    )


def _against(figures: Sequence[ReplayedFigure], rules: Sequence[str], explained: bool) -> str:
    """Why answers that differ are no noise; empty: they may be."""
    outside = [figure.name for figure in figures if not figure.inside]
    if not explained:
        return "although nothing else changed and the recorded run was bit-equal to itself"
    if outside:
        return f"and outside the recorded interval: {', '.join(outside)}"
    if rules:
        return f"and rules have another outcome: {'; '.join(rules)}"
    return "" if figures else "and the bundle has no interval to compare them with"


def _figures(old: JsonObject, new: JsonObject) -> list[ReplayedFigure]:
    """The flip rate and the deltas: those figures of a pair that have an interval."""
    before, after = (
        {
            "flip_rate": one["flips"] | {"value": one["flips"]["rate"]},
            **{f"delta.{metric}": delta for metric, delta in one["delta"].items()},
        }
        for one in (old, new)
    )
    return [
        _figure(name, one["value"], one["ci95"], (after.get(name) or {}).get("value"))
        for name, one in before.items()
        if one and one["ci95"]
    ]


def _metrics(new: JsonObject, counted: Counted) -> list[ReplayedFigure]:
    """The metrics of either side: a summary has no interval of these, and its records do."""
    found = []
    for side in SIDES:
        before, after = (one[side]["metric"] for one in (counted.summary, new))
        for metric in counted.summary["delta"]:
            name, value = f"{side}.{metric}", before[metric]
            if value is not None:
                ends = [end for end in counted.spread.get(name, ()) if math.isfinite(end)]
                found.append(_figure(name, value, ends or [value, value], after.get(metric)))
    return found


def _figure(
    name: str, recorded: Any, ci95: Sequence[float | None], replayed: Any
) -> ReplayedFigure:
    low, high = (end if end is not None else math.nan for end in ci95)
    inside = isinstance(replayed, int | float) and (
        low - _SLACK <= replayed <= high + _SLACK or close(recorded, replayed)
    )
    return ReplayedFigure(
        name=name, recorded=recorded, ci95=list(ci95), replayed=replayed, inside=inside
    )


def _rules(old: JsonObject, new: JsonObject) -> list[str]:
    """Rules with another outcome; not those on latencies, which depend on the machine."""
    before, after = (
        {one["rule"]: one["failed"] for one in summary["gate"]["rules"] if one["unit"] not in TIMES}
        for summary in (old, new)
    )
    return [rule for rule in after if before.get(rule) != after[rule]]
