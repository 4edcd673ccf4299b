"""How far the values of two stacks are apart, and whether rounding explains it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simulator.contract import Array
from simulator.experiments.controls import difference
from simulator.results.diagnose import Gap, State
from simulator.tasks.score import Record

SAME = ("equal", "rounding")
INPUT_ROUNDING = 1e-6
"""Inputs are equal up to rounding where no value differs by more than this share of the largest:
8 units in its last place, in float32."""
OUTPUT_ROUNDING = 1e-4
"""Likewise outputs: what the order of the sums in a float32 network changes."""


@dataclass(slots=True)
class Apart:
    """Collects differences, sample by sample.

    Attributes:
        rounding: the share of the largest value up to which a difference is rounding.
        unit: of mean and largest difference.
    """

    rounding: float
    unit: str = ""
    _samples: int = 0
    _values: float = 0.0
    _mean: float = 0.0
    _largest: float = 0.0
    _relative: float = 0.0

    def add(self, train: Any, deploy: Any, scale: Array) -> None:
        """Take the values of one sample.

        Args:
            train: an array, a mapping of names to arrays, or a tuple of these.
            deploy: likewise.
            scale: differences are multiplied by it, see :func:`difference`.
        """
        share, mean, largest = difference(train, deploy, scale)
        self._samples += 1
        self._values, self._mean = self._values + share, self._mean + mean
        self._largest = max(self._largest, largest)
        self._relative = max(self._relative, _relative(train, deploy))

    @property
    def gap(self) -> Gap | None:
        """What was found; None without a sample."""
        if not self._samples:
            return None
        apart = [self._mean / self._samples, self._largest, self._relative]
        mean, largest, relative = (one if np.isfinite(one) else None for one in apart)
        return Gap(values=self._values / self._samples, mean=mean, largest=largest,
                   relative=relative, unit=self.unit)  # fmt: skip

    @property
    def state(self) -> State:
        """What that means."""
        if not self._samples:
            return "unknown"
        if self._values == 0:
            return "equal"
        return "rounding" if self._relative <= self.rounding else "differs"


def _relative(train: Any, deploy: Any) -> float:
    """The largest difference by the largest value of its array; infinite for other shapes."""
    one, two = list(_leaves(train)), list(_leaves(deploy))
    if [array.shape for array in one] != [array.shape for array in two]:
        return np.inf
    found = [0.0]
    for mine, theirs in zip(one, two, strict=True):
        apart = float(np.abs(np.subtract(mine, theirs, dtype=np.float64)).max(initial=0))
        whole = float(np.abs(mine.astype(np.float64)).max(initial=0))
        found.append(apart / whole if whole else (np.inf if apart else 0.0))
    return np.inf if np.isnan(found).any() else max(found)


def _leaves(value: Any) -> Iterator[Array]:
    if isinstance(value, Mapping):
        value = tuple(value.values())
    if isinstance(value, tuple):
        for one in value:
            yield from _leaves(one)
    else:
        yield value


def answers_apart(
    pairs: Sequence[tuple[Record, Record]], firm: Sequence[str], fractions: Sequence[str]
) -> State:
    """Return whether pairs of answers are equal, equal up to rounding, or differ.

    Args:
        pairs: of records, those of the training stack first.
        firm: the columns that say what was answered.
        fractions: those that say how surely, or where.
    """
    if not pairs:
        return "unknown"
    columns = (*firm, *fractions)
    if all(one[name] == two[name] for one, two in pairs for name in columns):
        return "equal"
    firmly = all(one[name] == two[name] for one, two in pairs for name in firm)
    near = all(_near(one[name], two[name]) for one, two in pairs for name in fractions)
    return "rounding" if firmly and near else "differs"


def _near(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    first, second = np.atleast_1d(one), np.atleast_1d(other)
    if first.shape != second.shape:
        return False
    if any(values.dtype.kind not in "biuf" for values in (first, second)):
        return bool(np.array_equal(first, second))
    bound = OUTPUT_ROUNDING * np.abs(first).max(initial=0)
    return bool(np.allclose(first, second, rtol=0, atol=bound, equal_nan=True))
