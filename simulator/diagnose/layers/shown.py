"""Where two networks part, in words, as a table, and as a section of the page."""

from __future__ import annotations

import math
from collections.abc import Sequence

from simulator.report import charts
from simulator.report.colors import FAINT, STACKS
from simulator.report.sections.section import Cell, Panel, Section, Table
from simulator.report.sections.style import figure, text
from simulator.report.table import NOTHING
from simulator.results.layers import LayerError, LayerFigures, LayersFigures

SHOWN = 12
"""Rows at most on the screen; the page has all."""
_HOW = (
    "Error: root mean square of the difference, by that of the training stack's values. "
    "Accumulated: both networks run from the same input. Alone: the deployment stack's layer gets "
    "the training stack's exact values. 1 % is a signal-to-noise ratio of 40 dB."
)


def sentences(figures: LayersFigures) -> list[str]:
    """Return what was found, the answer first."""
    rows = figures.rows
    last = _error(rows[-1].accumulated) if rows else None
    if figures.first is None:
        largest = max((_error(row.accumulated) or 0.0 for row in rows), default=0.0)
        answer = (
            f"No layer parts: the largest error is {_share(largest)} of its signal, below "
            f"{_share(figures.bound)}"
        )
    else:
        answer = (
            f"The networks part at {figures.first}: the first layer with an error above "
            f"{_share(figures.bound)} of its signal; at the last it is {_share(last)}"
        )
    found = [f"{answer} (the bound: {figures.why})."]
    alone = [row for row in rows if _error(row.alone) is not None]
    if figures.first is not None and alone and not figures.suspects:
        worst = max(alone, key=lambda row: _error(row.alone) or 0.0)
        found.append(
            f"No layer alone is to blame: by itself the worst, {worst.layer}, has "
            f"{_share(_error(worst.alone))}; small errors add up."
        )
    elif figures.suspects:
        more = figures.suspects - figures.examined
        left = f"; the {more} with less were not examined" if more else ""
        found.append(f"Layers with an error of their own above it: {figures.suspects}{left}.")
    lost = figures.unmatched + figures.extra
    if lost:
        found.append(
            f"Not compared: {figures.unmatched} tensors of the training stack and {figures.extra} "
            "of the deployment stack have no counterpart (a graph was rewritten or layers fused)."
        )
    return found


def table(figures: LayersFigures, every: bool = False) -> Table:
    """Return the layers; without *every* those that say most."""
    rows = figures.rows if every else _telling(figures)
    first = next((at for at, row in enumerate(rows) if row.layer == figures.first), None)
    alone = any(row.alone for row in figures.rows)
    columns = ["layer", "reason", *["operator"] * every, "accumulated, %"]
    columns += [*["alone, %", "worst channel, %"] * alone]
    columns += ["accumulated, dB", "largest", "cosine"] * every
    cells: list[Sequence[Cell]] = [
        [
            row.layer, "; ".join(row.reasons), *[row.operator] * every,
            _percent(_error(row.accumulated)),
            *(_alone(row.alone) if alone else ()),
            *(_more(row.accumulated) if every else ()),
        ]
        for row in rows
    ]  # fmt: skip
    title = f"Layers of {figures.train} (training) and {figures.deploy} (deployment)"
    if len(rows) < len(figures.rows):
        title += f", {len(rows)} of {len(figures.rows)}"
    marked = frozenset() if first is None else frozenset({first})
    return Table(columns, cells, title, 2 + every, marked, folded=every)


def section(figures: LayersFigures) -> Section:
    """Return the part of the page: a chart of all layers, and their table."""
    x = list(range(1, len(figures.rows) + 1))
    names = [text(f"{row.layer} ({row.operator})") for row in figures.rows]
    traces = []
    for at, (name, errors) in enumerate((
        ("accumulated", [_error(row.accumulated) for row in figures.rows]),
        ("alone", [_error(row.alone) for row in figures.rows]),
    )):  # fmt: skip
        if any(errors):
            traces.append(charts.scatter(
                x=x, y=[error or None for error in errors], text=names, name=name,
                mode="lines+markers", line={"color": STACKS[at][0], "dash": ("solid", "dot")[at]},
                hovertemplate="%{text}<br>%{y:.3~%}<extra></extra>",
            ))  # fmt: skip
    drawn = figure(traces, 320, "layer, in the order of computation", "error, of its signal")
    drawn.update_yaxes(type="log", tickformat="~%")
    drawn.update_layout(shapes=[{
        "type": "line", "x0": 0, "x1": 1, "xref": "paper", "y0": figures.bound,
        "y1": figures.bound, "line": {"color": FAINT, "width": 1, "dash": "dot"},
    }])  # fmt: skip
    return Section(
        "layers",
        "Layers: error of each, of its own signal",
        "Where do the two networks part?",
        sentences(figures),
        [Panel(drawn)] if traces else [],
        [_HOW, *figures.notes],
        tables=[table(figures, every=True)],
    )


def _telling(figures: LayersFigures) -> list[LayerFigures]:
    """Return the first layer above the bound, those with reasons, the worst, and the last."""
    rows = figures.rows
    order = sorted(range(len(rows)), key=lambda at: -(_worst(rows[at])))
    wanted = [at for at, row in enumerate(rows) if row.layer == figures.first][:1]
    wanted += [at for at, row in enumerate(rows) if row.reasons] + [len(rows) - 1] * bool(rows)
    chosen = list(dict.fromkeys([*wanted, *order]))[:SHOWN]
    return [rows[at] for at in sorted(chosen)]


def _worst(row: LayerFigures) -> float:
    error = row.alone or row.accumulated
    if error is None or error.not_finite:
        return math.inf
    return error.rms or 0.0


def _error(of: LayerError | None) -> float | None:
    """Return the relative error; infinite where values are not finite."""
    return None if of is None else (math.inf if of.not_finite else of.rms)


def _alone(of: LayerError | None) -> list[str]:
    """Return the error of a layer by itself, and that of its worst channel."""
    return [_percent(_error(of)), _percent(of.channel if of else None)]


def _more(of: LayerError | None) -> list[str]:
    """Return the signal-to-noise ratio in dB, the largest difference and the cosine."""
    if of is None:
        return ["", "", ""]
    return [
        f"{-20 * math.log10(of.rms):.1f}" if of.rms else "",
        "" if of.largest is None else f"{of.largest:.3g}",
        "" if of.cosine is None else f"{of.cosine:.6f}",
    ]


def _percent(error: float | None) -> str:
    """Return an error in percent, with two digits, or nothing."""
    if error is None:
        return NOTHING
    if math.isinf(error):
        return "not finite"
    return f"{100 * error:.0f}" if error >= 1 else f"{100 * error:.2g}"


def _share(error: float | None) -> str:
    """Return an error with its unit."""
    found = _percent(error)
    return found if error is None or math.isinf(error) else f"{found} %"
