"""What the report shows of a robustness run: interactions, curves by severity, the images."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simulator.report import charts
from simulator.report.charts import Trace
from simulator.report.reading import Run
from simulator.report.sections.section import Panel, Picture, Section, Table, part
from simulator.report.sections.style import Look, figure, looks, text
from simulator.report.words import dropped, ends, is_significant, points, share, title
from simulator.results.robustness import Figure, RobustnessSummary
from simulator.results.suites import AdjustedEffect
from simulator.robustness import words
from simulator.robustness.screen import number
from simulator.robustness.words import own_pipeline

ROOM = 900_000
"""Bytes of pictures in the page."""


@part(order=21)
def cells(run: Run) -> Section | None:
    """Show each stack under each condition, of a run that dropped some of them."""
    summary = run.summary
    if not isinstance(summary, RobustnessSummary) or summary.early is None:
        return None
    first, (head, *rows) = next(iter(summary.stacks)), words.cells(summary)
    return Section(
        "cells",
        "Each stack under each condition",
        f"Which stack under which condition differs from {first} under the same condition?",
        [
            f"Each row is of its own {summary.sample_unit}s (n); rows with another n are not to be "
            "compared."
        ],
        notes=dropped(summary.early, summary.sample_unit),
        tables=[Table(head, rows, f"Every stack and condition, against {first}", 1)],
    )


@part(order=22)
def interactions(run: Run) -> Section | None:
    """Show how much more each condition costs a stack than the first one."""
    summary = run.summary
    if not isinstance(summary, RobustnessSummary) or not summary.interaction:
        return None
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
    rows = [
        [
            side, name, points(one), ends(one.ci95),
            "yes" if is_significant(one) else "no", share(summary.flips[side][name], 1),
        ]
        for side, by in summary.interaction.items()
        for name, one in by.items()
    ]  # fmt: skip
    head = ["stack", "condition", "points", "95 % interval", "beyond chance", "answers differ"]
    return Section(
        "interactions",
        f"Condition and stack: change of {metric} less that of {first}, points",
        f"Does a condition cost another stack more than it costs {first}?",
        [
            f"Left of 0: more is lost than on {first}. Beyond chance: p below 0.05 after Holm's "
            f"correction over {summary.family} tests."
        ],
        panels=[Panel(drawn)],
        tables=[Table(head, rows, "How much more each condition moves the metric", 2)],
    )


@part(order=22)
def against(run: Run) -> Section | None:
    """Show how much more each condition costs a model than the reference model."""
    summary = run.summary
    if not isinstance(summary, RobustnessSummary) or summary.against is None:
        return None
    metric, found = title(summary.task, summary.metric), summary.against
    rows = [
        [side, name, points(one), ends(one.ci95), "yes" if is_significant(one) else "no"]
        for side, by in found.interaction.items()
        for name, one in (*by.items(), ("mean over conditions", found.mean_interaction[side]))
    ]  # fmt: skip
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
        tables=[Table(["stack", "condition", "points", "95 % interval", "beyond chance"], rows,
                      "Each condition against the reference model", 2)],
    )  # fmt: skip


@part(order=23)
def sequences(run: Run) -> Section | None:
    """Show how often answers flip from frame to frame of each sequence."""
    summary = run.summary
    if not isinstance(summary, RobustnessSummary) or summary.sequences is None:
        return None
    found = summary.sequences
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
    rows = [
        [
            side, name, share(fp.value, 2), ends(fp.ci95), _share(stack.fr[name]),
            number(stack.ut5d[name]), _share(stack.t5d[name]), points(more),
            "–" if more is None else ends(more.ci95),
            "–" if more is None else "yes" if is_significant(more) else "no",
        ]
        for side, stack in known.items()
        for name, fp in stack.fp.items()
        if fp is not None
        for more in [found.interaction.get(side, {}).get(name)]
    ]  # fmt: skip
    means = [
        f"{side}: mFP {_share(stack.mfp, 2)}, mFR {_share(stack.mfr)}, muT5D "
        f"{number(stack.mut5d)}, mT5D {_share(stack.mt5d)}."
        for side, stack in known.items()
    ]
    head = ["stack", "sequence", "FP", "95 % interval, points", "FR", "uT5D", "T5D",
            f"FP more than {first}, points"]  # fmt: skip
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
        tables=[Table([*head, "95 % interval", "beyond chance"], rows, "Every sequence", 2)],
    )


@part(order=24)
def curves(run: Run) -> Section | None:
    """Show the metric at each severity."""
    summary = run.summary
    if not isinstance(summary, RobustnessSummary) or not summary.rows or summary.early:
        return None
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
    rows = [
        [
            side, name, share(stack.clean.value, 2),
            " ".join(share(value, 1) for value in stack.levels[name]),
            *(_share(stack[kind][name]) for kind in ("NR", "NCI", "CE", "relative_CE")),
        ]
        for side, stack in summary.stacks.items()
        if side not in summary.nc
        for name in summary.rows
    ]  # fmt: skip
    error = ("CD", "rCD") if summary.metric == "mIoU" else ("CE", "relative CE")
    head = ["stack", "condition", "clean", "at each severity", "NR", "NCI", *error]
    return Section(
        "curves",
        f"{metric[:1].upper()}{metric[1:]} by severity",
        "How fast does quality fall as a condition gets worse?",
        [f"{error[0]} is relative to {summary.reference}; conditions act at: {summary.where}."],
        panels=panels,
        tables=[Table(head, rows, "Every condition on every stack", 2)],
    )


@part(order=25)
def attacked(run: Run) -> Section | None:
    """Show what attacks leave, of the attacked model and of each stack."""
    summary = run.summary
    if not isinstance(summary, RobustnessSummary) or summary.attacks is None:
        return None
    attacks = summary.attacks
    rows = [
        [
            side, level.text, _share(stack.unattacked[name]),
            *(_share(stack[kind][name][str(at + 1)]) for kind in kinds),
            *(share(own[field][at], 1) for field in ("exact", "rounded")),
        ]
        for side, stack in attacks.stacks.items()
        if side not in summary.nc
        for kinds in [("AR", "AR_clean_correct", "AAI")]
        for name, own in attacks.model.items()
        for at, level in enumerate(summary.rows[name].levels)
    ]  # fmt: skip
    worst = [
        [side, name, at, _share(one)]
        for side, stack in attacks.stacks.items()
        if side not in summary.nc
        for name, budgets in stack.wcar.items()
        for at, one in budgets.items()
    ]
    head = [
        "stack",
        "attack",
        "unattacked",
        "AR",
        "AR of clean correct",
        "AAI",
        "model, float",
        "model, rounded",
    ]
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
        notes=list(words.not_carried(attacks)),
        tables=[
            Table(head, rows, "Every attack on every stack", 2),
            Table(["stack", "category", "budget", "WCAR"], worst, "The worst case", 2),
        ],
    )


@part(order=26)
def system_noise(run: Run) -> Section | None:
    """Show what other decoders and resizers do to each stack, and which stacks are NC."""
    summary = run.summary
    if not isinstance(summary, RobustnessSummary) or summary.system_noise is None:
        return None
    found = {
        side: stack for side, stack in summary.system_noise.stacks.items() if side not in summary.nc
    }
    metric = title(summary.task, summary.metric)
    rows = [
        [side, *(_share(one, 2) for one in (stack.mean_sr, stack.sni, stack.std))]
        for side, stack in found.items()
    ]
    options = [
        [side, name, _share(one, 2), "yes" if name in stack.same else "no"]
        for side, stack in found.items()
        for name, one in stack.sr.items()
    ]
    out = [
        f"{side}: {name} is left out: {why}"
        for side, stack in found.items()
        for name, why in stack.left_out.items()
    ]
    return Section(
        "system-noise",
        "System noise: other decoders and resizers",
        f"How much {metric} does another preparation of clean {summary.sample_unit}s cost?",
        [
            f"SR is {metric} with an option of {summary.system_noise.suite}, SNI the share of the "
            "stack's own that is lost on average, std the standard deviation over options (n - 1). "
            f"{own_pipeline(summary.system_noise)}"
        ],
        notes=out,
        tables=[
            Table(["stack", "mean SR", "SNI", "std"], rows, "Each stack", 1),
            Table(["stack", "option", "SR", "the stack itself"], options, "Each option", 2),
        ],
    )


@part(order=27)
def seen(run: Run) -> Section | None:
    """Show one image under every condition."""
    summary = run.summary
    if not isinstance(summary, RobustnessSummary) or summary.pictures is None:
        return None
    pictures, room, left = [], ROOM, 0
    for name, by in summary.pictures.cells.items():
        found = [(side, run.file(path)) for side, path in by.items()]
        room -= sum(len(data) for _, data in found if data)
        if room < 0:
            left += len(found)
            continue
        pictures += [Picture(data, f"{name}, {side}") for side, data in found if data]
    if not pictures:
        return None
    notes = [f"{left} further pictures are in the run's folder."] if left else []
    return Section(
        "seen",
        "One image under every condition",
        "What did each network see, at the most severe level?",
        [f"{summary.pictures.sample}, with the mean and std of the first stack."],
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


def _share(figure: object, digits: int = 1) -> str:
    value = getattr(figure, "value", None)
    return share(value, digits)
