"""Report sections: quality against the deadline, and the median of every round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.latency.reading import TimedRun, of_rounds
from simulator.latency.times import NEVER
from simulator.report import charts
from simulator.report.charts import Trace
from simulator.report.colors import FAINT, band
from simulator.report.sections.section import Panel, Section, part
from simulator.report.sections.style import (
    Look,
    counting,
    figure,
    looks,
    milliseconds,
    text,
    upright,
)
from simulator.report.words import leads, share, title
from simulator.results.timed import LatencySummary

SYMBOLS = {"90": "circle", "95": "square", "99": "diamond"}
DEADLINE = "triangle-down"
MS = 1e6
_QUESTION = "How good is each stack with a deadline, and up to which one does the faster stack win?"


@part(order=110)
@of_rounds
def quality(run: TimedRun) -> Section | None:
    """Draw quality against deadline; None for a run without deadlines."""
    tail = run.summary.get("tail")
    if not tail:
        return None
    metric, known = title(run.summary.task, run.summary.metric), looks(run.summary.stacks)
    points = max(len(found["curve"]["ms"]) for found in tail.values())
    if not points:
        return Section(
            "quality", "Quality against deadline", _QUESTION, notes=["Every inference failed."]
        )
    top = max((_top(found) for found in tail.values()), default=1.0) or 1.0
    drawn = figure(_traces(tail, known, metric), 480, "deadline, ms", metric)
    drawn.update_layout(xaxis=milliseconds(*_frame(tail)), **_strip(run.summary, known, top))
    drawn.update_yaxes(range=[-0.075 * top, 1.14 * top], tickformat=charts.SHARE, tick0=0)
    return Section(
        "quality",
        f"Quality against deadline: {metric} when an answer later than so many ms is wrong",
        _QUESTION,
        _winners(run.summary, known, metric),
        [Panel(drawn)],
        [
            "Line: mean over the rounds; band: from the worst round to the best; dotted: without a "
            "deadline. Symbols: the p90, p95 and p99 of the stack's own latencies, and given "
            "deadlines.",
            f"Computed at {points} deadlines, joined by straight lines.",
            *_not_carried(run.summary, tail),
        ],
    )


def _traces(tail: Mapping[str, Any], known: Mapping[str, Look], metric: str) -> list[Trace]:
    """Bands of all stacks below their lines, symbols on top; then the legend of the symbols."""
    layers = [
        [_band(found["curve"], known[side]) for side, found in tail.items()],
        [
            line
            for side, found in tail.items()
            for line in _lines(found["curve"], found["quality"], known[side], metric)
        ],
        [
            symbol
            for side, found in tail.items()
            for symbol in _thresholds(found["thresholds"], known[side])
        ],
        _legend([name for found in tail.values() for name in found["thresholds"]]),
    ]
    return [trace for layer in layers for trace in layer]


def _band(curve: Mapping[str, Any], look: Look) -> Trace:
    ms, worst, best = (np.array(curve[key], np.float64) for key in ("ms", "worst", "best"))
    return charts.scatter(
        x=np.concatenate([ms, ms[::-1]]), y=np.concatenate([worst, best[::-1]]), fill="toself",
        fillcolor=band(look.color), line={"width": 0}, mode="lines", hoverinfo="skip",
        legendgroup=look.name, showlegend=False,
    )  # fmt: skip


def _lines(curve: Mapping[str, Any], whole: float | None, look: Look, metric: str) -> list[Trace]:
    ms, mean, worst, best = (
        np.array(curve[key], np.float64) for key in ("ms", "mean", "worst", "best")
    )
    extra = f"<extra>{look.label}</extra>"
    without = charts.scatter(
        x=ms[[0, -1]], y=[whole] * 2, mode="lines", legendgroup=look.name, showlegend=False,
        line={"color": look.color, "dash": "dot", "width": 1.5},
        hovertemplate=f"without a deadline %{{y:.1%}}{extra}",
    )  # fmt: skip
    line = charts.scatter(
        x=ms, y=mean, mode="lines", line=look.line, name=look.label, legendgroup=look.name,
        customdata=np.stack([worst, best], axis=1),
        hovertemplate=f"{metric} at %{{x:.2f}} ms: mean %{{y:.1%}}<br>worst round "
        f"%{{customdata[0]:.1%}}, best %{{customdata[1]:.1%}}{extra}",
    )  # fmt: skip
    return [line] if whole is None else [without, line]


def _thresholds(under: Mapping[str, Any], look: Look) -> list[Trace]:
    return [
        charts.scatter(
            x=[one["ms"]], y=[one["mean"]], mode="markers", legendgroup=look.name, showlegend=False,
            marker=look.marker | {"symbol": SYMBOLS.get(name, DEADLINE), "size": 11},
            hovertemplate=f"{f'p{name} of its latencies' if name in SYMBOLS else 'deadline'}: "
            f"%{{x:.2f}} ms, {share(one['late'])} late<br>mean {share(one['mean'])}, worst round "
            f"{share(one['worst'])}, best {share(one['best'])}<extra>{look.label}</extra>",
        )
        for name, one in under.items()
        if one is not None
    ]  # fmt: skip


def _legend(names: Sequence[str]) -> list[Trace]:
    kinds = {SYMBOLS.get(name, DEADLINE): f"p{name}" for name in names} | {DEADLINE: "deadline"}
    used = {SYMBOLS.get(name, DEADLINE) for name in names}
    return [
        charts.scatter(
            x=[None], y=[None], mode="markers", name=kinds[symbol],
            marker={"symbol": symbol, "size": 10, "color": FAINT},
        )
        for symbol in (*SYMBOLS.values(), DEADLINE)
        if symbol in used
    ]  # fmt: skip


def _deadlines(tail: Mapping[str, Any]) -> dict[str, float]:
    """The user's own deadlines, ms, by name."""
    under = next(iter(tail.values()))["thresholds"]
    return {name: one["ms"] for name, one in under.items() if name not in SYMBOLS and one}


def _frame(tail: Mapping[str, Any]) -> tuple[float, float]:
    """The range of deadlines that is shown at first; the slowest few answers are outside."""
    ms = np.array(next(iter(tail.values()))["curve"]["ms"], np.float64)
    limits = [one["ms"] for found in tail.values() for one in found["thresholds"].values() if one]
    saturated = [_saturation(ms, found["curve"]["mean"]) for found in tail.values()]
    return min([float(ms[0]), *limits]), max([*limits, *saturated])


def _saturation(ms: NDArray[np.float64], mean: Sequence[float]) -> float:
    """The first deadline at which 97 % of the best quality is reached."""
    values = np.nan_to_num(np.array(mean, np.float64))
    return float(ms[np.argmax(values >= 0.97 * values.max())])


def _strip(summary: LatencySummary, known: Mapping[str, Look], top: float) -> dict[str, Any]:
    """Shapes: below the curves the ranges in which each stack is better, and the deadlines."""
    tail = summary["tail"]
    low, high = _frame(tail)
    shapes = []
    for words in summary["better"]:
        look, end = known[words["stack"]], words["to_ms"] or 2 * high
        wide = min(high, end) - max(low, words["from_ms"]) > 0.3 * (high - low)
        shapes.append({
            "type": "rect", "x0": words["from_ms"], "x1": end,
            "y0": -0.065 * top, "y1": -0.015 * top, "fillcolor": band(look.color),
            "line": {"color": look.color, "width": 1},
            "label": {"text": f"{text(words['stack'], 20)} is better" if wide else "",
                      "font": {"size": 11}, "textposition": "middle left"},
        })  # fmt: skip
    shapes += [upright(ms, name) for name, ms in _deadlines(tail).items()]
    return {"shapes": shapes}


def _top(found: Mapping[str, Any]) -> float:
    values = [one for one in (*found["curve"]["best"], found["quality"]) if one is not None]
    return max(values, default=0.0)


def _winners(summary: LatencySummary, known: Mapping[str, Look], metric: str) -> list[str]:
    words = [
        f"{known[side].name}: {metric} {share(found['quality'], 2)} without a deadline."
        for side, found in summary["tail"].items()
    ]
    return words + leads(summary["better"])


def _not_carried(summary: LatencySummary, tail: Mapping[str, Any]) -> list[str]:
    return [
        f"Not drawn: p{name} of {side}: {summary['missing'][path]}."
        for side, found in tail.items()
        for name in found["thresholds"]
        if (path := f"tail.{side}.tail_quality@{name}") in summary["missing"]
    ]


@part(order=140)
@of_rounds
def rounds(run: TimedRun) -> Section:
    """Draw the median of every round."""
    known = looks(run.summary.stacks)
    traces, found, gaps = [], [], False
    for side, look in known.items():
        number, ms = _medians(run, side)
        gaps |= len(ms) < run.summary["stacks"][side]["rounds"]
        marker = look.marker | {"size": 7 if len(ms) <= 50 else 4}
        traces.append(
            charts.scatter(
                x=number, y=ms, mode="lines+markers", line=look.line | {"width": 1.5},
                marker=marker, name=look.label,
                hovertemplate=f"round %{{x}}: median %{{y:.3f}} ms<extra>{look.label}</extra>",
            )
        )  # fmt: skip
        wide = run.summary["spread"][side]["range"]
        if wide is not None:
            found.append(
                f"{look.name}: medians of {len(ms)} rounds differ by {wide:.1%} of their median."
            )
    drawn = figure(traces, 380, "round", "median, ms")
    drawn.update_yaxes(rangemode="tozero")
    drawn.update_xaxes(rangemode="tozero", **counting(max(len(trace["x"]) for trace in traces)))
    return Section(
        "rounds",
        "Rounds: the median of all samples, ms, round by round",
        "Was the machine steady, or did it drift while the stacks were measured?",
        found,
        [Panel(drawn)] if any(len(trace["x"]) for trace in traces) else [],
        ["Rounds in which no sample was answered have no point."] if gaps else [],
    )


def _medians(run: TimedRun, side: str) -> tuple[Any, Any]:
    """Numbers from 1 and medians in ms of a stack's rounds."""
    total = run.times[side].total
    rows = [(at + 1, row[row != NEVER]) for at, row in enumerate(total)]
    kept = [(at, float(np.median(row)) / MS) for at, row in rows if row.size]
    return np.array([at for at, _ in kept]), np.array([ms for _, ms in kept])
