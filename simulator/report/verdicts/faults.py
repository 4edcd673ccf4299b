"""The verdict of a campaign of faults: how often they corrupt answers silently, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simulator.report.verdicts.told import Told
from simulator.report.words import between, share

if TYPE_CHECKING:
    from simulator.results.faults import FaultsSummary, Rate


def faults(summary: FaultsSummary) -> Told:
    """How often faults corrupt answers silently, and where most of them do."""
    lost = []
    for side, one in summary.stacks.items():
        if not one.sdc.of:
            lost.append(f"{side}: nothing was run.")
            continue
        lost.append(
            f"{side}: {_corrupted(summary, one.sdc)}; {share(one.due.rate, 2)} end in NaN or Inf."
        )
    first = next(iter(summary.stacks.values()))
    bits = {name: group.sdc.count for name, group in first.by_bit.items() if group.sdc.count}
    if not bits:
        return Told(lost)
    again = f"simulate faults replay RUN --fault {first.worst[0].fault}."
    if summary.allocation != "proportional":  # numbers as drawn say nothing of bits
        return Told(lost, next=again)
    most = max(bits, key=lambda name: bits[name])
    told = f"hit bit {most}: {bits[most]:,} of {sum(bits.values()):,}."
    cause = f"Most of them {told}" if 2 * bits[most] > sum(bits.values()) else None
    return Told(lost, cause, again)


def _corrupted(summary: FaultsSummary, one: Rate) -> str:
    """How many answers are silently corrupted, and of strata what share of all that would be."""
    what = "faults" if summary.lasts == "transient" else "inferences with a fault"
    how = f"{share(one.rate, 2)}{between(one.ci95)}"
    counted = f"{one.count:,} of {one.of:,}"
    if summary.allocation == "proportional":
        return f"{counted} {what} corrupt an answer silently: {how}"
    return (
        f"{how} of {what} corrupt an answer silently, weighted by stratum; {counted} as they were "
        "drawn"
    )
