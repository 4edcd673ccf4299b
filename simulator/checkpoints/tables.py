"""The tables of a comparison of models, as text: on screen and in the page."""

from __future__ import annotations

from collections.abc import Sequence

from simulator.report.table import Cell, Column, Table
from simulator.report.words import SIGNIFICANT, moved, share, title, turned
from simulator.results.checkpoints import Checkpoint, CheckpointColumn, Checkpoints, Recipe, Share
from simulator.typed import Unit

FIGURES = {"drop": "change, points", "flip_rate": "answers flipped, points"}
"""What is compared, in words."""


def recipes(found: Checkpoints, title: str = "") -> Table:
    """Return the accuracy of each recipe, then each column's mean and maximum."""
    rows: list[Sequence[Cell]] = [
        [name, recipe.checkpoints, *_cells(found, recipe)] for name, recipe in found.recipes.items()
    ]
    return Table([Column("recipe"), Column("checkpoints", Unit.COUNT), *_head(found)], rows, title)


def recipe_figures(found: Checkpoints) -> Table:
    """Return what :func:`recipes` has, a figure a cell, for other programs."""
    share, points = Unit.SHARE, Unit.POINTS
    columns = [Column("recipe"), Column("checkpoints", Unit.COUNT),
               Column(title(found.task, found.metric), share), Column("95 %", share)]  # fmt: skip
    for name in found.options:
        columns += [Column(f"{name} mean", points), Column(f"{name} 95 %", points),
                    Column(f"{name} sd", points), Column(f"{name} worst", points),
                    Column(f"{name} flipped", share)]  # fmt: skip
    rows: list[Sequence[Cell]] = []
    for name, recipe in found.recipes.items():
        rows.append([name, recipe.checkpoints, recipe.trained.value, recipe.trained.ci95])
        for one in map(recipe.columns.__getitem__, found.options):
            change = 0 - one.drop.value, turned(one.drop.ci95)
            rows[-1] = [*rows[-1], *change, one.std, 0 - one.max_drop, one.flip_rate.value]
    return Table(columns, rows)


def checkpoints(found: Checkpoints, title: str) -> Table:
    """Return the same of each model."""
    rows = [
        [checkpoint.model, checkpoint.recipe, *_cells(found, checkpoint)]
        for checkpoint in found.checkpoints
    ]
    return Table([Column("model"), Column("recipe"), *_head(found)], rows, title)


def comparisons(found: Checkpoints, of: str) -> Table:
    """Return how far each recipe lies from the first one, and both tests.

    Args:
        found: the figures.
        of: which one, of :data:`FIGURES`.
    """
    points, p = Unit.POINTS, Unit.PROBABILITY
    way = 1 if of == "drop" else -1
    tested = [row for row in found.comparisons if row.figure == of]
    return Table(
        [Column("recipe"), Column("column"), Column(f"less {found.first}", points),
         Column("95 % interval", points), Column("Holm p", p), Column("other trainings", points),
         Column("their Holm p", p)],
        [
            [row.recipe, row.column, 0 - way * row.value, _turned(row.ci95, way), row.p_holm,
             _turned(row.any_ci95, way), row.any_p_holm]
            for row in tested
        ],
        f"{FIGURES[of].capitalize()}, less that of {found.first}",
        marked=frozenset(at for at, row in enumerate(tested) if row.p_holm < SIGNIFICANT),
    )  # fmt: skip


def tested(found: Checkpoints) -> list[Table]:
    """Return what each recipe reaches on each option, a table a column; SysNoise's Tables 7 to 9.

    A row has the recipe, the metric on each option, their mean and standard deviation, and what
    both have more than the first recipe's, with 95 % intervals.
    """
    share, points = Unit.SHARE, Unit.POINTS
    made = []
    for column, options in found.options.items():
        rows = [row for row in found.tested if row.column == column]
        titles = [
            Column("trained on / tested on"), *(Column(name, share) for name in options),
            Column("mean", share), Column("std", share),
            Column(f"mean, less {found.first}", points), Column("95 % interval", points),
            Column(f"std, less {found.first}", points), Column("95 % interval", points),
        ]  # fmt: skip
        lines = [
            [row.recipe, *row.options.values(), row.mean, row.std,
             *(cell for less in (row.less_mean, row.less_std)
               for cell in ((less.value, less.ci95) if less else (None, None)))]
            for row in rows
        ]  # fmt: skip
        metric = title(found.task, found.metric)
        made += [Table(titles, lines, f"{column}: {metric}, %, by recipe and option")] * bool(rows)
    return made


def every(found: Checkpoints, plain: bool = False) -> list[Table]:
    """Return all tables, as the screen has them, or plain: with a figure a cell."""
    compared = [comparisons(found, of) for of in FIGURES] if found.comparisons else []
    return [recipe_figures(found) if plain else recipes(found), *compared, *tested(found)]


def _head(found: Checkpoints) -> list[Column]:
    many = {name for name, options in found.options.items() if len(options) > 1}
    columns = [f"{name} mean (worst)" if name in many else name for name in found.options]
    first = Column(title(found.task, found.metric), Unit.SHARE)
    return [first, *(Column(name, Unit.POINTS) for name in columns)]


def _cells(found: Checkpoints, one: Checkpoint | Recipe) -> Sequence[str]:
    lost = [_lost(one.columns[name], len(of) > 1) for name, of in found.options.items()]
    return [f"{share(one.trained.value, 2)} ±{_half(one.trained)}", *lost]


def _lost(column: CheckpointColumn, many: bool) -> str:
    """The change and its half interval, its spread over checkpoints, the worst option's, flips."""
    spread = "" if column.std is None else f" sd {100 * column.std:.2f}"
    most = f" ({moved(column.max_drop)})" if many else ""
    change = f"{moved(column.drop.value)} ±{_half(column.drop)}{spread}{most}"
    return f"{change} / {share(column.flip_rate.value, 1)}"


def _half(figure: Share) -> str:
    """Half of an interval, in points."""
    low, high = (end or 0.0 for end in figure.ci95)
    return f"{50 * (high - low):.2f}"


def _turned(ci95: Sequence[float | None] | None, way: int) -> Sequence[float | None] | None:
    """An interval; turned where it is that of a drop."""
    return turned(ci95) if way > 0 else ci95
