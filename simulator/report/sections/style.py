"""How figures look: stacks differ in color, lightness, dash, symbol and hatching alike."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simulator.report.charts import Attributes, Figure, Trace, scatter
from simulator.report.colors import BACK, FAINT, GRID, STACKS, TEXT
from simulator.results.shared import Profile

_SHAPES = (
    ("solid", "circle", ""),
    ("dash", "square", "/"),
    ("dashdot", "diamond", "\\"),
    ("longdash", "triangle-up", "x"),
    ("longdashdot", "cross", "-"),
    ("4px 2px", "x", "."),
    ("12px 4px", "pentagon", "|"),
    ("8px 2px 2px 2px 2px 2px", "star", "+"),
)
"""Dash, symbol and hatching of each stack; from the ninth on the colors have other ones."""
MARGIN = {"l": 56, "r": 12, "t": 8, "b": 48}
_WIDE = 8
"""The slowest by the fastest, from which on an axis of times is logarithmic."""
NAME, LEGEND = 100, 34
"""Characters after which names are cut in hovers and in the legend."""


def text(value: object, limit: int = NAME) -> str:
    """Return a name that plotly shows as it is written, whatever markup it contains.

    Plotly reads some HTML in every text, and ``%{`` in hover templates; both are taken literally
    here. Characters that cannot be seen are replaced, long names lose their middle.
    """
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(value))
    if len(shown) > limit:
        shown = shown[: limit // 2] + "…" + shown[-(limit // 2 - 1) :]
    return html.escape(shown, quote=False).replace("{", "&#123;")


@dataclass(frozen=True, slots=True)
class Look:
    """How a stack is drawn in every figure.

    Attributes:
        name: as people know it.
        label: the same for plotly, short enough for a legend.
        color: of lines and symbols.
        dash: of lines.
        symbol: of points.
        hatch: of bars.
    """

    name: str
    label: str
    color: str
    dash: str
    symbol: str
    hatch: str

    @property
    def line(self) -> Attributes:
        """The stack's line."""
        return {"color": self.color, "dash": self.dash, "width": 2}

    @property
    def marker(self) -> Attributes:
        """The stack's symbol, apart from what lies under it."""
        edge = {"color": BACK, "width": 1}
        return {"color": self.color, "symbol": self.symbol, "size": 8, "line": edge}


def looks(stacks: Mapping[str, Profile]) -> dict[str, Look]:
    """Return how each stack of a run is drawn, the same in all its figures."""
    found = {}
    for at, (side, stack) in enumerate(stacks.items()):
        name = side if side == stack.profile else f"{side} ({stack.profile})"
        color, _ = STACKS[at % len(STACKS)]
        dash, symbol, hatch = _SHAPES[(at + at // len(STACKS)) % len(_SHAPES)]
        found[side] = Look(name, text(name, LEGEND), color, dash, symbol, hatch)
    return found


def dots(
    name: str, points: Mapping[str, tuple[float, float | None]], color: str, symbol: str,
    hover: str, mode: str = "markers",
) -> Trace:  # fmt: skip
    """Return stacks as points of a Pareto chart.

    Args:
        name: of all of them, in the legend.
        points: x and y by the name of the stack.
        color: of symbols and lines.
        symbol: plotly's.
        hover: how plotly writes ``%{x}`` and ``%{y}`` of one.
        mode: plotly's.
    """
    return scatter(
        x=[x for x, _ in points.values()], y=[y for _, y in points.values()],
        text=[text(one) for one in points], textposition="top center", name=name, mode=mode,
        line={"color": color, "width": 2},
        marker={"color": color, "symbol": symbol, "size": 13 if "triangle" in symbol else 9},
        hovertemplate=f"%{{text}}: {hover}<extra></extra>",
    )  # fmt: skip


def figure(traces: Sequence[Trace], height: int, x: str, y: str, **more: Any) -> Figure:
    """Return a figure that fits any width.

    Args:
        traces: what is drawn.
        height: pixels.
        x: what the axis shows, with its unit.
        y: likewise.
        more: of the layout.
    """
    lines = {"gridcolor": GRID, "zerolinecolor": GRID, "linecolor": FAINT, "automargin": True}
    found = Figure(
        list(traces),
        {
            "height": height,
            "margin": MARGIN,
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "font": {"family": "system-ui, sans-serif", "size": 13, "color": TEXT},
            "legend": {
                "orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom",
            },
            "hoverlabel": {
                "bgcolor": BACK, "bordercolor": FAINT, "font": {"color": TEXT}, "namelength": -1,
            },
            "xaxis": {"title": {"text": x, "standoff": 8}, **lines},
            "yaxis": {"title": {"text": y, "standoff": 8}, **lines},
        },
    )  # fmt: skip
    found.update_layout(**more)
    return found


def error_bars(
    values: Sequence[float | None], ends: Sequence[Sequence[float | None]], **more: Any
) -> Attributes:
    """Return the ``error_y`` of a trace; what is not known is drawn as 0.

    Args:
        values: what is drawn.
        ends: the lower and the upper end of each.
        more: of the bars.
    """
    known = [(value or 0, low or 0, high or 0) for value, (low, high) in zip(
        values, ends, strict=True
    )]  # fmt: skip
    return {
        "type": "data", "symmetric": False, "array": [high - value for value, _, high in known],
        "arrayminus": [value - low for value, low, _ in known], "thickness": 1, "width": 2, **more,
    }  # fmt: skip


def milliseconds(low: float, high: float) -> Attributes:
    """Return an axis of times: logarithmic where the ends are far apart.

    Args:
        low: ms, the least in view.
        high: ms, the most.
    """
    if not 0 < low < high / _WIDE:
        room = 0.03 * (high - low) or 0.5 * high or 0.5
        return {"type": "linear", "range": [low - room, high + room], "tickformat": "~r"}
    ends = np.log10([low / 1.08, high * 1.08])
    decades = float(ends[1] - ends[0])
    steps = (1,) if decades > 3 else (1, 2, 5) if decades > 1.3 else (1, 1.5, 2, 3, 4, 5, 7)
    places = [step * 10.0**k for k in range(-9, 10) for step in steps]
    return {
        "type": "log", "range": ends.tolist(), "tickvals": places,
        "ticktext": [f"{ms:,.9f}".rstrip("0").rstrip(".") for ms in places],
    }  # fmt: skip


def counting(n: int) -> Attributes:
    """Return an axis of whole numbers from 1 to *n*, with ten ticks or fewer."""
    steps = (step * 10**k for k in range(9) for step in (1, 2, 5))
    return {"type": "linear", "tick0": 0, "dtick": next(s for s in steps if 10 * s >= n)}


def upright(ms: float, words: str) -> Attributes:
    """Return a shape: a line at *ms* across the plot, for a deadline."""
    return {
        "type": "line", "x0": ms, "x1": ms, "y0": 0, "y1": 1, "yref": "paper", "layer": "below",
        "line": {"color": FAINT, "width": 1, "dash": "dot"},
        "label": {
            "text": words, "textposition": "end", "xanchor": "right",
            "font": {"color": FAINT, "size": 11},
        },
    }  # fmt: skip
