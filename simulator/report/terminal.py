"""One screen: what differs, what it costs, whether that is more than chance."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from simulator.report import rules
from simulator.report.axis_words import folded, said
from simulator.report.evidence import known
from simulator.report.fitted import Fitted
from simulator.report.words import at_any_time, differences, ends, named, no_effect, points, run_on
from simulator.results.pair import Alone, AxisEffect, AxisSide, PairSummary
from simulator.results.shared import ModelSummary, Summary
from simulator.tasks.task import TASKS
from simulator.typed import plain

if TYPE_CHECKING:
    from simulator.results.checkpoints import Checkpoints
    from simulator.results.timed import LatencySummary, LoadSummary

NOTHING = "-"


def render(summary: PairSummary, folder: str, console: Console) -> None:
    """Print a summary.

    Args:
        summary: the content of ``summary.json``.
        folder: where the run is.
        console: a terminal, or a file that gets plain text.
    """
    stacks(summary, console, named(summary.train), named(summary.deploy))
    _axes(summary, console)
    _answer(summary, console)
    if summary.worst_flips:
        _worst(summary, console)
    _latency(summary, console)
    _notes(summary, console)
    gate(summary, console)
    end((), folder, console)


def stacks(
    summary: ModelSummary, console: Console, train: str, deploy: str, more: str = ""
) -> None:
    """Print which two stacks were compared, of what model and on how many samples."""
    of = f"{summary.model}, {run_on(summary)}{more}"
    console.print(f"\n[bold]{escape(train)} → {escape(deploy)}[/]   {escape(of)}", highlight=False)


def note(words: object, console: Console) -> None:
    """Print what the person should know besides the result."""
    console.print(f"[yellow]note[/] {escape(str(words))}", highlight=False)


def end(notes: Iterable[object], folder: str, console: Console) -> None:
    """Print the notes of a run, and where it is."""
    for words in notes:
        note(words, console)
    console.print(f"run: {folder}", markup=False, highlight=False, soft_wrap=True)


def heading(words: str, console: Console) -> None:
    """Print the title of a table; it may be wider than the table."""
    console.print(f"[bold]{escape(words)}[/]", highlight=False)


def _axes(summary: PairSummary, console: Console) -> None:
    if not summary.axes:
        console.print("\nThe two profiles describe the same stack.", highlight=False)
        return
    heading("What differs", console)
    shown = Fitted("axis", "stack", "what it does")
    alone = {axis: one for one in summary.alone for axis in one.axes}
    for entry in summary.axes:
        shown.add_row(f"[bold]{entry.axis}[/]", "train", _side(entry.train))
        shown.add_row("", "deploy", _side(entry.deploy, folded(entry.equal)))
        effect = _answered(alone.get(entry.axis), _effect(entry.effect, summary.sample_unit))
        if effect != NOTHING:
            shown.add_row("", "alone", effect, end_section=True)
    console.print(shown)


def _answered(alone: Alone | None, effect: str) -> str:
    """How many answers an axis changes, before its effect on the network's input."""
    if alone is None or alone.why:
        return escape(alone.why) if alone and alone.why else effect
    together = f" with {' '.join(alone.axes[1:])}" if len(alone.axes) > 1 else ""
    changed = f"[bold]{alone.changed:,} of {alone.units:,} answers change{together}[/]"
    return changed if effect == NOTHING else f"{changed}; {effect}"


def _side(side: AxisSide, same: str = "") -> str:
    words = " ".join(filter(None, (said(side.values, side.card) or NOTHING, same)))
    return f"{escape(words)} [dim]({known(side.evidence, side.claimed)})[/]"


def _effect(effect: AxisEffect | None, unit: str) -> str:
    if effect is None:
        return NOTHING
    if effect.why is not None:
        return escape(effect.why)
    if effect.null:
        what, where = no_effect(effect, unit)
        return f"[green]null: {what} changed in {where}[/]"
    return f"{effect.values_changed:.0%} of values, {differences(effect)}"


def _answer(summary: PairSummary, console: Console) -> None:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    flips, unit = summary.flips, summary.unit
    of = f"[bold]{flips.count:,}[/] of {flips.units:,}" + ("" if unit == "image" else f" {unit}s")
    rate = ""
    if flips.rate is not None and isfinite(flips.rate):
        rate = f" = {flips.rate:.2%}"
        if flips.ci95:
            low, high = flips.ci95
            rate += f"   95 % interval {low:.2%} to {high:.2%}"
            if summary.decided:
                rate = f" = {flips.rate:.2%}  {at_any_time(flips.ci95)}"
    table.add_row("[bold]flips[/]", of + rate)
    kinds, *rest = [*TASKS[summary.task].view().lines(plain(summary)), None]
    if kinds:
        table.add_row(*kinds)
    _metrics(summary, table)
    for line in rest:
        if line:
            table.add_row(*line)
    console.print(table, highlight=False)


def _metrics(summary: PairSummary, table: Table) -> None:
    """The metrics of both sides, and the delta of those that have an interval."""
    sides = summary.train.metric, summary.deploy.metric
    title = TASKS[summary.task].view().metric
    for metric, delta in summary.delta.items():
        if delta is None:
            continue
        train, deploy = (side[metric] for side in sides)
        words = f"train {train:.2%}, deploy {deploy:.2%}"
        moved = f"{points(delta)} points"
        if metric != summary.metric:
            table.add_row(title(metric), f"{words}, {moved} ({ends(delta.ci95)})")
            continue
        table.add_row(f"[bold]{title(metric)}[/]", words)
        table.add_row(
            "[bold]delta[/]",
            f"[bold]{moved}[/]   {'' if summary.decided else '95 % interval '}{ends(delta.ci95)} "
            f"({delta.method})",
        )


def _worst(summary: PairSummary, console: Console) -> None:
    view = TASKS[summary.task].view()
    heading("Worst flips", console)
    shown = Fitted(summary.sample_unit, *view.titles)
    for flip in summary.worst_flips:
        shown.add_row(escape(flip.sample), *map(escape, view.words(plain(flip))))
    console.print(shown)


def _latency(summary: PairSummary, console: Console) -> None:
    latency = {"train": summary.latency_ms.train, "deploy": summary.latency_ms.deploy}
    stages = [
        stage
        for stage in latency["train"]
        if any(latency[side][stage].p50 is not None for side in latency)
    ]
    if not stages:
        return
    heading(f"Latency, ms p50 / p90, {summary.workers} in flight", console)
    shown = Fitted("", *latency, right=1)
    for stage in stages:
        cells = [f"{_ms(rows[stage].p50)} / {_ms(rows[stage].p90)}" for rows in latency.values()]
        shown.add_row(stage, *cells)
    console.print(shown)


def _ms(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.2f}"


def skipped(summary: PairSummary | LatencySummary | LoadSummary, console: Console) -> None:
    """Print the samples that could not go through, the first ones with their reasons."""
    for skip in summary.skipped_samples:
        console.print(f"[yellow]skipped[/] {escape(skip.sample)}: {escape(skip.why)}")
    rest = summary.skipped - len(summary.skipped_samples)
    if rest > 0:
        console.print(f"[yellow]skipped[/] {rest} more; see records.parquet")


def _notes(summary: PairSummary, console: Console) -> None:
    skipped(summary, console)
    for warning in summary.warnings:
        note(warning, console)
    same = summary.controls.self_
    if same.bit_equal:
        console.print(
            f"control: each side against itself, {same.samples} {summary.sample_unit}s: "
            f"{same.flips} flips, bit-equal",
            highlight=False,
        )


def gate(summary: Summary | Checkpoints, console: Console) -> None:
    """Print what came of each rule."""
    found = summary.gate
    for rule in found.rules:
        word = rules.verdict(rule)
        style = "red" if rule.failed else "yellow" if rule.undecided else "green"
        console.print(
            f"gate [{style}]{word}[/] {escape(rule.rule)}: {escape(rules.got(rule))}",
            highlight=False,
        )
    if found.rules:
        word = "[bold green]PASSED" if found.passed else "[bold red]FAILED"
        console.print(f"gate {word}[/]")
