"""Slips of boxes, each found by doing it to the training stack's boxes and seeing equality.

First where the deployment's boxes are (not mapped back from the letterbox, in shares of the image,
corners read as sizes), what numbers their classes have and what was done to their scores; then
which are missing; and the same of boxes that the training stack's outputs give otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.diagnose.fewer import Found, fewer
from simulator.diagnose.finding import Certainty, Finding, Part
from simulator.diagnose.places import Floats, Move, Place, moves
from simulator.diagnose.suppressed import SCORE, Again, Other, others
from simulator.modalities.image.geometry import Placement
from simulator.tasks.detection.boxes import Detections
from simulator.tasks.detection.settings import Settings

TIGHT, NEAR = 2e-5, 1e-3
"""Boxes are equal where no side is further away, as a share of the largest number; what is found
with the first comes first."""
QUICK = 3
"""Boxes of an image by which most is ruled out."""
_COCO = np.setdiff1d(np.arange(1, 91), [12, 26, 29, 30, 45, 66, 68, 69, 71, 83])
"""The numbers of COCO's 80 classes in its annotations."""


@dataclass(frozen=True)
class Seen:
    """One image.

    Attributes:
        train: the training stack's boxes.
        deploy: the deployment's.
        placement: where the image lies in the training stack's network.
        again: what the training stack's outputs give with another suppression, and with other
            scores; None: not known.
    """

    train: Detections
    deploy: Detections
    placement: Placement
    again: Again | None = None


def name_boxes(seen: Sequence[Seen], settings: Settings | None) -> list[Finding]:
    """Name what a detector's boxes have that the training stack's have not.

    Args:
        seen: every image, one at least with a box of either stack.
        settings: of the training stack's postprocessing; None where they are not known.

    Returns:
        The differences that together give the deployment's boxes; none where none is known.
    """
    if not any(len(one.train) and len(one.deploy) for one in seen):
        return []
    rules = (settings.scale, settings.padding) if settings else ()
    places = [Place(one.placement, *rules) for one in seen]
    every = [Other("", tuple(one.train for one in seen))]
    runs = [one.again for one in seen if one.again is not None]
    if settings and len(runs) == len(seen):
        every += others(runs, [one.deploy for one in seen], settings)
    for near in (TIGHT, NEAR):
        found = list[list[Finding]]()
        for other in every:
            names = _explained(seen, other, places, near)
            if names is not None:
                found.append(names)
                if len(names) < 2:
                    return names
        if found:
            return min(found, key=len)
    return []


def _explained(
    seen: Sequence[Seen], other: Other, places: Sequence[Place], near: float
) -> list[Finding] | None:
    """Name what makes the deployment's boxes of others; None where nothing does."""
    for name, code, move in moves():
        pairs = _matched(seen, other, places, move, near)
        if pairs is None:
            continue
        classes, scores, lost = _classes(pairs), _scores(pairs), fewer(pairs)
        if classes is None or scores is None or lost is None:
            continue
        told = [(other.name, other.code, other.change), (name, code, {}), (*classes, {}),
                (*scores, {}), lost]  # fmt: skip
        return [_finding(n, c, seen, near, change) for n, c, change in told if n]
    return None


def _matched(
    seen: Sequence[Seen], other: Other, places: Sequence[Place], move: Move, near: float
) -> list[Found] | None:
    """Find every box of the deployment among others, once these are moved."""
    found = []
    for one, train, place in zip(seen, other.boxes, places, strict=True):
        moved = Detections(move(train.boxes, place), train.scores, train.classes)
        there = match(one.deploy, moved, near)
        if there is None:
            return None
        found.append(Found(train, one.deploy, there, place.at))
    return found


def match(few: Detections, many: Detections, near: float = NEAR) -> NDArray[np.intp] | None:
    """Return the index in *many* of every box of *few*, each once; None where one is not there.

    Where several boxes lie in one place, the one of the same class and the nearest score is taken.
    """
    if len(few) > len(many):
        return None
    size = near * float(np.abs(many.boxes).max(initial=0))
    first = np.abs(few.boxes[:QUICK, None] - many.boxes[None]).max(axis=2)
    if not (first.min(axis=1, initial=np.inf) <= size).all():
        return None
    apart = np.abs(few.boxes[:, None] - many.boxes[None]).max(axis=2)
    unlike = np.abs(few.scores[:, None] - many.scores[None])
    unlike += 10.0 * (few.classes[:, None] != many.classes[None])
    cost = np.where(apart <= size, unlike, np.inf)
    found = np.full(len(few), -1)
    for row in np.argsort(cost.min(axis=1, initial=np.inf), kind="stable"):
        at = int(cost[row].argmin()) if cost.shape[1] else -1
        if at < 0 or not np.isfinite(cost[row, at]):
            return None
        found[row] = at
        cost[:, at] = np.inf
    return found


def _classes(pairs: Sequence[Found]) -> tuple[str, str] | None:
    """What happened to the numbers of classes; empty: nothing; None: what no one number says."""
    one = np.concatenate([pair.train.classes[pair.there] for pair in pairs])
    two = np.concatenate([pair.deploy.classes for pair in pairs])
    if np.array_equal(one, two):
        return "", ""
    steps = np.unique(two - one)
    if steps.size == 1:
        by = "one" if abs(steps[0]) == 1 else str(abs(steps[0]))
        sign = "-" if steps[0] > 0 else "+"
        first = ": a background class first" if steps[0] == 1 else ""
        return f"classes are shifted by {by}{first}", f"class k is label k {sign} {abs(steps[0])}"
    if one.max() < _COCO.size and np.array_equal(_COCO[one], two):
        return "classes have COCO's numbers of 1 to 90", "count the 80 classes from 0"
    known = dict(zip(one.tolist(), two.tolist(), strict=True))
    if all(known[a] == b for a, b in zip(one.tolist(), two.tolist(), strict=True)):
        some = ", ".join(f"{a} is {b}" for a, b in [*known.items()][:3])
        return f"the classes are in another order (class {some})", "use training's label file"
    return None


_SCORES: tuple[tuple[str, str, Callable[[Floats], Floats]], ...] = (
    ("", "", lambda s: s),
    ("scores are in percent", "divide by 100", lambda s: 100 * s),
    ("scores are square roots", "square them", np.sqrt),
    ("scores are squares", "take the square root", np.square),
    ("a sigmoid is applied to scores once more", "leave it out", lambda s: 1 / (1 + np.exp(-s))),
    ("all scores are 1", "give the score of each box", np.ones_like),
)


def _scores(pairs: Sequence[Found]) -> tuple[str, str] | None:
    """What happened to the scores; empty: nothing; None: nothing that is known."""
    one = np.concatenate([pair.train.scores[pair.there] for pair in pairs])
    two = np.concatenate([pair.deploy.scores for pair in pairs])
    for name, code, change in _SCORES:
        wanted = change(one)
        if np.abs(wanted - two).max(initial=0) <= SCORE * np.abs(wanted).max(initial=1):
            return name, code
    return None


def _finding(
    name: str, code: str, seen: Sequence[Seen], near: float, change: Mapping[str, object]
) -> Finding:
    boxes = sum(len(one.deploy) for one in seen)
    told = (
        f"The training stack's boxes, changed so, are the deployment's: {boxes} boxes in "
        f"{len(seen)} images, to {near:g} of the largest side and {SCORE:g} of a score."
    )
    return Finding(Part.POSTPROCESS, name, (told,), Certainty.ROUNDING, near, change, code=code)
