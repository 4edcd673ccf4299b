"""Slips of a network's outputs, each found by doing it to the training stack's outputs.

A softmax or a sigmoid too many or too few, a factor and an offset, classes in another order, and
maps with other axes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product

import numpy as np
from numpy.typing import NDArray

from simulator.contract import Array
from simulator.diagnose.answers import sigmoid
from simulator.diagnose.finding import Certainty, Finding, Part
from simulator.diagnose.gap import OUTPUT_ROUNDING

Floats = NDArray[np.float64]
Pairs = Sequence[tuple[Floats, Floats]]
CODES, HALF = 16, 0.75
"""Whole numbers are codes where they reach so far, and are rounded by no more than this."""
LEAST = 20
"""Values at least that a factor is told of."""
_MIN = 5
"""Classes at least that an order is told of."""


def _softmax(values: Floats) -> Floats:
    """The softmax over the first axis."""
    powers = np.exp(values - values.max(axis=0))
    found: Floats = powers / powers.sum(axis=0)
    return found


def _same(values: Floats) -> Floats:
    return values


@dataclass(frozen=True, slots=True)
class _Scale:
    """What was done to the scores: *train* of the training's are *deploy* of the deployment's."""

    name: str
    code: str
    train: Callable[[Floats], Floats]
    deploy: Callable[[Floats], Floats]


_SCALES = (
    _Scale("", "", _same, _same),
    _Scale("softmax is applied twice", "leave out the softmax behind the network", _softmax, _same),
    _Scale("softmax is missing", "apply a softmax to the network's outputs", _same, _softmax),
    _Scale("the logarithm of the softmax is given in place of its outputs",
           "take the exponential of the outputs", lambda x: np.log(_softmax(x)), _same),
    _Scale("a sigmoid is applied to the outputs", "leave out the sigmoid behind the network",
           sigmoid, _same),
    _Scale("a sigmoid is missing", "apply a sigmoid to the network's outputs", _same, sigmoid),
)  # fmt: skip
_IN_GRAPH = {
    "softmax is applied twice": "it ends in a softmax that the training stack's has not",
    "softmax is missing": "the softmax at its end is missing",
    "a sigmoid is applied to the outputs": "it ends in a sigmoid that the training stack's has not",
    "a sigmoid is missing": "the sigmoid at its end is missing",
}
"""What the same is called of a network's file."""


def name_outputs(
    train: Sequence[Array], deploy: Sequence[Array], part: Part = Part.POSTPROCESS
) -> list[Finding]:
    """Name what outputs have that the training stack's have not.

    Args:
        train: the only output for each sample: (1, C), (C,), or (1, C, ...).
        deploy: likewise, of the same samples; perhaps with another C.
        part: where the difference is; the network: both were fed with the same.

    Returns:
        The differences that together give the deployment's outputs; none where none is known.
    """
    before, after = ([_whole(one) for one in some] for some in (train, deploy))
    pairs = list(zip(before, after, strict=True))
    if not pairs:
        return []
    undo = "divide by the factor, once the offset is subtracted"
    for explains, scale in product((_left, _solved), _SCALES):
        with np.errstate(all="ignore"):
            scaled = [(scale.train(a), scale.deploy(b)) for a, b in pairs]
        for name, code, changed in _orders(scaled):
            if (solved := explains(changed)) is not None:
                found, left = solved
                names = [(_named(scale, part), scale.code), (found, undo), (name, code)]
                return [_finding(n, c, left, len(pairs), part) for n, c in names if n]
    return []


def _named(scale: _Scale, part: Part) -> str:
    return _IN_GRAPH.get(scale.name, scale.name) if part is Part.NETWORK else scale.name


def _whole(values: Array) -> Floats:
    """The outputs as (C, ...), without a batch of 1."""
    found = values.astype(np.float64)
    return found[0] if found.ndim > 1 and found.shape[0] == 1 else found


def _orders(pairs: Pairs) -> Iterator[tuple[str, str, Pairs]]:
    """Yield what may have happened to the order of values, and those that then are the same."""
    one, two = (values.shape for values in pairs[0])
    if one == two:
        yield "", "", pairs
        less, more = slice(None, -1), slice(1, None)
        name = "labels are shifted by one"
        yield name, "class k of the network is label k - 1", [(a[less], b[more]) for a, b in pairs]
        yield name, "class k of the network is label k + 1", [(a[more], b[less]) for a, b in pairs]
        yield from _reordered(pairs)
    elif len(one) == len(two) and one[1:] == two[1:] and two[0] == one[0] + 1:
        name = f"labels are shifted by one ({two[0]} classes against {one[0]}: a background class"
        code = "drop the first class before the best one is taken"
        yield f"{name} first)", code, [(a, b[1:]) for a, b in pairs]
        name = f"there is one class more at the end ({two[0]} against {one[0]})"
        yield name, "drop the last class", [(a, b[:-1]) for a, b in pairs]
    elif len(one) == len(two) and one[1:] == two[1:] and two[0] + 1 == one[0]:
        name = (
            f"labels are shifted by one ({two[0]} classes against {one[0]}: the first is missing)"
        )
        yield name, "keep the first class", [(a[1:], b) for a, b in pairs]
        name = f"the last class is missing ({two[0]} against {one[0]})"
        yield name, "keep the last class", [(a[:-1], b) for a, b in pairs]
    yield from _turned(pairs, one, two)


def _reordered(pairs: Pairs) -> Iterator[tuple[str, str, Pairs]]:
    """Yield the first axis, then the last, in the order that the first sample gives."""
    axes = {0: "classes are", -1: "columns of the outputs are"}
    for axis, what in axes.items() if pairs[0][0].ndim > 1 else [*axes.items()][:1]:
        moved = [(np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0)) for a, b in pairs]
        if len({len(one) for pair in moved for one in pair}) == 1 and len(moved[0][0]) >= _MIN:
            mine, theirs = (np.argsort(_means(values), kind="stable") for values in moved[0])
            ordered = [(a[mine], b[theirs]) for a, b in moved]
            yield f"the {what} in another order", "bring them in that of training", ordered


def _turned(
    pairs: Pairs, one: tuple[int, ...], two: tuple[int, ...]
) -> Iterator[tuple[str, str, Pairs]]:
    """Yield other axes of a map, and other directions of them."""
    plain = tuple(range(len(one)))
    for axes in permutations(plain) if len(one) == len(two) > 1 else ():
        if axes != plain and tuple(two[axis] for axis in axes) == one:
            name = f"the axes of the outputs are in another order ({two} for {one})"
            if axes == (0, 2, 1):
                name = "rows and columns of the outputs are exchanged"
            yield name, f"transpose them to {one}", [(a, b.transpose(axes)) for a, b in pairs]
    for axis, name in ((1, "upside down"), (2, "mirrored")) if one == two and len(one) == 3 else ():
        yield f"the outputs are {name}", "turn them", [(a, np.flip(b, axis)) for a, b in pairs]


def _means(values: Floats) -> Floats:
    found: Floats = values.reshape(len(values), -1).mean(axis=1)
    return found


def _left(pairs: Pairs) -> tuple[str, float] | None:
    """No name, and the largest difference; None where it is more than rounding."""
    worst = 0.0
    for one, two in pairs:
        if one.shape != two.shape or not one.size:
            return None
        apart, scale = float(np.abs(one - two).max()), float(np.abs(one).max())
        if not apart <= OUTPUT_ROUNDING * scale:
            return None
        worst = max(worst, apart)
    return "", worst


def _solved(pairs: Pairs) -> tuple[str, float] | None:
    """A factor and an offset that all values have in common, by least squares."""
    if any(one.shape != two.shape or not one.size for one, two in pairs):
        return None
    one, two = (np.concatenate([pair[at].ravel() for pair in pairs]) for at in (0, 1))
    if one.size < LEAST or np.ptp(one) == 0 or not np.isfinite(two).all():
        return None
    factor, offset = np.polyfit(one, two, 1)
    left, size = float(np.abs(factor * one + offset - two).max()), float(np.abs(two).max())
    if np.array_equal(two, np.rint(two)) and np.ptp(two) >= CODES and left <= HALF:
        return f"the outputs are whole numbers, in steps of {1 / factor:.4g}", left
    if not left <= OUTPUT_ROUNDING * size:
        return None
    name = f"the outputs are multiplied by {factor:.4g}"
    if abs(offset) > OUTPUT_ROUNDING * size:
        name += f", and {offset:.4g} is added"
    return name, left


def _finding(name: str, code: str, left: float, samples: int, part: Part) -> Finding:
    certainty = Certainty.EXACT if left == 0 else Certainty.ROUNDING
    how = "to the bit" if left == 0 else f"to {left:.2g}"
    told = f"The training stack's outputs, changed so, are the deployment's {how} ({samples} seen)."
    if part is Part.FRONT_END:
        name, told = (words.replace("outputs", "inputs") for words in (name, told))
    return Finding(part, name, (told,), certainty, left, code=code)


def only(outputs: object) -> Array | None:
    """Return the only output of a network; None where there are several."""
    if isinstance(outputs, Mapping) and len(outputs) == 1:
        (found,) = outputs.values()
        return found if isinstance(found, np.ndarray) else None
    return None


def both(
    samples: Iterable[Mapping[str, object]], train: str, deploy: str
) -> list[tuple[Array, Array]]:
    """Return the only outputs of two ways of each sample; empty where one of them has several."""
    known = [one for one in samples if train in one and deploy in one]
    pairs = [(only(one[train]), only(one[deploy])) for one in known]
    whole = [(a, b) for a, b in pairs if a is not None and b is not None]
    return whole if len(whole) == len(known) else []
