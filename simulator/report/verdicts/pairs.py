"""The verdict of a pair: what is lost, and which axis costs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simulator.report.command import PAIR
from simulator.report.verdicts.told import Told
from simulator.report.words import (
    at_any_time,
    between,
    cause,
    chance,
    decided,
    interval,
    points,
    share,
    title,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simulator.results.pair import Alone, PairSummary


def run(summary: PairSummary) -> Told:
    """How many answers change, what the metric loses, and which axis does most of it alone."""
    flips, unit = summary.flips, summary.unit
    units = "answers" if unit == "image" else f"{unit}s"
    changed = f"{_of_both(summary)}{flips.count:,} of {flips.units:,} {units} change"
    ends = at_any_time(flips.ci95) if summary.decided else between(flips.ci95)
    lost = [changed + (f": {share(flips.rate, 2)}{ends}." if flips.units else ".")]
    if summary.decided:
        lost += [decided(summary.decided, summary.sample_unit), *_unseen(summary)]
    metric = summary.metric
    if delta := summary.delta.get(metric):
        old, new = (side.metric[metric] for side in (summary.train, summary.deploy))
        name, moved = title(summary.task, metric), at_any_time(delta.ci95, signed=True)
        lost.append(
            f"{name} stays at {share(new, 2)}{moved if summary.decided else interval(delta.ci95)}."
            if delta.value == 0
            else f"{name} goes from {share(old, 2)} to {share(new, 2)}, {points(delta)} "
            f"points{moved if summary.decided else chance(delta.ci95)}."
        )
    elif not summary.labelled:
        lost.append("There are no labels: accuracy is not known.")
    if not flips.count:
        return Told(lost)
    return Told(lost, _alone(summary), lambda asked: asked.line("explain", PAIR))


def _of_both(summary: PairSummary) -> str:
    """Which samples figures are of, where a stack has failed on others."""
    if not any(one.count for one in summary.failed.values()):
        return ""
    return f"Of the {summary.samples:,} {summary.sample_unit}s that both answer: "


def _unseen(summary: PairSummary) -> list[str]:
    """What a run that stopped early does not show: that the deployment never fails."""
    one, early = summary.failed.get("deploy"), summary.decided
    if one is None or one.count or not one.ci95 or early is None or early.samples == early.of:
        return []
    return [
        f"The deployment failed on none of them; up to {share(one.ci95[1], 2)} is not excluded."
    ]


def _alone(summary: PairSummary) -> str | None:
    """Which axis changes most answers when it alone is swapped; None in a quick run."""
    ran = [one for one in summary.alone if one.why is None]
    if not ran:
        return None
    changed = {" with ".join(one.axes): one for one in ran if one.changed}
    if not changed:
        return "No axis changes an answer alone."
    (first, most), *others = ((cause(axis, summary), one) for axis, one in changed.items())
    half, told = summary.flips.count / 2, f"{most.changed:,}{between(most.ci95)}"
    rest = "".join(f"; {axis} {one.changed:,}" for axis, one in others[:2])
    if half < most.changed <= summary.flips.count and all(one.changed <= half for _, one in others):
        return f"Most of it: {first}, {told}{rest}{_apart(most, others)}."
    return f"Most alone: {first}, {told}{rest}{_apart(most, others)}."


def _apart(most: Alone, others: Sequence[tuple[str, Alone]]) -> str:
    """Whether the axis that changes most may be another one on other samples."""
    low = most.ci95[0] if most.ci95 else None
    second = max((one.rate or 0.0 for _, one in others), default=0.0)
    return "; chance may explain which is first" if low is not None and second >= low else ""
