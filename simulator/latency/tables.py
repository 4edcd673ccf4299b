"""Tables and words of timed runs, for the screen and the page."""

from __future__ import annotations

from collections.abc import Mapping

from simulator.latency.times import TOTAL
from simulator.report.table import NOTHING, Column, Table
from simulator.report.words import given_deadlines, share
from simulator.results.shared import Latency
from simulator.results.tail import Forecast, TailSummary
from simulator.results.timed import (
    LatencySummary,
    LengthEffect,
    LoadSummary,
    Percentile,
    SizeEffect,
    TallEffect,
    Tokens,
)
from simulator.typed import Unit

VALID, INVALID = "VALID", "INVALID"
"""LoadGen's verdicts."""


def milliseconds(value: float | None) -> str:
    """Return a time as tables show it; a dash where it is not known."""
    if value is None:
        return NOTHING
    return f"{value:.2f}" if value >= 1 else f"{value:.3g}"


def percentiles(summary: LatencySummary, names: Mapping[str, str]) -> Table:
    """Return the percentiles; where samples are too few, how many more are needed.

    Args:
        summary: of rounds.
        names: of the stacks that are shown, as they are called.
    """
    found = summary.percentiles
    return Table(
        [Column("percentile"), *(Column(name, Unit.MS) for name in names.values())],
        [[p, *(_bounded(found[side][p]) for side in names)] for p in next(iter(found.values()))],
        "Latency, ms (95 % interval) ≤ LoadGen's early-stopping estimate",
    )


def _bounded(one: Percentile) -> str:
    if one.ms is None:
        return f"needs {one.needs:,} more" if one.needs else NOTHING
    ends = f" ({' to '.join(map(milliseconds, one.ci95))})" if one.ci95 else ""
    bound = one.early_stopping_ms
    return f"{milliseconds(one.ms)}{ends}{'' if bound is None else f' ≤{milliseconds(bound)}'}"


def stages(summary: LatencySummary) -> Table | None:
    """Return the latencies of the stages, the total last; None where there is only a total."""
    found = summary.latency_ms
    known = list(dict.fromkeys(stage for of in found.values() for stage in of))
    if len(known) < 2:
        return None
    return Table(
        [Column(""), *(Column(side, Unit.MS) for side in found)],
        [
            [stage, *(_pair(of.get(stage)) for of in found.values())]
            for stage in [*known[1:], known[0]]
        ],
        "Stages, ms p50 / p90",
    )


def tokens(found: Tokens) -> str:
    """Return when the tokens of texts were there."""
    first, each = (
        f"{milliseconds(one.p50)} ms (p90 {milliseconds(one.p90)})"
        for one in (found.first, found.each)
    )
    rate = f"{found.per_second:,.1f} a second"
    return f"the first after {first}, each other after {each} more; {rate}"


def _pair(row: Latency | None) -> str:
    if row is None or row.p50 is None:
        return NOTHING
    return f"{milliseconds(row.p50)} / {milliseconds(row.p90)}"


def served(summary: LoadSummary) -> Table:
    """Return what each stack has served; Offline has a rate, but no latencies."""
    keys = ("p50", "p90", "p99", "max") if summary.load.deadline_ns else ()
    numbers = ("batch", "answers a second", "answered", "failed", *(f"{key} ms" for key in keys))
    return Table(
        [Column(""), *(Column(one, Unit.NUMBER) for one in numbers), Column("LoadGen's verdict")],
        [
            [
                side, f"{one.batch}", f"{one.qps:.1f}", f"{one.queries:,}", f"{one.failed:,}",
                *(milliseconds(summary.latency_ms[side][TOTAL][key]) for key in keys),
                VALID if one.valid else INVALID,
            ]
            for side, one in summary.served.items()
        ],
        "Under LoadGen's load",
    )  # fmt: skip


def load(summary: LoadSummary) -> str:
    """Return what was asked of LoadGen in Server; empty in Offline."""
    asked = summary.load
    if not asked.deadline_ns:
        return ""
    return f"{asked.qps:g} arrivals a second; p99 within {asked.deadline_ns / 1e6:g} ms"


def deadlines(summary: LatencySummary) -> dict[str, float]:
    """Return the user's deadlines by name, ms."""
    under = next(iter(summary.tail.values())).thresholds if isinstance(summary, TailSummary) else {}
    return {name: one.ms for name, one in under.items() if one and name.endswith("ms")}


def thresholds(summary: TailSummary, side: str) -> Table:
    """Return the quality of a stack under every deadline."""
    rows = []
    for name in _deadlines(summary, side):
        one = summary.tail[side].thresholds[name]
        if one is None:
            rows.append(_not_carried(summary, side, name, f"tail_quality@{name}", 7))
            continue
        rows.append([
            _deadline(name), milliseconds(one.ms), share(one.late), share(one.mean, 2),
            share(one.worst, 2), share(one.best, 2), _interval(one.forecast),
        ])  # fmt: skip
    heads = ("ms", "late", "mean", "worst round", "best", "worst, by chance")
    return Table([Column("deadline"), *(Column(head, Unit.SHARE) for head in heads)], rows)


def prediction(summary: TailSummary, side: str) -> Table | None:
    """Return the later half of a stack's rounds, predicted from the earlier half."""
    split = summary.tail[side].split
    if not split or not split.thresholds:
        return None
    rows = []
    for name in _deadlines(summary, side):
        one = split.thresholds.get(name)
        if one is None:
            rows.append(_not_carried(summary, side, name, f"split.thresholds.{name}", 5))
            continue
        change = NOTHING if one.delta.worst is None else f"{100 * one.delta.worst:+.2f}"
        rows.append([
            _deadline(name), share(one.train.worst, 2), share(one.test.worst, 2), change,
            _interval(one.forecast),
        ])  # fmt: skip
    heads = ("worst, earlier", "worst, later", "Δ points", "predicted (95 %)")
    title = f"The later half of {side}'s rounds, predicted from the earlier half"
    return Table([Column("deadline"), *(Column(head, Unit.SHARE) for head in heads)], rows, title)


def _deadlines(summary: TailSummary, side: str) -> list[str]:
    """Names of thresholds, the user's deadlines first."""
    return list(dict.fromkeys([*given_deadlines(summary), *summary.tail[side].thresholds]))


def _not_carried(summary: TailSummary, side: str, name: str, path: str, columns: int) -> list[str]:
    why = summary.missing[f"tail.{side}.{path}"]
    return [_deadline(name), why.rpartition("; it ")[2], *[""] * (columns - 2)]


def _deadline(name: str) -> str:
    return name if name.endswith("ms") else f"p{name}"


def _interval(forecast: Forecast) -> str:
    return " to ".join(share(end, 2) for end in forecast.ci95)


def tall(effect: TallEffect) -> str:
    """Return how much longer tall images take."""
    low, high = effect.ci95
    return (
        f"images taller than wide take {effect.ms:+.2f} ms at equal pixels (95 % interval "
        f"{low:+.2f} to {high:+.2f}, p {effect.p:.2g}; {effect.tall} of "
        f"{effect.tall + effect.others} images)"
    )


def slope(effect: SizeEffect | LengthEffect) -> str:
    """Return how the latency grows with the input."""
    if isinstance(effect, SizeEffect):
        value, per = effect.ms_per_megapixel, "megapixel"
    else:
        value, per = effect.ms_per_thousand, f"1,000 {effect.unit}"
    low, high = effect.ci95
    return (
        f"{value:+.2f} ms per {per} (95 % interval {low:+.2f} to {high:+.2f}), which explains "
        f"{share(effect.r2, 0)} of the variance"
    )
