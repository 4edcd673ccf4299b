"""What the report shows of a robustness run: interactions, curves by severity, the images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from simulator.report import charts
from simulator.report.charts import Trace
from simulator.report.reading import Run
from simulator.report.sections.section import Panel, Section, fitting, part
from simulator.report.sections.style import Look, figure, looks, text
from simulator.report.table import Column
from simulator.report.words import dropped, share, title
from simulator.report.words import figure as number
from simulator.results.robustness import (
    AgainstModel,
    Attacks,
    ConditionPictures,
    Figure,
    RobustnessSummary,
    Sequences,
    SystemNoise,
)
from simulator.results.suites import AdjustedEffect, Early
from simulator.robustness.rows import KINDS, Row, differences, rows_of, value
from simulator.robustness.rows import attacked as attacked_rows
from simulator.robustness.screen import not_carried, own_pipelines
from simulator.robustness.tables import CONDITION, DIFFERENCE, STACK, chosen, noise
from simulator.robustness.tables import cells as cell_table
from simulator.typed import Unit

ROOM = 1_200_000
"""Bytes of pictures in the page, in base64."""


@part(order=21)
def sections(run: Run[RobustnessSummary]) -> Iterator[Section]:
    """Show each part that the run has."""
    summary = run.summary
    if summary.early is not None:
        yield _cells(summary, summary.early)
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


def _interactions(summary: RobustnessSummary) -> Section:
    """Show how much more each condition costs a stack than the first one."""
    metric, first = title(summary.task, summary.metric), next(iter(summary.stacks))
    drawn_as = looks(summary.stacks)
    names = [text(name) for name in summary.rows]
    traces = [
        _dots([by[name] for name in summary.rows], names, drawn_as[side], "%{x:+.2f} points")
        for side, by in summary.interaction.items()
    ]
    drawn = figure(
        traces, 130 + 26 * len(names), f"change of {metric} less that of {text(first)}, points", "",
        showlegend=len(traces) > 1,
    )  # fmt: skip
    drawn.update_yaxes(type="category", autorange="reversed")
    rows = [row for row in rows_of(summary) if "interaction" in row and "flips" in row]
    columns = {**DIFFERENCE, "flips": Column("answers that differ, %", Unit.SHARE)}
    return Section(
        "interactions",
        f"Condition and stack: change of {metric} less that of {first}, points",
        f"Does a condition cost another stack more than it costs {first}?",
        [
            f"Left of 0: more is lost than on {first}. Beyond chance: p below 0.05 after Holm's "
            f"correction over {summary.family} tests."
        ],
        panels=[Panel(drawn)],
        tables=[chosen(rows, columns, "How much more each condition moves the metric")],
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
    first, drawn_as = next(iter(found.stacks)), looks(summary.stacks)
    names = [text(name) for name in found.rows]
    known = {side: stack for side, stack in found.stacks.items() if side not in summary.nc}
    traces = [
        _dots([fp for fp in stack.fp.values() if fp], names, drawn_as[side], "%{x:.2f} %")
        for side, stack in known.items()
    ]
    drawn = figure(
        traces, 130 + 26 * len(names), "answers that flip, %", "", showlegend=len(traces) > 1
    )
    drawn.update_yaxes(type="category", autorange="reversed")
    drawn.update_xaxes(rangemode="tozero")
    rows = [row for row in _converged(summary) if "FP" in row]
    means = [
        f"{side}: mFP {share(value(stack.mfp), 2)}, mFR {share(value(stack.mfr), 1)}, muT5D "
        f"{number(value(stack.mut5d), '.2f')}, mT5D {share(value(stack.mt5d), 1)}."
        for side, stack in known.items()
    ]
    columns = {
        "stack": STACK, "condition": Column("sequence"), "FP": Column("FP, %", Unit.SHARE),
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
        panels=[Panel(drawn)],
        tables=[chosen(rows, columns, "Every sequence")],
    )


def _curves(summary: RobustnessSummary) -> Section:
    """Show the metric at each severity."""
    metric = title(summary.task, summary.metric)
    drawn_as = looks(summary.stacks)
    panels = []
    for name, row in summary.rows.items():
        traces = []
        for side, stack in summary.stacks.items():
            if side in summary.nc:
                continue
            look = drawn_as[side]
            values = [stack.clean.value, *stack.levels[name]]
            traces.append(
                charts.scatter(
                    x=list(range(len(values))), y=values, mode="lines+markers", name=look.label,
                    line=look.line, marker=look.marker,
                    hovertemplate="%{x}: %{y:.2%}<extra></extra>",
                )
            )  # fmt: skip
        drawn = figure(traces, 240, "severity (0: clean)", metric, showlegend=len(traces) > 1)
        drawn.update_yaxes(tickformat=charts.SHARE, rangemode="tozero")
        drawn.update_xaxes(dtick=1)
        panels.append(Panel(drawn, f"{name} ({row.category})"))
    error = ("CD", "rCD") if summary.metric == "mIoU" else ("CE", "relative CE")
    titles = dict(zip(KINDS, ("NR", "NCI", *error), strict=True))
    columns = {
        "stack": STACK, "condition": CONDITION, "clean": Column("clean, %", Unit.SHARE),
        "severities": Column("at each severity", Unit.SHARE),
        **{kind: Column(f"{name}, %", Unit.SHARE) for kind, name in titles.items()},
    }  # fmt: skip
    rows = [row for row in _converged(summary) if "NR" in row]
    return Section(
        "curves",
        f"{metric[:1].upper()}{metric[1:]} by severity",
        "How fast does quality fall as a condition gets worse?",
        [f"{error[0]} is relative to {summary.reference}; conditions act at: {summary.where}."],
        panels=panels,
        tables=[chosen(rows, columns, "Every condition on every stack")],
    )


def _attacked(summary: RobustnessSummary, attacks: Attacks) -> Section:
    """Show what attacks leave, of the attacked model and of each stack."""
    titles = {
        "unattacked": "unattacked", "AR": "AR", "AR_clean_correct": "AR of clean correct",
        "AAI": "AAI", "exact": "model, float", "rounded": "model, rounded",
    }  # fmt: skip
    figures = {name: Column(f"{words}, %", Unit.SHARE) for name, words in titles.items()}
    rows = [row for row in attacked_rows(summary) if row["stack"] not in summary.nc]
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


def _dots(
    figures: Sequence[Figure | AdjustedEffect], names: Sequence[str], look: Look, words: str
) -> Trace:
    """A dot in percent or points with its interval for each row, of one stack."""
    value = 100 * np.array([one.value for one in figures], np.float64)
    low, high = 100 * np.array([one.ci95 for one in figures], np.float64).T
    return charts.scatter(
        x=value, y=list(names), mode="markers", name=look.label, marker=look.marker,
        error_x={
            "type": "data", "symmetric": False, "array": high - value,
            "arrayminus": value - low, "color": look.color, "thickness": 1.5, "width": 3,
        },
        hovertemplate=f"%{{y}}: {words}<extra></extra>",
    )  # fmt: skip


def _converged(summary: RobustnessSummary) -> list[Row]:
    return [row for row in rows_of(summary) if row["stack"] not in summary.nc]
