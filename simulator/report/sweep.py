"""The table of a sweep: one line a model, in text, Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from simulator.report import cells
from simulator.report.fitted import Fitted
from simulator.report.words import dropped, ends, moved, title, turned
from simulator.results.suites import SweepSummary
from simulator.tasks.task import TASKS

NOTHING = "-"


def render(summaries: Sequence[SweepSummary], form: str, console: Console) -> None:
    """Print the table.

    Args:
        summaries: one summary of ``simulate sweep`` per model, of the same suite.
        form: ``text``, ``markdown``, ``latex``, ``csv`` or ``options`` (a row per option).
        console: where text goes; the other forms are printed plainly.
    """
    if form == "csv":
        print(as_csv(summaries), end="")
    elif form == "markdown":
        print(markdown(summaries), end="")
    elif form == "options":
        print(options(summaries), end="")
    elif form == "latex":
        print(latex(summaries), end="")
    else:
        _text(summaries, console)


def header(summaries: Sequence[SweepSummary]) -> list[str]:
    """Return the columns: the model, its accuracy, then those of the suite."""
    titles = [
        f"{name} mean (worst)" if any(_many(s, name) for s in summaries) else name
        for name in _columns(summaries)
    ]
    return ["model", "trained", *titles]


def lines(summaries: Sequence[SweepSummary]) -> list[list[str]]:
    """Return the cells: the trained metric in %, then the change in points and the flips in %."""
    columns = _columns(summaries)
    return [
        [s.model, f"{s[s.metric] * 100:.2f}", *(_cell(s, name) for name in columns)]
        for s in summaries
    ]


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


def _text(summaries: Sequence[SweepSummary], console: Console) -> None:
    first = summaries[0]
    heading = (
        f"{first.suite}: change of {title(first.task, first.metric)}, points / {_answers(first)} "
        f"flipped, {first.samples:,} {first.sample_unit}s, trained on {first.train.profile}"
    )
    table = Fitted(*map(escape, header(summaries)), title=escape(heading), right=1)
    for line in lines(summaries):
        table.add_row(*(escape(cell).replace(" / ", "\n") for cell in line))
    console.print(table, highlight=False)
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


def markdown(summaries: Sequence[SweepSummary]) -> str:
    """Return a Markdown table."""
    titles = header(summaries)
    return _table([titles, ["---"] * len(titles), *lines(summaries)])


def _table(rows: Sequence[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(map(cells.markdown, row))} |\n" for row in rows)


def options(summaries: Sequence[SweepSummary]) -> str:
    """Return a Markdown table with a row per option: delta is option minus trained."""
    text = ""
    for summary in summaries:
        metric, view = summary.metric, TASKS[summary.task].view()
        kinds = {name: view.kind(name) for name in view.task.kinds}
        titles = [
            "",
            f"{title(summary.task, metric)} %",
            "delta",
            "95 % interval",
            "flips",
            *kinds.values(),
            "p",
            *(["n"] if summary.early else []),
            *(["fails on"] if any(one.count for one in summary.failed.values()) else []),
        ]
        trained = ["trained", f"{summary[metric] * 100:.2f}"]
        rows = [titles, ["---"] * len(titles), [*trained, *[""] * (len(titles) - 2)]]
        for name, column in summary.columns.items():
            for option, entry in column.options.items():
                rows.append(
                    [
                        f"{name}: {option}" if option != name else name,
                        f"{entry[metric] * 100:.2f}",
                        moved(entry.drop),
                        ends(turned(entry.drop_ci95)),
                        f"{entry.flips} ({entry.flip_rate * 100:.1f} %)",
                        *(str(entry[kind]) for kind in kinds),
                        f"{entry.p:.2g}",
                        *([str(entry.samples)] if summary.early else []),
                        *_failing(summary, f"{name}/{option}"),
                    ]
                )
        name = cells.markdown(summary.model)
        text += f"{name}, {summary.samples} {summary.sample_unit}s\n\n{_table(rows)}\n"
    return text


def _failing(summary: SweepSummary, option: str) -> list[str]:
    """The cell that says on how many samples an option fails; none where no stack does."""
    if not any(one.count for one in summary.failed.values()):
        return []
    return [f"{summary.failed[option].count:,}" if option in summary.failed else NOTHING]


def latex(summaries: Sequence[SweepSummary]) -> str:
    """Return a LaTeX tabular."""
    titles = header(summaries)
    rows = [" & ".join(map(cells.latex, row)) + r" \\" for row in [titles, *lines(summaries)]]
    body = "\n".join([rows[0], r"\hline", *rows[1:]])
    return f"\\begin{{tabular}}{{l{'r' * (len(titles) - 1)}}}\n{body}\n\\end{{tabular}}\n"


def as_csv(summaries: Sequence[SweepSummary]) -> str:
    """Return one row per model and option."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    metric = summaries[0].metric
    figures = [metric, "drop", "drop_ci95_low", "drop_ci95_high", "flips", "flip_rate"]
    counted = ["samples"] if any(summary.early for summary in summaries) else []
    writer.writerow(["model", "column", "option", *figures, *counted])
    for summary in summaries:
        model = cells.spreadsheet(summary.model)
        whole = [summary.samples] if counted else []
        writer.writerow([model, "train", "train", summary[metric], 0, 0, 0, 0, 0, *whole])
        for name, column in summary.columns.items():
            for option, entry in column.options.items():
                names = [model, cells.spreadsheet(name), cells.spreadsheet(option)]
                values = [entry[metric], entry.drop, *entry.drop_ci95]
                own = [entry.samples or summary.samples] if counted else []
                writer.writerow([*names, *values, entry.flips, entry.flip_rate, *own])
    return out.getvalue()
