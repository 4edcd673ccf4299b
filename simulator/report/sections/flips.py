"""Changed answers: how many of which kind, in which classes, how sure the network had been."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from simulator.report.reading import Run
from simulator.report.rendering import PICTURES
from simulator.report.sections.section import Panel, Picture, Section, Table, part
from simulator.report.sections.style import figure, text
from simulator.report.words import SIDES, between, ends, points, share, title
from simulator.statistics import paired
from simulator.tasks import named
from simulator.typed import plain

CLASSES, CONFUSIONS, BINS = 25, 20, 10
_UNJUDGED = "changed, without a label"
_COLORS = {
    "right→wrong": "#d55e00", "wrong→right": "#009e73", "wrong→other": "#7a5c00",
    _UNJUDGED: "#5a5a5a",
}  # fmt: skip


@part(order=60)
def answer(run: Run) -> Section | None:
    """Show the metrics of both stacks, and the flips by kind."""
    if run.command != "run":
        return None
    summary, task = plain(run.summary), named(run.summary["task"])
    rows = []
    for metric, delta in summary["delta"].items():
        old, new = (share(summary[side]["metric"][metric], 2) for side in SIDES)
        rows.append([title(metric), old, new, points(delta), ends(delta and delta["ci95"])])
    flips, unit = summary["flips"], summary["unit"]
    kinds = [
        [name, f"{flips[kind]:,}"] for kind, name in task.kinds.items() if flips[kind] is not None
    ]
    every = [f"changed {unit}s", f"{flips['count']:,} of {flips['units']:,}"]
    lines = [f"{name}: {words}".lstrip(": ") for name, words in task.lines(summary) if words]
    return Section(
        "answer",
        "The answer in numbers",
        "How much does the metric change, and how many answers?",
        [*lines, f"Flip rate {share(flips['rate'], 2)}{between(flips['ci95'])}."],
        tables=[
            Table(["metric", "train", "deploy", "delta, points", "95 % interval"], rows,
                  "Metrics of both stacks on the same images", 1),
            Table(["answers", "count"], [every, *kinds], "Changed answers by kind", 1),
        ],
    )  # fmt: skip


@part(order=180)
def worst(run: Run) -> Section | None:
    """Show the worst flips, with their pictures where there are any."""
    if run.command != "run":
        return None
    flips, task = plain(run.summary)["worst_flips"], named(run.summary["task"])
    pictures, size, left = [], 0, 0
    for flip in flips:
        data = run.file(flip["picture"]) if flip.get("picture") else None
        if data is None:
            continue
        if size + len(data) > PICTURES:
            left += 1
        else:
            size += len(data)
            said = zip(task.titles[:2], task.words(flip), strict=False)
            pictures.append(Picture(data, f"{flip['sample']}: {', '.join(map(' '.join, said))}"))
    head = ["image", *task.titles][: 3 if pictures else 4]
    rows = [[flip["sample"], *task.words(flip)][: len(head)] for flip in flips]
    return Section(
        "worst",
        "Worst flips",
        "Which answers changed most, and what is on those images?",
        () if flips else ["No answer changed."],
        notes=[f"{_count(left, 'more picture')} in the run's folder."] if left else [],
        tables=[Table(head, rows, "The worst flips, the worst one first")] if flips else [],
        pictures=pictures,
    )


@part(order=200)
def classes(run: Run) -> Section | None:
    """Show which classes suffer."""
    pair = _classified(run)
    if pair is None:
        return None
    train, deploy = pair
    labelled = bool(run.summary["labelled"])
    counts: dict[int, Counter[str]] = {}
    sizes: Counter[int] = Counter()
    for before, after in zip(train, deploy, strict=True):
        one = before["label"] if before["label"] is not None else before["prediction"]
        sizes[one] += 1
        if before["prediction"] != after["prediction"]:
            counts.setdefault(one, Counter())[_kind(before, after)] += 1
    order = sorted(counts, key=lambda one: (-counts[one].total(), one))[:CLASSES]
    kinds = [kind for kind in _COLORS if any(counts[one][kind] for one in order)]
    names = [_named(run, one) for one in order]
    bars = [
        go.Bar(
            y=names, x=[counts[one][kind] for one in order], orientation="h", name=kind,
            marker={"color": _COLORS[kind]},
            customdata=[sizes[one] for one in order],
            hovertemplate=f"%{{y}}: {kind} %{{x}} of %{{customdata}} images<extra></extra>",
        )
        for kind in kinds
    ]  # fmt: skip
    drawn = figure(bars, 120 + 22 * len(order), "images whose answer changed", "")
    drawn.update_layout(barmode="stack", showlegend=True)
    drawn.update_yaxes(type="category", autorange="reversed")
    more = len(counts) - len(order)
    notes = [] if labelled else ["Without labels images count for what the training stack says."]
    if more > 0:
        notes.append(f"{more} classes with fewer flips are not drawn.")
    return Section(
        "classes",
        "Classes: images whose answer changed",
        "Which classes suffer?",
        () if order else ["No answer changed."],
        [Panel(drawn)] if order else [],
        notes if order else [],
        tables=_confusions(run, train, deploy) if order else [],
    )


@part(order=210)
def calibration(run: Run) -> Section | None:
    """Show how likely a flip is, by how sure the training stack was."""
    pair = _classified(run)
    if pair is None:
        return None
    train, deploy = pair
    rows = [(before, after) for before, after in zip(train, deploy, strict=True)
            if before["margin"] is not None and np.isfinite(before["margin"])]  # fmt: skip
    if len(rows) < 2:
        return None
    margin = np.array([before["margin"] for before, _ in rows])
    flipped = np.array([before["prediction"] != after["prediction"] for before, after in rows])
    order = np.argsort(margin, kind="stable")
    parts = [part for part in np.array_split(order, min(BINS, len(order))) if part.size]
    rates = [flipped[part].mean() for part in parts]
    ends = np.array([paired.wilson(int(flipped[part].sum()), len(part)) for part in parts])
    middle = np.array([np.median(margin[part]) for part in parts])
    trace = go.Scatter(
        x=middle, y=rates, mode="lines+markers", showlegend=False,
        line={"color": "#004b87", "width": 2}, marker={"color": "#004b87", "size": 8},
        error_y={
            "type": "data", "symmetric": False, "array": ends[:, 1] - rates,
            "arrayminus": rates - ends[:, 0], "color": "#004b87", "thickness": 1.5, "width": 4,
        },
        customdata=[
            [margin[part].min(), margin[part].max(), int(flipped[part].sum()), len(part)]
            for part in parts
        ],
        hovertemplate="margin %{customdata[0]:.3f} to %{customdata[1]:.3f}: %{customdata[2]} of "
        "%{customdata[3]} flipped, %{y:.1%}<extra></extra>",
    )  # fmt: skip
    drawn = figure([trace], 360, "margin of the training stack's answer", "answers that flip")
    drawn.update_yaxes(tickformat=".0%", rangemode="tozero")
    low = flipped[margin < np.median(margin)].sum()
    return Section(
        "calibration",
        "Calibration: margin against flip probability",
        "Did the network know that it might change its mind?",
        [f"{low:,} of {flipped.sum():,} flips are in the half with the smaller margins."]
        if flipped.any()
        else ["No answer changed."],
        [Panel(drawn)],
        [
            f"Margin: the best score less the second best. {_count(len(parts), 'bin')} of "
            f"{_sizes(parts)}, at their median margins; lines: 95 % Wilson intervals."
        ],
    )


Rows = list[dict[str, Any]]


def _classified(run: Run) -> tuple[Rows, Rows] | None:
    if run.command != "run" or run.summary["task"] != "classification":
        return None
    columns = ["label", "prediction", "correct", "margin"]
    train, deploy = (run.side(side).select(columns).to_pylist() for side in SIDES)
    return train, deploy


def _named(run: Run, index: int) -> str:
    """A class by its name and its number, which tells it from others of that name."""
    name = run.label(index)
    return name if name == str(index) else f"{text(name, 32)} ({index})"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _sizes(parts: Sequence[NDArray[np.intp]]) -> str:
    """How many images are in a bin."""
    sizes = sorted({len(part) for part in parts})
    return " or ".join([*(str(size) for size in sizes[:-1]), _count(sizes[-1], "image")])


def _kind(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    if before["correct"] is None:
        return _UNJUDGED
    if before["correct"]:
        return "right→wrong"
    return "wrong→right" if after["correct"] else "wrong→other"


def _confusions(run: Run, train: Rows, deploy: Rows) -> list[Table]:
    changed = Counter(
        (before["label"], before["prediction"], after["prediction"])
        for before, after in zip(train, deploy, strict=True)
        if before["prediction"] != after["prediction"]
    )
    most = sorted(changed.items(), key=lambda one: (-one[1], str(one[0])))[:CONFUSIONS]
    rows = [[*(run.label(index) for index in key), f"{count:,}"] for key, count in most]
    more = f", the first {len(rows)} of {len(changed):,}" if len(changed) > len(rows) else ""
    head = ["label", "train says", "deploy says", "images"]
    return [Table(head, rows, f"The confusion that changed{more}", 3)]
