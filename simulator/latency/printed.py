"""Tables of ``simulate tail``, some in the forms of Yang et al., arXiv 2212.13925."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import wraps

from simulator.report.table import Cell, Column, Table
from simulator.report.words import given_deadlines
from simulator.results.tail import SplitThreshold, TailSummary
from simulator.typed import Unit

PERCENTILES = ("99", "95", "90")
Row = list[Cell]


Rows = Callable[[TailSummary], Iterator[tuple[str, Row]]]
Made = Callable[[Sequence[TailSummary]], tuple[list[Column], Rows]]


def _of_stacks(make: Made) -> Callable[[Sequence[TailSummary], bool], Table]:
    """Turn columns, and the rows of the stacks of one model, into a table of several models."""

    @wraps(make)
    def table(summaries: Sequence[TailSummary], wide: bool) -> Table:
        columns, rows = make(summaries)
        found = [[one.model, side, *row] for one in summaries for side, row in rows(one)]
        return Table([Column("model"), Column("stack"), *columns], found)

    return table


@_of_stacks
def deadlines(summaries: Sequence[TailSummary]) -> tuple[list[Column], Rows]:
    """Quality over rounds under each deadline, and what chance predicts for the worst."""
    heads = ("late", "mean", "worst round", "best", "worst, by chance from", "to")
    columns = [Column("deadline"), Column("ms", Unit.NUMBER)]

    def rows(summary: TailSummary) -> Iterator[tuple[str, Row]]:
        for side, found in summary.tail.items():
            yield side, ["none", None, 0.0, *[found.quality] * 3, None, None]
            for name, one in found.thresholds.items():
                if one is not None:
                    over = [one.late, one.mean, one.worst, one.best, *one.forecast.ci95]
                    yield side, [_named(name), one.ms, *over]

    return [*columns, *(Column(head, Unit.SHARE) for head in heads)], rows


@_of_stacks
def validation(summaries: Sequence[TailSummary]) -> tuple[list[Column], Rows]:
    """The paper's Table 2: rJSD of the fits, mean over samples.

    Further columns: odd against even rounds, which is what halves of this length give by chance;
    that of the median sample; and that of all latencies together.
    """
    keys = ("train", "test", "alternating", "median", "pooled")
    titles = ("train", "test", "odd, even rounds", "median sample", "all latencies")

    def rows(summary: TailSummary) -> Iterator[tuple[str, Row]]:
        for side, found in summary.tail.items():
            split = found.split
            figures = [split.rjsd[key] if split else None for key in keys]
            rounds = split.rounds if split else 0
            together = summary.stacks[side].together
            yield side, [together, rounds, *map(_digits, figures)]

    counts = [Column(head, Unit.COUNT) for head in ("batch", "rounds, train and test")]
    return [*counts, *(Column(title) for title in titles)], rows


@_of_stacks
def worst_cases(summaries: Sequence[TailSummary]) -> tuple[list[Column], Rows]:
    """The paper's Table 3: the worst round under each threshold, in %; Δ is train less test."""
    given = dict.fromkeys(name for one in summaries for name in given_deadlines(one))
    names = [*PERCENTILES, *given]
    parts = (("train", Unit.SHARE), ("test", Unit.SHARE), ("Δ", Unit.POINTS))

    def rows(summary: TailSummary) -> Iterator[tuple[str, Row]]:
        for side, found in summary.tail.items():
            under = found.split.thresholds if found.split else {}
            cells = [cell for name in names for cell in _worst(under.get(name))]
            yield side, [*cells, found.quality]

    columns = [Column(f"{_named(name)} {part}", unit) for name in names for part, unit in parts]
    return [*columns, Column("origin", Unit.SHARE)], rows


def _worst(one: SplitThreshold | None) -> Row:
    train, test = (one.train.worst, one.test.worst) if one else (None, None)
    return [train, test, None if train is None or test is None else train - test]


@_of_stacks
def inference_count(summaries: Sequence[TailSummary]) -> tuple[list[Column], Rows]:
    """The paper's Table 4: inferences that Algorithm 1 needs, those of MLPerf for a p99, the share.

    Where not all instances have settled, the inferences are those that were made.
    """

    def rows(summary: TailSummary) -> Iterator[tuple[str, Row]]:
        for side, one in summary.convergence.items():
            rounds = one.done_after or one.rounds
            needed = rounds * one.instances
            after = f"{rounds} rounds" if one.done_after else f"not in {rounds} rounds"
            together = summary.stacks[side].together
            share = needed / one.mlperf
            yield side, [together, one.instances, after, needed, one.mlperf, share]

    columns = [
        Column("batch", Unit.COUNT), Column("instances", Unit.COUNT), Column("settled"),
        Column("inferences", Unit.COUNT), Column("MLPerf, p99", Unit.COUNT),
        Column("share", Unit.SHARE),
    ]  # fmt: skip
    return columns, rows


@_of_stacks
def input(summaries: Sequence[TailSummary]) -> tuple[list[Column], Rows]:
    """The lines of the paper's Figure 2: time over size, and tall images against wide ones."""

    def rows(summary: TailSummary) -> Iterator[tuple[str, Row]]:
        for side, found in summary.inputs.items():
            if line := found.size:
                yield side, [
                    "all, per megapixel", _digits(line.ms_per_megapixel), *map(_digits, line.ci95),
                    line.r2, line.p,
                ]  # fmt: skip
            for what, length in (("all", found.length), ("network", found.network)):
                if length:
                    yield side, [
                        f"{what}, per 1,000 {length.unit}", _digits(length.ms_per_thousand),
                        *map(_digits, length.ci95), length.r2, length.p,
                    ]  # fmt: skip
            if tall := found.tall:
                ends = map(_digits, tall.ci95)
                yield side, ["tall less wide", _digits(tall.ms), *ends, None, tall.p]

    titles = ("time", "ms", "95 % from", "to")
    figures = [Column("R²", Unit.SHARE), Column("p", Unit.PROBABILITY)]
    return [*map(Column, titles), *figures], rows


def _named(threshold: str) -> str:
    return threshold if threshold.endswith("ms") else f"p{threshold}"


def _digits(value: float | None) -> str | None:
    return None if value is None else f"{value:.3f}"
