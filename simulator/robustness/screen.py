"""The screen of ``simulate robustness``: conditions as rows, stacks as columns."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.markup import escape

from simulator.report.table import Table, screen
from simulator.report.words import dropped, title
from simulator.results.robustness import Attacks, RobustnessSummary, SystemNoise
from simulator.robustness.tables import attacks, cells, conditions, flips, losses, more, noise


def show(summary: RobustnessSummary, folder: str, console: Console) -> None:
    """Print the metric under each condition, and how much further it moves on the others."""
    for part in _parts(summary):
        shown = escape(part) if isinstance(part, str) else screen(part)
        console.print(shown, highlight=False)
    for warning in summary.warnings:
        console.print(f"[yellow]note[/] {escape(str(warning))}", highlight=False)
    for skipped_sample in summary.skipped_samples[:3]:
        words = escape(f"{skipped_sample.sample} skipped: {skipped_sample.why}")
        console.print(f"[yellow]note[/] {words}", highlight=False)
    console.print(f"run: {folder}", soft_wrap=True, markup=False)


def _parts(summary: RobustnessSummary) -> Iterator[Table | str]:
    """The tables, and sentences between them."""
    less = f"Change of {title(summary.task, summary.metric)} less that of"
    if summary.early is not None:
        yield cells(summary)
        yield from dropped(summary.early, summary.sample_unit)
    elif summary.rows:
        yield conditions(summary)
        if summary.interaction:
            yield more(summary, f"{less} {next(iter(summary.stacks))}, points")
        if summary.against:
            yield more(summary.against, f"{less} {summary.against.model} on the same stack, points")
    if summary.sequences:
        yield from flips(summary, summary.sequences)
    if summary.attacks:
        yield attacks(summary, summary.attacks)
        yield f"Attacks follow the gradient of {summary.attacks.gradient}."
        yield from not_carried(summary.attacks)
    if summary.system_noise:
        yield noise(summary, summary.system_noise)
        yield from own_pipelines(summary.system_noise)
    if any(len(by) > 1 for by in summary.losses.values()):
        yield losses(summary)
    yield from notes(summary)


def notes(summary: RobustnessSummary) -> Iterator[str]:
    """Yield what the figures mean."""
    where = f"onditions act at: {summary.where}."
    if summary.rows and summary.early is None:
        yield f"mCE is relative to {summary.reference}; c{where}"
    else:
        yield f"C{where}"
    if summary.sequences:
        yield f"mFR and mT5D are relative to {summary.sequences.reference}."
    parts = (summary, summary.sequences, summary.against)
    if families := [str(part.family) for part in parts if part is not None and part.family]:
        yield f"* more than chance, Holm over {' and '.join(families)} tests."
    if left_out := [name for name, row in summary.rows.items() if not row.in_means]:
        yield f"Not in the means: {', '.join(left_out)}."
    for side, why in summary.nc.items():
        yield f"{side} is NC, not converged, and in no mean: {why}."


def own_pipelines(found: SystemNoise) -> Iterator[str]:
    """Yield whether the pipeline of each stack, which SNI is relative to, is one of the options."""
    for side, stack in found.stacks.items():
        *names, last = stack.same or ["none"]
        which = f"{', '.join(names)} and {last}" if names else last
        yield f"The preparation of {side} itself is, of its {len(stack.sr)} options, {which}."


def not_carried(attacks: Attacks) -> Iterator[str]:
    """Yield a sentence on the attacks of which nothing reached a stack."""
    if attacks.not_carried:
        yield (
            f"{', '.join(attacks.not_carried)}: cannot be carried by 8 bits, since the budget is "
            "below one level; in no figure of a stack and in no mean."
        )
