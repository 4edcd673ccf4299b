"""What the timed experiments print: latencies, and quality with a deadline."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from simulator.latency import tail_screen
from simulator.latency.percentile_table import percentiles
from simulator.latency.tail_screen import milliseconds
from simulator.report.fitted import Fitted
from simulator.report.table import screen
from simulator.report.terminal import NOTHING, gate, heading, skipped
from simulator.report.words import count, run_on
from simulator.results.shared import Latency, Running
from simulator.results.timed import (
    LatencySummary,
    LoadSummary,
    TailSummary,
    TimedStack,
)


def timed(summary: LatencySummary | LoadSummary, folder: str, console: Console) -> None:
    """Print the latencies, or what the load has given; see :func:`latency`."""
    if isinstance(summary, LoadSummary):
        served(summary, folder, console)
    else:
        latency(summary, folder, console)


def latency(summary: LatencySummary, folder: str, console: Console) -> None:
    """Print the latencies of the stacks.

    Args:
        summary: the content of ``summary.json``.
        folder: the run folder.
        console: a terminal, or a file that gets plain text.
    """
    _head(summary, console)
    names = {side: side for side in summary.percentiles}
    console.print(screen(percentiles(summary, names)))
    _stages(summary, console)
    _facts(summary, console)
    _end(summary, folder, console)


def tail(summary: TailSummary, folder: str, console: Console) -> None:
    """Print the quality of the stacks when late answers are wrong; see :func:`latency`."""
    _head(summary, console)
    tail_screen.blocks(summary, console)
    names = {side: side for side in summary.percentiles}
    console.print(screen(percentiles(summary, names)))
    _facts(summary, console)
    _end(summary, folder, console)


def served(summary: LoadSummary, folder: str, console: Console) -> None:
    """Print LoadGen's results; see :func:`latency`."""
    _head(summary, console)
    keys = ("p50", "p90", "p99", "max") if summary.load.deadline_ns else ()
    heading("Under LoadGen's load", console)
    shown = Fitted(
        "", "batch", "answers a second", "answered", "failed",
        *(f"{key} ms" for key in keys), "LoadGen's verdict", right=1,
    )  # fmt: skip
    for side, one in summary.served.items():
        times = summary.latency_ms[side]["total"]
        shown.add_row(
            escape(side), f"{one.batch}", f"{one.qps:.1f}", f"{one.queries:,}", f"{one.failed:,}",
            *(milliseconds(times[key]) for key in keys),
            "[green]VALID[/]" if one.valid else "[red]INVALID[/]",
        )  # fmt: skip
    console.print(shown)
    rows = _facts_table()
    load = summary.load
    if load.deadline_ns:
        rows.add_row(
            "load",
            f"{load.qps:g} arrivals a second; p99 within {load.deadline_ns / 1e6:g} ms",
        )
    workers = next(iter(summary.served.values())).workers
    rows.add_row(
        "served by", f"{workers} threads from one queue; latency is counted from the arrival"
    )
    _machine(summary, rows)
    console.print(rows, highlight=False)
    _end(summary, folder, console)


def _head(summary: LatencySummary | LoadSummary, console: Console) -> None:
    console.print(
        f"\n[bold]{summary.scenario}[/]   {escape(summary.model)}, {run_on(summary)}",
        highlight=False,
    )
    rows = _facts_table()
    for side, stack in summary.stacks.items():
        name = stack.profile + "".join(f" +{one}" for one in stack.overrides)
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


def _facts_table() -> Table:
    return Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))


def _stages(summary: LatencySummary, console: Console) -> None:
    sides = summary.latency_ms
    stages = list(dict.fromkeys(stage for rows in sides.values() for stage in rows))
    if len(stages) < 2:
        return
    heading("Stages, ms p50 / p90", console)
    shown = Fitted("", *map(escape, sides), right=1)
    for stage in [*stages[1:], stages[0]]:
        shown.add_row(stage, *(_pair(rows.get(stage)) for rows in sides.values()))
    console.print(shown)


def _pair(row: Latency | None) -> str:
    if row is None or row.p50 is None:
        return NOTHING
    return f"{milliseconds(row.p50)} / {milliseconds(row.p90)}"


def _facts(summary: LatencySummary, console: Console) -> None:
    """Further facts, one per line."""
    rows = _facts_table()
    for side, ratio in summary.ratio.items():
        interval = ""
        if ratio.ci95:
            interval = "   95 % interval {:.3f} to {:.3f}".format(*ratio.ci95)
        words = f"{escape(side)} takes [bold]{ratio.value:.3f}[/] of {escape(ratio.to)}'s time"
        rows.add_row("[bold]ratio[/]", f"{words}{interval} ({ratio.rounds} rounds, paired)")
    if isinstance(summary, TailSummary):
        _rounds(summary, rows)
    for side, spread in summary.spread.items():
        if spread.range is not None:
            rows.add_row(
                "spread", f"{escape(side)}: medians of rounds differ by {spread.range:.1%}"
            )
    for side, found in summary.inputs.items():
        if size := found.size:
            low, high = size.ci95
            rows.add_row(
                "input",
                f"{escape(side)}: {size.ms_per_megapixel:+.2f} ms per megapixel "
                f"({low:+.2f} to {high:+.2f}), which explains {size.r2:.0%} of the variance",
            )
        if length := found.length:
            low, high = length.ci95
            rows.add_row(
                "input",
                f"{escape(side)}: {length.ms_per_thousand:+.2f} ms per 1,000 {length.unit} "
                f"({low:+.2f} to {high:+.2f}), which explains {length.r2:.0%} of the variance",
            )
    _conditions(summary, rows)
    console.print(rows, highlight=False)


def _rounds(summary: TailSummary, rows: Table) -> None:
    """Whether the rounds were enough, and whether later rounds were like the earlier ones."""
    unit = summary.sample_unit
    for side, one in summary.convergence.items():
        state, needed = f"{one.settled} of {count(one.instances, unit)} settled", one.inferences
        if one.done_after:
            needed = one.done_after * one.instances
            state = f"all {count(one.instances, unit)} settled after {one.done_after} rounds"
        rows.add_row(
            "rounds",
            f"{escape(side)}: {state}, {needed:,} inferences: {needed / one.mlperf:.1%} of the "
            f"{one.mlperf:,} that MLPerf asks for a p99",
        )
    for side, found in summary.tail.items():
        if found.split:
            rjsd = found.split.rjsd
            train = NOTHING if rjsd.train is None else f"{rjsd.train:.3f}"
            rows.add_row(
                "drift",
                f"{escape(side)}: rJSD, mean over {unit}s, train {train}, test {rjsd.test:.3f}; "
                f"all latencies together {rjsd.pooled:.3f} (0 equal, 1 disjoint)",
            )


def _conditions(summary: LatencySummary, rows: Table) -> None:
    protocol = summary.protocol
    if protocol.warm_up:
        turns = f", in turns of {protocol.turn}" if protocol.turn else ""
        warm = count(protocol.warm_up, summary.sample_unit)
        rows.add_row("protocol", f"{warm} a stack to warm up{turns}")
    found = summary.conditions
    if found is None:
        return
    _machine(summary, rows)
    pauses = found.collections
    words = (
        f"garbage collected {pauses.count} times, {pauses.ms:.1f} ms, in "
        f"{pauses.samples} inferences; preempted {found.preempted:,} times; load "
        f"{found.load[0]:.1f} to {found.load[1]:.1f}"
    )
    if found.mhz:
        words += "; {:,.0f} to {:,.0f} MHz".format(*found.mhz)
    rows.add_row("disturbed", words)


def _machine(summary: LatencySummary | LoadSummary, rows: Table) -> None:
    machine = summary.machine
    usable = f"{len(machine.usable_cores)} of {machine.cores} cores may be used"
    rows.add_row("machine", f"{escape(machine.cpu)}, {usable}")


def _end(summary: LatencySummary | LoadSummary, folder: str, console: Console) -> None:
    skipped(summary, console)
    for warning in summary.warnings:
        console.print(f"[yellow]note[/] {escape(str(warning))}", highlight=False)
    gate(summary, console)
    console.print(f"run: {escape(folder)}", highlight=False, soft_wrap=True)
