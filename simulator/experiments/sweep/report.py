"""What is said of a sweep: its verdict, its table in each form, and its section of the page."""

from __future__ import annotations

import statistics as st
from collections.abc import Callable, Iterator, Mapping, Sequence

from rich.console import Console
from rich.markup import escape

from simulator.experiments.common import TRAIN
from simulator.report import terminal
from simulator.report.colors import EVEN, STACKS
from simulator.report.command import INPUTS
from simulator.report.reading import Run
from simulator.report.sections.section import Panel, Section, part
from simulator.report.sections.style import dots, figure
from simulator.report.table import NOTHING, Bar, Cell, Column, Table, screen
from simulator.report.verdicts.told import Told
from simulator.report.words import chance, dropped, early, moved, named, share, title, turned
from simulator.results.suites import OptionFigures, SweepSummary
from simulator.tasks.task import TASKS
from simulator.typed import About, Unit


def options_of(summary: SweepSummary) -> Iterator[tuple[str, str, OptionFigures]]:
    """Yield every option: its column, its name, its figures."""
    for column, found in summary.columns.items():
        for name, figures in found.options.items():
            yield column, name, figures


def verdict(summary: SweepSummary) -> Told:
    """Return which option loses most."""
    name = title(summary.task, summary.metric)
    trained = f"{name} on {named(summary.train)}: {share(summary.trained, 2)}."
    if summary.early is not None:
        return Told([*early(summary.early, summary.sample_unit), trained])
    options = list(options_of(summary))
    if not options:
        return Told([trained])
    column, option, worst = max(options, key=lambda one: one[2].drop)
    lost = f"The worst is {column}/{option}: {moved(worst.drop)} points of {name}"
    return Told(
        [f"{lost}{chance(turned(worst.drop_ci95), worst.p, len(options))}.", trained],
        next=lambda asked: asked.line("worst", ("suite", "train", *INPUTS)),
    )


def models(summaries: Sequence[SweepSummary], wide: bool = False) -> Table:
    """Return a line a model: the trained metric in %, then each column's change and flips."""
    if wide:
        return _every(summaries)
    first = summaries[0]
    names = [name for name in first.order if any(name in summary.columns for summary in summaries)]
    many = {
        name for one in summaries for name, column in one.columns.items() if len(column.options) > 1
    }
    titles = [f"{name} mean (worst)" if name in many else name for name in names]
    answers = "answers" if first.unit == "image" else f"{first.unit}s"
    told = f"change of {title(first.task, first.metric)}, points / {answers} flipped"
    if apart := list(_distances(first).values())[:2]:
        told = " / ".join(apart)
    return Table(
        [Column("model"), Column("trained", Unit.SHARE),
         *(Column(name, Unit.POINTS) for name in titles)],
        [[one.model, one.trained, *(_cell(one, name) for name in names)] for one in summaries],
        f"{first.suite}: {told}, {first.samples:,} {first.sample_unit}s, trained on "
        f"{first.train.profile}",
    )  # fmt: skip


def _distances(summary: SweepSummary) -> Mapping[str, str]:
    """The figures that say how far answers are apart, with their titles; most tasks have none."""
    return TASKS[summary.task].view().distances


def _cell(summary: SweepSummary, name: str) -> str:
    column = summary.columns.get(name)
    if column is None:
        return NOTHING
    if apart := list(_distances(summary))[:2]:
        known = TASKS[summary.task].Flips.model_fields
        return " / ".join(
            _apart([one[each] for one in column.options.values()], known[each].metadata)
            for each in apart
        )
    change, flips = moved(column.mean_drop), f"{column.mean_flip_rate * 100:.1f}"
    if len(column.options) > 1:
        change += f" ({moved(column.max_drop)})"
        flips += f" ({column.max_flip_rate * 100:.1f})"
    return f"{change} / {flips} %"


def _apart(values: Sequence[float | None], said: Sequence[object]) -> str:
    """The mean of a figure, and the worst one where there are several."""
    known = [value for value in values if value is not None]
    if not known:
        return NOTHING
    most = any(isinstance(about, About) and about.better > 0 for about in said)
    worst = f" ({(min if most else max)(known):.2g})" if len(values) > 1 else ""
    return f"{st.fmean(known):.2g}{worst}"


def show(summaries: Sequence[SweepSummary], console: Console) -> None:
    """Print the table.

    Args:
        summaries: one for each model, of the same suite.
        console: where it goes.
    """
    console.print(screen(models(summaries), " / "), highlight=False)
    for summary in summaries:
        systematic, name = summary.systematic, escape(summary.model)
        sni = NOTHING if systematic.sni is None else f"{systematic.sni:.4f}"
        spread = "" if systematic.std is None else f", std {systematic.std * 100:.2f} points"
        console.print(
            f"{name}: mean SR {share(systematic.mean_sr, 2)}, SNI {sni}{spread} "
            f"(ACC is the {systematic.acc_of} stack's)",
            highlight=False,
        )
        skipped = (
            f"{summary.skipped} {summary.sample_unit}s skipped: see skipped in records.parquet"
        )
        left_out = [f"{option}: {why}" for option, why in summary.left_out.items()]
        for note in [*[skipped] * bool(summary.skipped), *left_out, *summary.warnings]:
            terminal.note(f"{summary.model}: {note}", console)
        for told in dropped(summary.early, summary.sample_unit):
            console.print(f"{name}: {escape(told)}", highlight=False)


def options(summaries: Sequence[SweepSummary], wide: bool) -> Table:
    """Return a row for each model and option, with its interval, flips and number of samples."""
    if wide:
        return _every(summaries)
    first = summaries[0]
    kinds, apart, metric = TASKS[first.task].kinds, _distances(first), first.metric
    several = len(summaries) > 1
    fails = any(failed.count for one in summaries for failed in one.failed.values())
    priced = any(one.costs for one in summaries)
    columns = [
        *([Column("model")] * several), Column("option"), *(_COSTS if priced else []),
        Column(f"{title(first.task, metric)}, %", Unit.SHARE),
        Column("change, points", Unit.POINTS), Column("95 % interval", Unit.POINTS),
        Column("flips", Unit.COUNT),
        *(Column(kind.replace("_", " "), Unit.COUNT) for kind in kinds),
        *(Column(name, Unit.NUMBER) for name in apart.values()),
        Column("p", Unit.PROBABILITY), Column("n", Unit.COUNT),
        *([Column("fails on", Unit.COUNT)] if fails else []),
    ]  # fmt: skip
    rows: list[Sequence[Cell]] = []
    for summary in summaries:
        model: list[Cell] = [summary.model] * several
        blank = [""] * (len(columns) - 3 - several - fails - len(_COSTS) * priced)
        price = _price(summary, TRAIN) if priced else []
        rows.append(
            [*model, "trained", *price, summary.trained, *blank, summary.samples, *[""] * fails]
        )
        for column, name, one in options_of(summary):
            failed = summary.failed.get(f"{column}/{name}")
            rows.append(
                [
                    *model, f"{column}: {name}" if name != column else column,
                    *(_price(summary, f"{column}/{name}") if priced else []),
                    one[metric], 0 - one.drop, turned(one.drop_ci95),
                    f"{one.flips} ({one.flip_rate * 100:.1f} %)",
                    *(one[name] for name in kinds), *(_short(one[name]) for name in apart), one.p,
                    one.samples or summary.samples,
                    *([failed.count if failed else None] if fails else []),
                ]
            )  # fmt: skip
    return Table(columns, rows)


_COSTS = [
    Column("MiB", Unit.NUMBER, -1), Column("bits per weight", Unit.NUMBER, -1),
    Column("ms", Unit.NUMBER, -1), Column("tokens/s", Unit.NUMBER, 1),
]  # fmt: skip


def _price(summary: SweepSummary, name: str) -> list[Cell]:
    """The cells of :data:`_COSTS`."""
    one = summary.costs.get(name)
    return [None] * len(_COSTS) if one is None else [
        one.mib, one.bits, one.ms, one.tokens_per_second
    ]  # fmt: skip


def _short(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.4g}"


@part(order=21)
def pareto(run: Run[SweepSummary]) -> Section | None:
    """Show what options lose against the size of their files, where that was asked for."""
    summary = run.summary
    apart = next(iter(_distances(summary).items()), ("flip_rate", "answers changed"))
    points = {
        name: (summary.costs[name].mib, float(one[apart[0]] or 0))
        for column, option, one in options_of(summary)
        if (name := f"{column}/{option}") in summary.costs
    }
    if not points:
        return None
    front = sorted(
        (name for name, own in points.items() if not any(map(_beats(own), points.values()))),
        key=lambda name: points[name],
    )
    hover = "%{x:.1f} MiB, %{y:.3g}"
    beaten = {name: own for name, own in points.items() if name not in front}
    best = {name: points[name] for name in front}
    drawn = figure(
        [
            dots("beaten", beaten, EVEN, "circle-open", hover, "markers+text"),
            dots("Pareto's front", best, STACKS[0][0], "circle", hover, "lines+markers+text"),
        ],
        460, "MiB of the model file", apart[1],
    )  # fmt: skip
    drawn.update_yaxes(rangemode="tozero")
    rows = [
        [name, *_price(summary, name), _short(points[name][1] if name in points else None)]
        for name in (TRAIN, *points)
    ]
    columns = [Column("stack"), *_COSTS, Column(apart[1], Unit.NUMBER, -1)]
    return Section(
        "pareto",
        f"Costs: {apart[1]} against size",
        "What does each option cost, and what does it lose?",
        panels=[Panel(drawn)],
        notes=["ms: the median time of a sample's inference, on the machine of this run."],
        tables=[Table(columns, rows, "What each stack costs")],
    )


def _beats(own: tuple[float, float]) -> Callable[[tuple[float, float]], bool]:
    """Whether a point is better than one of two figures, and not worse in either."""
    return lambda other: other != own and other[0] <= own[0] and other[1] <= own[1]


def _every(summaries: Sequence[SweepSummary]) -> Table:
    """A row per model and option, for other programs."""
    early = any(summary.early for summary in summaries)
    names = ["drop", "drop_ci95_low", "drop_ci95_high", "flips", "flip_rate"]
    titles = ["model", "column", "option", summaries[0].metric, *names, *(["samples"] * early)]
    rows: list[Sequence[Cell]] = []
    for summary in summaries:
        whole = [summary.samples] * early
        rows.append([summary.model, "train", "train", summary.trained, 0, 0, 0, 0, 0, *whole])
        for column, name, figures in options_of(summary):
            rows.append([summary.model, column, name, figures[summary.metric], figures.drop,
                         *figures.drop_ci95, figures.flips, figures.flip_rate,
                         *([figures.samples or summary.samples] * early)])  # fmt: skip
    return Table([Column(name) for name in titles], rows)


@part(order=20)
def sections(run: Run[SweepSummary]) -> Section:
    """Show every option of a sweep."""
    summary = run.summary
    metric, order = title(summary.task, summary.metric), summary.order.index
    rows: list[Sequence[Cell]] = []
    counted = any(figures.samples is not None for *_, figures in options_of(summary))
    for column, name, one in sorted(options_of(summary), key=lambda one: order(one[0])):
        ends = turned(one.drop_ci95)
        clear = None not in ends and not (ends[0] or 0) <= 0 <= (ends[1] or 0)
        rows.append(
            [
                f"{column}/{name}", one[summary.metric], Bar(0 - one.drop, ends, clear=clear), ends,
                f"{one.flips:,} of {one.units:,}", one.flip_rate, *([one.samples] * counted),
            ]
        )  # fmt: skip
    columns = [
        Column("option"), Column(f"{metric}, %", Unit.SHARE),
        Column("change, points", Unit.POINTS, 1), Column("95 % interval", Unit.POINTS),
        Column("flips", Unit.COUNT), Column("flip rate, %", Unit.SHARE, -1, heat=True),
        *([Column("n", Unit.COUNT)] * counted),
    ]  # fmt: skip
    return Section(
        "options",
        f"Options: change of {metric}, points",
        "What does each option cost by itself?",
        notes=[
            "Lines: 95 % intervals; filled: chance does not explain it, the interval leaves out 0.",
            *(f"{name}: {why}" for name, why in summary.left_out.items()),
            *dropped(summary.early, summary.sample_unit),
        ],
        tables=[Table(columns, rows, "Every option, against the training stack")] if rows else [],
    )
