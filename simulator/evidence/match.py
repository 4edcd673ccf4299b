"""How near the results of an implementation here are to recorded ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from simulator.contract import Array
from simulator.evidence.document import Recorded
from simulator.evidence.inputs import Attempt


@dataclass(frozen=True, slots=True)
class Match:
    """How near the results of an implementation here are to the recorded ones.

    Attributes:
        name: of the implementation, with its options.
        equal: on how many inputs all bits are equal.
        compared: on how many inputs one of the two gave a result.
        unlike: on how many inputs the shapes differ, or one of the two refused.
        mean: mean absolute difference over the inputs whose shapes are equal.
        largest: largest absolute difference, likewise.
        unknown: recorded inputs that this simulator does not have, or has otherwise.
    """

    name: str
    equal: int
    compared: int
    unlike: int
    mean: float
    largest: float
    unknown: int

    @property
    def exact(self) -> bool:
        """Whether there is something to compare, and all of it is equal."""
        return 0 < self.compared == self.equal

    def __str__(self) -> str:
        """Return the figures in words."""
        if not self.compared:
            return "nothing to compare"
        parts = [f"{self.equal} of {self.compared} inputs bit-equal"]
        if not self.exact:
            parts.append(f"mean {self.mean:.3g}, largest {self.largest:.3g}")
        if self.unlike:
            parts.append(f"{self.unlike} of another shape or refused")
        if self.unknown:
            parts.append(f"{self.unknown} inputs unknown here")
        return ", ".join(parts)

    @property
    def order(self) -> tuple[float, ...]:
        """The smaller, the nearer."""
        return (-self.equal, self.unlike, self.mean)


def matched(
    name: str, recorded: Recorded, attempts: Sequence[Attempt], arrays: Mapping[str, Array]
) -> Match:
    """Compare what an implementation gave with a recording.

    Args:
        name: of the implementation.
        recorded: the recording.
        attempts: of the implementation, on every input of its stage.
        arrays: the recorded ones, by their SHA-256.
    """
    equal = compared = unlike = 0
    means, largest = [], []
    known = {
        attempt.name for attempt in attempts if recorded.inputs.get(attempt.name) == attempt.digest
    }
    for attempt in attempts:
        theirs = [arrays[sha] for sha in recorded.arrays.get(attempt.name, ())]
        ours = [] if isinstance(attempt.outcome, str) else list(attempt.outcome)
        if attempt.name not in known or not (theirs or ours):
            continue
        compared += 1
        if [a.shape for a in theirs] != [a.shape for a in ours]:
            unlike += 1
            continue
        pairs = list(zip(ours, theirs, strict=True))
        if all(a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in pairs):
            equal += 1
            means.append(0.0)
            largest.append(0.0)
        else:
            gaps = np.concatenate([_gaps(a, b).ravel() for a, b in pairs])
            means.append(float(gaps.mean()) if gaps.size else 0.0)
            largest.append(float(gaps.max(initial=0)))
    mean, most = (
        float(np.nan_to_num(of(values), nan=np.inf, posinf=np.inf)) if values else np.inf
        for of, values in ((np.mean, means), (np.max, largest))
    )
    return Match(name, equal, compared, unlike, mean, most, len(recorded.inputs) - len(known))


def _gaps(ours: Array, theirs: Array) -> Array:
    """Return the absolute differences of two arrays of one shape."""
    pixels = ours.dtype == theirs.dtype == np.uint8
    wide = np.int16 if pixels else np.float64
    with np.errstate(invalid="ignore", over="ignore"):
        gaps: Array = np.abs(ours.astype(wide) - theirs.astype(wide))
    return gaps
