"""The verdict and the screen of ``simulate faults``: rates by stack, bit and layer, and events."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from rich.console import Console
from rich.markup import escape

from simulator.faults.replay import Replayed
from simulator.faults.tables import events, over_time, rates, striking_groups, tracked
from simulator.report.command import Asked
from simulator.report.table import Table, screen
from simulator.report.verdicts.told import Told
from simulator.report.words import between, run_on, share
from simulator.results.faults import FaultsSummary, Rate
from simulator.statistics.paired import clopper_pearson

GROUPS = {"bit": 40, "layer": 8}
"""So many groups are printed at most."""
EVENTS = 5
"""So many corruptions of each stack."""


def show(summary: FaultsSummary, folder: str, console: Console) -> None:
    """Print the rates, what the corruptions do, and over a video what stays."""
    of = f"{summary.faults:,} faults, {run_on(summary)}"
    weighted = "" if summary.allocation == "proportional" else "rates weighted by stratum; "
    title = f"{summary.campaign}: {of}; {weighted}95 % intervals in brackets"
    _print(rates(summary, title=title), console)
    for what, most in GROUPS.items():
        found = striking_groups(summary, what)
        _print(replace(found, rows=found.rows[:most]), console)
        if len(found.rows) > most:
            console.print(f"{len(found.rows) - most} further: in the report.", highlight=False)
    _print(events(summary, EVENTS), console)
    for told in notes(summary):
        console.print(escape(told), highlight=False)
    for warning in summary.warnings:
        console.print(f"[yellow]note[/] {escape(str(warning))}", highlight=False)
    _print(over_time(summary, rescaled=False), console)
    for side, seen in tracked(summary).items():
        if seen.clip:
            told = f"{side}: the worst is fault {seen.worst}, in {seen.clip}."
            console.print(escape(told), highlight=False)
    console.print(f"run: {folder}", soft_wrap=True, markup=False)


def _print(table: Table, console: Console) -> None:
    if table.rows:
        console.print(screen(table), highlight=False)


def replayed(found: Sequence[Replayed], console: Console) -> None:
    """Print what one fault did, then and now."""
    for replayed in found:
        word = "[green]equal[/]" if replayed.equal else "[red]differs[/]"
        console.print(f"fault {replayed.fault}, {escape(replayed.stack)}: {word}", highlight=False)
        for name, (then, now) in replayed.values.items():
            told = _listed(then) if then == now else f"{_listed(then)} then, {_listed(now)} now"
            console.print(escape(f"  {name}: {told}"), highlight=False)


def _listed(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else f"{value}"


def reading(summary: FaultsSummary) -> Iterator[str]:
    """Yield how faults were allocated and what counts as a corruption, where that was chosen."""
    given = {name: value for name, value in summary.reading.items() if value is not None}
    chosen = [f"{name} {_setting(value)}" for name, value in given.items()]
    if chosen:
        yield f"Verdicts: {', '.join(chosen)}."
    if summary.allocation != "proportional":
        yield (
            f"Faults were allocated to strata ({summary.allocation}): rates and means are weighted "
            "by stratum, numbers, AP and accuracy are of the faults as they were drawn."
        )


def _setting(value: Any) -> str:
    """A setting, or clusters of classes."""
    if not isinstance(value, dict):
        return f"{value}"
    return "; ".join(f"{name} = {' or '.join(labels)}" for name, labels in value.items())


def notes(summary: FaultsSummary) -> Iterator[str]:
    """Yield how faults were put in, what a restriction costs, and how stacks compare."""
    yield from reading(summary)
    for side, stack in summary.stacks.items():
        yield f"{side}: {stack.method}. DUE: {stack.tap}."
    for side, ratio in summary.slowdown.items():
        yield f"{side}: an inference takes {ratio:.2f} of the time without the restriction."
    for side, paired in summary.paired.items():
        yield (
            f"Of the same faults {paired.only_first} corrupt {paired.than} alone, "
            f"{paired.only_this} {side} alone, {paired.both} both (McNemar's mid-p {paired.p:.3g})."
        )


def verdict(summary: FaultsSummary) -> Told:
    """How often faults corrupt answers silently, and where most of them do."""
    lost = []
    for side, one in summary.stacks.items():
        if not one.sdc.of:
            lost.append(f"{side}: nothing was run.")
            continue
        lost.append(
            f"{side}: {_corrupted(summary, one.sdc)}; {share(one.due.rate, 2)} end in NaN or Inf."
        )
    first = next(iter(summary.stacks.values()))
    bits = {name: group.sdc.count for name, group in first.by_bit.items() if group.sdc.count}
    if not bits:
        return Told(lost)
    fault = first.worst[0].fault

    def again(asked: Asked) -> str:
        return f"simulate replay-fault {shlex.quote(str(asked.folder))} --fault {fault}"

    if summary.allocation != "proportional":  # numbers as drawn say nothing of bits
        return Told(lost, next=again)
    most = max(bits, key=lambda name: bits[name])
    hits, every = bits[most], sum(bits.values())
    if 2 * hits <= every:
        return Told(lost, next=again)
    ci95 = clopper_pearson(hits, every)
    sure = "" if ci95[0] > 1 / 2 else ", no more than chance explains"
    told = f"Most of them hit bit {most}: {hits:,} of {every:,}{between(ci95)}{sure}."
    return Told(lost, told, again)


def _corrupted(summary: FaultsSummary, rate: Rate) -> str:
    """How many answers are silently corrupted, and of strata what share of all that would be."""
    what = "faults" if summary.lasts == "transient" else "inferences with a fault"
    how = f"{share(rate.rate, 2)}{between(rate.ci95)}"
    counted = f"{rate.count:,} of {rate.of:,}"
    if summary.allocation == "proportional":
        return f"{counted} {what} corrupt an answer silently: {how}"
    return (
        f"{how} of {what} corrupt an answer silently, weighted by stratum; {counted} as they were "
        "drawn"
    )
