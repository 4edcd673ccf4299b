"""Report sections: quality against the deadline, and the median of every round."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import numpy as np

from simulator.latency.reading import TimedRun, of_rounds
from simulator.latency.tables import deadlines
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
from simulator.results.tail import Curve, Tail, TailSummary
from simulator.statistics.percentiles import MS

SYMBOLS = {"90": "circle", "95": "square", "99": "diamond"}
DEADLINE = "triangle-down"
_QUESTION = "How good is each stack with a deadline, and up to which one does the faster stack win?"


@part(order=110)
@of_rounds
def quality(run: TimedRun) -> Section | None:
    """Draw quality against deadline; None for a run without deadlines."""
    summary = run.summary
    if not isinstance(summary, TailSummary):
        return None
    tail, known = summary.tail, looks(summary.stacks)
    metric = title(summary.task, summary.metric)
    points = max(len(found.curve.ms) for found in tail.values())
    if not points:
        return Section(
            "quality", "Quality against deadline", _QUESTION, notes=["Every inference failed."]
        )
    values = [one for found in tail.values() for one in (*found.curve.best, found.quality)]
    top = max((value for value in values if value is not None), default=1.0) or 1.0
    drawn = figure(_traces(tail, known, metric), 480, "deadline, ms", metric)
    frame = _frame(tail)
    drawn.update_layout(xaxis=milliseconds(*frame), shapes=_strip(summary, known, frame, top))
    drawn.update_yaxes(range=[-0.075 * top, 1.14 * top], tickformat=charts.SHARE, tick0=0)
    return Section(
        "quality",
        f"Quality against deadline: {metric} when an answer later than so many ms is wrong",
        _QUESTION,
        [
            *(
                f"{known[side].name}: {metric} {share(found.quality, 2)} without a deadline."
                for side, found in tail.items()
            ),
            *leads(summary.better),
        ],
        [Panel(drawn)],
        [
            "Line: mean over the rounds; band: from the worst round to the best; dotted: without a "
            "deadline. Symbols: the p90, p95 and p99 of the stack's own latencies, and given "
            "deadlines.",
            f"Computed at {points} deadlines, joined by straight lines.",
            *(
                f"Not drawn: p{name} of {side}: {summary.missing[path]}."
                for side, found in tail.items()
                for name in found.thresholds
                if (path := f"tail.{side}.tail_quality@{name}") in summary.missing
            ),
        ],
    )


def _traces(tail: Mapping[str, Tail], known: Mapping[str, Look], metric: str) -> list[Trace]:
    """Bands of all stacks below their lines, symbols on top; then the legend of the symbols."""
    return [
        *(_band(found.curve, known[side]) for side, found in tail.items()),
        *chain(*(_lines(found, known[side], metric) for side, found in tail.items())),
        *chain(*(_thresholds(found, known[side]) for side, found in tail.items())),
        *_legend([name for found in tail.values() for name in found.thresholds]),
    ]


def _band(curve: Curve, look: Look) -> Trace:
    ms, worst, best = (np.array(one, np.float64) for one in (curve.ms, curve.worst, curve.best))
    return charts.scatter(
        x=np.concatenate([ms, ms[::-1]]), y=np.concatenate([worst, best[::-1]]), fill="toself",
        fillcolor=band(look.color), line={"width": 0}, mode="lines", hoverinfo="skip",
        legendgroup=look.name, showlegend=False,
    )  # fmt: skip


def _lines(found: Tail, look: Look, metric: str) -> Iterator[Trace]:
    curve, extra = found.curve, f"<extra>{look.label}</extra>"
    if found.quality is not None:
        yield charts.scatter(
            x=np.array(curve.ms)[[0, -1]], y=[found.quality] * 2, mode="lines",
            legendgroup=look.name, showlegend=False,
            line={"color": look.color, "dash": "dot", "width": 1.5},
            hovertemplate=f"without a deadline %{{y:.1%}}{extra}",
        )  # fmt: skip
    yield charts.scatter(
        x=np.array(curve.ms), y=np.array(curve.mean, np.float64), mode="lines", line=look.line,
        name=look.label, legendgroup=look.name,
        customdata=np.array([curve.worst, curve.best], np.float64).T,
        hovertemplate=f"{metric} at %{{x:.2f}} ms: mean %{{y:.1%}}<br>worst round "
        f"%{{customdata[0]:.1%}}, best %{{customdata[1]:.1%}}{extra}",
    )  # fmt: skip


def _thresholds(found: Tail, look: Look) -> list[Trace]:
    return [
        charts.scatter(
            x=[one.ms], y=[one.mean], mode="markers", legendgroup=look.name, showlegend=False,
            marker=look.marker | {"symbol": SYMBOLS.get(name, DEADLINE), "size": 11},
            hovertemplate=f"{f'p{name} of its latencies' if name in SYMBOLS else 'deadline'}: "
            f"%{{x:.2f}} ms, {share(one.late)} late<br>mean {share(one.mean)}, worst round "
            f"{share(one.worst)}, best {share(one.best)}<extra>{look.label}</extra>",
        )
        for name, one in found.thresholds.items()
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


def _frame(tail: Mapping[str, Tail]) -> tuple[float, float]:
    """The range of deadlines that is shown at first; the slowest few answers are outside."""
    ms = next(iter(tail.values())).curve.ms
    limits = [
        threshold.ms
        for found in tail.values()
        for threshold in found.thresholds.values()
        if threshold
    ]
    saturated = [_saturation(found.curve) for found in tail.values()]
    return min([ms[0], *limits]), max([*limits, *saturated])


def _saturation(curve: Curve) -> float:
    """The first deadline at which 97 % of the best quality is reached."""
    values = np.nan_to_num(np.array(curve.mean, np.float64))
    return curve.ms[int(np.argmax(values >= 0.97 * values.max()))]


def _strip(
    summary: TailSummary, known: Mapping[str, Look], frame: tuple[float, float], top: float
) -> list[dict[str, object]]:
    """Shapes: below the curves the ranges in which each stack is better, and the deadlines."""
    (low, high), shapes = frame, []
    for better in summary.better:
        look, end = known[better.stack], better.to_ms or 2 * high
        wide = min(high, end) - max(low, better.from_ms) > 0.3 * (high - low)
        shapes.append({
            "type": "rect", "x0": better.from_ms, "x1": end,
            "y0": -0.065 * top, "y1": -0.015 * top, "fillcolor": band(look.color),
            "line": {"color": look.color, "width": 1},
            "label": {"text": f"{text(better.stack, 20)} is better" if wide else "",
                      "font": {"size": 11}, "textposition": "middle left"},
        })  # fmt: skip
    return shapes + [upright(ms, name) for name, ms in deadlines(summary).items()]


@part(order=140)
@of_rounds
def rounds(run: TimedRun) -> Section:
    """Draw the median of every round."""
    traces, found, gaps = [], [], False
    for side, look in looks(run.summary.stacks).items():
        answered = [row[row != NEVER] for row in run.times[side].total]
        medians = {at: float(np.median(row)) / MS for at, row in enumerate(answered, 1) if row.size}
        gaps |= len(medians) < len(answered)
        traces.append(charts.scatter(
            x=list(medians), y=list(medians.values()), mode="lines+markers",
            line=look.line | {"width": 1.5},
            marker=look.marker | {"size": 7 if len(medians) <= 50 else 4}, name=look.label,
            hovertemplate=f"round %{{x}}: median %{{y:.3f}} ms<extra>{look.label}</extra>",
        ))  # fmt: skip
        wide = run.summary.spread[side].range
        if wide is not None:
            found.append(
                f"{look.name}: medians of {len(medians)} rounds differ by {wide:.1%} of their "
                "median."
            )
    most = max(len(trace["x"]) for trace in traces)
    drawn = figure(traces, 380, "round", "median, ms")
    drawn.update_yaxes(rangemode="tozero")
    drawn.update_xaxes(rangemode="tozero", **counting(most))
    return Section(
        "rounds",
        "Rounds: the median of all samples, ms, round by round",
        "Was the machine steady, or did it drift while the stacks were measured?",
        found,
        [Panel(drawn)] if most else [],
        ["Rounds in which no sample was answered have no point."] if gaps else [],
    )
