"""The latencies of stages as boxes; of a pair too, so nothing here reads timed runs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from simulator.contract.stage import timed_steps
from simulator.latency.times import TOTAL
from simulator.report import charts
from simulator.report.charts import Figure, Trace
from simulator.report.colors import band
from simulator.report.sections.style import Look, figure, milliseconds

MS = 1e6
Floats = NDArray[np.float64]
BOX = (
    "Box: median and quartiles; whiskers: the fastest and the slowest answer. Medians of stages "
    "need not add up to the total's."
)


def boxes(values: Mapping[str, Mapping[str, Floats]], known: Mapping[str, Look]) -> Figure | None:
    """Draw the latencies of stages as boxes.

    Args:
        values: ms by stack and stage, in any order.
        known: how each stack is drawn.

    Returns:
        The figure; None where no stage has a latency.
    """
    own = {side: {kind: ms for kind, ms in of.items() if ms.size} for side, of in values.items()}
    kinds = [kind for kind in (*timed_steps(), TOTAL) if any(kind in of for of in own.values())]
    if not kinds:
        return None
    drawn = figure(
        [_box(own[side], look) for side, look in known.items() if own.get(side)],
        130 + len(kinds) * (14 + 18 * len(known)),
        "latency, ms",
        "",
    )
    every = np.concatenate([ms for of in own.values() for ms in of.values()])
    above = every[every > 0] if (every > 0).any() else np.ones(1)
    drawn.update_layout(boxmode="group", boxgap=0.25)
    drawn.update_yaxes(
        type="category", categoryorder="array", categoryarray=kinds, autorange="reversed"
    )
    drawn.update_xaxes(**milliseconds(float(above.min()), float(above.max())))
    return drawn


def _box(of: Mapping[str, Floats], look: Look) -> Trace:
    ends = np.array([np.quantile(ms, [0, 0.25, 0.5, 0.75, 1]) for ms in of.values()])
    least, q1, middle, q3, most = ends.T
    return charts.box(
        y=list(of), lowerfence=least, q1=q1, median=middle, q3=q3, upperfence=most,
        orientation="h", name=look.label, fillcolor=band(look.color),
        line={"color": look.color, "width": 1.5}, hoverinfo="x",
    )  # fmt: skip
