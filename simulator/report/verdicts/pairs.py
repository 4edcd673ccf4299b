"""The verdict of a pair, and of an explanation: what is lost, and which axis costs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simulator.report.verdicts.told import Told
from simulator.report.words import (
    SIGNIFICANT,
    between,
    chance,
    decided,
    interval,
    points,
    share,
    title,
)

if TYPE_CHECKING:
    from simulator.results.pair import PairSummary
    from simulator.results.suites import Blame, ExplainSummary


def run(summary: PairSummary) -> Told:
    """How many answers change, what the metric loses, and which axis does most of it alone."""
    flips, unit = summary.flips, summary.unit
    units = "answers" if unit == "image" else f"{unit}s"
    changed = f"{flips.count:,} of {flips.units:,} {units} change"
    ends = "" if summary.decided else between(flips.ci95)
    lost = [changed + (f": {share(flips.rate, 2)}{ends}." if flips.units else ".")]
    if summary.decided:
        lost.append(decided(summary.decided, summary.sample_unit))
    metric = summary.metric
    if delta := summary.delta.get(metric):
        old, new = (side.metric[metric] for side in (summary.train, summary.deploy))
        name = title(summary.task, metric)
        lost.append(
            f"{name} stays at {share(new, 2)}{interval(delta.ci95)}."
            if delta.value == 0
            else f"{name} goes from {share(old, 2)} to {share(new, 2)}, {points(delta)} "
            f"points{chance(delta.ci95)}."
        )
    elif not summary.labelled:
        lost.append("There are no labels: accuracy is not known.")
    if not flips.count:
        return Told(lost)
    return Told(lost, _alone(summary), "simulate explain, with the same options.")


def _alone(summary: PairSummary) -> str | None:
    """Which axis changes most answers when it alone is swapped; None in a quick run."""
    ran = [one for one in summary.alone if one.why is None]
    if not ran:
        return None
    changed = {" with ".join(one.axes): one.changed for one in ran if one.changed}
    if not changed:
        return "No axis changes an answer alone."
    (first, most), *others = changed.items()
    half = summary.flips.count / 2
    if half < most <= summary.flips.count and all(number <= half for _, number in others):
        rest = "".join(f"; {axis} {number:,}" for axis, number in others[:2])
        return f"Most of it: {first} ({most:,} alone{rest})."
    rest = "".join(f", {axis} {number:,}" for axis, number in others[:2])
    return f"Swapped alone, {first} changes {most:,}{rest}."


def explain(summary: ExplainSummary) -> Told:
    """How much the metric moves, and which axis has most of it."""
    if not summary.blame:
        return Told(["Nothing was measured that an axis could be blamed for."])
    metric = summary.metric if summary.metric in summary.blame else "flip_rate"
    blame = summary.blame[metric]
    name, total = title(summary.task, metric), blame.total.value or 0.0
    lost = [
        f"{summary.deploy.profile} moves {name} by {points(blame.total)} "
        f"points{chance(blame.total.ci95)}."
    ]
    shares = {axis: blame.shapley[axis] for axis in summary.axes}
    most = max(shares, key=lambda axis: abs(shares[axis].value or 0))
    found = shares[most]
    clear = found.p_holm is not None and found.p_holm < SIGNIFICANT
    half = abs(found.value or 0) > abs(total) / 2
    cause = (
        f"{most} has {'most of it' if half else 'the largest share'}: {points(found)} "
        f"points{interval(found.ci95)}"
    )
    cause += "." if clear else ", no more than chance explains (Holm)."
    return Told(lost, cause, _repair(summary, metric, blame))


def _repair(summary: ExplainSummary, metric: str, blame: Blame) -> str | None:
    """Which repair wins most; None where none wins anything."""
    sign = -1 if metric == "flip_rate" else 1
    won = {axis: sign * (blame.swap_out[axis].value or 0) for axis in summary.axes}
    best = max(won, key=lambda axis: won[axis])
    if won[best] <= 0:
        return None
    name = title(summary.task, metric)
    return f"repair {best} first; alone that wins back {100 * won[best]:.2f} points of {name}."
