"""Slips of a classifier's answers, each found by doing it to the training stack's.

Scores to which something else was done, and classes that have other numbers. Of the arrays that
networks give see :mod:`simulator.diagnose.outputs`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.diagnose.finding import Certainty, Finding, Part
from simulator.diagnose.gap import OUTPUT_ROUNDING
from simulator.tasks.classification.answer import Answer

Floats = NDArray[np.float64]
Best = tuple[int, float]
"""A class and its score."""
DIGITS = range(1, 5)
LEAST = 3
"""Classes at least, each with its right score, that show another order."""


def softmax(values: Floats) -> Floats:
    """Return the softmax of (C,) numbers."""
    powers = np.exp(values - values.max())
    found: Floats = powers / powers.sum()
    return found


def sigmoid(values: Any) -> Any:
    """Return the sigmoid of every number."""
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-values))


_OF_SCORES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "": ("", lambda p: p),
    "softmax is applied twice": ("leave out the softmax behind the network", softmax),
    "scores are in percent": ("divide by 100", lambda p: 100 * p),
    "scores are logarithms": ("take the exponential", lambda p: np.log(np.maximum(p, 1e-300))),
}
_OF_LOGITS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "a sigmoid is applied in place of softmax": ("apply a softmax", sigmoid),
    "softmax is missing": ("apply a softmax to the network's outputs", lambda x: x),
}
"""What may have been done to scores, or to what the network gives."""


def name_classes(
    train: Sequence[Answer],
    deploy: Sequence[Answer],
    logits: Sequence[Floats] = (),
    labels: Sequence[str] = (),
) -> list[Finding]:
    """Name what a classifier's answers have that the training stack's have not.

    Args:
        train: of each sample; with the scores of all classes where they are known.
        deploy: of the same samples: at least the class; score NaN where it is not known.
        logits: what the training stack's network gives for each, (C,); empty where not known.
        labels: of the classes; empty where not known.

    Returns:
        The differences that together give every answer of the deployment; none where none is known.
    """
    scored = all(np.isfinite(one.score) for one in deploy)
    given = [(one.prediction, one.score) for one in deploy]
    for name, code, best in _scales(train, logits, given[0][1]):
        left = _left(best, given) if scored else 0.0
        numbered = _numbered(best, given, labels, scored and not name)
        if left <= OUTPUT_ROUNDING and numbered is not None:
            return _findings([(name, code), numbered], left if scored else None, len(train))
    known = _unknown(train, given, len(labels)) if scored else None
    if known:
        return _findings([known], None, len(train))
    ranked = _ranked(train, given) if scored else None
    if ranked:
        return _findings([ranked], 0.0, len(train))
    if len({one for one, _ in given}) == 1 < len({one.prediction for one in train}):
        always = f"class {given[0][0]} is given for every sample"
        return _findings([(always, "take the best along the axis of classes")], None, len(train))
    return []


def _scales(
    train: Sequence[Answer], logits: Sequence[Floats], score: float
) -> Iterator[tuple[str, str, list[Best]]]:
    """Yield what may have been done to the scores, with the answers that it gives.

    Args:
        train: the training stack's answers.
        logits: what its network gives; empty where not known.
        score: the deployment's first.
    """
    every = [one.scores for one in train]
    whole = [one for one in every if one is not None]
    for name, (code, change) in _OF_SCORES.items():
        if len(whole) == len(train):
            yield name, code, [_best(change(one)) for one in whole]
        elif name != "softmax is applied twice":
            some = [change(np.array([one.score]))[0] for one in train]
            yield name, code, [(a.prediction, s) for a, s in zip(train, some, strict=True)]
    for name, (code, change) in _OF_LOGITS.items() if logits else ():
        yield name, code, [_best(change(one.astype(np.float32))) for one in logits]
    if len(whole) == len(train) and np.isfinite(score):
        with np.errstate(divide="ignore"):
            logs = [np.log(one) for one in whole]
        found = _temperature(logs[0], train[0].prediction, score)
        yield (
            f"the outputs are divided by {found:.4g} before the softmax (a temperature)",
            "leave the temperature out, or give training the same",
            [_best(softmax(one / found)) for one in logs],
        )  # fmt: skip
    for digits in DIGITS:
        yield (
            f"scores are rounded to {digits} digits", "give the whole score",
            [(one.prediction, round(one.score, digits)) for one in train],
        )  # fmt: skip


def _temperature(logs: Floats, best: int, score: float) -> float:
    """Return by what the logarithms of scores must be divided to give the best one a score."""
    low, high = 1e-2, 1e2
    for _ in range(60):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if softmax(logs / middle)[best] > score else (low, middle)
    return low


def _unknown(
    train: Sequence[Answer], deploy: Sequence[Best], classes: int
) -> tuple[str, str] | None:
    """What the best scores alone say, where those of the other classes are not known."""
    if any(one.prediction != number for one, (number, _) in zip(train, deploy, strict=True)):
        return None
    one, two = np.array([a.score for a in train]), np.array([score for _, score in deploy])
    if two.max() > 1:
        return "scores are no shares: the softmax is missing", "apply a softmax to the outputs"
    if classes > 2:
        most = np.exp(one) / (np.exp(one) + (classes - 1) * np.exp((1 - one) / (classes - 1)))
        least = np.exp(one) / (np.exp(one) + classes - 2 + np.exp(1 - one))
        if (two >= least * 0.999).all() and (two <= most * 1.001).all():
            return "softmax is applied twice", "leave out the softmax behind the network"
    return None


def _best(values: NDArray[Any]) -> Best:
    """The best class and its score, as float32 has them: of equal ones the lowest class."""
    at = int(values.astype(np.float32).argmax())
    return at, float(values[at])


def _left(train: Sequence[Best], deploy: Sequence[Best]) -> float:
    """The largest difference of scores, by the largest of them."""
    one, two = np.array([[a[1], b[1]] for a, b in zip(train, deploy, strict=True)]).T
    far, size = np.abs(one - two).max(), np.abs(one).max()
    return float(far / size) if np.isfinite(far) and size else np.inf


def _numbered(
    train: Sequence[Best], deploy: Sequence[Best], labels: Sequence[str], sure: bool
) -> tuple[str, str] | None:
    """What explains the deployment's classes; empty: they are the same; None: nothing does."""
    pairs = [(a[0], b[0]) for a, b in zip(train, deploy, strict=True)]
    if all(a == b for a, b in pairs):
        return "", ""
    steps = {b - a for a, b in pairs}
    if len(steps) == 1:
        (step,) = steps
        by = "one" if abs(step) == 1 else str(abs(step))
        code = f"class k of the deployment is label k {'-' if step > 0 else '+'} {abs(step)}"
        return f"labels are shifted by {by}", code
    place = {number: at for at, number in enumerate(np.argsort(labels, kind="stable"))}
    if labels and all(place.get(a) == b for a, b in pairs):
        return "the classes are in alphabetical order", "use the label file of the training stack"
    one_to_one = len(set(pairs)) == len({a for a, _ in pairs}) == len({b for _, b in pairs})
    if sure and one_to_one and len(pairs) >= LEAST and all(a != b for a, b in pairs):
        some = ", ".join(f"{a} is {b}" for a, b in dict.fromkeys(pairs[:3]))
        name = f"the classes are in another order (class {some})"
        return name, "use the label file of the training stack"
    return None


def _ranked(train: Sequence[Answer], deploy: Sequence[Best]) -> tuple[str, str] | None:
    """Whether another class than the best is taken, with its right score."""
    every = [one.scores for one in train if one.scores is not None]
    if len(every) < len(train):
        return None
    chosen = [(number, one[number]) for one, (number, _) in zip(every, deploy, strict=True)
              if 0 <= number < one.size]  # fmt: skip
    if len(chosen) < len(every) or _left(chosen, deploy) > OUTPUT_ROUNDING:
        return None
    ranks = {int((one > score).sum()) for one, (_, score) in zip(every, chosen, strict=True)}
    if len({number for number, _ in deploy}) == 1 < len(ranks):
        name = f"class {deploy[0][0]} is given for every sample, with its right score"
        return name, "take the best along the axis of classes"
    if len(ranks) > 1:
        return None
    (rank,) = ranks
    name = f"the class of rank {rank + 1} is taken in place of the best"
    if rank == every[0].size - 1:
        name = "the worst class is taken in place of the best"
    return name, "take the class with the largest score"


def _findings(names: Sequence[tuple[str, str]], left: float | None, samples: int) -> list[Finding]:
    certainty = Certainty.NEAREST if left is None else Certainty.ROUNDING
    told = (
        f"So changed, class{' and score' if left is not None else ''} of the training stack are "
        f"the deployment's on {'all ' if samples > 1 else ''}{samples} samples."
    )
    return [
        Finding(Part.POSTPROCESS, name, (told,), certainty, left, code=code)
        for name, code in names
        if name
    ]
