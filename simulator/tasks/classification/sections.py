"""Classification's own sections of the report: which classes suffer, and how sure it had been.

A module of the report that stands with its task: it is found by entry point and imported by no one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from simulator.report import charts
from simulator.report.colors import BAD, EVEN, GOOD, TEXT
from simulator.report.reading import Run
from simulator.report.sections.section import Panel, Section, Table, part
from simulator.report.sections.style import error_bars, figure, text
from simulator.report.words import SIDES, count
from simulator.statistics import paired
from simulator.tasks.classification.task import Classification
from simulator.tasks.score import Record
from simulator.tasks.task import TASKS

CLASSES, CONFUSIONS, BINS = 25, 20, 10
_UNJUDGED = "changed, without a label"
_LOOKS = {
    "right→wrong": (BAD, "/"), "wrong→right": (GOOD, ""), "wrong→other": (EVEN, "."),
    _UNJUDGED: (EVEN, ""),
}  # fmt: skip
"""Color and hatching of each kind of flip."""


@part(order=200)
def classes(run: Run) -> Section | None:
    """Show which classes suffer."""
    pair = _classified(run)
    if pair is None:
        return None
    train, deploy = pair
    unit = run.summary["unit"]
    labelled = bool(run.summary["labelled"])
    counts: dict[int, Counter[str]] = {}
    judged = pc.value_counts(pc.coalesce(train["label"], train["prediction"])).to_pylist()
    sizes = {one["values"]: one["counts"] for one in judged}
    changed = list(_changed(train, deploy))
    for before, after in changed:
        one = before["label"] if before["label"] is not None else before["prediction"]
        counts.setdefault(one, Counter())[_kind(before, after)] += 1
    order = sorted(counts, key=lambda one: (-counts[one].total(), one))[:CLASSES]
    kinds = [kind for kind in _LOOKS if any(counts[one][kind] for one in order)]
    names = [_named(run, one) for one in order]
    bars = [
        charts.bar(
            y=names, x=[counts[one][kind] for one in order], orientation="h", name=kind,
            marker={"color": _LOOKS[kind][0], "pattern": {"shape": _LOOKS[kind][1]}},
            customdata=[sizes[one] for one in order],
            hovertemplate=f"%{{y}}: {kind} %{{x}} of %{{customdata}} {unit}s<extra></extra>",
        )
        for kind in kinds
    ]  # fmt: skip
    drawn = figure(bars, 120 + 22 * len(order), f"{unit}s whose answer changed", "")
    drawn.update_layout(barmode="stack", showlegend=True)
    drawn.update_yaxes(type="category", autorange="reversed")
    more = len(counts) - len(order)
    notes = (
        []
        if labelled
        else [f"Without labels, the class of {unit}s is the training stack's answer."]
    )
    if more > 0:
        notes.append(f"{more} classes with fewer flips are not drawn.")
    return Section(
        "classes",
        f"Classes: {unit}s whose answer changed",
        "Which classes suffer?",
        () if order else ["No answer changed."],
        [Panel(drawn)] if order else [],
        notes if order else [],
        tables=_confusions(run, changed) if order else [],
    )


@part(order=210)
def calibration(run: Run) -> Section | None:
    """Show how likely a flip is, by how sure the training stack was."""
    pair = _classified(run)
    if pair is None:
        return None
    train, deploy = pair
    known = pc.fill_null(pc.is_finite(train["margin"]), False).to_numpy()
    if known.sum() < 2:
        return None
    margin = train["margin"].to_numpy()[known]
    flipped = pc.not_equal(train["prediction"], deploy["prediction"]).to_numpy()[known]
    order = np.argsort(margin, kind="stable")
    parts = [part for part in np.array_split(order, min(BINS, len(order))) if part.size]
    rates = [flipped[part].mean() for part in parts]
    ends = [paired.wilson(int(flipped[part].sum()), len(part)) for part in parts]
    middle = np.array([np.median(margin[part]) for part in parts])
    trace = charts.scatter(
        x=middle, y=rates, mode="lines+markers", showlegend=False,
        line={"color": TEXT, "width": 2}, marker={"color": TEXT, "size": 8},
        error_y=error_bars(rates, ends, color=TEXT, thickness=1.5, width=4),
        customdata=[
            [margin[part].min(), margin[part].max(), int(flipped[part].sum()), len(part)]
            for part in parts
        ],
        hovertemplate="margin %{customdata[0]:.3f} to %{customdata[1]:.3f}: %{customdata[2]} of "
        "%{customdata[3]} flipped, %{y:.1%}<extra></extra>",
    )  # fmt: skip
    drawn = figure([trace], 360, "margin of the training stack's answer", "answers that flip")
    drawn.update_yaxes(tickformat=charts.SHARE, rangemode="tozero")
    low = flipped[margin < np.median(margin)].sum()
    return Section(
        "calibration",
        "Calibration: margin against flip probability",
        "Was the network unsure where its answer changed?",
        [f"{low:,} of {flipped.sum():,} flips are in the half with the smaller margins."]
        if flipped.any()
        else ["No answer changed."],
        [Panel(drawn)] if flipped.any() else [],
        [
            f"Margin: the best score less the second best. {count(len(parts), 'bin')} of "
            f"{_sizes(parts, run.summary['unit'])}, at their median margins; lines: 95 % Wilson "
            "intervals."
        ],
    )


Changed = Sequence[tuple[Record, Record]]
"""The records of both stacks for samples whose answer changed."""


def _classified(run: Run) -> tuple[pa.Table, pa.Table] | None:
    if not issubclass(TASKS[run.summary["task"]], Classification):
        return None
    columns = ["label", "prediction", "correct", "margin"]
    train, deploy = (run.side(side, columns) for side in SIDES)
    return train, deploy


def _changed(train: pa.Table, deploy: pa.Table) -> Iterator[tuple[Any, Any]]:
    other = pc.not_equal(train["prediction"], deploy["prediction"])
    yield from zip(*(side.filter(other).to_pylist() for side in (train, deploy)), strict=True)


def _named(run: Run, index: int) -> str:
    """A class by its name and its number, which tells it from others of that name."""
    name = run.label(index)
    return name if name == str(index) else f"{text(name, 32)} ({index})"


def _sizes(parts: Sequence[NDArray[np.intp]], unit: str) -> str:
    """How many samples are in a bin."""
    sizes = sorted({len(part) for part in parts})
    return " or ".join([*(str(size) for size in sizes[:-1]), count(sizes[-1], unit)])


def _kind(before: Record, after: Record) -> str:
    if before["correct"] is None:
        return _UNJUDGED
    if before["correct"]:
        return "right→wrong"
    return "wrong→right" if after["correct"] else "wrong→other"


def _confusions(run: Run, changed: Changed) -> list[Table]:
    kinds = Counter(
        (before["label"], before["prediction"], after["prediction"]) for before, after in changed
    )
    most = sorted(kinds.items(), key=lambda one: (-one[1], str(one[0])))[:CONFUSIONS]
    rows = [[*(run.label(index) for index in key), f"{number:,}"] for key, number in most]
    more = f", the first {len(rows)} of {len(kinds):,}" if len(kinds) > len(rows) else ""
    head = ["label", "train says", "deploy says", f"{run.summary['unit']}s"]
    return [Table(head, rows, f"The confusion that changed{more}", 3)]
