"""Audits and replays on one screen."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from simulator.report.rules import FAILED, PASSED, cells, evidence, got, notes, units, verdict
from simulator.report.terminal import heading
from simulator.results.audits import AuditSummary, ReplayedPair, ReplaySummary

BIT_EQUAL, DIFFERENT = "bit-equal", "different"
"""Verdicts of a replay, as its summary has them."""
_COLORS = {PASSED: "green", FAILED: "red"}


def audit(summary: AuditSummary, folder: str, console: Console) -> None:
    """Print an audit."""
    console.print(f"\n[bold]{escape(summary.name)}[/]   {escape(summary.summary)}")
    own = evidence(summary.stacks["train"])
    heading(f"Against {summary.train} ({own})", console)
    for pair in summary.pairs:
        shown = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
        names = units([pair]), "flips", "delta", "latency", "evidence"
        for name, words in zip(names, cells(pair, summary.stacks[pair.deploy]), strict=True):
            shown.add_row(f"  {name}", escape(words))
        console.print(f"\n[bold]{escape(pair.model)} / {escape(pair.deploy)}[/]", highlight=False)
        console.print(shown, highlight=False)
    console.print()
    for rule in summary.gate.rules:
        word = verdict(rule)
        console.print(
            f"[{_COLORS.get(word, 'yellow')}]{word}[/] {escape(rule.model)} / "
            f"{escape(rule.deploy)}: {escape(rule.rule)}: {escape(got(rule))}\n"
            f"       [dim]because: {escape(rule.because)}[/]",
            highlight=False,
        )
    for note in notes(summary.pairs, strict=True):
        console.print(f"[yellow]note[/] {escape(note)}", highlight=False, soft_wrap=True)
    word = "[bold green]PASSED" if summary.gate.passed else "[bold red]FAILED"
    judged = f"gate {word}[/]" if summary.gate.rules else "no rules: nothing was judged"
    console.print(judged)
    console.print(f"run: {escape(folder)}", highlight=False, soft_wrap=True)


def replay(summary: ReplaySummary, folder: str, console: Console) -> None:
    """Print what a replay found; see :func:`audit`."""
    console.print(f"\n[bold]{escape(summary.name)}[/], run again", highlight=False)
    for pair in summary.pairs:
        good = pair.verdict != DIFFERENT
        console.print(
            f"[{'green' if good else 'red'}]{pair.verdict}[/] {escape(pair.model)} / "
            f"{escape(pair.deploy)}: {escape(pair.reason)}",
            highlight=False,
            soft_wrap=True,
        )
        for side, one in pair.sides.items():
            console.print(
                f"    {side}: {one.outputs:,} of {one.samples:,} outputs are bit-equal, "
                f"{one.answers:,} answers the same",
                highlight=False,
            )
        for figure in pair.figures if pair.verdict != BIT_EQUAL else ():
            low, high = (f"{100 * end:.2f}" for end in figure.ci95 if end is not None)
            console.print(
                f"    {escape(figure.name)}: recorded {_percent(figure.recorded)} ({low} to "
                f"{high}), replayed {_percent(figure.replayed)}: "
                f"{'in' if figure.inside else 'out'}side",
                highlight=False,
            )
    for line in summary.contradictions:
        console.print(f"[red]contradiction[/] {escape(line)}", highlight=False)
    _changes(summary.pairs, console)
    if summary.not_replayed:
        console.print(
            "not run again, because latencies depend on the machine: rules on rounds: "
            f"{escape('; '.join(summary.not_replayed))}",
            highlight=False,
        )
    if summary.stated:
        console.print(
            f"stated, not verified: {escape(', '.join(summary.stated))}",
            highlight=False,
            soft_wrap=True,
        )
    word = "[bold green]EQUAL" if summary.gate.passed else "[bold red]DIFFERENT"
    console.print(f"replay {word}[/]")
    console.print(f"run: {escape(folder)}", highlight=False, soft_wrap=True)


def _percent(value: float | None) -> str:
    return "nothing" if value is None else f"{100 * value:.2f} %"


def _changes(pairs: Sequence[ReplayedPair], console: Console) -> None:
    """What changed; what is the same in all pairs is told once."""
    where: dict[str, list[str]] = {}
    for pair in pairs:
        for line in (*pair.changed.inputs, *pair.changed.surroundings):
            where.setdefault(line, []).append(f"{pair.model} / {pair.deploy}")
    if not where:
        console.print("no version, hash, flag or value changed since it was recorded")
    for line, names in where.items():
        of = "" if len(names) == len(pairs) else f" ({', '.join(names)})"
        console.print(f"changed {escape(line + of)}", highlight=False, soft_wrap=True)
