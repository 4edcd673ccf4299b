"""Slips of answers, each found by doing it to the training stack's answers and seeing equality.

Of a classifier: labels that are shifted, a softmax too many or too few, classes in another order.
Of a detector see :mod:`simulator.diagnose.boxes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.contract import Array
from simulator.diagnose.finding import Certainty, Finding, Part
from simulator.diagnose.gap import OUTPUT_ROUNDING
from simulator.tasks.classification.answer import Answer

Floats = NDArray[np.float64]
_MIN = 5
"""Classes at least that an order is told of."""


def softmax(values: Floats) -> Floats:
    """Return the softmax of (C,) numbers."""
    powers = np.exp(values - values.max())
    found: Floats = powers / powers.sum()
    return found


@dataclass(frozen=True, slots=True)
class _Scale:
    """What was done to the scores: *train* of the training's are *deploy* of the deployment's."""

    name: str
    code: str
    train: Callable[[Floats], Floats]
    deploy: Callable[[Floats], Floats]


def _same(values: Floats) -> Floats:
    return values


_SCALES = (
    _Scale("", "", _same, _same),
    _Scale("softmax is applied twice", "leave out the softmax behind the network", softmax, _same),
    _Scale("softmax is missing", "apply a softmax to the network's outputs", _same, softmax),
    _Scale("the logarithm of the softmax is given in place of its outputs",
           "take the exponential of the outputs", lambda x: np.log(softmax(x)), _same),
)  # fmt: skip


def name_outputs(train: Sequence[Array], deploy: Sequence[Array]) -> list[Finding]:
    """Name what a classifier's outputs have that the training stack's have not.

    Args:
        train: the only output for each sample: (1, C) or (C,), logits or probabilities.
        deploy: likewise, of the same samples; perhaps with another C.

    Returns:
        The differences that together give the deployment's outputs; none where none is known.
    """
    before, after = ([one.astype(np.float64).ravel() for one in some] for some in (train, deploy))
    for scale in _SCALES:
        pairs = [(scale.train(a), scale.deploy(b)) for a, b in zip(before, after, strict=True)]
        for name, code, order in _orders(pairs):
            left = _left((a[order[0]], b[order[1]]) for a, b in pairs)
            if left is not None:
                names = [(scale.name, scale.code), (name, code)]
                return [_finding(n, c, left, len(pairs)) for n, c in names if n]
    return []


def _orders(
    pairs: Sequence[tuple[Floats, Floats]],
) -> Iterator[tuple[str, str, tuple[slice | NDArray[np.intp], slice | NDArray[np.intp]]]]:
    """Yield what may have happened to the order of classes, and the classes to compare."""
    first, second = pairs[0]
    one, two = first.size, second.size
    whole, less, more = slice(None), slice(None, -1), slice(1, None)
    if one == two:
        yield "", "", (whole, whole)
        yield "labels are shifted by one", "class k of the network is label k - 1", (less, more)
        yield "labels are shifted by one", "class k of the network is label k + 1", (more, less)
        if one >= _MIN:
            ranks = [np.argsort(values, kind="stable") for values in pairs[0]]
            name = "the classes are in another order"
            yield name, "use the label file of the training stack", (ranks[0], ranks[1])
    elif two == one + 1:
        name = f"labels are shifted by one ({two} classes against {one}: a background class first)"
        yield name, "drop the first class before the best one is taken", (whole, more)
        name = f"there is one class more at the end ({two} against {one})"
        yield name, "drop the last class", (whole, less)
    elif two + 1 == one:
        name = f"labels are shifted by one ({two} classes against {one}: the first is missing)"
        yield name, "keep the first class", (more, whole)


def _left(pairs: Iterator[tuple[Floats, Floats]]) -> float | None:
    """The largest difference, by the largest value; None where it is more than rounding."""
    worst = 0.0
    for one, two in pairs:
        if one.shape != two.shape or not one.size:
            return None
        apart, scale = float(np.abs(one - two).max()), float(np.abs(one).max())
        if not apart <= OUTPUT_ROUNDING * scale:
            return None
        worst = max(worst, apart)
    return worst


def _finding(name: str, code: str, left: float, samples: int) -> Finding:
    certainty = Certainty.EXACT if left == 0 else Certainty.ROUNDING
    how = "to the bit" if left == 0 else f"to {left:.2g}"
    told = f"The training stack's outputs, changed so, are the deployment's {how} ({samples} seen)."
    return Finding(Part.POSTPROCESS, name, (told,), certainty, left, code=code)


def name_classes(train: Sequence[Answer], deploy: Sequence[Answer]) -> list[Finding]:
    """Name what a classifier's answers have that the training stack's have not.

    Args:
        train: of each sample, with the scores of all classes.
        deploy: of the same samples: at least the class; score NaN where it is not known.

    Returns:
        The differences that together give every answer of the deployment; none where none is known.
    """
    pairs = list(zip(train, deploy, strict=True))
    steps = {theirs.prediction - ours.prediction for ours, theirs in pairs}
    found: list[tuple[str, str]] = []
    for scale in _SCALES[:2]:
        left = [_score(ours, theirs, scale.train) for ours, theirs in pairs]
        if max(left) <= OUTPUT_ROUNDING:
            found = [(scale.name, scale.code)] if scale.name else []
            break
    else:
        return []
    if len(steps) > 1:
        return []
    (step,) = steps
    if step:
        by = "one" if abs(step) == 1 else str(abs(step))
        code = f"class k of the deployment is label k {'-' if step > 0 else '+'} {abs(step)}"
        found.append((f"labels are shifted by {by}", code))
    scored = all(np.isfinite(theirs.score) for _, theirs in pairs)
    certainty = Certainty.ROUNDING if scored else Certainty.NEAREST
    told = (
        f"So changed, class{' and score' if scored else ''} of the training stack are the "
        f"deployment's on {'all ' if len(pairs) > 1 else ''}{len(pairs)} samples."
    )
    left_over = max(left) if scored else None
    return [
        Finding(Part.POSTPROCESS, name, (told,), certainty, left_over, code=code)
        for name, code in found
    ]


def _score(ours: Answer, theirs: Answer, change: Callable[[Floats], Floats]) -> float:
    """How far the deployment's score is from the changed one of the same rank; 0: not known."""
    if not np.isfinite(theirs.score) or ours.scores is None:
        return 0.0
    return float(abs(change(ours.scores)[ours.prediction] - theirs.score))


def only(outputs: object) -> Array | None:
    """Return the only output of a network; None where there are several."""
    if isinstance(outputs, Mapping) and len(outputs) == 1:
        (found,) = outputs.values()
        return found if isinstance(found, np.ndarray) else None
    return None
