"""The screen of ``simulate robustness``: conditions as rows, stacks as columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape

from simulator.report.fitted import Fitted
from simulator.report.words import (
    dropped,
    ends,
    figure,
    is_significant,
    points,
    run_on,
    share,
    title,
)
from simulator.results.robustness import (
    AgainstModel,
    Attacks,
    Figure,
    RobustnessSummary,
    Sequences,
    SystemNoise,
)
from simulator.results.suites import AdjustedEffect
from simulator.robustness.words import NC, cells, not_carried, not_converged, own_pipeline


def show(summary: RobustnessSummary, folder: str, console: Console) -> None:
    """Print the metric under each condition, and how much further it moves on the others."""
    if summary.early is not None:
        _cells(summary, console)
    elif summary.rows:
        _conditions(summary, console)
    if summary.sequences:
        _sequences(summary, summary.sequences, console)
    if summary.attacks:
        console.print(_attacked(summary, summary.attacks), highlight=False)
        console.print(escape(f"Attacks follow the gradient of {summary.attacks.gradient}."))
        for line in not_carried(summary.attacks):
            console.print(escape(line), highlight=False)
    if summary.system_noise:
        console.print(_noise(summary, summary.system_noise), highlight=False)
        console.print(escape(own_pipeline(summary.system_noise)), highlight=False)
    notes(summary, console)
    console.print(f"run: {folder}", soft_wrap=True, markup=False)


def _cells(summary: RobustnessSummary, console: Console) -> None:
    """Print each stack under each condition, and which were dropped."""
    first, (head, *rows) = next(iter(summary.stacks)), cells(summary)
    against = f"{summary.suite}: against {first} under the same condition; {run_on(summary)}"
    table = _table(against, head[1:], head[0])
    for row in rows:
        table.add_row(*map(escape, row))
    console.print(table, highlight=False)
    for told in dropped(summary.early, summary.sample_unit):
        console.print(escape(told), highlight=False)


def _conditions(summary: RobustnessSummary, console: Console) -> None:
    metric, first = title(summary.task, summary.metric), next(iter(summary.stacks))
    table = _table(
        f"{summary.suite}: {metric} in %, mean over severities; {run_on(summary)}", summary.stacks
    )
    table.add_row("clean", *clean(summary))
    _fill(table, summary, {side: one.nr for side, one in summary.stacks.items()}, _percent)
    table.add_row("mean", *(_percent(one.mnr) for one in summary.stacks.values()))
    for name, values in means(summary):
        table.add_row(name, *values)
    console.print(table, highlight=False)
    less = f"Change of {metric} less that of"
    if summary.interaction:
        _differences(summary, f"{less} {first}, points", summary, console)
    if summary.against:
        heading = f"{less} {summary.against.model} on the same stack, points"
        _differences(summary, heading, summary.against, console)


def _differences(
    summary: RobustnessSummary,
    heading: str,
    found: RobustnessSummary | AgainstModel,
    console: Console,
) -> None:
    """Print how much more each condition costs than what the stacks are compared with."""
    by = found.interaction
    single = len(by) == 1
    table = _table(heading, by)
    if single:
        table.add_column("95 % interval", justify="right")
    if isinstance(found, AgainstModel):
        own = [one["clean"] for one in by.values()]
        table.add_row("clean, difference", *map(_more, own),
                      *(ends(one.ci95) for one in own if single))  # fmt: skip
    _fill(table, summary, by, _more, single)
    averages = found.mean_interaction.values()
    table.add_row("mean", *map(_more, averages), *(ends(one.ci95) for one in averages if single))
    console.print(table, highlight=False)


def _attacked(summary: RobustnessSummary, attacks: Attacks) -> Fitted:
    """What each budget leaves: of the attacked model itself, and of each stack."""
    table = _table(
        "Under attack, right in % for each budget; model: in float > after rounding",
        ("model", *attacks.stacks),
    )
    for name, own in attacks.model.items():
        for at, level in enumerate(summary.rows[name].levels):
            values = (one.ar[name][str(at + 1)] for one in attacks.stacks.values())
            before, after = (
                share(one[at], 1).removesuffix("%") for one in (own.exact, own.rounded)
            )
            table.add_row(escape(level.text), f"{before} > {after}", *map(_percent, values))
    for name in attacks.model:
        clean = (one.unattacked[name] for one in attacks.stacks.values())
        table.add_row(f"{escape(name)} unattacked", "", *map(_percent, clean))
    table.add_section()
    for name, budgets in next(iter(attacks.stacks.values())).wcar.items():
        for number in budgets:
            worst = (one.wcar[name][number] for one in attacks.stacks.values())
            table.add_row(f"WCAR {escape(name)} {number}", "", *map(_percent, worst))
    return table


def _noise(summary: RobustnessSummary, found: SystemNoise) -> Fitted:
    """SR of each option, then RobustMQ's figures over all options."""
    metric = title(summary.task, summary.metric)
    table = _table(f"System noise ({found.suite}): {metric} in %, clean", found.stacks, "option")
    stacks = list(found.stacks.values())
    for name in dict.fromkeys(name for one in stacks for name in one.sr):
        table.add_row(escape(name), *(_percent(one.sr.get(name)) for one in stacks))
    table.add_section()
    table.add_row("mean SR", *(_percent(one.mean_sr) for one in stacks))
    table.add_row("SNI", *(_percent(one.sni) for one in stacks))
    table.add_row("std", *(_percent(one.std) for one in stacks))
    return table


def _sequences(summary: RobustnessSummary, found: Sequences, console: Console) -> None:
    """Print how often answers flip from frame to frame, and how much more than the first's."""
    run = "" if summary.rows else f"; {run_on(summary)}"
    table = _table(
        f"{summary.suite}: answers that flip from frame to frame, in %{run}",
        found.stacks,
        "sequence",
    )
    for name in found.rows:
        table.add_row(escape(name), *(_percent(one.fp[name]) for one in found.stacks.values()))
    table.add_section()
    table.add_row("mFP", *(_percent(one.mfp) for one in found.stacks.values()))
    table.add_row("mFR", *(_percent(one.mfr) for one in found.stacks.values()))
    if not summary.rows:
        name = title(summary.task, summary.metric)
        table.add_row(f"clean {name}", *clean(summary))
    console.print(table, highlight=False)
    if any(one.mut5d for one in found.stacks.values()):
        console.print(_distances(found), highlight=False)
    if not found.interaction:
        return
    first, single = next(iter(found.stacks)), len(found.interaction) == 1
    table = _table(
        f"Points of answers that flip more than {first}'s (positive: more)",
        found.interaction,
        "sequence",
    )
    if single:
        table.add_column("95 % interval", justify="right")
    for name in found.rows:
        cells = [by[name] for by in found.interaction.values()]
        table.add_row(
            escape(name), *map(_more, cells), *(ends(one.ci95) for one in cells if single)
        )
    table.add_section()
    averages = found.mean_interaction.values()
    table.add_row("mFP", *map(_more, averages), *(ends(one.ci95) for one in averages if single))
    console.print(table, highlight=False)


def _distances(found: Sequences) -> Fitted:
    """How far the five best classes move, between the frames of which FP is told."""
    table = _table(
        "uT5D: how far the five best classes move (0: none, 15: all go)", found.stacks, "sequence"
    )
    for name in found.rows:
        table.add_row(escape(name), *(number(one.ut5d[name]) for one in found.stacks.values()))
    table.add_section()
    table.add_row("muT5D", *(number(one.mut5d) for one in found.stacks.values()))
    table.add_row("mT5D, %", *(_percent(one.mt5d) for one in found.stacks.values()))
    return table


def _table(heading: str, sides: Iterable[str], rows: str = "condition") -> Fitted:
    return Fitted(rows, *map(escape, sides), title=escape(heading), right=1)


def _fill(
    table: Fitted,
    summary: RobustnessSummary,
    figures: Mapping[str, Mapping[str, Any]],
    words: Callable[[Any], str],
    intervals: bool = False,
) -> None:
    """Add a row for each condition, with a line between categories."""
    category = None
    for name, row in summary.rows.items():
        if row.category != category:
            category = row.category
            table.add_section()
        cells = [words(by[name]) for by in figures.values()]
        if intervals:
            cells += [ends(by[name].ci95) for by in figures.values()]
        table.add_row(escape(name), *cells)
    table.add_section()


def clean(summary: RobustnessSummary) -> list[str]:
    """Return the metric without a condition for each stack; NC for one that did not converge."""
    return [
        NC if side in summary.nc else _percent(one.clean) for side, one in summary.stacks.items()
    ]


def means(summary: RobustnessSummary) -> Sequence[tuple[str, list[str]]]:
    """Return the mean figures over conditions: their names, and a cell for each stack."""
    names = (
        ("mNCI", "mNCI"),
        ("mCD", "mCE") if summary.metric == "mIoU" else ("mCE", "mCE"),
        ("mrCD", "relative_mCE") if summary.metric == "mIoU" else ("relative mCE", "relative_mCE"),
    )
    return [
        (shown, [_percent(one[field]) for one in summary.stacks.values()]) for shown, field in names
    ]


def notes(summary: RobustnessSummary, console: Console) -> None:
    """Print what the figures mean, and what the person should know."""
    lines = [f"Conditions act at: {summary.where}."]
    if summary.rows and summary.early is None:
        lines[0] = f"mCE is relative to {summary.reference}; conditions act at: {summary.where}."
    if summary.sequences:
        lines.append(f"mFR and mT5D are relative to {summary.sequences.reference}.")
    families = [
        one.family for one in (summary, summary.sequences, summary.against) if one is not None
    ]
    if any(families):
        tests = " and ".join(str(one) for one in families if one)
        lines.append(f"* more than chance, Holm over {tests} tests.")
    left_out = [name for name, row in summary.rows.items() if not row.in_means]
    if left_out:
        lines.append(f"Not in the means: {', '.join(left_out)}.")
    for line in [*lines, *not_converged(summary)]:
        console.print(escape(line), highlight=False)
    for warning in summary.warnings:
        console.print(f"[yellow]note[/] {escape(str(warning))}", highlight=False)
    for one in summary.skipped_samples[:3]:
        words = escape(f"{one.sample} skipped: {one.why}")
        console.print(f"[yellow]note[/] {words}", highlight=False)


def _percent(figure: Figure | None) -> str:
    return share(None if figure is None else figure.value, 2).removesuffix("%")


def number(found: Figure | None) -> str:
    """Return a figure that is no share, and a dash for one that is not defined."""
    return figure(None if found is None else found.value, ".2f")


def _more(effect: AdjustedEffect) -> str:
    return points(effect) + ("*" if is_significant(effect) else " ")
