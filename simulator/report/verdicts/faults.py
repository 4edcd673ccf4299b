"""The verdict of a campaign of faults: how often they corrupt answers silently, and where."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from simulator.report.command import Asked
from simulator.report.verdicts.told import Told
from simulator.report.words import between, share
from simulator.statistics.paired import clopper_pearson

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
    fault = first.worst[0].fault

    def again(asked: Asked) -> str:
        return f"simulate replay-fault {shlex.quote(str(asked.folder))} --fault {fault}"

    if summary.allocation != "proportional":  # numbers as drawn say nothing of bits
        return Told(lost, next=again)
    most = max(bits, key=lambda name: bits[name])
    hits, every = bits[most], sum(bits.values())
    if 2 * hits <= every:
        return Told(lost, next=again)
    ci95 = clopper_pearson(hits, every)
    sure = "" if ci95[0] > 1 / 2 else ", no more than chance explains"
    told = f"Most of them hit bit {most}: {hits:,} of {every:,}{between(ci95)}{sure}."
    return Told(lost, told, again)


def _corrupted(summary: FaultsSummary, rate: Rate) -> str:
    """How many answers are silently corrupted, and of strata what share of all that would be."""
    what = "faults" if summary.lasts == "transient" else "inferences with a fault"
    how = f"{share(rate.rate, 2)}{between(rate.ci95)}"
    counted = f"{rate.count:,} of {rate.of:,}"
    if summary.allocation == "proportional":
        return f"{counted} {what} corrupt an answer silently: {how}"
    return (
        f"{how} of {what} corrupt an answer silently, weighted by stratum; {counted} as they were "
        "drawn"
    )
