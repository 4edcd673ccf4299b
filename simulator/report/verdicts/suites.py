"""The verdict of a sweep and of a worst case: which options lose most."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simulator.report.command import INPUTS
from simulator.report.verdicts.told import Told
from simulator.report.words import chance, early, early_steps, moved, named, share, title, turned

if TYPE_CHECKING:
    from simulator.results.suites import SweepSummary, WorstSummary


def sweep(summary: SweepSummary) -> Told:
    """Which option loses most."""
    name = title(summary.task, summary.metric)
    trained = f"{name} on {named(summary.train)}: {share(summary.trained, 2)}."
    options = {
        f"{column}/{option}": figures
        for column, found in summary.columns.items()
        for option, figures in found.options.items()
    }
    if summary.early is not None:
        return Told([*early(summary.early, summary.sample_unit), trained])
    if not options:
        return Told([trained])
    worst = max(options, key=lambda one: options[one].drop)
    figures = options[worst]
    lost = f"The worst is {worst}: {moved(figures.drop)} points of {name}"
    return Told(
        [f"{lost}{chance(turned(figures.drop_ci95), figures.p, len(options))}.", trained],
        next=lambda asked: asked.line("worst", ("suite", "train", *INPUTS)),
    )


def worst(summary: WorstSummary) -> Told:
    """How much the worst combination loses, and its options."""
    if not summary.path:
        return Told(["No combination was tried."])
    deepest = max(summary.path, key=lambda step: float(step.drop))
    added = [step.added for step in summary.path]
    picks = ", ".join(added[: summary.path.index(deepest) + 1])
    lost = f"{moved(deepest.drop)} points of {title(summary.task, summary.metric)}"
    sure = chance(turned(deepest.drop_ci95), deepest.p, deepest.family)
    return Told([f"{lost} by {picks}{sure}.", *early_steps(summary.early or ())])
