"""What the report shows of a robustness run: interactions, falls by severity, the images."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from simulator.report.reading import Run
from simulator.report.sections.section import Section, fitting, part
from simulator.report.table import Bar, Cell, Column, Table
from simulator.report.words import dropped, share, title
from simulator.report.words import figure as number
from simulator.results.robustness import (
    AgainstModel,
    Attacks,
    ConditionPictures,
    RobustnessSummary,
    Sequences,
    SystemNoise,
)
from simulator.results.suites import Early
from simulator.robustness.bit_widths import bit_widths
from simulator.robustness.figures import KINDS
from simulator.robustness.rows import Row, differences, rows_of, value
from simulator.robustness.screen import not_carried, own_pipelines
from simulator.robustness.tables import CONDITION, DIFFERENCE, STACK, chosen, noise
from simulator.robustness.tables import cells as cell_table
from simulator.robustness.tables import losses as loss_table
from simulator.typed import Unit

ROOM = 1_200_000
"""Bytes of pictures in the page, in base64."""


@part(order=21)
def sections(run: Run[RobustnessSummary]) -> Iterator[Section]:
    """Show each part that the run has."""
    summary = run.summary
    if summary.early is not None:
        yield _cells(summary, summary.early)
    if len(summary.losses) > 1:
        yield _losses(summary)
    if summary.interaction:
        yield _interactions(summary)
    if summary.against is not None:
        yield _against(summary, summary.against)
    if summary.sequences is not None:
        yield _sequences(summary, summary.sequences)
    if summary.rows and summary.early is None:
        yield _curves(summary)
    if summary.attacks is not None:
        yield _attacked(summary, summary.attacks)
    if summary.system_noise is not None:
        yield _system_noise(summary, summary.system_noise)
    if drawn := bit_widths(summary):
        yield drawn
    if summary.pictures is not None and (seen := _seen(run, summary.pictures)):
        yield seen


def _cells(summary: RobustnessSummary, early: Early) -> Section:
    """Show each stack under each condition, of a run that dropped some of them."""
    first = next(iter(summary.stacks))
    return Section(
        "cells",
        "Each stack under each condition",
        f"Which stack under which condition differs from {first} under the same condition?",
        [
            f"Each row is of its own {summary.sample_unit}s (n); rows with another n are not to be "
            "compared."
        ],
        notes=dropped(early, summary.sample_unit),
        tables=[cell_table(summary)],
    )


def _losses(summary: RobustnessSummary) -> Section:
    """Show what each kind of noise takes from every stack, beside the first one."""
    first, metric = next(iter(summary.losses)), title(summary.task, summary.metric)
    tests = sum(one.more_lost is not None for by in summary.losses.values() for one in by.values())
    return Section(
        "losses",
        "What each kind of noise takes",
        f"Do other stacks lose more than {first} under attacks, corruptions and system noise?",
        [
            f"Left: {metric} under the noise, the mean over its conditions. Lost: the share of the "
            "clean one that is gone (RobustMQ's AAI, NCI, SNI); of sequences the share of frames "
            f"that are answered otherwise. Beside them the difference from {first}, with 95 % "
            f"intervals, and p after Holm's correction over {tests} tests."
        ],
        tables=[loss_table(summary)],
    )


def _interactions(summary: RobustnessSummary) -> Section:
    """Show how much more each condition costs a stack than the first one."""
    metric, first = title(summary.task, summary.metric), next(iter(summary.stacks))
    rows = [row for row in rows_of(summary) if "interaction" in row and "flips" in row]
    columns = {
        **DIFFERENCE, "interaction": Column("points", Unit.POINTS, better=1),
        "flips": Column("answers that differ, %", Unit.SHARE, better=-1, heat=True),
    }  # fmt: skip
    return Section(
        "interactions",
        f"Condition and stack: change of {metric} less that of {first}, points",
        f"Does a condition cost another stack more than it costs {first}?",
        [
            f"Left of 0: more is lost than on {first}. Filled: beyond chance, p below 0.05 after "
            f"Holm's correction over {summary.family} tests; lines: 95 % intervals."
        ],
        tables=[chosen(_drawn(rows, "interaction"), columns, "Each condition")],
    )


def _against(summary: RobustnessSummary, found: AgainstModel) -> Section:
    """Show how much more each condition costs a model than the reference model."""
    metric = title(summary.task, summary.metric)
    return Section(
        "against",
        f"{summary.model} and {found.model}",
        f"Does a condition cost {summary.model} more than it costs {found.model}?",
        [
            f"Points of {metric} more than of {found.model} on the same stack, on the "
            f"{found.samples:,} {summary.sample_unit}s that both answered. Clean: without a "
            "condition. Below 0: more is lost. Beyond chance: p below 0.05 after Holm's correction "
            f"over {found.family} tests, the means by themselves."
        ],
        tables=[chosen(
            differences(found), DIFFERENCE, "Each condition against the reference model"
        )],
    )  # fmt: skip


def _sequences(summary: RobustnessSummary, found: Sequences) -> Section:
    """Show how often answers flip from frame to frame of each sequence."""
    first = next(iter(found.stacks))
    known = {side: stack for side, stack in found.stacks.items() if side not in summary.nc}
    rows = [row for row in _converged(summary) if "FP" in row]
    means = [
        f"{side}: mFP {share(value(stack.mfp), 2)}, mFR {share(value(stack.mfr), 1)}, muT5D "
        f"{number(value(stack.mut5d), '.2f')}, mT5D {share(value(stack.mt5d), 1)}."
        for side, stack in known.items()
    ]
    columns = {
        "stack": STACK, "condition": Column("sequence"),
        "FP": Column("FP, %", Unit.SHARE, better=-1),
        "FP_ends": Column("95 % interval, points"), "FR": Column("FR, %", Unit.RATIO),
        "uT5D": Column("uT5D", Unit.NUMBER), "T5D": Column("T5D, %", Unit.RATIO),
        **DIFFERENCE,
        "interaction": Column(f"FP more than {first}, points", Unit.POINTS),
    }  # fmt: skip
    return Section(
        "sequences",
        "Answers that flip from frame to frame",
        "How stable are answers while the world changes slowly?",
        [
            " ".join(means),
            "uT5D: how far the five best classes move, 0 (not at all) to 15 (all go). FR and T5D "
            f"are relative to {found.reference}. Noise is compared with the first frame, what "
            f"moves with a frame before. Beyond chance: Holm over {found.family} tests.",
        ],
        tables=[chosen(_drawn(rows, "FP"), columns, "Every sequence")],
    )


def _curves(summary: RobustnessSummary) -> Section:
    """Show what each severity takes from the metric, and the figures over severities."""
    metric = title(summary.task, summary.metric)
    error = ("CD", "rCD") if summary.metric == "mIoU" else ("CE", "relative CE")
    titles = dict(zip(KINDS, ("NR", "NCI", *error), strict=True))
    columns = {
        "stack": STACK, "condition": CONDITION, "clean": Column("clean, %", Unit.SHARE),
        "severities": Column("at each severity", Unit.SHARE),
        **{kind: Column(f"{name}, %", Unit.SHARE) for kind, name in titles.items()},
    }  # fmt: skip
    rows = [row for row in _converged(summary) if "NR" in row]
    every = chosen(rows, columns, "Every condition on every stack")
    return Section(
        "curves",
        f"{metric[:1].upper()}{metric[1:]} by severity: less the clean one, points",
        "How fast does quality fall as a condition gets worse?",
        [f"{error[0]} is relative to {summary.reference}; conditions act at: {summary.where}."],
        tables=[_falls(summary), replace(every, folded=True)],
    )


def _falls(summary: RobustnessSummary) -> Table:
    """How far the metric is from the clean one at each severity, as a map of heat."""
    severities = max(len(row.levels) for row in summary.rows.values())
    columns = [
        CONDITION, STACK, Column("clean, %", Unit.SHARE),
        *(Column(f"severity {at}", Unit.POINTS, 1, heat=True) for at in range(1, severities + 1)),
    ]  # fmt: skip
    rows: list[Sequence[Cell]] = [
        [name, side, clean, *(level - clean for level in levels),
         *[""] * (severities - len(levels))]
        for name in summary.rows
        for side, stack in summary.stacks.items()
        if side not in summary.nc
        for clean, levels in [(stack.clean.value, stack.levels[name])]
    ]  # fmt: skip
    return Table(columns, rows, "Change at each severity, points")


def _attacked(summary: RobustnessSummary, attacks: Attacks) -> Section:
    """Show what attacks leave, of the attacked model and of each stack."""
    titles = {
        "unattacked": "unattacked", "AR": "AR", "AR_clean_correct": "AR of clean correct",
        "AAI": "AAI", "exact": "model, float", "rounded": "model, rounded",
    }  # fmt: skip
    figures = {name: Column(f"{words}, %", Unit.SHARE) for name, words in titles.items()}
    rows = [row for row in _converged(summary) if "AR" in row]
    worst = [row for row in _converged(summary) if "WCAR" in row]
    category = {"stack": STACK, "category": Column("category"), "condition": Column("budget")}
    return Section(
        "attacked",
        "What attacks leave",
        "Do attacks on the model survive the rounding to 8 bits, and each stack's preparation?",
        [
            f"The gradient is that of {attacks.gradient}. AR is over all images; AR of clean "
            "correct over those that the stack answers correctly without the attack. WCAR counts "
            "an image that is correct unattacked and under every attack of one budget. Unattacked: "
            "the same file, resized and saved likewise, with the clean pixels."
        ],
        notes=list(not_carried(attacks)),
        tables=[
            chosen(
                rows, {"stack": STACK, "condition": Column("attack"), **figures},
                "Every attack on every stack",
            ),
            chosen(
                worst, {**category, "WCAR": Column("WCAR, %", Unit.SHARE)}, "The worst case"
            ),
        ],
    )  # fmt: skip


def _system_noise(summary: RobustnessSummary, found: SystemNoise) -> Section:
    """Show what other decoders and resizers do to each stack, and which stacks are NC."""
    metric = title(summary.task, summary.metric)
    out = [
        f"{side}: {name} is left out: {why}"
        for side, stack in found.stacks.items()
        for name, why in stack.left_out.items()
        if side not in summary.nc
    ]
    return Section(
        "system-noise",
        "System noise: other decoders and resizers",
        f"How much {metric} does another preparation of clean {summary.sample_unit}s cost?",
        [
            f"SR is {metric} with an option of {found.suite}, SNI the share of the stack's own "
            "that is lost on average, std the standard deviation over options (n - 1).",
            *own_pipelines(found),
        ],
        notes=out,
        tables=[noise(summary, found)],
    )


def _seen(run: Run[RobustnessSummary], shown: ConditionPictures) -> Section | None:
    """Show one image under every condition."""
    wanted = [
        (path, f"{name}, {side}") for name, by in shown.cells.items() for side, path in by.items()
    ]
    pictures, left = fitting(run, wanted, ROOM)
    if not pictures:
        return None
    notes = [f"{left} further pictures are in the run's folder."] if left else []
    return Section(
        "seen",
        "One image under every condition",
        "What did each network see, at the most severe level?",
        [f"{shown.sample}, with the mean and std of the first stack."],
        notes=notes,
        pictures=pictures,
    )


def _drawn(rows: Iterable[Row], name: str) -> Iterator[Row]:
    """Rows with the interval of a figure drawn beside it."""
    for row in rows:
        ends = [row.get(f"{name}_{end}") for end in ("low", "high")]
        known = [end for end in ends if isinstance(end, float)]
        own, clear = row[name], name != "interaction" or row["beyond"] == "yes"
        drawn = Bar(own, known, clear=clear) if isinstance(own, float) else own
        yield {**row, name: drawn}


def _converged(summary: RobustnessSummary) -> list[Row]:
    return [row for row in rows_of(summary) if row["stack"] not in summary.nc]
