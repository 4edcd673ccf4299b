"""What a search found, in the words of a summary."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from simulator.data.folder import Item
from simulator.identify.composer import Point
from simulator.identify.search import Found
from simulator.identify.trials import Score, Trials
from simulator.results.identify import IdentifiedAxis, RunnerUp

SHOWN = 5
"""Runners-up in a summary."""


def axes(found: Found, trials: Trials, items: Sequence[Item]) -> dict[str, IdentifiedAxis]:
    """Return for each axis the identified option, its equals, and the nearest other one."""
    names = trials.composer.names
    return {axis: _axis(found, trials, items, at) for at, axis in enumerate(names)}


def _axis(found: Found, trials: Trials, items: Sequence[Item], at: int) -> IdentifiedAxis:
    best, names = found.best, trials.composer.names
    options = list(trials.composer.axes[names[at]])
    same = [o for o in options if trials.key(_with(best, at, o)) == trials.key(best)]
    others = [point for point in found.equal if point[at] not in same]
    alone = {point[at] for point in others if _with(point, at, best[at]) == best}
    together = {point[at] for point in others} - alone
    near = next((pair for pair in found.ranked if _with(pair[0], at, best[at]) == best
                 and pair[0][at] not in same), None)  # fmt: skip
    return IdentifiedAxis(
        option=best[at] or "as in the base",
        applies=len(same) < len(options),
        equal=[o for o in options if o in alone],
        together=[o for o in options if o in together],
        **({} if near is None else {"next": near[0][at], **_far(near, trials, items)}),
    )


def runners_up(found: Found, trials: Trials, items: Sequence[Item]) -> list[RunnerUp]:
    """Return the nearest stacks that differ."""
    names, rows = trials.composer.names, []
    for point, score in found.ranked[:SHOWN]:
        pairs = zip(names, point, found.best, strict=True)
        changes = {axis: own or "as in the base" for axis, own, other in pairs if own != other}
        rows.append(
            RunnerUp(changes=changes, equal=score.equal, **_far((point, score), trials, items))
        )
    return rows


def _far(pair: tuple[Point, Score], trials: Trials, items: Sequence[Item]) -> dict[str, Any]:
    point, score = pair
    by_image = trials.by_image(point, items)
    worst = max(range(len(items)), key=lambda at: by_image[at].mean)
    return {
        "mean": finite(score.mean),
        "largest": finite(score.largest),
        "seen_in": items[worst].name,
    }


def finite(value: float) -> float | None:
    """Return a distance; None where two values could not be compared."""
    return value if math.isfinite(value) else None


def _with(point: Point, at: int, option: str | None) -> Point:
    return (*point[:at], option, *point[at + 1 :])
