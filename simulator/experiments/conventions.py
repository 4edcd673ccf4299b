"""Which common convention of pixels a network was trained with: the one that answers right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simulator.command.options import Progress
from simulator.errors import UserError
from simulator.experiments.guessing import Guessing, guessing
from simulator.experiments.session import Session, Variant
from simulator.model.card import Card
from simulator.pipeline.stack import ResolvedProfile
from simulator.statistics.paired import mcnemar_exact
from simulator.tasks.score import numbers

Numbers = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Convention:
    """How pixels become numbers: ``(pixel * top / 255 - mean) / std``, as in a model card.

    Attributes:
        name: in words.
        order: of the channels, ``rgb`` or ``bgr``.
        top: 1 or 255.
        mean: of each channel, in that order.
        std: likewise.
    """

    name: str
    order: str
    top: int
    mean: Numbers
    std: Numbers

    @property
    def fields(self) -> dict[str, object]:
        """The fields of a card, by dotted key."""
        numbers = {"mean": [*self.mean], "std": [*self.std]}
        values = {"order": self.order, "top": self.top, **numbers}
        return {f"input.{key}": value for key, value in values.items()}

    @property
    def changes(self) -> list[str]:
        """The overrides of a profile, whose mean and std are on the scale 0-255."""
        mean, std = ([255 / self.top * one for one in many] for many in (self.mean, self.std))
        return [f"color.order={self.order}", f"normalize.mean={mean}", f"normalize.std={std}"]


_NONE, _ONE, _HALF = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0), (0.5, 0.5, 0.5)
CONVENTIONS = (
    Convention("ImageNet's mean and std", "rgb", 1, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    Convention("0 to 1", "rgb", 1, _NONE, _ONE),
    Convention("-1 to 1", "rgb", 1, _HALF, _HALF),
    Convention("0 to 255", "rgb", 255, _NONE, _ONE),
    Convention("Caffe's BGR without its mean", "bgr", 255, (104.0, 117.0, 123.0), _ONE),
    Convention("BGR, 0 to 1", "bgr", 1, _NONE, _ONE),
    Convention("BGR, 0 to 255", "bgr", 255, _NONE, _ONE),
)
"""torchvision's and timm's; Keras' modes ``torch``, ``tf`` and ``caffe`` (keras-team/keras,
``applications/imagenet_utils.py``); OpenCV's BGR as it is read."""


@dataclass(frozen=True, slots=True, eq=False)
class Tried:
    """A convention, and how right a stack is with it.

    Attributes:
        convention: the convention.
        found: the headline metric, beside that of a guess.
        points: of each sample 1 where it is right and 0 where it is wrong; None: of this task a
            sample may be right in part.
    """

    convention: Convention
    found: Guessing
    points: NDArray[np.float64] | None

    def beats(self, other: Tried) -> bool:
        """Whether it is better than a guess and than another one, by more than chance.

        McNemar's exact test on the same samples, at 5 % over all pairs with the best (Bonferroni);
        else the other's metric is below the interval.
        """
        if not self.found.beaten or self.points is None or other.points is None:
            return self.found.beaten and self.found.low > other.found.value
        lost = int(np.count_nonzero(self.points < other.points))
        won = int(np.count_nonzero(self.points > other.points))
        return won > lost and mcnemar_exact(lost, won) < 0.05 / (len(CONVENTIONS) - 1)


def tried(
    card: Card,
    stack: Callable[[Sequence[str]], ResolvedProfile],
    data: str | Path,
    limit: int | None,
    progress: Progress,
) -> list[Tried]:
    """Run labelled samples with each convention, in one pass; the most right comes first.

    Args:
        card: the model; of its ``input`` only the sizes are used.
        stack: returns the stack with some overrides.
        data: a folder of samples, or a data card.
        limit: take a random subset of this many samples.
        progress: called as the run goes on.

    Raises:
        UserError: the data cannot be used, or have no labels.
    """
    with Session.open(card, data, limit, 0, None, None, progress) as session:
        session.require_truth()
        stacks = []
        for number, convention in enumerate(CONVENTIONS):
            own = stack(convention.changes)
            variant = Variant(f"convention-{number}", own, {"train": own, "deploy": own})
            stacks.append(session.stack(variant))
        done = session.run(session.plan(stacks))
        made = []
        for convention, one in zip(CONVENTIONS, stacks, strict=True):
            score = done.answers(one.side).score(one.side)
            found = guessing(card.task, session.source.outputs, score, session.seed)
            if found is None:
                raise UserError(f"{data}: {card.task.headline} cannot be held against a guess")
            column = card.task.means().get(card.task.headline)
            points = numbers(score.records, column)[0] if column else None
            is_whole = points is not None and bool(np.isin(points, (0.0, 1.0)).all())
            made.append(Tried(convention, found, points if is_whole else None))
    return sorted(made, key=lambda one: -one.found.value)
