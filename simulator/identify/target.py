"""What was recorded of an image, and how far a stack's own value is from it."""

from __future__ import annotations

import hashlib
import math
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from simulator.contract import Array, Frame, PixelFormat, Stage
from simulator.contract.recipe import Apply, Boundary, Recipe, Runtimes
from simulator.data.folder import Item
from simulator.data.recording import PLANES, Recording
from simulator.identify.affine import share
from simulator.identify.composer import Failed, Known
from simulator.pipeline.inference import Answered, Inferred

FAR = math.inf
SCORE = 1e-6
"""Scores that differ by less are equal: a table has them in decimal."""
GEOMETRY = "geometry"
"""The stage of the crop before the resize and of the fit after it."""
_KEPT = 4


@dataclass(frozen=True, slots=True)
class Distance:
    """How far a value is from the recorded one, of one image.

    Attributes:
        equal: whether all bits are equal; of predictions, class and score.
        mean: mean absolute difference; of predictions, by how much the recorded class falls behind
            the best one, as the logarithm of the ratio of their scores.
        largest: largest absolute difference, likewise.
        shape: the share that no scale, offset and mixture of channels explains.
    """

    equal: bool
    mean: float
    largest: float
    shape: float = 0.0


NOWHERE = Distance(equal=False, mean=FAR, largest=FAR, shape=FAR)


@dataclass(frozen=True, eq=False)
class Target:
    """A recording as the aim of a search; each process keeps the values that it read last.

    Attributes:
        recording: what was recorded.
        names: of the network's outputs, where outputs were recorded.
        ulps: tensors are equal within so many units in the last place of the largest value.
    """

    recording: Recording
    names: tuple[str, ...] = ()
    ulps: int = 0
    _values: OrderedDict[str, Any] = field(default_factory=OrderedDict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __reduce__(self) -> tuple[type[Target], tuple[Any, ...]]:
        return Target, (self.recording, self.names, self.ulps)

    @property
    def kind(self) -> str:
        """What was recorded."""
        return self.recording.spec.kind

    @property
    def until(self) -> Boundary:
        """The value of a chain that is compared; frames are cut from the input's chain."""
        ends = {"outputs": Boundary.OUTPUTS, "predictions": Boundary.ANSWER}
        return ends.get(self.kind, Boundary.INPUT)

    def of(self, item: Item) -> Any:
        """Return what was recorded of an image.

        Raises:
            SampleError: it is damaged.
        """
        with self._lock:
            if item.name not in self._values:
                self._values[item.name] = self._read(item)
                while len(self._values) > _KEPT:
                    self._values.popitem(last=False)
            return self._values[item.name]

    def cut(self, steps: Sequence[Known]) -> tuple[Known, ...]:
        """Return the steps of a front end that were run when the value was recorded."""
        if self.kind != "frames":
            return tuple(steps)
        after = self.recording.spec.after
        kept = [step for step in steps if step.gives is not Boundary.INPUT]
        if after == "decode":
            return tuple(kept[:1])
        last = max(at for at, step in enumerate(kept) if step.stage == Stage.RESIZE)
        tail = [step for step in kept[last + 1 :] if step.stage != GEOMETRY]
        return tuple(kept) if after == "geometry" else (*kept[: last + 1], *tail)

    def _read(self, item: Item) -> Any:
        found = self.recording
        if self.kind == "outputs":
            return found.outputs(item, self.names)
        if self.kind == "predictions":
            return found.prediction(item)
        return found.frame(item) if self.kind == "frames" else found.array(item)

    def distance(self, value: Any, item: Item) -> Distance:
        """Return how far a stack's value is from the recorded one.

        Raises:
            SampleError: the recorded value is damaged.
        """
        if isinstance(value, Failed):
            return NOWHERE
        wanted = self.of(item)
        if isinstance(value, Answered):
            return _answer(value.prediction, *wanted)
        if isinstance(value, Inferred):
            assert isinstance(value.outputs, Mapping)
            pairs = [(value.outputs[name], wanted[name]) for name in self.names]
            return _arrays(pairs, shaped=False)
        if self.kind != "frames":
            found = _arrays([(value, wanted)], shaped=True)
            bound = self.ulps * np.spacing(np.float32(np.abs(wanted).max(initial=0)))
            return replace(found, equal=found.equal or found.largest <= bound)
        mine = _planes(value)
        if mine.keys() != wanted.keys():
            return NOWHERE
        return _arrays([(mine[name], wanted[name]) for name in mine], shaped=True)


def _planes(value: Any) -> dict[str, Array]:
    """The arrays of a frame by the names that a recording gives them."""
    if not isinstance(value, Frame):
        return {"rgb": value}
    if value.format is PixelFormat.RGB:
        return {"rgb": value.rgb}
    return dict(zip(PLANES, (value.planes[0], *value.chroma), strict=True))


def _answer(answer: Any, prediction: int, score: float, margin: float) -> Distance:
    """Of a classifier's answer."""
    scores = np.asarray(answer.scores, np.float64)
    if prediction >= scores.size:
        return NOWHERE
    tiny = np.finfo(np.float64).tiny
    gap = float(np.log(max(scores.max(), tiny)) - np.log(max(scores[prediction], tiny)))
    off = 0.0 if math.isnan(score) else abs(float(answer.score) - score)
    off = max(off, 0.0 if math.isnan(margin) else abs(float(answer.margin) - margin))
    same = bool(answer.prediction == prediction and off <= SCORE)
    mean = gap + (off if off > SCORE else 0.0)
    return Distance(same, 0.0 if same else mean, 0.0 if same else mean)


def _arrays(pairs: Sequence[tuple[Array, Array]], shaped: bool) -> Distance:
    if any(one.shape != other.shape for one, other in pairs):
        return NOWHERE
    if all(_bits(one, other) for one, other in pairs):
        return Distance(equal=True, mean=0.0, largest=0.0)
    total, count, largest = 0.0, 0, 0.0
    for one, other in pairs:
        gap = np.abs(np.subtract(one, other, dtype=np.float32))
        total, count = total + float(gap.sum(dtype=np.float64)), count + gap.size
        largest = max(largest, float(gap.max(initial=0)))
    mean = total / max(count, 1)
    if not math.isfinite(mean):
        return NOWHERE
    return Distance(False, mean, largest, share(*pairs[0]) if shaped else mean)


def _bits(one: Array, other: Array) -> bool:
    if one.dtype != other.dtype:
        return np.array_equal(one, other)
    return one.tobytes() == other.tobytes()


@dataclass(frozen=True, eq=False)
class Compare(Recipe):
    """The last step of a trial: gives the distance from what was recorded."""

    target: Target
    stage = "postprocess"
    timed = False

    def identity(self) -> Any:
        """Return the recording."""
        return ["compare", self.target.recording.digest]

    def open(self, runtimes: Runtimes) -> Apply:
        """Return the comparison."""
        return lambda value, context: Answered("", self.target.distance(value, context.item))


@dataclass(frozen=True, eq=False)
class Hash(Recipe):
    """The last step of a chain of which only the bits count: gives their digest."""

    stage = "postprocess"
    timed = False

    def identity(self) -> Any:
        """Return a constant."""
        return ["hash"]

    def open(self, runtimes: Runtimes) -> Apply:
        """Return what digests a frame or an array."""
        return lambda value, _: Answered("", hashed(value))


def hashed(value: Any) -> str:
    """Return the digest of a frame or an array; of Failed, its reason."""
    if isinstance(value, Failed):
        return value.why
    whole = hashlib.blake2b(digest_size=16)
    if isinstance(value, Frame):
        whole.update(f"{value.format} {value.matrix} {value.range}".encode())
    for plane in value.planes if isinstance(value, Frame) else (value,):
        whole.update(f"{plane.dtype}{plane.shape}".encode())
        whole.update(np.ascontiguousarray(plane).data)
    return whole.hexdigest()
