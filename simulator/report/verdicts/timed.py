"""The verdict of a measured latency, and of the quality under a deadline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simulator.report.verdicts.told import Told
from simulator.report.words import given_deadlines, ranked, share, title

if TYPE_CHECKING:
    from simulator.results.tail import TailSummary
    from simulator.results.timed import LatencySummary, LoadSummary


def latency(summary: LatencySummary | LoadSummary) -> Told:
    """How long each stack takes, and their ratio."""
    from simulator.results.timed import LatencySummary

    lost = []
    for side, rows in summary.latency_ms.items():
        known = [(name, rows["total"][name]) for name in ("p50", "p90", "p99")]
        words = ", ".join(f"{name} {ms:.2f} ms" for name, ms in known if ms is not None)
        lost.append(f"{side}: {words or 'no figure'}.")
    if isinstance(summary, LatencySummary):
        for side, ratio in summary.ratio.items():
            known_ends = ratio.ci95
            ends = f" ({known_ends[0]:.2f} to {known_ends[1]:.2f})" if known_ends else ""
            lost.insert(0, f"{side} takes {ratio.value:.2f} times as long as {ratio.to}{ends}.")
    return Told(lost)


def tail(summary: TailSummary) -> Told:
    """At the user's own deadlines where there are some, which are the same for every stack."""
    metric, given = title(summary.task, summary.metric), given_deadlines(summary)
    if given:
        return Told([_at(summary, metric, name) for name in given])
    lost = []
    for side, found in summary.tail.items():
        words = f"{side}: {metric} {share(found.quality, 2)} without a deadline"
        known = (
            (name, threshold)
            for name, threshold in found.thresholds.items()
            if threshold is not None
        )
        for name, threshold in list(known)[:1]:
            worst = share(threshold.worst, 2)
            words += f", {worst} in the worst round at {threshold.ms:.2f} ms, its own p{name}"
        lost.append(f"{words}.")
    return Told([*lost, "A --deadline-ms would be the same for all."])


def _at(summary: TailSummary, metric: str, name: str) -> str:
    """Every stack under one deadline, the best one first."""
    worst = []
    for side in ranked(summary, name):
        threshold, whole = summary.tail[side].thresholds[name], share(summary.tail[side].quality, 2)
        found = share(threshold.worst, 2) if threshold else "unknown"
        worst.append(f"{side} {found} ({whole} without a deadline)")
    return f"{metric} in the worst round at {name.removesuffix('ms')} ms: {', '.join(worst)}."
