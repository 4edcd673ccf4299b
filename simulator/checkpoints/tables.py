"""The tables of a comparison of models, as text: on screen and in the page."""

from __future__ import annotations

from collections.abc import Sequence

from simulator.report.words import ends, moved, share, title, turned
from simulator.results.checkpoints import Checkpoint, CheckpointColumn, Checkpoints, Recipe, Share

FIGURES = {"drop": "change, points", "flip_rate": "answers flipped, points"}
"""What is compared, in words."""


def recipes(found: Checkpoints) -> tuple[list[str], list[list[str]]]:
    """Return head and rows: the accuracy of each recipe, then each column's mean and maximum."""
    rows = [[name, str(one.checkpoints), *_cells(found, one)]
            for name, one in found.recipes.items()]  # fmt: skip
    return ["recipe", "checkpoints", *_head(found)], rows


def checkpoints(found: Checkpoints) -> tuple[list[str], list[list[str]]]:
    """Return head and rows: the same of each model."""
    rows = [[one.model, one.recipe, *_cells(found, one)] for one in found.checkpoints]
    return ["model", "recipe", *_head(found)], rows


def comparisons(found: Checkpoints, of: str) -> tuple[list[str], list[list[str]]]:
    """Return head and rows: how far each recipe lies from the first one, and both tests.

    Args:
        found: the figures.
        of: which one, of :data:`FIGURES`.
    """
    head = [
        "recipe", "column", f"less {found.first}", "95 % interval", "Holm p",
        "other trainings", "their Holm p",
    ]  # fmt: skip
    way = 1 if of == "drop" else -1
    rows = [
        [
            row.recipe, row.column, moved(way * row.value), _between(row.ci95, way), _p(row.p_holm),
            _between(row.any_ci95, way), _p(row.any_p_holm),
        ]
        for row in found.comparisons
        if row.figure == of
    ]  # fmt: skip
    return head, rows


def _head(found: Checkpoints) -> list[str]:
    many = {name for name, options in found.options.items() if len(options) > 1}
    columns = [f"{name} mean (worst)" if name in many else name for name in found.options]
    return [title(found.task, found.metric), *columns]


def _cells(found: Checkpoints, one: Checkpoint | Recipe) -> Sequence[str]:
    lost = [_lost(one.columns[name], len(of) > 1) for name, of in found.options.items()]
    return [f"{share(one.trained.value, 2)} ±{_half(one.trained)}", *lost]


def _lost(column: CheckpointColumn, many: bool) -> str:
    """The change and its half interval, the worst option's, and flips."""
    most = f" ({moved(column.max_drop)})" if many else ""
    change = f"{moved(column.drop.value)} ±{_half(column.drop)}{most}"
    return f"{change} / {share(column.flip_rate.value, 1)}"


def _half(figure: Share) -> str:
    """Half of an interval, in points."""
    low, high = (end or 0.0 for end in figure.ci95)
    return f"{50 * (high - low):.2f}"


def _between(ci95: Sequence[float | None] | None, way: int) -> str:
    """An interval in points; turned where it is that of a drop."""
    return ends(turned(ci95) if way > 0 else ci95)


def _p(value: float | None) -> str:
    return "–" if value is None else f"{value:.2g}"
