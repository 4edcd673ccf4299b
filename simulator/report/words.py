"""Words that several reports share."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from math import isfinite, isnan
from typing import TYPE_CHECKING

from simulator.notices import Kind
from simulator.tasks.task import TASKS
from simulator.typed import plain

if TYPE_CHECKING:  # building all of them takes longer than many a run
    from simulator.results.audits import AuditedPair
    from simulator.results.checkpoints import Checkpoints
    from simulator.results.pair import AxisEffect, PairSummary
    from simulator.results.shared import (
        ConditionDescription,
        Decided,
        ModelSummary,
        Profile,
        Summary,
    )
    from simulator.results.suites import AdjustedEffect, Early, Effect
    from simulator.results.tail import Better, TailSummary
    from simulator.tasks.figures import Delta

SIDES = ("train", "deploy")
SIGNIFICANT = 0.05
"""A p-value below this one, after Holm's correction, is more than chance."""
AT_ANY_TIME = "at any time, each end with 95 %"
"""How ends of figures are worked out that are looked at after every sample."""
PAGE = "report.html"
"""The page of a run, in its folder."""
_ANSWERS = 8
"""Options that an answer names at most; the results have all."""
_NAMED = 4
"""Describe at most this many stretches of deadlines with a better stack, or stacks that fail."""
MANY = 0.01
"""A share of skipped samples above which they are part of the verdict."""


def title(task: str, metric: str) -> str:
    """Return a metric of a task as people write it."""
    return "flip rate" if metric == "flip_rate" else TASKS[task].view().metric(metric)


def better(metric: str) -> int:
    """Return 1 where more of a metric is better, and -1 where less is: of answers that change."""
    return -1 if metric == "flip_rate" else 1


def heading(task: str, metric: str) -> str:
    """Return a metric as it begins a line; a name with capitals of its own stays as it is."""
    name = title(task, metric)
    return name[:1].upper() + name[1:] if name.islower() else name


def named(side: Profile) -> str:
    """Return a stack by its profile, with what was overridden; of a model file its name."""
    return " +".join([side.profile, *map(_overridden, side.overrides)])


def _overridden(field: str) -> str:
    key, _, value = field.partition("=")
    return os.path.basename(value.strip('"')) if key == "precision.artifact" else field


def count(number: int, what: str) -> str:
    """Return how many there are of something."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def some(names: Sequence[str], most: int, between: str = ", ") -> str:
    """Return the first names of several, and how many more there are."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return between.join(names[:most]) + more


def run_on(summary: ModelSummary) -> str:
    """Return how many samples there were of what, and how many were skipped."""
    left_out = f", {summary.skipped:,} skipped" if summary.skipped else ""
    return f"{count(summary.samples, summary.sample_unit)}{left_out}"


def failing(
    summary: ModelSummary | AuditedPair | Checkpoints, names: Mapping[str, str] | None = None
) -> list[str]:
    """Return a sentence for each stack that fails where others answer, the worst one first.

    Args:
        summary: of a run, of a pair, or of several models; these are its stacks.
        names: of stacks, where they are told by other ones.
    """
    unit, found = summary.sample_unit, []
    most = sorted(summary.failed.items(), key=lambda entry: -(entry[1].rate or 0))
    for stack, failed in most[:_NAMED]:
        if failed.count:
            reasons = [each for each in summary.failures if each.stack == stack]
            more = f" and {count(len(reasons) - 1, 'more reason')}" if len(reasons) > 1 else ""
            why = f" ({reasons[0].why}{more})" if reasons else ""
            name = (names or {}).get(stack, stack)
            found.append(f"{name} fails on {failed.count:,} of {count(failed.of, unit)}{why}.")
    if others := sum(bool(failed.count) for _, failed in most[_NAMED:]):
        found.append(f"{others:,} more stacks fail on some.")
    return found


def unanswered(summary: ModelSummary | AuditedPair) -> list[str]:
    """Return how many samples no stack can answer, where they are more than :data:`MANY`."""
    every = summary.skipped + max(
        [summary.samples, *(failed.of for failed in summary.failed.values())]
    )
    if summary.skipped <= MANY * every:
        return []
    of = count(every, summary.sample_unit)
    return [f"{summary.skipped:,} of {of} were skipped: no stack can answer them."]


def failures(summary: Summary | Checkpoints) -> list[str]:
    """Return a line for each reason why a stack fails where others answer."""
    unit = summary.get("sample_unit", "sample")
    return [
        f"{one.stack} on {count(one.count, unit)}: {one.why}; "
        f"{'the first: ' if one.count > len(one.samples) else ''}{', '.join(one.samples)}"
        for one in summary.get("failures", ())
    ]


def cause(axis: str, summary: ModelSummary) -> str:
    """Name an axis; precision by what it does, where the sums of INT8 products are cut here."""
    cut = any(warning.kind is Kind.SATURATED for warning in summary.warnings)
    return f"saturation of INT8 products (axis {axis})" if cut and axis == "precision" else axis


def answers(summary: PairSummary, sample: str) -> str:
    """Return what both stacks answered to one of the worst flips; empty for another sample."""
    flip = next(
        (worst_flip for worst_flip in summary.worst_flips if worst_flip.sample == sample), None
    )
    if flip is None:
        return ""
    view = TASKS[summary.task].view()
    said = zip(view.titles, view.words(plain(flip)), strict=True)
    return ", ".join(f"{title} {words}" for title, words in said)


def alone(summary: PairSummary) -> dict[str, str]:
    """Return what each axis does, swapped alone: to answers, and to the input of the network."""
    found: dict[str, list[str]] = {}
    for alone in summary.alone:
        together = f" with {' '.join(alone.axes[1:])}" if len(alone.axes) > 1 else ""
        answers = f"{alone.changed:,} of {alone.units:,} answers change{together}"
        for axis in alone.axes:
            found.setdefault(axis, []).append(alone.why or answers)
    for entry in summary.axes:
        if entry.effect is not None:
            words = _effect(entry.effect, summary.sample_unit)
            found.setdefault(entry.axis, []).append(words)
    return {axis: "; ".join(dict.fromkeys(words)) for axis, words in found.items()}


def _effect(effect: AxisEffect, unit: str) -> str:
    """What an axis does to the input; differences of token ids have no size."""
    if effect.why is not None:
        return effect.why
    if effect.null:
        parts = "pixels" if unit == "image" else "values"
        return f"null: 0 {parts} changed in {effect.samples:,} {unit}s"
    changed = share(effect.values_changed, 0)
    if effect.unit == "ids":
        return f"{changed} of values, in {effect.changed:,} of {effect.samples:,} samples"
    if effect.mean is None:
        return f"inputs of another size; {effect.changed:,} of {effect.samples:,} {unit}s differ"
    mean, most = (".2f", ".0f") if effect.unit == "levels" else (".2g", ".2g")
    sizes = f"mean {figure(effect.mean, mean)}, max {figure(effect.max, most)} {effect.unit}"
    return f"{changed} of values, {sizes}"


def share(value: float | None, digits: int = 1) -> str:
    """Return a share in percent, and a dash for one that could not be worked out."""
    return "–" if value is None or isnan(value) else f"{value:.{digits}%}"


def figure(value: float | None, form: str) -> str:
    """Return a number in this form, and a dash for one that could not be worked out."""
    return "–" if value is None or not isfinite(value) else format(value, form)


def between(ci95: Sequence[float | None] | None) -> str:
    """Return the interval of a share, in brackets; nothing where there is none."""
    if not ci95 or None in ci95:
        return ""
    return f" (95 % interval {share(ci95[0], 2)} to {share(ci95[1], 2)})"


def at_any_time(ci95: Sequence[float | None] | None, signed: bool = False) -> str:
    """Return ends that hold however often somebody looks, in brackets; *signed*: in points."""
    if not ci95 or None in ci95:
        return ""
    words = ends(ci95) if signed else f"{share(ci95[0], 2)} to {share(ci95[1], 2)}"
    return f" ({words} {AT_ANY_TIME})"


def points(effect: Effect | Delta | None) -> str:
    """Return an effect's value in points, with its sign; a dash where it is not known."""
    value = None if effect is None else effect.value
    return "–" if value is None or isnan(value) else f"{round(100 * value, 2) + 0.0:+.2f}"


def moved(drop: float | None) -> str:
    """Return what a drop does to a metric, in points with its sign: a loss is below 0."""
    return "–" if drop is None or isnan(drop) else f"{round(-100 * drop, 2) + 0.0:+.2f}"


def turned(ci95: Sequence[float | None] | None) -> list[float | None]:
    """Return the interval of a change from that of a drop."""
    return [None if end is None else 0.0 - end for end in reversed(ci95 or ())]


def decided(found: Decided, unit: str) -> str:
    """Return when a gate was decided, or that it was not."""
    if not found.decided:
        return f"All {found.samples:,} {unit}s did not decide it."
    return (
        f"Decided after {found.samples:,} of {found.of:,} {unit}s; that is wrong in "
        f"{found.alpha:.0%} of such runs at most."
    )


def early(found: Early, unit: str) -> list[str]:
    """Return the answer to the question of a run that dropped options, and what it cost."""
    left, names = len(found.answer), some(found.answer, _ANSWERS)
    if found.question == "gate":
        answer = f"{left:,} options pass{f': {names}' if names else ''}."
    else:
        by = "changes most answers" if found.question == "worst-flips" else "loses most"
        answer = f"{names} {by}." if left == 1 else f"One of {left:,} {by}: {names}."
    return [answer, answered(found, unit)]


def answered(found: Early, unit: str) -> str:
    """Return when a question was answered, with how much of the work, and how sure that is."""
    share = found.runs / max(found.all_runs, 1)
    when = (
        f"Answered after {found.samples:,} of {found.of:,} {unit}s"
        if found.decided
        else f"All {found.samples:,} {unit}s did not answer it in whole"
    )
    work = f"{share:.0%} of the work on {'stacks' if found.question == 'cheapest' else 'options'}"
    return f"{when}, with {work}; wrong in {found.alpha:.0%} of such runs at most."


def early_steps(found: Sequence[Early]) -> list[str]:
    """Return how far the steps of a worst case are decided; nothing of a run in whole."""
    if not found:
        return []
    decided, steps = sum(early.decided for early in found), count(len(found), "step")
    share = sum(early.runs for early in found) / max(sum(early.all_runs for early in found), 1)
    return [
        f"{decided:,} of {steps} {'has' if decided == 1 else 'have'} one worst; in the others any "
        f"of those left may be. {share:.0%} of the work; the worst of a step is "
        "lost in 5% of such runs at most."
    ]


def dropped(found: Early | None, unit: str) -> list[str]:
    """Return a line for each option that was dropped early; none without a question."""
    return [
        f"{dropped.option}: dropped after {count(dropped.samples, unit)}: {dropped.why}"
        for dropped in (found.dropped if found else ())
    ]


def is_significant(effect: AdjustedEffect) -> bool:
    """Whether an effect is more than chance, after Holm's correction."""
    return effect.p_holm is not None and effect.p_holm < SIGNIFICANT


def ends(ci95: Sequence[float | None] | None) -> str:
    """Return an interval in points, with signs; a dash where it is not known."""
    if not ci95 or None in ci95:
        return "–"
    low, high = (100 * end for end in ci95 if end is not None)
    return f"{low:+.2f} to {high:+.2f}"


def interval(ci95: Sequence[float | None] | None) -> str:
    """Return an interval in points, in brackets; nothing where it is not known."""
    words = ends(ci95)
    return "" if words == "–" else f" (95 % interval {words})"


def chance(ci95: Sequence[float | None] | None, p: float | None = None, family: int = 1) -> str:
    """Return an interval in points, and whether chance may explain the effect.

    Args:
        ci95: of the effect.
        p: of the effect, where it was picked from several as the largest.
        family: how many it was picked from.
    """
    known = [end for end in ci95 or () if end is not None]
    if len(known) < 2:
        return ""
    low, high = known
    open_ = low <= 0 <= high or (family > 1 and p is not None and p * family >= SIGNIFICANT)
    words = "which chance may explain" if open_ else "more than chance explains"
    return f"{interval(ci95)}, {words}" + (f" (the largest of {family:,})" if family > 1 else "")


def given_deadlines(summary: TailSummary) -> list[str]:
    """Return the names of the deadlines that the user gave, the same for every stack."""
    names = dict.fromkeys(name for tail in summary.tail.values() for name in tail.thresholds)
    return [name for name in names if name.endswith("ms")]


def ranked(summary: TailSummary, deadline: str | None = None) -> list[str]:
    """Return the stacks, the best worst round under a deadline first; without one, as they are."""

    def rank(side: str) -> tuple[float, float]:
        threshold = summary.tail[side].thresholds.get(deadline) if deadline else None
        return (-(threshold.worst or 0), -(threshold.mean or 0)) if threshold else (0, 0)

    return sorted(summary.tail, key=rank)


def leads(better: Sequence[Better]) -> list[str]:
    """Return a sentence for each of the largest leads, in the order of the deadlines."""
    most = sorted(better, key=lambda one: -one.by)[:_NAMED]
    found = []
    for one in sorted(most, key=lambda one: one.from_ms):
        end = "on" if one.to_ms is None else f"to {one.to_ms:.2f} ms"
        found.append(
            f"In this run {one.stack} has the higher mean for deadlines from "
            f"{one.from_ms:.2f} ms {end}, by up to {100 * one.by:.2f} points."
        )
    if len(better) > _NAMED:
        found.append(f"{len(better) - _NAMED} further stretches have less of a lead.")
    return found


def condition(under: ConditionDescription) -> str:
    """Return a condition in words: as it was asked for, what it does, and which draw."""
    draw = "" if under.trial is None else f", trial {under.trial}"
    return f"{under.text}{draw}: {under.summary}"
