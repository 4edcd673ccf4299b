"""The tables of a comparison of models, as text: on screen and in the page."""

from __future__ import annotations

from collections.abc import Sequence

from simulator.report.words import ends, share, title
from simulator.results.checkpoints import Checkpoint, CheckpointColumn, Checkpoints, Recipe, Share

FIGURES = {"drop": "points lost", "flip_rate": "answers flipped, in points"}
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
    """Return head and rows: how far each recipe lies above the first one, and both tests.

    Args:
        found: the figures.
        of: which one, of :data:`FIGURES`.
    """
    head = [
        "recipe", "column", f"more than {found.first}", "95 % interval", "Holm p",
        "other trainings", "their Holm p",
    ]  # fmt: skip
    rows = [
        [
            row.recipe, row.column, _signed(row.value), ends(row.ci95), _p(row.p_holm),
            ends(row.any_ci95), _p(row.any_p_holm),
        ]
        for row in found.comparisons
        if row.figure == of
    ]  # fmt: skip
    return head, rows


def _head(found: Checkpoints) -> list[str]:
    many = {name for name, options in found.options.items() if len(options) > 1}
    columns = [f"{name} mean (max)" if name in many else name for name in found.options]
    return [title(found.task, found.metric), *columns]


def _cells(found: Checkpoints, one: Checkpoint | Recipe) -> Sequence[str]:
    lost = [_lost(one.columns[name], len(of) > 1) for name, of in found.options.items()]
    return [f"{share(one.trained.value, 2)} ±{_half(one.trained)}", *lost]


def _lost(column: CheckpointColumn, many: bool) -> str:
    """Points lost and their half interval, the largest loss, and flips."""
    most = f" ({100 * column.max_drop:.2f})" if many else ""
    lost = f"{100 * column.drop.value:.2f} ±{_half(column.drop)}{most}"
    return f"{lost} / {share(column.flip_rate.value, 1)}"


def _half(figure: Share) -> str:
    """Half of an interval, in points."""
    low, high = (end or 0.0 for end in figure.ci95)
    return f"{50 * (high - low):.2f}"


def _signed(value: float) -> str:
    """A difference in points; nothing is not below 0."""
    return f"{round(100 * value, 2) + 0.0:+.2f}"


def _p(value: float | None) -> str:
    return "–" if value is None else f"{value:.2g}"
