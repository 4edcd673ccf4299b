"""Audits and replays: their verdicts, and each on one screen."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from simulator.report.rules import FAILED, PASSED, cells, evidence, got, notes, units, verdict
from simulator.report.terminal import heading
from simulator.report.verdicts.told import Told
from simulator.report.words import (
    PAGE,
    between,
    chance,
    count,
    failing,
    points,
    some,
    title,
    unanswered,
)
from simulator.results.audits import AuditedPair, AuditSummary, ReplayedPair, ReplaySummary

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


_NAMED = 5
"""Name at most this many pairs or rules; the tables after the verdict have all."""


def audit_verdict(summary: AuditSummary) -> Told:
    """How many pairs pass every rule, and which rules fail where."""
    pairs, rules = summary.pairs, summary.gate.rules
    failed = [rule for rule in rules if rule.failed and not rule.undecided]
    undecided = [rule for rule in rules if rule.undecided]
    passes = "passes" if len(pairs) == 1 else "pass"
    lost = f"{len(pairs)} of {count(len(pairs), 'pair')} {passes} every rule."
    if not rules:
        lost = "Nothing was judged: the document has no rules."
    elif broken := failed or undecided:
        does = ("fail", "fails") if failed else ("are undecided", "is undecided")
        where = list(dict.fromkeys(f"{rule.deploy} ({rule.model})" for rule in broken))
        lost = (
            f"{len(broken)} of {count(len(rules), 'rule')} {does[len(broken) == 1]}, on "
            f"{len(where)} of {count(len(pairs), 'pair')}: {some(where, _NAMED)}."
        )
    causes = [
        f"{word}: {some(list(dict.fromkeys(rule.rule for rule in found)), _NAMED, '; ')}."
        for word, found in {"Failed": failed, "Undecided": undecided}.items()
        if found
    ]
    folders = [pair.folder for pair in pairs if not pair.passed]
    page = [f"The page of the first is {folders[0]}/{PAGE}."] if folders else []
    skipped = dict.fromkeys(sentence for pair in pairs for sentence in unanswered(pair))
    said = [*_failing(pairs), lost, *_most_changed(pairs), *[*skipped][:_NAMED], *page]
    return Told(said, " ".join(causes) or None)


def _failing(pairs: Sequence[AuditedPair]) -> list[str]:
    """Which stacks fail where the others answer, the worst one first."""
    worst = sorted(
        pairs, key=lambda pair: -sum(failed.rate or 0 for failed in pair.failed.values())
    )
    told = {
        sentence: None
        for pair in worst
        for sentence in failing(pair, {"deploy": f"{pair.deploy} ({pair.model})"})
    }
    more = len(told) - _NAMED
    return [*told][:_NAMED] + ([f"{count(more, 'more stack')} fail on some."] if more > 0 else [])


def _most_changed(pairs: Sequence[AuditedPair]) -> list[str]:
    """What is lost on the pair that changes most answers."""
    if not pairs:
        return []
    most = max(pairs, key=lambda pair: pair.flips.rate or 0)
    if not most.flips.count:
        return ["No answer changes."]
    where = f" on {most.deploy} ({most.model})" if len(pairs) > 1 else ""
    lost = f"Most answers change{where}" if len(pairs) > 1 else "Answers that change"
    lost += f": {most.flips.count:,} of {most.flips.units:,}{between(most.flips.ci95)}"
    if delta := most.delta:
        lost += f"; {title(most.task, most.metric)} {points(delta)} points{chance(delta.ci95)}"
    return [f"{lost}."]


def replay_verdict(summary: ReplaySummary) -> Told:
    """How many pairs a bundle gives again."""
    kinds = dict.fromkeys(pair.verdict for pair in summary.pairs)
    found = [
        f"{sum(pair.verdict == kind for pair in summary.pairs)} of "
        f"{count(len(summary.pairs), 'pair')} {kind}"
        for kind in kinds
    ]
    lost = [f"{'; '.join(found)}."]
    if summary.contradictions:
        lost.append(f"The bundle contradicts itself in {len(summary.contradictions)} places.")
    differs = bool(summary.contradictions) or "different" in kinds
    return Told(lost, decision="not ok" if differs else "ok")
