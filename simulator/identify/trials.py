"""Measure many stacks against a recording; what is equal is computed once."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from simulator.contract import Stage
from simulator.contract.recipe import Boundary, Chain, Recipe
from simulator.data.folder import Item
from simulator.experiments.session import Session
from simulator.identify.composer import Composer, Known, Point
from simulator.identify.target import GEOMETRY, NOWHERE, Compare, Distance, Hash, Target
from simulator.modalities.image.sections import image_spec
from simulator.pipeline.executor import SampleResult
from simulator.pipeline.plan import Arm, Plan, plan

CHUNK = 1000
"""Chains in one plan."""
SLOW = 8
"""Times as long as most resizes take."""
Steps = tuple[Known, ...]
Key = tuple[str, ...]
"""The digests of a chain's steps."""


@dataclass(frozen=True, slots=True)
class Passed:
    """Takes a distance or a digest as the whole record of an arm."""

    def __call__(
        self, predictions: Mapping[int, Any], truth: Any, source: Any
    ) -> dict[int, dict[str, object]]:
        """Return each as a record."""
        return {arm: {"found": prediction} for arm, prediction in predictions.items()}


@dataclass(frozen=True, slots=True)
class Score:
    """The distances of a stack over several images.

    Attributes:
        equal: on how many images all bits are equal.
        images: how many there are.
        mean: mean of the images' mean absolute differences.
        largest: largest absolute difference.
        shape: mean of the images' shape distances.
    """

    equal: int
    images: int
    mean: float
    largest: float
    shape: float

    @property
    def exact(self) -> bool:
        """Whether all bits of all images are equal."""
        return self.equal == self.images


class _TimeIsOverError(Exception):
    """No further sample may be run."""


class Trials:
    """Distances of the points of a space, by image; each is computed once.

    Args:
        session: the model and the samples.
        composer: makes the chains.
        target: what was recorded.
        execution: the axes of precision, graph and runtime.
        calibrated: the point whose pixels calibrate INT8.
        ends: the time of :func:`time.monotonic` from which no further sample is run for it; None:
            no limit.
    """

    def __init__(
        self,
        session: Session,
        composer: Composer,
        target: Target,
        execution: frozenset[str],
        calibrated: Point,
        ends: float | None = None,
    ) -> None:
        self.composer, self.target, self._ends = composer, target, ends
        self.execution, self.calibrated = execution, calibrated
        self._session = session
        self._distances: dict[Key, dict[str, Distance]] = defaultdict(dict)
        self._digests: dict[Key, dict[str, str]] = defaultdict(dict)

    @property
    def over(self) -> bool:
        """Whether the time is over."""
        return self._ends is not None and time.monotonic() > self._ends

    @property
    def tried(self) -> int:
        """How many different stacks were compared."""
        return sum(map(bool, self._distances.values()))

    def steps(self, point: Point) -> Steps | None:
        """Return the steps of a point up to what was recorded; None where it is impossible."""
        front = self.composer.front(point)
        if front is None:
            return None
        if self.target.until is Boundary.INPUT:
            return self.target.cut(front)
        end = self.composer.end(point, self.target.until, self._calibrating(point))
        return None if end is None else (*front, *end)

    def arithmetic(self, point: Point) -> str:
        """Return the order of arithmetic in which a point normalizes pixels."""
        chosen = self.composer.chosen(point)
        assert chosen is not None
        return str(image_spec(chosen[0]).normalize.arithmetic)

    def quick(self, points: Sequence[Point]) -> Sequence[Point]:
        """Return the points whose resize is not slow; all where all are.

        A slow one is tried beside the best point only: OpenVINO compiles for each size of image.
        """
        took = [step.seconds for step in self.composer.known if step.stage == Stage.RESIZE]
        often = float(np.median([one for one in took if one] or [0.0]))
        steps = {point: self.steps(point) or () for point in points}
        found = [
            point
            for point in points
            if not any(s.stage == Stage.RESIZE and s.seconds > SLOW * often for s in steps[point])
        ]
        return found or points

    def key(self, point: Point) -> Key | None:
        """Return what two points have in common that are the same stack; None: it is impossible."""
        steps = self.steps(point)
        return None if steps is None else _key(steps)

    def scores(self, points: Sequence[Point], items: Sequence[Item]) -> dict[Point, Score]:
        """Return the scores of all points that are possible.

        Where the time is over, those of the first one and of what was measured before.
        """
        steps = {point: self.steps(point) for point in points}
        found = {point: _key(some) for point, some in steps.items() if some is not None}
        chains = {_key(some): some for some in steps.values() if some is not None}
        names = {item.name for item in items}
        try:
            self._measure(chains, items)
        except _TimeIsOverError:
            ends, self._ends = self._ends, None
            self._measure(dict(islice(chains.items(), 1)), items)
            self._ends = ends
        return {
            point: self._score(key, items)
            for point, key in found.items()
            if names <= self._distances[key].keys()
        }

    def by_image(self, point: Point, items: Sequence[Item]) -> list[Distance]:
        """Return the distances of a point that was measured, by image."""
        found = self._distances[self.key(point) or ()]
        return [found[item.name] for item in items]

    def groups(self, points: Sequence[Point], item: Item) -> int:
        """Return into how many groups of equal pixels an image parts stacks; 0: not known.

        It is not, of an image that cannot be read, nor where the time is over.

        Args:
            points: of the space; what their runtimes make of the pixels is left out.
            item: any image.
        """
        fronts = [self.composer.front(point) for point in points]
        cut = [self.target.cut(front) for front in fronts if front is not None]
        chains = {_key(steps): steps for steps in cut}
        try:
            self._hash(chains, [item])
        except _TimeIsOverError:
            return 0
        found = {self._digests[key].get(item.name) for key in chains}
        return 0 if None in found else len(found)

    def _calibrating(self, point: Point) -> Point:
        """A point with the same runtime, and the pixels that calibrate it."""
        pairs = zip(self.composer.names, point, self.calibrated, strict=True)
        return tuple(own if axis in self.execution else other for axis, own, other in pairs)

    def _score(self, key: Key, items: Sequence[Item]) -> Score:
        found = [self._distances[key][item.name] for item in items]
        return Score(
            sum(distance.equal for distance in found),
            len(found),
            float(np.mean([distance.mean for distance in found])),
            max(distance.largest for distance in found),
            float(np.mean([distance.shape for distance in found])),
        )

    def _measure(self, chains: Mapping[Key, Steps], items: Sequence[Item]) -> None:
        """Fill in the distances that are missing."""
        batches: dict[tuple[Item, ...], dict[Key, Steps]] = defaultdict(dict)
        for key, steps in chains.items():
            known = self._distances[key]
            if missing := tuple(item for item in items if item.name not in known):
                batches[missing][key] = steps
        for missing, batch in batches.items():
            groups = self._groups(batch, missing)
            heads = {key: batch[key] for key in groups}
            for key, item, distance in self._run(heads, Compare(self.target), missing):
                for one in groups[key]:
                    self._distances[one][item] = NOWHERE if distance is None else distance

    def _groups(self, chains: Mapping[Key, Steps], items: Sequence[Item]) -> dict[Key, list[Key]]:
        """Chains that give equal bits on these images: before the resize, or before the network."""
        members = {key: [key] for key in chains}
        for cut in (_before_sizing, _before_network):
            fronts = {key: cut(chains[key]) for key in members}
            self._hash({_key(front): front for front in fronts.values() if front}, items)
            alike: dict[Any, list[Key]] = defaultdict(list)
            for key, front in fronts.items():
                known = self._digests[_key(front)] if front else {}
                bits = tuple(known[item.name] for item in items) if front else key
                alike[bits, key[len(front) :]] += members[key]
            members = {keys[0]: keys for keys in alike.values()}
        return members

    def _hash(self, chains: Mapping[Key, Steps], items: Sequence[Item]) -> None:
        names = {item.name for item in items}
        missing = {key: steps for key, steps in chains.items() if names - self._digests[key].keys()}
        for key, item, found in self._run(missing, Hash(), items):
            self._digests[key][item] = found

    def _run(
        self, chains: Mapping[Key, Steps], last: Recipe, items: Sequence[Item]
    ) -> Iterator[tuple[Key, str, Any]]:
        """Run chains on images, those with equal first steps after each other."""
        ordered = sorted(chains)
        for start in range(0, len(ordered), CHUNK):
            part = ordered[start : start + CHUNK]
            merged = self._plan([chains[key] for key in part], last)
            with closing(self._in_time(self._session.executor.run(merged, items))) as results:
                for done in results:
                    outcomes = done.partly or dict(enumerate(done.outcomes))
                    for at, key in enumerate(part):
                        found = outcomes[at].record["found"] if at in outcomes else None
                        yield key, done.item.name, found

    def _in_time(self, results: Iterator[SampleResult]) -> Generator[SampleResult, None, None]:
        """Yield results while there is time for one more sample."""
        try:
            while not self.over:
                if (done := next(results, None)) is None:
                    return
                yield done
        finally:
            if isinstance(results, Generator):  # end its threads
                results.close()
        raise _TimeIsOverError

    @staticmethod
    def _plan(chains: Sequence[Steps], last: Recipe) -> Plan:
        arms = {Arm("searched", trial=at): Chain((*steps, last)) for at, steps in enumerate(chains)}
        return plan(arms, Passed())


def _key(steps: Sequence[Known]) -> Key:
    return tuple(step.key for step in steps)


def _before_sizing(steps: Steps) -> Steps:
    """The steps before the first one that depends on the geometry."""
    sizing = (Stage.RESIZE, GEOMETRY)
    ends = [at for at, step in enumerate(steps) if step.stage in sizing]
    return steps[: ends[0]] if ends and ends[0] > 1 else ()


def _before_network(steps: Steps) -> Steps:
    """The steps up to the network's input, where the network runs."""
    ends = [at for at, step in enumerate(steps) if step.gives is Boundary.OUTPUTS]
    return steps[: ends[0]] if ends else ()
