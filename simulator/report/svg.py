"""A figure of lines, points or bars as an SVG file, for documents; plotly draws it on the page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape, unescape
from itertools import groupby
from typing import Any

from simulator.report.charts import SHARE, Figure, Trace
from simulator.report.colors import BACK, FAINT, GRID, TEXT

WIDE, LEFT, RIGHT, TOP, BOTTOM = 760, 70, 16, 30, 52
ROW, LETTER, SWATCH = 18, 6.8, 30
"""Of the legend: the height of a row, the width of a letter and of what stands before a name."""
_DASHES = {"dash": "8 4", "dot": "2 3", "dashdot": "8 3 2 3", "longdash": "14 4",
           "longdashdot": "14 4 2 4"}  # fmt: skip
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class _Axis:
    """From a value to a place in pixels; ``names`` of an axis of words."""

    low: float
    high: float
    start: float
    end: float
    names: Sequence[str] = ()
    share: bool = False

    def at(self, value: Any) -> float:
        number = self.names.index(str(value)) + 0.5 if self.names else float(value)
        return self.start + (number - self.low) / (self.high - self.low) * (self.end - self.start)

    @property
    def room(self) -> float:
        """Pixels of one name."""
        return abs(self.end - self.start) / max(len(self.names), 1)

    def ticks(self) -> Iterator[tuple[float, str]]:
        if self.names:
            yield from ((self.at(name), name) for name in self.names)
            return
        rough = (self.high - self.low) / 5
        size = 10.0 ** math.floor(math.log10(rough))
        step = next(size * by for by in (1, 2, 5, 10) if size * by >= rough)
        for number in range(math.ceil(self.low / step - 1e-9), int(self.high / step + 1e-9) + 1):
            value = number * step
            yield self.at(value), f"{100 * value:g} %" if self.share else f"{value:g}"


def svg(drawn: Figure, title: str) -> str | None:
    """Return a figure as SVG; None for other traces, lying bars, several or logarithmic axes."""
    layout = drawn.layout
    axes = [layout["xaxis"], layout["yaxis"]]
    plain = all(
        one["type"] in ("scatter", "bar") and not {"xaxis", "orientation"} & one.keys()
        for one in drawn.data
    )
    if not drawn.data or not plain or any(axis.get("type") == "log" for axis in axes):
        return None
    own = [_known(trace) for trace in drawn.data]
    high = float(layout.get("height", 340))
    legend = list(_legend(own, high))
    whole = high + (1 + max((row for row, *_ in legend), default=-1)) * ROW
    x = _axis(own, "x", axes[0], LEFT, WIDE - RIGHT)
    y = _axis(own, "y", axes[1], high - BOTTOM, TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {whole:g}" '
        f'font-family="system-ui, sans-serif" font-size="12" fill="{TEXT}">',
        f'<rect width="{WIDE}" height="{whole:g}" fill="{BACK}"/>',
        _text(LEFT, 18, title, "start", 'font-weight="bold"'),
        *_frame(x, y, axes, high),
        *(shape for at, trace in enumerate(own) for shape in _trace(trace, at, own, x, y)),
        *(shape for *_, shapes in legend for shape in shapes),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _known(trace: Trace) -> Trace:
    """A trace in which what is not finite is None, as on the page."""

    def known(value: Any) -> bool:
        return isinstance(value, str) or (value is not None and math.isfinite(value))

    return trace | {key: [one if known(one) else None for one in trace[key]] for key in "xy"}


def _axis(
    own: Sequence[Trace], kind: str, layout: dict[str, Any], start: float, end: float
) -> _Axis:
    found = [value for trace in own for value in trace[kind] if value is not None]
    if layout.get("type") == "category" or any(isinstance(value, str) for value in found):
        names = list(dict.fromkeys(map(str, found)))
        if all(name.isdecimal() for name in names):
            names.sort(key=int)
        return _Axis(0, len(names), start, end, names)
    for trace in own:
        error = trace.get(f"error_{kind}")
        if error:
            both = zip(trace[kind], error["array"], error["arrayminus"], strict=True)
            found += [end for value, up, down in both if value is not None
                      for end in (value + up, value - down)]  # fmt: skip
    bars = any(trace["type"] == "bar" for trace in own) or layout.get("rangemode") == "tozero"
    low, top = min(found, default=0.0), max(found, default=1.0)
    if kind == "y" and bars:
        low, top = min(low, 0.0), max(top, 0.0)
    room = 0.05 * (top - low) or 0.05
    least = low if low == 0 and bars else low - room
    return _Axis(least, top + room, start, end, share=layout.get("tickformat") == SHARE)


def _frame(x: _Axis, y: _Axis, axes: Sequence[dict[str, Any]], high: float) -> Iterator[str]:
    """Grid, numbers and titles of both axes."""
    for place, words in y.ticks():
        yield _line([(x.start, place), (x.end, place)], GRID)
        yield _text(x.start - 6, place + 4, words, "end")
    slanted = bool(x.names) and max(map(len, x.names)) * LETTER > x.room
    for place, words in x.ticks():
        yield _line([(place, y.start), (place, y.start + 4)], FAINT)
        turn = f'transform="rotate(-20 {place:g} {y.start + 16:g})"' if slanted else ""
        yield _text(place, y.start + 16, words, "end" if slanted else "middle", turn)
    yield _line([(x.start, y.start), (x.end, y.start)], FAINT)
    across, up = (str(axis.get("title", {}).get("text", "")) for axis in axes)
    yield _text((x.start + x.end) / 2, high - 10, across, "middle")
    middle = (y.start + y.end) / 2
    yield _text(14, middle, up, "middle", f'transform="rotate(-90 14 {middle:g})"')


def _trace(trace: Trace, at: int, own: Sequence[Trace], x: _Axis, y: _Axis) -> Iterator[str]:
    color = str((trace.get("line") or trace.get("marker") or {}).get("color", FAINT))
    shift = 0.0
    if trace["type"] == "bar":
        bars = [one for one in own if one["type"] == "bar"]
        width = 0.8 * x.room / len(bars)
        shift = (bars.index(trace) + 0.5 - len(bars) / 2) * width
        for name, value in zip(trace["x"], trace["y"], strict=True):
            if value is not None:
                left, ends = x.at(name) + shift - width / 2, sorted((y.at(0), y.at(value)))
                yield (f'<rect x="{left:.1f}" y="{ends[0]:.1f}" width="{width:.1f}" '
                       f'height="{ends[1] - ends[0]:.1f}" fill="{color}"/>')  # fmt: skip
    points = [None if None in (one, other) else (x.at(one) + shift, y.at(other))
              for one, other in zip(trace["x"], trace["y"], strict=True)]  # fmt: skip
    yield from _errors(trace, shift, x, y, color)
    if trace["type"] == "scatter":
        mode = str(trace.get("mode", "lines"))
        if "lines" in mode:
            dash = _DASHES.get(str((trace.get("line") or {}).get("dash")), "")
            for _, part in groupby(points, key=bool):
                if line := [point for point in part if point]:
                    yield _line(line, color, f'stroke-width="2" stroke-dasharray="{dash}"')
        if "markers" in mode:
            yield from (_mark(point, at, color) for point in points if point)


def _errors(trace: Trace, shift: float, x: _Axis, y: _Axis, color: str) -> Iterator[str]:
    ink = TEXT if trace["type"] == "bar" else color
    for kind in ("x", "y"):
        error = trace.get(f"error_{kind}")
        if not error:
            continue
        both = zip(trace["x"], trace["y"], error["arrayminus"], error["array"], strict=True)
        for one, other, down, up in both:
            if one is None or other is None:
                continue
            if kind == "y":
                place = x.at(one) + shift
                yield _line([(place, y.at(other - down)), (place, y.at(other + up))], ink)
            else:
                yield _line([(x.at(one - down), y.at(other)), (x.at(one + up), y.at(other))], ink)


def _mark(point: Point, at: int, color: str) -> str:
    """A circle, a square or a diamond: traces differ in more than color."""
    x, y = point
    if at % 3 == 0:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{color}"/>'
    turn = f' transform="rotate(45 {x:.1f} {y:.1f})"' if at % 3 == 2 else ""
    return f'<rect x="{x - 3.5:.1f}" y="{y - 3.5:.1f}" width="7" height="7" fill="{color}"{turn}/>'


def _legend(own: Sequence[Trace], top: float) -> Iterator[tuple[int, list[str]]]:
    """The row of each name, and its shapes; none where one trace is alone."""
    if len(own) < 2:
        return
    row, left = 0, float(LEFT)
    for at, trace in enumerate(own):
        name = unescape(str(trace.get("name", "")))
        wide = SWATCH + LETTER * len(name) + 10
        if left + wide > WIDE and left > LEFT:
            row, left = row + 1, float(LEFT)
        middle = top + row * ROW + 6
        color = str((trace.get("line") or trace.get("marker") or {}).get("color", FAINT))
        dash = _DASHES.get(str((trace.get("line") or {}).get("dash")), "")
        ends = [(left, middle), (left + SWATCH - 6, middle)]
        shapes = [_line(ends, color, f'stroke-width="2" stroke-dasharray="{dash}"'),
                  _mark((left + SWATCH / 2 - 3, middle), at, color),
                  _text(left + SWATCH, middle + 4, name, "start")]  # fmt: skip
        yield row, shapes
        left += wide


def _line(points: Sequence[Point], color: str, more: str = "") -> str:
    places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{places}" fill="none" stroke="{color}" {more}/>'


def _text(x: float, y: float, words: str, anchor: str, more: str = "") -> str:
    shown = escape(unescape(words))
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{shown}</text>'
