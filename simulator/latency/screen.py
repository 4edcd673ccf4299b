"""What the timed experiments say and print: verdicts, latencies, and quality with a deadline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from simulator.latency import tables
from simulator.report.table import NOTHING, screen
from simulator.report.terminal import gate, heading, skipped
from simulator.report.verdicts.told import Told
from simulator.report.words import count, given_deadlines, leads, ranked, run_on, share, title
from simulator.results.shared import Running
from simulator.results.tail import Divergence, TailSummary
from simulator.results.timed import LatencySummary, LoadSummary, TimedStack

Fact = tuple[str, str]
"""What a line is about, and what it says, as markup."""


def latency(summary: LatencySummary | LoadSummary, folder: str, console: Console) -> None:
    """Print the latencies of the stacks, or what they have served under load.

    Args:
        summary: the content of ``summary.json``.
        folder: the run folder.
        console: a terminal, or a file that gets plain text.
    """
    _head(summary, console)
    if isinstance(summary, LoadSummary):
        console.print(screen(tables.served(summary)))
        _print(_of_load(summary), console)
    else:
        _percentiles(summary, console)
        if stages := tables.stages(summary):
            console.print(screen(stages))
        _print(_of_rounds(summary), console)
    _end(summary, folder, console)


def tail(summary: TailSummary, folder: str, console: Console) -> None:
    """Print the quality of the stacks when late answers are wrong; see :func:`latency`.

    The stacks are in the order of their worst rounds at the first deadline that the user gave.
    """
    _head(summary, console)
    metric = title(summary.task, summary.metric)
    first = given_deadlines(summary)[:1]
    order = f"; the best at {first[0]} comes first" if first and len(summary.tail) > 1 else ""
    heading(f"{metric} when late answers are wrong{order}", console)
    console.print(
        "by chance: the worst of as many rounds (95 %) if answers were late independently",
        highlight=False,
    )
    for side in ranked(summary, *first):
        whole = f"{metric} {share(summary.tail[side].quality, 2)} without a deadline"
        console.print(f"\n[bold]{escape(side)}[/]   {whole}", highlight=False)
        console.print(screen(tables.thresholds(summary, side)))
        if later := tables.prediction(summary, side):
            console.print(screen(later))
    for sentence in leads(summary.better):
        console.print(escape(sentence), highlight=False)
    _percentiles(summary, console)
    _print(_of_rounds(summary), console)
    _end(summary, folder, console)


def _percentiles(summary: LatencySummary, console: Console) -> None:
    names = {side: side for side in summary.percentiles}
    console.print(screen(tables.percentiles(summary, names)))


def _head(summary: LatencySummary | LoadSummary, console: Console) -> None:
    console.print(
        f"\n[bold]{summary.scenario}[/]   {escape(summary.model)}, {run_on(summary)}",
        highlight=False,
    )
    rows = _lines()
    for side, stack in summary.stacks.items():
        name = stack.profile + "".join(f" +{override}" for override in stack.overrides)
        shown = "" if side == stack.profile else escape(name)
        rows.add_row(f"[bold]{escape(side)}[/]", shown, escape(", ".join(_counts(stack))))
    console.print(rows, highlight=False)


def _counts(stack: Running) -> list[str]:
    found = []
    if isinstance(stack, TimedStack):
        source = "measured here" if stack.times == "measured" else f"recorded: {stack.source}"
        found += [count(stack.rounds, "round"), count(stack.queries, "inference"), source]
    if stack.effective.get("threads") is not None:
        found.append(count(stack.effective["threads"], "thread"))
    return found


def _lines() -> Table:
    return Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))


def _print(facts: Iterable[Fact], console: Console) -> None:
    rows = _lines()
    for about, words in facts:
        rows.add_row(about, words)
    console.print(rows, highlight=False)


def _of_load(summary: LoadSummary) -> Iterator[Fact]:
    if asked := tables.load(summary):
        yield "load", asked
    workers = next(iter(summary.served.values())).workers
    yield "served by", f"{workers} threads from one queue; latency is counted from the arrival"
    yield _machine(summary)


def _of_rounds(summary: LatencySummary) -> Iterator[Fact]:
    for side, ratio in summary.ratio.items():
        interval = ""
        if ratio.ci95:
            interval = "   95 % interval {:.3f} to {:.3f}".format(*ratio.ci95)
        words = f"{escape(side)} takes [bold]{ratio.value:.3f}[/] of {escape(ratio.to)}'s time"
        yield "[bold]ratio[/]", f"{words}{interval} ({ratio.rounds} rounds, paired)"
    for side, found in summary.tokens.items():
        yield "tokens", f"{escape(side)}: {tables.tokens(found)}"
    if isinstance(summary, TailSummary):
        yield from _convergence(summary)
    for side, spread in summary.spread.items():
        if spread.range is not None:
            yield "spread", f"{escape(side)}: medians of rounds differ by {spread.range:.1%}"
    for side, effects in summary.inputs.items():
        for effect in (effects.size, effects.length):
            if effect:
                yield "input", f"{escape(side)}: {tables.slope(effect)}"
        if effects.network:
            yield "input", f"{escape(side)}, the network alone: {tables.slope(effects.network)}"
        if effects.tall:
            yield "input", f"{escape(side)}: {tables.tall(effects.tall)}"
    yield from _conditions(summary)


def _convergence(summary: TailSummary) -> Iterator[Fact]:
    """Whether the rounds were enough, and whether later rounds were like the earlier ones."""
    unit = summary.sample_unit
    for side, one in summary.convergence.items():
        named = "inference" if summary.stacks[side].together > 1 else unit
        state, needed = f"{one.settled} of {count(one.instances, named)} settled", one.inferences
        if one.done_after:
            needed = one.done_after * one.instances
            state = f"all {count(one.instances, named)} settled after {one.done_after} rounds"
        yield (
            "rounds",
            f"{escape(side)}: {state}, {needed:,} inferences: {needed / one.mlperf:.1%} of the "
            f"{one.mlperf:,} that MLPerf asks for a p99",
        )
    for side, found in summary.tail.items():
        if found.split:
            yield "drift", f"{escape(side)}: {_drift(found.split.rjsd, unit)}"


def _drift(rjsd: Divergence, unit: str) -> str:
    pooled = f"all latencies together {rjsd.pooled:.3f} (0 equal, 1 disjoint)"
    if rjsd.test is None:
        return f"rJSD of {unit}s is not carried by halves of one round; {pooled}"
    words = (
        f"{name} {NOTHING if value is None else f'{value:.3f}'}"
        for name, value in (
            ("train", rjsd.train),
            ("test", rjsd.test),
            ("odd against even rounds", rjsd.alternating),
        )
    )
    return f"rJSD, mean over {unit}s, {', '.join(words)}; {pooled}"


def _conditions(summary: LatencySummary) -> Iterator[Fact]:
    protocol, found = summary.protocol, summary.conditions
    if protocol.warm_up:
        turns = f", in turns of {protocol.turn}" if protocol.turn else ""
        warm = count(protocol.warm_up, summary.sample_unit)
        yield "protocol", f"{warm} a stack to warm up{turns}"
    if found is None:
        return
    yield _machine(summary)
    pauses = found.collections
    words = (
        f"garbage collected {pauses.count} times, {pauses.ms:.1f} ms, in "
        f"{pauses.samples} inferences; preempted {found.preempted:,} times; load "
        f"{found.load[0]:.1f} to {found.load[1]:.1f}"
    )
    if found.mhz:
        words += "; {:,.0f} to {:,.0f} MHz".format(*found.mhz)
    yield "disturbed", words


def _machine(summary: LatencySummary | LoadSummary) -> Fact:
    machine = summary.machine
    usable = f"{len(machine.usable_cores)} of {machine.cores} cores may be used"
    return "machine", f"{escape(machine.cpu)}, {usable}"


def _end(summary: LatencySummary | LoadSummary, folder: str, console: Console) -> None:
    skipped(summary, console)
    for warning in summary.warnings:
        console.print(f"[yellow]note[/] {escape(str(warning))}", highlight=False)
    gate(summary, console)
    console.print(f"run: {escape(folder)}", highlight=False, soft_wrap=True)


def latency_verdict(summary: LatencySummary | LoadSummary) -> Told:
    """How long each stack takes, and their ratio."""
    lost = []
    for side, rows in summary.latency_ms.items():
        known = [(name, rows["total"][name]) for name in ("p50", "p90", "p99")]
        words = ", ".join(f"{name} {ms:.2f} ms" for name, ms in known if ms is not None)
        lost.append(f"{side}: {words or 'no figure'}.")
    if isinstance(summary, LatencySummary):
        for side, ratio in summary.ratio.items():
            known_ends = ratio.ci95
            ends = f" ({known_ends[0]:.2f} to {known_ends[1]:.2f})" if known_ends else ""
            lost.insert(0, f"{side} takes {ratio.value:.2f} times as long as {ratio.to}{ends}.")
    return Told(lost)


def tail_verdict(summary: TailSummary) -> Told:
    """At the user's own deadlines where there are some, which are the same for every stack."""
    metric, given = title(summary.task, summary.metric), given_deadlines(summary)
    if given:
        return Told([_at(summary, metric, name) for name in given])
    lost = []
    for side, found in summary.tail.items():
        words = f"{side}: {metric} {share(found.quality, 2)} without a deadline"
        known = (
            (name, threshold)
            for name, threshold in found.thresholds.items()
            if threshold is not None
        )
        for name, threshold in list(known)[:1]:
            worst = share(threshold.worst, 2)
            words += f", {worst} in the worst round at {threshold.ms:.2f} ms, its own p{name}"
        lost.append(f"{words}.")
    return Told([*lost, "A --deadline-ms would be the same for all."])


def _at(summary: TailSummary, metric: str, name: str) -> str:
    """Every stack under one deadline, the best one first."""
    worst = []
    for side in ranked(summary, name):
        threshold, whole = summary.tail[side].thresholds[name], share(summary.tail[side].quality, 2)
        found = share(threshold.worst, 2) if threshold else "unknown"
        worst.append(f"{side} {found} ({whole} without a deadline)")
    return f"{metric} in the worst round at {name.removesuffix('ms')} ms: {', '.join(worst)}."
