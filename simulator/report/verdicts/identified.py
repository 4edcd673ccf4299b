"""The verdict of a search for a stack: which one reproduces a recording."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simulator.report.verdicts.told import Told
from simulator.report.words import count

if TYPE_CHECKING:
    from simulator.results.identify import IdentifySummary


def identify(summary: IdentifySummary) -> Told:
    """Which stack reproduces a recording, and what the images do not tell."""
    changed = {
        axis: identified_axis.option
        for axis, identified_axis in summary.axes.items()
        if identified_axis.applies
    }
    names = ", ".join(f"{axis} {option}" for axis, option in changed.items())
    what, images = summary.kind, count(summary.samples, summary.sample_unit)
    if summary.exact and what != "predictions":
        how = (
            f"up to rounding ({summary.largest or 0:.2g}, within {summary.ulps} units in the last "
            "place of the largest value)"
            if summary.ulps
            else "to the bit"
        )
        lost = [f"{summary.recording} is reproduced {how} on all {images}: {names}."]
    elif summary.exact:
        lost = [f"All {images} of {summary.recording} are answered alike: {names}."]
    else:
        far = "" if summary.mean is None else f", mean difference {summary.mean:.4g}"
        lost = [
            f"No stack that was compared gives {summary.recording}. The nearest is equal on "
            f"{summary.equal:,} of {images}{far}: {names}."
        ]
    open_axes = [
        axis
        for axis, identified_axis in summary.axes.items()
        if identified_axis.equal or identified_axis.together
    ]
    cause = f"Not told apart by these images: {', '.join(open_axes)}." if open_axes else None
    probe = summary.telling
    after = f"Record {probe.probe} of simulate recordings probes as well." if probe else None
    return Told([*lost, after or "identified.yaml of the run is the profile, for --deploy."], cause)
