"""FGSM and PGD: attacks that follow the model's gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from simulator.conditions.attacks import steps
from simulator.conditions.attacks.attack import (
    COMMON,
    COMMON_WORDS,
    Attack,
    Budget,
    Seen,
    are_common,
    read,
)
from simulator.errors import UserError

F32 = NDArray[np.float32]
RANDOM, CLEAN = "random", "clean"
REL_STEP = "3/40"
"""foolbox' default, and RobustART's."""


@dataclass(frozen=True, eq=False)
class Fgsm(Attack):
    """One step of the whole budget along the sign of the gradient."""

    name = "fgsm"
    summary = "FGSM: every pixel moves by the budget, up the model's loss"
    examples: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def parse(cls, parameters: str) -> Fgsm:
        """Read ``BUDGET`` and ``resize=FILTER``.

        Raises:
            UserError: the budget is not in (0, 1], or an option is unknown.
        """
        found = read(parameters, 1, COMMON)
        budget = found and Budget.read(steps.LINF, found[0][0])
        if not found or budget is None or not are_common(found[1]):
            raise UserError(
                f"--under fgsm:{parameters}: fgsm:BUDGET expected, above 0 and at most 1, for "
                f"example fgsm:8/255; then {COMMON_WORDS}"
            )
        return cls(budget, **found[1])

    def parameters(self) -> dict[str, Any]:
        """Return the budget and the filter."""
        return {"budget": self.budget.text, **self.common}

    @property
    def text(self) -> str:
        """The condition as written for ``--under``."""
        return f"{self.name}:{self.budget.text}{self._ending}"

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
    examples: ClassVar[tuple[str, ...]] = ()

    @property
    def has_chance(self) -> bool:  # type: ignore[override]
        """Whether its start is drawn."""
        return self.start == RANDOM

    @classmethod
    def parse(cls, parameters: str) -> Pgd:
        """Read ``NORM,BUDGET`` and ``steps=``, ``restarts=``, ``step=``, ``start=``, and others.

        Raises:
            UserError: the norm or the budget is wrong, or an option.
        """
        found = read(parameters, 2, ("steps", "restarts", "step", "start", *COMMON))
        budget = found and Budget.read(*found[0])
        if not found or budget is None or not cls._valid(found[1]):
            raise UserError(
                f"--under pgd:{parameters}: pgd:NORM,BUDGET expected, NORM {', '.join(steps.NORMS)}"
                " and BUDGET above 0, for linf at most 1, for example pgd:linf,8/255; then "
                f"steps=20, restarts=1, step={REL_STEP} (of the budget), start= random or clean, "
                f"{COMMON_WORDS}"
            )
        given = dict(found[1])
        given |= {one: int(given[one]) for one in ("steps", "restarts") if one in given}
        return cls(budget, **given)

    @staticmethod
    def _valid(given: dict[str, str]) -> bool:
        whole = [given.get(one, "1") for one in ("steps", "restarts")]
        counts = all(one.isdecimal() and 0 < int(one) <= 10_000 for one in whole)
        step = Budget.read(steps.LINF, given.get("step", REL_STEP))
        start = given.get("start", RANDOM)
        once = start == RANDOM or whole[1] == "1"
        known = start in (RANDOM, CLEAN) and are_common(given)
        return counts and step is not None and known and once

    def parameters(self) -> dict[str, Any]:
        """Return all parameters."""
        return {
            "norm": self.budget.norm, "budget": self.budget.text, "steps": self.steps,
            "restarts": self.restarts, "step": self.step, "start": self.start,
            **self.common,
        }  # fmt: skip

    @property
    def text(self) -> str:
        """The condition as written for ``--under``; only what differs from the default."""
        usual = {"steps": 20, "restarts": 1, "step": REL_STEP, "start": RANDOM}
        own = {name: getattr(self, name) for name in usual}
        named = "".join(f",{name}={own[name]}" for name in usual if own[name] != usual[name])
        return f"{self.name}:{self.budget.norm},{self.budget.text}{named}{self._ending}"

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
