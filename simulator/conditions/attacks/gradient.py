"""FGSM and PGD: attacks that follow the model's gradient."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from simulator.conditions.attacks import steps
from simulator.conditions.attacks.attack import Attack, Seen
from simulator.conditions.attacks.options import Budget, Option

F32 = NDArray[np.float32]
RANDOM, CLEAN = "random", "clean"
REL_STEP = "3/40"
"""foolbox' default, and RobustART's."""
MOST = 10_000


def _share(text: str) -> str:
    if Budget.read(steps.LINF, text) is None:
        raise ValueError(text)
    return text


@dataclass(frozen=True, eq=False)
class Fgsm(Attack):
    """One step of the whole budget along the sign of the gradient."""

    name = "fgsm"
    summary = "FGSM: every pixel moves by the budget, up the model's loss"
    norms: ClassVar[bool] = False

    def attacked(self, clean: F32, truth: int, model: Seen, rng: np.random.Generator) -> F32:
        """Take the step."""
        return steps.fgsm(clean, self.budget.size, lambda part: model.gradient(part, truth))


@dataclass(frozen=True, eq=False)
class Pgd(Attack):
    """Many small steps up the loss, back into the budget after each.

    Attributes:
        steps: how many.
        restarts: how many starts; the one that ends wrong, or with the highest loss, counts.
        step: the length of a step, as a share of the budget: a number or a fraction.
        start: ``random`` in the budget, or ``clean``.
    """

    steps: int = 20
    restarts: int = 1
    step: str = REL_STEP
    start: str = RANDOM
    name = "pgd"
    summary = "PGD: many small steps up the model's loss, within the budget"
    options: ClassVar[Mapping[str, Option]] = {
        "steps": Option.count(20, MOST),
        "restarts": Option.count(1, MOST),
        "step": Option(REL_STEP, _share, f"{REL_STEP} (of the budget)"),
        "start": Option.word(RANDOM, CLEAN),
    }

    @property
    def has_chance(self) -> bool:  # type: ignore[override]
        """Whether its start is drawn."""
        return self.start == RANDOM

    def __post_init__(self) -> None:
        """Refuse to start several times at the same place."""
        if self.start == CLEAN and self.restarts != 1:
            raise ValueError("restarts")

    def attacked(self, clean: F32, truth: int, model: Seen, rng: np.random.Generator) -> F32:
        """Follow the gradient from every start, and return the best end."""
        norm, size = self.budget.norm, self.budget.size
        share = Budget.read(steps.LINF, self.step)
        assert share is not None
        ends = []
        for _ in range(self.restarts):
            start = clean
            if self.start == RANDOM:
                start = steps.inside(clean, steps.drawn(clean.shape, norm, size, rng))
            gradients = lambda part: model.gradient(part, truth)  # noqa: E731
            ends.append(
                steps.pgd(clean, start, norm, size, share.size * size, self.steps, gradients)
            )
        return max(ends, key=lambda end: model.loss(end, truth)) if len(ends) > 1 else ends[0]
