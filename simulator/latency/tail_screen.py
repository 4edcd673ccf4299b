"""Quality with a deadline on a terminal: one block for each stack, the best one first."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

from simulator.report.fitted import Fitted
from simulator.report.terminal import NOTHING, heading
from simulator.report.words import given_deadlines, leads, ranked, share, title
from simulator.results.timed import Forecast, Tail, TailSummary


def blocks(summary: TailSummary, console: Console) -> None:
    """Print the quality of each stack when late answers are wrong.

    Args:
        summary: the content of ``summary.json``; the stacks are in the order of their worst
            rounds at the first deadline that the user gave.
        console: a terminal, or a file that gets plain text.
    """
    metric = title(summary.task, summary.metric)
    first = given_deadlines(summary)[:1]
    order = f"; the best at {first[0]} comes first" if first and len(summary.tail) > 1 else ""
    heading(f"{metric} when late answers are wrong{order}", console)
    console.print(
        "by chance: the worst of as many rounds (95 %) if answers were late independently",
        highlight=False,
    )
    for side in ranked(summary, *first):
        found = summary.tail[side]
        whole = f"{metric} {share(found.quality, 2)} without a deadline"
        console.print(f"\n[bold]{escape(side)}[/]   {whole}", highlight=False)
        _quality(summary, side, found, console)
        _prediction(summary, side, found, console)
    for sentence in leads(summary.better):
        console.print(escape(sentence), highlight=False)


def milliseconds(value: float | None) -> str:
    """Return a time as screens show it; a dash where it is not known."""
    if value is None:
        return NOTHING
    return f"{value:.2f}" if value >= 1 else f"{value:.3g}"


def _names(summary: TailSummary, found: Tail) -> list[str]:
    """The deadlines, those that the user gave first."""
    given = given_deadlines(summary)
    return [*given, *(name for name in found.thresholds if name not in given)]


def _quality(summary: TailSummary, side: str, found: Tail, console: Console) -> None:
    shown = Fitted(
        "deadline", "ms", "late", "mean", "worst round", "best", "worst, by chance", right=1
    )
    for name in _names(summary, found):
        one = found.thresholds[name]
        if one is None:
            why = summary.missing[f"tail.{side}.tail_quality@{name}"]
            shown.add_row(_deadline(name), f"[dim]{why.rpartition('; it ')[2]}[/]")
            continue
        shown.add_row(
            _deadline(name), milliseconds(one.ms), share(one.late), share(one.mean, 2),
            f"[bold]{share(one.worst, 2)}[/]", share(one.best, 2), _interval(one.forecast),
        )  # fmt: skip
    console.print(shown)


def _prediction(summary: TailSummary, side: str, found: Tail, console: Console) -> None:
    if not found.split or not found.split.thresholds:
        return
    console.print(f"The later half of {escape(side)}'s rounds, predicted from the earlier half")
    shown = Fitted(
        "deadline", "worst, earlier", "worst, later", "Δ points", "predicted (95 %)", right=1
    )
    for name in _names(summary, found):
        one = found.split.thresholds.get(name)
        if one is None:
            why = summary.missing[f"tail.{side}.split.thresholds.{name}"]
            shown.add_row(_deadline(name), f"[dim]{why.rpartition('; it ')[2]}[/]")
            continue
        shown.add_row(
            _deadline(name), share(one.train.worst, 2), share(one.test.worst, 2),
            _points(one.delta.worst), _interval(one.forecast),
        )  # fmt: skip
    console.print(shown)


def _deadline(name: str) -> str:
    return name if name.endswith("ms") else f"p{name}"


def _interval(forecast: Forecast) -> str:
    return " to ".join(share(end, 2) for end in forecast.ci95)


def _points(value: float | None) -> str:
    return NOTHING if value is None else f"{100 * value:+.2f}"
