"""The table of a sweep: one line a model, in text, Markdown, LaTeX and CSV."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from simulator.report import cells
from simulator.report.table import FORMS, NOTHING, Cell, Column, Table, markdown, screen
from simulator.report.words import dropped, moved, title, turned
from simulator.results.suites import SweepSummary
from simulator.tasks.task import TASKS
from simulator.typed import Unit


def printed(summaries: Sequence[SweepSummary], form: str, table: str | None = None) -> str:
    """Return the table for a document.

    Args:
        summaries: one for each model, of the same suite.
        form: ``markdown``, ``latex``, ``csv`` or ``options`` (in Markdown, a row per option).
        table: there is one.
    """
    if form == "options":
        return "".join(map(_options, summaries))
    return FORMS[form](_every(summaries) if form == "csv" else _columns_of(summaries))


def _columns_of(summaries: Sequence[SweepSummary]) -> Table:
    """A line a model: the trained metric in %, then each column's change and flips."""
    first, columns = summaries[0], _columns(summaries)
    many = {name for name in columns if any(_many(one, name) for one in summaries)}
    titles = [f"{name} mean (worst)" if name in many else name for name in columns]
    return Table(
        [Column("model"), Column("trained", Unit.SHARE),
         *(Column(name, Unit.POINTS) for name in titles)],
        [[one.model, one.trained, *(_cell(one, name) for name in columns)] for one in summaries],
        f"{first.suite}: change of {title(first.task, first.metric)}, points / {_answers(first)} "
        f"flipped, {first.samples:,} {first.sample_unit}s, trained on {first.train.profile}",
    )  # fmt: skip


def _answers(summary: SweepSummary) -> str:
    return "answers" if summary.unit == "image" else f"{summary.unit}s"


def _columns(summaries: Sequence[SweepSummary]) -> list[str]:
    """All columns that any model has, in the suite's order."""
    return [name for name in summaries[0].order if any(name in s.columns for s in summaries)]


def _many(summary: SweepSummary, name: str) -> bool:
    return name in summary.columns and len(summary.columns[name].options) > 1


def _cell(summary: SweepSummary, name: str) -> str:
    column = summary.columns.get(name)
    if column is None:
        return NOTHING
    change, flips = moved(column.mean_drop), f"{column.mean_flip_rate * 100:.1f}"
    if len(column.options) > 1:
        change += f" ({moved(column.max_drop)})"
        flips += f" ({column.max_flip_rate * 100:.1f})"
    return f"{change} / {flips} %"


def render(summaries: Sequence[SweepSummary], console: Console) -> None:
    """Print the table.

    Args:
        summaries: one summary of ``simulate sweep`` per model, of the same suite.
        console: where it goes.
    """
    console.print(screen(_columns_of(summaries), " / "), highlight=False)
    for summary in summaries:
        systematic, name = summary.systematic, escape(summary.model)
        sni = NOTHING if systematic.sni is None else f"{systematic.sni:.4f}"
        mean = NOTHING if systematic.mean_sr is None else f"{systematic.mean_sr:.2%}"
        spread = "" if systematic.std is None else f", std {systematic.std * 100:.2f} points"
        console.print(
            f"{name}: mean SR {mean}, SNI {sni}{spread} (ACC is the {systematic.acc_of} stack's)",
            highlight=False,
        )
        if summary.skipped:
            console.print(
                f"[yellow]note[/] {name}: {summary.skipped} {summary.sample_unit}s skipped: "
                "see skipped in records.parquet",
                highlight=False,
            )
        for option, why in summary.left_out.items():
            console.print(f"[yellow]note[/] {name}: {escape(f'{option}: {why}')}", highlight=False)
        for told in dropped(summary.early, summary.sample_unit):
            console.print(f"{name}: {escape(told)}", highlight=False)
        for warning in summary.warnings:
            console.print(f"[yellow]note[/] {name}: {escape(str(warning))}", highlight=False)


def _options(summary: SweepSummary) -> str:
    """A row per option: delta is option minus trained."""
    metric, view = summary.metric, TASKS[summary.task].view()
    kinds = {name: view.kind(name) for name in view.task.kinds}
    fails = any(one.count for one in summary.failed.values())
    columns = [
        Column(""), Column(f"{title(summary.task, metric)} %", Unit.SHARE),
        Column("delta", Unit.POINTS), Column("95 % interval", Unit.POINTS), Column("flips"),
        *(Column(words, Unit.COUNT) for words in kinds.values()), Column("p", Unit.PROBABILITY),
        *([Column("n", Unit.COUNT)] if summary.early else []),
        *([Column("fails on", Unit.COUNT)] if fails else []),
    ]  # fmt: skip
    rows: list[Sequence[Cell]] = [["trained", summary.trained, *[""] * (len(columns) - 2)]]
    for name, column in summary.columns.items():
        for option, one in column.options.items():
            failed = summary.failed.get(f"{name}/{option}")
            rows.append(
                [
                    f"{name}: {option}" if option != name else name,
                    one[metric], 0 - one.drop, turned(one.drop_ci95),
                    f"{one.flips} ({one.flip_rate * 100:.1f} %)",
                    *(one[kind] for kind in kinds), one.p,
                    *([one.samples] if summary.early else []),
                    *([failed.count if failed else None] if fails else []),
                ]
            )  # fmt: skip
    head = f"{cells.markdown(summary.model)}, {summary.samples} {summary.sample_unit}s"
    return f"{head}\n\n{markdown(Table(columns, rows))}\n"


def _every(summaries: Sequence[SweepSummary]) -> Table:
    """A row per model and option, for other programs."""
    early = any(summary.early for summary in summaries)
    names = ["drop", "drop_ci95_low", "drop_ci95_high", "flips", "flip_rate"]
    titles = ["model", "column", "option", summaries[0].metric, *names, *(["samples"] * early)]
    rows: list[Sequence[Cell]] = []
    for summary in summaries:
        whole = [summary.samples] * early
        rows.append([summary.model, "train", "train", summary.trained, 0, 0, 0, 0, 0, *whole])
        for name, column in summary.columns.items():
            for option, one in column.options.items():
                rows.append([summary.model, name, option, one[summary.metric], one.drop,
                             *one.drop_ci95, one.flips, one.flip_rate,
                             *([one.samples or summary.samples] * early)])  # fmt: skip
    return Table([Column(name) for name in titles], rows)
