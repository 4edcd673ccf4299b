"""Whether a replay gives the recorded result: bit by bit, within the stated noise, or not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simulator.audit.answers import SideAnswers
from simulator.audit.differences import Differences, differences
from simulator.audit.measure import Counted, Measure
from simulator.experiments.summary import SIDES
from simulator.profile.axes import flat
from simulator.tasks.score import agree

BIT_EQUAL, WITHIN, DIFFERENT = "bit-equal", "equal within stated noise", "different"
_FIGURES = ("samples", "labelled", "flips", "delta", "train.metric", "deploy.metric")
"""What of a pair's summary follows from its records alone."""
_NAMED = 10
"""Name at most this many fields."""
_ROUNDING = 1e-6
"""How far libraries may round such a figure differently."""
_SLACK = 1e-12
"""How far a figure may leave an interval by rounding alone."""


@dataclass(frozen=True, slots=True)
class PairRun:
    """The run of a pair.

    Attributes:
        manifest: the content of ``manifest.json``.
        summary: the content of ``summary.json``.
        answers: by side.
        contradictions: fields of the audit's own summary that do not follow from its pairs.
    """

    manifest: Mapping[str, Any]
    summary: Mapping[str, Any]
    answers: Mapping[str, SideAnswers]
    contradictions: Sequence[str] = ()


def compare(old: PairRun, new: PairRun, measure: Measure) -> dict[str, Any]:
    """Hold a replayed pair against the recorded one.

    ``bit-equal``: the same samples, and every output digest and every column of every record is
    the same, on both sides. ``equal within stated noise``: the inputs are the same (model, images,
    labels, profiles), the same samples went through, the recorded figures follow from the recorded
    answers, every figure is within its recorded 95 % interval, every rule comes out as it did,
    *and* either no answer is another one (see :meth:`simulator.audit.measure.Measure.same`), or
    something around explains it (a version, a flag of the processor; or the recorded run was not
    bit-equal to itself). ``different`` is all else.

    Args:
        old: as recorded.
        new: as run again.
        measure: the task, and the labels of the samples.

    Returns:
        ``verdict``; ``reason``, it in words; for each of ``sides`` of how many ``samples`` the
        ``outputs`` and the ``answers`` are the same; ``figures``: each with its recorded value and
        interval, its replayed value and whether that is ``inside``; ``rules`` with
        another outcome; ``changed``, see :func:`simulator.audit.differences.differences`.

    Raises:
        RunError: the recorded answers are none of this task's.
    """
    sides = {side: _side(old.answers[side], new.answers[side], measure) for side in SIDES}
    figures = _figures(old.summary, new.summary)
    rules = _rules(old.summary, new.summary)
    changed = differences(old.manifest, new.manifest)
    if _all(sides, "outputs"):
        verdict, reason = _same(mismatches(old.summary, new.summary), rules)
    elif why := _incomparable(sides, changed):
        verdict, reason = DIFFERENT, why
    else:
        counted = measure.count(old.answers)
        figures += _metrics(new.summary, counted)
        mismatched = mismatches(old.summary, counted.summary)
        explained = bool(changed.surroundings) or not _bit_equal_to_itself(old.summary)
        verdict, reason = _judge(sides, figures, rules, mismatched, explained)
    if old.contradictions:
        verdict, other = DIFFERENT, _some(old.contradictions)
        reason += "; the bundle states what does not follow from its records, pairs and document: "
        reason += other
    return {
        "verdict": verdict, "reason": reason, "sides": sides, "figures": figures, "rules": rules,
        "changed": {"inputs": [*changed.inputs], "surroundings": [*changed.surroundings]},
    }  # fmt: skip


def _side(old: SideAnswers, new: SideAnswers, measure: Measure) -> dict[str, int]:
    both = old.digests.keys() & new.digests.keys()
    ran = [name for name in both if (old.digests[name] is None) == (new.digests[name] is None)]

    def identical(name: str) -> bool:
        before, after = old.records[name], new.records[name]
        columns = before.keys() | after.keys()
        return old.digests[name] == new.digests[name] and agree(before, after, columns)

    return {
        "samples": len(old.digests.keys() | new.digests.keys()),
        "matched": len(ran),
        "outputs": sum(map(identical, ran)),
        "answers": sum(measure.same(old, new, name) for name in ran),
    }


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _all(sides: Mapping[str, Mapping[str, int]], key: str) -> bool:
    return all(side[key] == side["samples"] for side in sides.values())


def _same(mismatched: Sequence[str], rules: Sequence[str]) -> tuple[str, str]:
    """The verdict where every record is the same: then every figure must be, too."""
    if mismatched or rules:
        other = _some([*mismatched, *rules])
        return DIFFERENT, f"every record is the same, but the bundle has other values for: {other}"
    return BIT_EQUAL, "every output, every record and every figure is the same"


def _incomparable(sides: Mapping[str, Mapping[str, int]], changed: Differences) -> str:
    """Why two runs are not of the same audit; empty: they are."""
    if not _all(sides, "matched"):
        most = max(side["samples"] - side["matched"] for side in sides.values())
        return f"{most:,} samples went through in one of the two runs only"
    return "outputs differ, and so do the inputs" if changed.inputs else ""


def _judge(
    sides: Mapping[str, Mapping[str, int]],
    figures: Sequence[Mapping[str, Any]],
    rules: Sequence[str],
    mismatched: Sequence[str],
    explained: bool,
) -> tuple[str, str]:
    same = _all(sides, "answers")
    other = max(side["samples"] - side["answers"] for side in sides.values())
    words = "outputs differ, but no answer does" if same else f"{other:,} answers differ"
    if mismatched:
        return (
            DIFFERENT,
            f"{words}; the bundle's own records give other values for: {_some(mismatched)}",
        )
    if against := _against(figures, rules, same or explained):
        return DIFFERENT, f"{words}, {against}"
    return WITHIN, (
        f"{words}; every figure is within its recorded 95 % interval, and every rule has the "
        "same outcome"
    )


def _against(figures: Sequence[Mapping[str, Any]], rules: Sequence[str], explained: bool) -> str:
    """Why answers that differ are no noise; empty: they may be."""
    outside = [str(one["name"]) for one in figures if not one["inside"]]
    if not explained:
        return "although nothing else changed and the recorded run was bit-equal to itself"
    if outside:
        return f"and outside the recorded interval: {', '.join(outside)}"
    if rules:
        return f"and rules have another outcome: {'; '.join(rules)}"
    return "" if figures else "and the bundle has no interval to compare them with"


def _figures(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The flip rate and the deltas: those figures of a pair that have an interval."""
    pairs = {"flip_rate": (_flips(old), _flips(new))}
    before, after = (one.get("delta") for one in (old, new))
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for metric, one in before.items():
            pairs[f"delta.{metric}"] = one, after.get(metric)
    found = []
    for name, (one, other) in pairs.items():
        if isinstance(one, Mapping) and _is_interval(one.get("ci95")):
            value = other.get("value") if isinstance(other, Mapping) else None
            found.append(_figure(name, one.get("value"), one["ci95"], value))
    return found


def _metrics(new: Mapping[str, Any], counted: Counted) -> list[dict[str, Any]]:
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


def _figure(name: str, recorded: Any, ci95: Sequence[float], replayed: Any) -> dict[str, Any]:
    low, high = ci95
    number = isinstance(replayed, int | float)
    inside = number and (low - _SLACK <= replayed <= high + _SLACK or _close(recorded, replayed))
    return {
        "name": name, "recorded": recorded, "ci95": [low, high], "replayed": replayed,
        "inside": inside,
    }  # fmt: skip


def _flips(summary: Mapping[str, Any]) -> Any:
    """Flips as a delta is written."""
    flips = summary.get("flips")
    return {**flips, "value": flips.get("rate")} if isinstance(flips, Mapping) else None


def _is_interval(found: Any) -> bool:
    return (
        isinstance(found, list)
        and len(found) == 2
        and all(isinstance(end, int | float) for end in found)
    )


def mismatches(
    old: Mapping[str, Any], new: Mapping[str, Any], paths: Sequence[str] = _FIGURES
) -> list[str]:
    """Return the figures, by their paths, that are not the same in two summaries.

    Args:
        old: the content of a summary.
        new: likewise; what one of them lacks is None.
        paths: the parts that are compared; by default what follows from answers.
    """
    found = []
    for path in paths:
        one, other = (_leaves(summary, path.split(".")) for summary in (old, new))
        keys = sorted(one.keys() | other.keys())
        found += [key for key in keys if not _close(one.get(key), other.get(key))]
    return found


def _leaves(node: Any, path: Sequence[str]) -> dict[str, Any]:
    for key in path:
        node = node.get(key) if isinstance(node, Mapping) else None
    if isinstance(node, Mapping):
        return flat(node, ".".join(path))
    return {".".join(path): node}


def same(one: Any, other: Any) -> bool:
    """Return whether two figures, or mappings of them, are the same; what one lacks is None."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return all(same(one.get(key), other.get(key)) for key in one.keys() | other.keys())
    return _close(one, other)


def _close(one: Any, other: Any) -> bool:
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return all(map(_close, one, other))
    if isinstance(one, int | float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=_ROUNDING, abs_tol=_ROUNDING)
    return bool(one == other)


def _rules(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Rules with another outcome; not those on latencies, which depend on the machine."""
    before, after = _outcomes(old), _outcomes(new)
    return [rule for rule in after if before.get(rule) != after[rule]]


def _outcomes(summary: Mapping[str, Any]) -> dict[str, bool]:
    """Whether a rule failed, by the rule."""
    try:
        return {
            str(one["rule"]): bool(one["failed"])
            for one in summary["gate"]["rules"]
            if one["unit"] != "ms"
        }
    except (KeyError, TypeError):
        return {}


def _bit_equal_to_itself(summary: Mapping[str, Any]) -> bool:
    try:
        return summary["controls"]["self"]["bit_equal"] is True
    except (KeyError, TypeError):
        return False
