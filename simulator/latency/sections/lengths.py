"""Report section: how the latency of texts and sounds depends on their length.

Source:
    The question of figure 2 (c) of Yang et al., arXiv 2212.13925.
"""

from __future__ import annotations

from simulator.latency.reading import TimedRun, of_rounds
from simulator.latency.sections.inputs import regression
from simulator.latency.tables import slope
from simulator.report.sections.section import Panel, Section, part
from simulator.report.sections.style import looks


@part(order=150)
@of_rounds
def length(run: TimedRun) -> Section | None:
    """Draw each sample's median against its length, with the regression line of the summary."""
    if not run.lengths:
        return None
    ((unit, lengths),) = run.lengths.items()
    known, noun = looks(run.summary.stacks), run.summary.sample_unit
    effects = {side: effect.length for side, effect in run.summary.inputs.items() if effect.length}
    words = [f"<br>{found}, " for found in lengths.tolist()]
    panel, notes = regression(run, lengths, f"length, {unit}", effects, words)
    return Section(
        "length",
        f"Length: each {noun}'s median latency, ms, against its {unit}",
        f"Do longer {noun}s take longer, and how much of the differences does the length explain?",
        [f"{known[side].name}: {slope(effect)}." for side, effect in effects.items()],
        [Panel(panel)],
        notes,
    )
