"""The search: axis by axis where axes separate, jointly where they do not."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from simulator.data.folder import Item
from simulator.identify.composer import Axes, Composer, Point
from simulator.identify.trials import Score, Trials

BEAM = 6
"""Points that go on after each step."""
ROUNDS = 5
RACE = 2
"""Images on which all points are compared; only the best see the others."""
LARGEST = 20000
"""Combinations of one step; a step with more is taken axis by axis."""
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found.

    Attributes:
        best: the point that reproduces the recording best.
        score: of the best one, on all images.
        equal: points, the best one included, that nothing in these images tells from it.
        ranked: the next ones that differ from it, the nearest first, with their scores.
        exact: whether *equal* have the recorded bits.
        stopped: whether the time was over before the search was.
    """

    best: Point
    score: Score
    equal: tuple[Point, ...]
    ranked: tuple[tuple[Point, Score], ...]
    exact: bool
    stopped: bool


class Search:
    """Finds the points of a space that reproduce a recording.

    Args:
        trials: measures points.
        items: the images that were recorded, those that are compared first in front.
        start: a possible point, usually the base.
        say: shows what is done.
        minutes: after which no new step begins; None: no limit.
    """

    def __init__(
        self,
        trials: Trials,
        items: Sequence[Item],
        start: Point,
        say: Say,
        minutes: float | None = None,
    ) -> None:
        self._trials, self._items, self._start, self._say = trials, tuple(items), start, say
        self._axes, self._names = trials.composer.axes, trials.composer.names
        self._race = self._items[:RACE]
        self._ends = None if minutes is None else time.monotonic() + 60 * minutes
        self._seen: dict[Point, Score] = {}
        self._blocks = blocks(self._axes)

    def run(self) -> Found:
        """Search, and measure what is left of it on all images."""
        beam = self._first()
        for number in range(1, ROUNDS + 1):
            before = self._seen[beam[0]].mean
            for name, axes in self._blocks.items():
                self._say(f"round {number}: {name} ({self._trials.tried:,} stacks compared)")
                beam = self._step(beam, axes)
                if self._over:
                    break
            if self._over or self._seen[beam[0]].mean in (0.0, before):
                break
        winner = self._confirmed(beam)
        return self._around(winner)

    @property
    def _over(self) -> bool:
        return self._ends is not None and time.monotonic() > self._ends

    def _first(self) -> list[Point]:
        """Where the search begins: the right geometry and kernel, whatever the colors are."""
        geometry = self._blocks.get("geometry", ())
        starts = [self._start, *self._unlike()]
        self._measured(starts)
        if not geometry or self._trials.target.kind in ("outputs", "predictions"):
            return [one for one in starts if one in self._seen] or [self._start]
        self._say("geometry and kernel, by the shapes in the gray images")
        beam = self._best(starts, BEAM, by_shape=True)
        for axes in (geometry, self._blocks.get("resize", ())):
            beam = self._step(beam, axes, by_shape=True)
        return beam

    def _unlike(self) -> list[Point]:
        """Points with kernels and formats unlike the first one's."""
        found = []
        for name in ("resize", "color"):
            for axis in self._blocks.get(name, ()):
                options = list(self._axes[axis])
                spread = options[:: max(1, len(options) // BEAM)]
                found += [self._with(self._start, {axis: option}) for option in spread]
        return found

    def _step(
        self, beam: Sequence[Point], axes: Sequence[str], by_shape: bool = False
    ) -> list[Point]:
        """Try all options of some axes in each point of the beam; return the best points."""
        if not axes:
            return list(beam)
        points = dict.fromkeys(beam)
        for one in beam:
            points |= dict.fromkeys(self._varied(one, axes))
        self._measured(list(points))
        return self._best(points, BEAM, by_shape)

    def _varied(self, point: Point, axes: Sequence[str]) -> Iterable[Point]:
        """All combinations of some axes' options, the other axes as in the point."""
        rows = itertools.product(*(self._axes[axis] for axis in axes))
        return [self._with(point, dict(zip(axes, row, strict=True))) for row in rows]

    def _with(self, point: Point, picks: Mapping[str, str]) -> Point:
        pairs = zip(self._names, point, strict=True)
        return tuple(picks.get(axis, own) for axis, own in pairs)

    def _measured(self, points: Sequence[Point]) -> None:
        """Measure points on the first images."""
        new = [point for point in points if point not in self._seen]
        self._seen |= self._trials.scores(new, self._race)

    def _best(self, points: Iterable[Point], count: int, by_shape: bool = False) -> list[Point]:
        """The nearest points, of those with equal distances only the first."""

        def distance(point: Point) -> tuple[float, float]:
            score = self._seen[point]
            return (score.shape, score.mean) if by_shape else (score.mean, score.largest)

        alike: dict[tuple[float, float], Point] = {}
        for point in points:
            if point in self._seen:
                alike.setdefault(distance(point), point)
        return [alike[key] for key in sorted(alike)[:count]]

    def _confirmed(self, beam: Sequence[Point]) -> Point:
        """The best point on all images: of the beam, and of all that was exact so far."""
        self._say(f"the nearest on all {len(self._items):,} images")
        exact = [point for point, score in self._seen.items() if score.exact]
        scores = self._trials.scores(list(dict.fromkeys([*exact, *beam])), self._items)
        return min(scores, key=lambda point: (-scores[point].equal, scores[point].mean))

    def _around(self, winner: Point) -> Found:
        """Change one axis of the winner, and two that belong together: what is equal, what near."""
        self._say("what else reproduces it")
        whole = self._trials.scores([winner], self._items)
        near = [point for axes in self._neighbors() for point in self._varied(winner, axes)]
        self._measured(near)
        left = [point for point in dict.fromkeys([winner, *near]) if point in self._seen]
        bound = self._bound(self._seen[winner])
        alike = [point for point in left if self._seen[point].mean <= bound]
        scores = whole | self._trials.scores(alike, self._items)
        best = min(scores, key=lambda point: (-scores[point].equal, scores[point].mean))
        if scores[best].mean < scores[winner].mean and not self._over:
            return self._around(best)
        limit = self._bound(scores[best])
        equal = [point for point in scores if scores[point].mean <= limit]
        best = min(equal, key=lambda point: self._order(point, scores[point]))
        rest = self._best([point for point in left if point not in set(equal)], len(left))
        shown = self._trials.scores(rest[: 4 * BEAM], self._items)
        ranked = sorted(shown.items(), key=lambda pair: pair[1].mean)
        return Found(
            best, scores[best], tuple(equal), tuple(ranked), scores[best].exact, self._over
        )

    def _bound(self, score: Score) -> float:
        """Up to which distance a point counts as equal to the best one."""
        return 0.0 if score.mean == 0 else score.mean * (1 + 1e-9)

    def _order(self, point: Point, score: Score) -> tuple[float, int]:
        """Of equal points the one is named that differs in the fewest axes from the start."""
        return score.mean, sum(a != b for a, b in zip(point, self._start, strict=True))

    def _neighbors(self) -> list[tuple[str, ...]]:
        pixels = [
            axis for name in ("decode", "color", "chroma") for axis in self._blocks.get(name, ())
        ]
        sizing = [*self._blocks.get("resize", ()), *self._blocks.get("geometry", ())]
        joint = [*itertools.combinations(pixels, 2), *itertools.combinations(sizing, 2)]
        joint += itertools.combinations(self._blocks.get("numbers", ()), 2)
        return [*((axis,) for axis in self._names), *joint]


def blocks(axes: Axes) -> dict[str, tuple[str, ...]]:
    """Return the axes that are searched together, in the order in which they are.

    ``numbers`` are the order of channels and the normalization, ``execution`` is precision, graph
    and runtime.
    """
    found: dict[str, list[str]] = {
        name: []
        for name in ("numbers", "geometry", "resize", "execution", "color", "decode", "chroma")
    }
    for axis, options in axes.items():
        keys = {key for option in options.values() for key in option}
        found[_block(keys)].append(axis)
    return {name: tuple(inside) for name, inside in found.items() if inside}


def _block(keys: set[str]) -> str:
    sections = {key.partition(".")[0] for key in keys}
    if keys <= {"color.order"} or sections == {"normalize"}:
        return "numbers"
    if "color" in sections or keys == {"resize.domain"}:
        fine = all(key.startswith(("color.encode", "color.odd_size")) for key in keys)
        return "chroma" if fine else "color"
    first = ("decode", "geometry", "resize")
    return next((name for name in first if name in sections), "execution")
