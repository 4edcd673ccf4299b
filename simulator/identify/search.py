"""The search: axis by axis where axes separate, jointly where they do not."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from simulator.data.folder import Item
from simulator.errors import ProfileError
from simulator.identify.composer import Axes, Point
from simulator.identify.trials import Score, Trials

BEAM = 6
"""Points that go on after each step."""
WIDER = 4
"""Times as many points are compared on the second image."""
ROUNDS = 4
RESTARTS = 3
"""Descents, each from where the last one ended, on the images that it missed most."""
YUV = ("color", "matrices", "decode", "sampling")
"""Blocks after which the best of each way to handle YUV goes on."""
FEW = 200
"""Combinations up to which all are compared on all images."""
WAYS = 5
"""Options of an axis of colors up to which each is a beginning."""
RACE = 2
"""Images on which the points of a step are compared at first; only the best see the others."""
SHOWN = 12
"""Runners-up that are measured on all images."""
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found.

    Attributes:
        best: the point that reproduces the recording best.
        score: of the best one, on all images.
        equal: points, the best one included, that nothing in these images tells from it.
        ranked: the next ones that differ from it, the nearest first, with their scores.
        stopped: whether the time was over before the search was.
    """

    best: Point
    score: Score
    equal: tuple[Point, ...]
    ranked: tuple[tuple[Point, Score], ...]
    stopped: bool

    @property
    def exact(self) -> bool:
        """Whether *equal* have the recorded bits."""
        return self.score.exact


class Search:
    """Finds the points of a space that reproduce a recording.

    Args:
        trials: measures points.
        items: the images that were recorded, those that are compared first in front.
        start: a possible point, usually the base.
        say: shows what is done.
        solve: adds the normalization that a point's pixels show to the options; None: nothing is
            solved.
    """

    def __init__(
        self,
        trials: Trials,
        items: Sequence[Item],
        start: Point,
        say: Say,
        solve: Callable[[Point], object] | None = None,
    ) -> None:
        self._trials, self._items, self._start, self._say = trials, list(items), start, say
        self._axes, self._names = trials.composer.axes, trials.composer.names
        self._blocks = blocks(self._axes)
        self._answers = trials.target.kind in ("outputs", "predictions")
        self._compared = RACE
        self._solve = solve

    def placed(self) -> list[Point]:
        """Return the points whose geometry and kernel fit, the best first."""
        return self._first(next(self._beginnings()))

    def run(self, placed: Sequence[Point] | None = None) -> Found:
        """Search, and measure what is left of it on all images; of few points try each.

        Raises:
            ProfileError: there are few, and none is possible.
        """
        if math.prod(map(len, self._axes.values())) <= FEW:
            scores = self._trials.scores(list(self._varied(self._start, self._names)), self._items)
            if not scores:
                raise ProfileError(["no combination of the space is a stack that runs the model"])
            return self._around(_ranked(scores)[0])
        found: dict[Point, Score] = {}
        for starts in self._beginnings():
            found |= self._from(list(placed or self._first(starts)))
            placed = None
            best = _ranked(found)[0]
            if self._trials.over or found[best].exact:
                break
        answer = self._around(best)
        return answer if answer.exact or self._trials.over else self._replaced(answer, found)

    def _replaced(self, answer: Found, found: Mapping[Point, Score]) -> Found:
        """Try all combinations of what decides about places, from the nearest point of each way.

        Nearest kernels, crops and odd sizes move pixels: one of them alone, if it is right, need
        not be nearer than a wrong one.
        """
        axes = self._places()
        if not axes:
            return answer
        self._say("geometry, kernel and odd sizes together")
        points = [
            point for one in self._each_way(answer, found) for point in self._varied(one, axes)
        ]
        first = self._race(list(dict.fromkeys(points)), 1)
        beam: list[Point] = []
        for by_shape in (False, True):
            some = self._alike(first, WIDER * BEAM, by_shape)
            beam += self._best(self._race(some, len(self._items)), BEAM, by_shape)
        scores = self._from(list(dict.fromkeys(beam)))
        best = _ranked(scores)[0]
        return self._around(best) if _behind(scores[best]) < _behind(answer.score) else answer

    def _each_way(self, answer: Found, found: Mapping[Point, Score]) -> list[Point]:
        """Return the nearest point of each way; one like the answer where none was found."""
        nearest = _ranked(found)
        start = dict(zip(self._names, self._start, strict=True))
        placed = self._with(answer.best, {axis: start[axis] for axis in self._places()})
        like = [*self._varied(answer.best, self._few), *self._varied(placed, self._few)]
        ways: dict[tuple[str, ...], Point] = {}
        for point in (answer.best, *nearest, *like):
            if way := self._way(point):
                ways.setdefault(way, point)
        return list(ways.values())

    def _alike(self, first: Mapping[Point, Score], count: int, by_shape: bool) -> list[Point]:
        """Return the nearest points, and all that are as near as one of them."""
        seen = {first[point] for point in self._best(first, count, by_shape)}
        return [point for point, score in first.items() if score in seen]

    def _places(self) -> tuple[str, ...]:
        """The axes that decide together where in the image a pixel comes from."""
        if self._answers:
            return ()
        odd = [
            axis
            for axis, options in self._axes.items()
            if {key for option in options.values() for key in option} == {"color.odd_size"}
        ]
        return (*self._blocks.get("geometry", ()), *self._blocks.get("resize", ()), *odd)

    def _from(self, beam: list[Point]) -> dict[Point, Score]:
        """Descend, and again with the worst images in front; the last points on all images."""
        left = RESTARTS
        while left:
            beam = self._descended(beam)
            self._say(f"the nearest on all {len(self._items):,} images")
            scores = self._trials.scores(beam, self._items)
            beam = _ranked(scores)
            if self._trials.over or scores[beam[0]].exact:
                break
            if self._answers and self._race(beam)[beam[0]].exact:
                self._compare_more(beam[0])
            elif self._harder(beam[0]):
                left -= 1
            else:
                break
        return scores

    def _beginnings(self) -> Iterator[list[Point]]:
        """Where a search begins: with one option of the colors changed, then from each way.

        A way is which steps there are from the file to the tensor: whose planes, resized where.
        Where shapes are alike, the geometry of one way may hide that of another.
        """
        color = self._blocks.get("color", ())
        single = [
            self._with(self._start, {axis: one}) for axis in color for one in self._axes[axis]
        ]
        yield list(dict.fromkeys([self._start, *single]))
        if self._answers:
            return
        ways = {self._way(point): [point] for point in self._varied(self._start, self._few)}
        yield from ways.values()

    @property
    def _few(self) -> list[str]:
        """The axes of colors with few options: their combinations have all ways among them."""
        return [axis for axis in self._blocks.get("color", ()) if len(self._axes[axis]) <= WAYS]

    def _way(self, point: Point) -> tuple[str, ...]:
        steps = self._trials.steps(point) or ()
        return tuple(type(step.recipe).__name__ for step in steps)

    def _descended(self, beam: list[Point]) -> list[Point]:
        """Step through all axes until nothing gets nearer."""
        for number in range(1, ROUNDS + 1):
            before = self._race(beam)[beam[0]].mean
            for name, axes in self._blocks.items():
                self._say(f"round {number}: {name} ({self._trials.tried:,} stacks compared)")
                if name == "numbers" and self._solve is not None:
                    self._solve(beam[0])
                beam = self._step(beam, axes, BEAM, apart=name in YUV)
                if self._trials.over or self._race(beam)[beam[0]].exact:
                    return beam
            if self._race(beam)[beam[0]].mean in (0.0, before):
                break
        return beam

    def _compare_more(self, point: Point) -> None:
        """Put the image in front on which a point is worst; the ones compared so far stay.

        Few images cannot tell it apart, and each trial runs the network: more of them are compared
        only where that is so.
        """
        found = self._trials.by_image(point, self._items)
        worst = max(range(len(found)), key=lambda at: (not found[at].equal, found[at].mean))
        self._items.insert(0, self._items.pop(worst))
        self._compared += 1

    def _harder(self, point: Point) -> bool:
        """Put the images in front on which a point is worst; whether that changes anything."""
        found = self._trials.by_image(point, self._items)
        order = sorted(range(len(found)), key=lambda at: -found[at].mean)
        before, self._items = self._items, [self._items[at] for at in order]
        return before[: self._compared] != self._items[: self._compared]

    def _race(self, points: Sequence[Point], images: int | None = None) -> dict[Point, Score]:
        return self._trials.scores(points, self._items[: images or self._compared])

    def _first(self, starts: Sequence[Point]) -> list[Point]:
        """Find the right geometry and kernel, whatever the colors are."""
        if self._answers:
            return [self._start]
        self._say("geometry and kernel, whatever the numbers are")
        beam = self._best(self._race(starts, 1), 2, by_shape=True) or [self._start]
        geometry, resize = (self._blocks.get(name, ()) for name in ("geometry", "resize"))
        beam = self._step(beam, geometry, 4, by_shape=True)
        beam += self._step(beam[:1], resize, 3, by_shape=True)
        beam = self._step(list(dict.fromkeys(beam)), geometry, 4, by_shape=True)
        beam = self._step(beam, self._few, 4, by_shape=True)
        return self._step(beam, resize, BEAM, by_shape=True)

    def _step(
        self,
        beam: Sequence[Point],
        axes: Sequence[str],
        count: int,
        by_shape: bool = False,
        apart: bool = False,
    ) -> list[Point]:
        """Try all options of some axes in each point of the beam; return the best points.

        Args:
            beam: points.
            axes: those that are changed.
            count: how many go on.
            by_shape: go by what least squares leave.
            apart: the best of each way to handle YUV go on as well: whether its own planes or
                encoded ones are converted, and where, decides which other options matter.
        """
        if not axes:
            return list(beam)
        points = dict.fromkeys(beam)
        for one in self._trials.quick(beam):
            varied = self._varied(one, axes)
            points |= dict.fromkeys(varied if one == beam[0] else self._trials.quick(varied))
        some = self._best(self._race(list(points), 1), WIDER * count, by_shape)
        found = self._best(self._race(some), count, by_shape) or list(beam)
        if apart:
            ways: dict[tuple[str, ...], dict[Point, Score]] = {}
            for point, score in self._race(list(points), 1).items():
                ways.setdefault(self._way(point), {})[point] = score
            found += [point for way in ways.values() for point in self._best(way, 2)]
        return list(dict.fromkeys(found))

    def _varied(self, point: Point, axes: Sequence[str]) -> list[Point]:
        """All combinations of some axes' options, the other axes as in the point."""
        rows = itertools.product(*(self._axes[axis] for axis in axes))
        return [self._with(point, dict(zip(axes, row, strict=True))) for row in rows]

    def _with(self, point: Point, picks: Mapping[str, str | None]) -> Point:
        pairs = zip(self._names, point, strict=True)
        return tuple(picks.get(axis, own) for axis, own in pairs)

    @staticmethod
    def _best(scores: Mapping[Point, Score], count: int, by_shape: bool = False) -> list[Point]:
        """The nearest points, of those with equal distances only the first."""
        alike: dict[tuple[float, float], Point] = {}
        for point, score in scores.items():
            near = (score.shape, score.mean) if by_shape else (score.mean, score.largest)
            alike.setdefault(near, point)
        return [alike[key] for key in sorted(alike)[:count]]

    def _around(self, winner: Point) -> Found:
        """Change one axis of the winner, and two that belong together: what is equal, what near."""
        self._say("what else reproduces it")
        axes = [*((axis,) for axis in self._names), *([] if self._trials.over else self._pairs())]
        near = dict.fromkeys([winner])
        for some in axes:
            near |= dict.fromkeys(self._varied(winner, some))
        first = self._race(list(near), 1)
        left, scores = self._as_near(winner, first)
        best = min(left, key=lambda point: (_behind(scores[point]), self._changes(point)))
        if best != winner and not self._trials.over:
            return self._around(best)
        others = {point: score for point, score in first.items() if point not in set(left)}
        rest = self._best(others, SHOWN) + self._nearest_by_axis(best, others)
        shown = self._trials.scores(list(dict.fromkeys(rest)), self._items)
        ranked = tuple((point, shown[point]) for point in _ranked(shown))
        return Found(best, scores[best], tuple(left), ranked, self._trials.over)

    def _as_near(
        self, winner: Point, first: Mapping[Point, Score]
    ) -> tuple[list[Point], dict[Point, Score]]:
        """The points that are nearest on all images, and scores of them on all images."""
        if not self._trials.scores([winner], self._items)[winner].exact:
            some = dict.fromkeys([winner, *self._best(first, WIDER * BEAM)])
            scores = self._trials.scores(list(some), self._items)
            seen = {first[point] for point in _least(scores) if point in first}
            alike = [point for point, score in first.items() if score in seen]
            scores |= self._trials.scores(alike, self._items)
            return _least(scores), scores
        left = [point for point, score in first.items() if score.exact]
        for images in (RACE, 3 * RACE, len(self._items)):
            scores = self._race(left, images)
            left = [point for point, score in scores.items() if score.exact]
        return left, scores

    def _nearest_by_axis(self, best: Point, others: Mapping[Point, Score]) -> list[Point]:
        """For each axis the nearest point that differs from the best in it alone."""
        found = []
        for at in range(len(self._names)):
            alone = {point: score for point, score in others.items()
                     if point[at] != best[at] and point[:at] == best[:at]
                     and point[at + 1:] == best[at + 1:]}  # fmt: skip
            found += self._best(alone, 1)
        return found

    def _changes(self, point: Point) -> int:
        """In how many axes a point differs from the start: of equal ones the fewest is named."""
        return sum(a != b for a, b in zip(point, self._start, strict=True))

    def _pairs(self) -> list[tuple[str, ...]]:
        """Axes that only together may give equal bits; not where each trial runs the network."""
        if self._answers:
            return []
        groups = [("color", "matrices", "sampling"), ("numbers",)]
        axes = [[axis for name in names for axis in self._blocks.get(name, ())] for names in groups]
        pairs = (itertools.combinations(dict.fromkeys(some), 2) for some in axes)
        return list(itertools.chain.from_iterable(pairs))


def _ranked(scores: Mapping[Point, Score]) -> list[Point]:
    """The nearest points first."""
    return sorted(scores, key=lambda point: _behind(scores[point]))


def _least(scores: Mapping[Point, Score]) -> list[Point]:
    """The points that nothing is nearer than."""
    least = min(map(_behind, scores.values()))
    return [point for point, score in scores.items() if _behind(score) == least]


def _behind(score: Score) -> tuple[int, float]:
    """The less the better: an image that it cannot match at all does not put a point last."""
    return -score.equal, score.mean


def blocks(axes: Axes) -> dict[str, tuple[str, ...]]:
    """Return the axes that are searched together, in the order in which they are.

    ``numbers`` are the order of channels and the normalization, ``execution`` is precision, graph
    and runtime, ``color`` what decides most about colors, ``matrices`` the two conversions, and
    ``sampling`` the order of steps and odd sizes. An axis may be in several.
    """
    order = (
        "numbers", "geometry", "resize", "execution", "color", "matrices", "decode", "sampling",
    )  # fmt: skip
    found: dict[str, list[str]] = {name: [] for name in order}
    for axis, options in axes.items():
        for name in _blocks({key for option in options.values() for key in option}):
            found[name].append(axis)
    return {name: tuple(inside) for name, inside in found.items() if inside}


def _blocks(keys: set[str]) -> tuple[str, ...]:
    sections = {key.partition(".")[0] for key in keys}
    if keys <= {"color.order"} or sections == {"normalize"}:
        return ("numbers",)
    parts = {".".join(key.split(".")[:2]) for key in keys}
    several = {
        "color.convert": ("color", "matrices"),
        "color.encode": ("matrices",),
        "color.odd_size": ("sampling",),
        "color.source": ("color", "sampling"),
        "resize.domain": ("color", "sampling"),
    }
    if len(parts) == 1 and (known := several.get(next(iter(parts)))):
        return known
    if "color" in sections:
        return ("color",)
    first = ("decode", "geometry", "resize")
    return (next((name for name in first if name in sections), "execution"),)
