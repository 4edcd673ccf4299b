"""AutoAttack and its black-box part, Square."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from simulator import registry
from simulator.conditions.attacks import steps
from simulator.conditions.attacks.asked import Asked
from simulator.conditions.attacks.attack import (
    COMMON,
    COMMON_WORDS,
    Attack,
    Budget,
    Seen,
    are_common,
    read,
)
from simulator.conditions.attacks.target import Feed, Target
from simulator.contract import Adversary, Stage
from simulator.contract.recipe import Recipe
from simulator.errors import UserError
from simulator.model.card import Card
from simulator.model.onnxfile import ModelFile
from simulator.profile.implementations import Choice, implementation

F32 = NDArray[np.float32]
SQUARE = "square"
PARTS = ("apgd-ce", "apgd-dlr", "apgd-t", "fab", "fab-t", SQUARE)
STANDARD = ("apgd-ce", "apgd-t", "fab-t", SQUARE)
STEPS, QUERIES = 100, 5000
MOST = 100_000


@dataclass(frozen=True, eq=False)
class AutoAttack(Attack):
    """Several searches, one after the other, until one finds an image that is answered wrongly.

    An image that is answered wrongly before stays as it is, and one that withstands them all.

    Attributes:
        parts: the searches.
        steps: of each that follows gradients.
        queries: of the one that does not.
    """

    parts: tuple[str, ...] = STANDARD
    steps: int = STEPS
    queries: int = QUERIES
    name = "autoattack"
    summary = "AutoAttack: several searches within the budget, until one succeeds"
    has_chance: ClassVar[bool] = True
    examples: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def parse(cls, parameters: str) -> AutoAttack:
        """Read ``NORM,BUDGET`` and ``parts=``, ``steps=``, ``queries=``, ``resize=``, ``saved=``.

        Raises:
            UserError: the norm, the budget or an option is wrong.
        """
        found = read(parameters, 2, ("parts", "steps", "queries", *COMMON))
        budget = found and Budget.read(*found[0])
        given = dict(found[1]) if found else {}
        parts = tuple(given.pop("parts", "+".join(STANDARD)).split("+"))
        known = set(parts) <= set(PARTS) and len(set(parts)) == len(parts)
        if not found or budget is None or not known or not _valid(given, ("steps", "queries")):
            raise UserError(
                f"--under autoattack:{parameters}: autoattack:NORM,BUDGET expected, "
                f"{_budgets('autoattack')}; then parts={'+'.join(STANDARD)} (of "
                f"{', '.join(PARTS)}), steps={STEPS}, queries={QUERIES}, "
                f"{COMMON_WORDS}"
            )
        return cls(budget, parts=parts, **_whole(given, ("steps", "queries")))

    def parameters(self) -> dict[str, Any]:
        """Return all parameters."""
        return {
            "norm": self.budget.norm, "budget": self.budget.text, "parts": "+".join(self.parts),
            "steps": self.steps, "queries": self.queries, **self.common,
        }  # fmt: skip

    @property
    def text(self) -> str:
        """The condition as written for ``--under``; only what differs from the default."""
        parts = "" if self.parts == STANDARD else f",parts={'+'.join(self.parts)}"
        steps = "" if self.steps == STEPS else f",steps={self.steps}"
        queries = "" if self.queries == QUERIES else f",queries={self.queries}"
        start = f"{self.name}:{self.budget.norm},{self.budget.text}"
        return f"{start}{parts}{steps}{queries}{self._ending}"

    def searches(self) -> list[Choice]:
        """Return the implementation of each part."""
        return [_search(part, self.budget.norm, self.steps, self.queries) for part in self.parts]

    def attacked(self, clean: F32, truth: int, model: Seen, rng: np.random.Generator) -> F32:
        """Run the parts until one succeeds."""
        return _first_success(self.searches(), self.budget, clean, truth, model, rng)


@dataclass(frozen=True, eq=False)
class Square(Attack):
    """A search that needs answers only: of the card's model, or of a stack's in its own runtime.

    Attributes:
        queries: how many answers it may ask for.
        on: the profile of the stack that is asked; empty for the card's model.
    """

    queries: int = QUERIES
    on: str = ""
    name = SQUARE
    summary = "Square: colored squares within the budget, found by asking a model for answers"
    has_chance: ClassVar[bool] = True
    examples: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def parse(cls, parameters: str) -> Square:
        """Read ``NORM,BUDGET`` and ``queries=``, ``on=``, ``resize=``, ``saved=``.

        Raises:
            UserError: the norm, the budget or an option is wrong.
        """
        found = read(parameters, 2, ("queries", "on", *COMMON))
        budget = found and Budget.read(*found[0])
        if not found or budget is None or not _valid(found[1], ("queries",)):
            raise UserError(
                f"--under square:{parameters}: square:NORM,BUDGET expected, {_budgets('square')}; "
                f"then queries={QUERIES}, on=PROFILE (whose model is asked), "
                f"{COMMON_WORDS}"
            )
        return cls(budget, **_whole(found[1], ("queries",)))

    @property
    def asks(self) -> str | None:
        """The profile of the stack that is asked."""
        return self.on or None

    def parameters(self) -> dict[str, Any]:
        """Return all parameters."""
        return {
            "norm": self.budget.norm, "budget": self.budget.text, "queries": self.queries,
            "on": self.on, **self.common,
        }  # fmt: skip

    @property
    def text(self) -> str:
        """The condition as written for ``--under``; only what differs from the default."""
        queries = "" if self.queries == QUERIES else f",queries={self.queries}"
        on = f",on={self.on}" if self.on else ""
        start = f"{self.name}:{self.budget.norm},{self.budget.text}"
        return f"{start}{queries}{on}{self._ending}"

    def target(self, card: Card, source: ModelFile) -> Target | Asked:
        """Return the stack that is asked, or the card's model."""
        if not self.on:
            return super().target(card, source)
        return Asked(self.on, Feed.of(self.text, card))

    def asking(self, infer: Recipe) -> Square:
        """Return the attack on a network that was built."""
        bound = self.bound_to
        assert bound is not None
        assert isinstance(bound.target, Asked)
        return replace(self, bound_to=replace(bound, target=replace(bound.target, infer=infer)))

    def searches(self) -> list[Choice]:
        """Return its implementation."""
        return [_search(SQUARE, self.budget.norm, STEPS, self.queries)]

    def attacked(self, clean: F32, truth: int, model: Seen, rng: np.random.Generator) -> F32:
        """Search; what did not succeed is the clean image."""
        return _first_success(self.searches(), self.budget, clean, truth, model, rng)


def _first_success(
    searches: list[Choice],
    budget: Budget,
    clean: F32,
    truth: int,
    model: Seen,
    rng: np.random.Generator,
) -> F32:
    """Return the first image that is answered wrongly; the clean one where there is none."""
    if int(model.logits(clean).argmax()) != truth:
        return clean
    victim, seed = model.victim(), int(rng.integers(2**31))
    for choice in searches:
        adversary: Adversary = choice.make()
        found = adversary.attacked(clean, truth, victim, budget.size, seed)
        change = found.astype(np.float64) - clean
        held = steps.inside(clean, steps.projected(change, budget.norm, budget.size))
        if int(model.logits(held).argmax()) != truth:
            return held
    return clean


def _search(part: str, norm: str, steps: int, queries: int) -> Choice:
    count = {"queries": queries} if part == SQUARE else {"steps": steps}
    backend = next(one for one in registry.backends() if one.of(Stage.ATTACK))
    return implementation(Stage.ATTACK, backend, {"part": part, "norm": norm, **count})


def _valid(given: dict[str, Any], counts: tuple[str, ...]) -> bool:
    whole = [given.get(one, "1") for one in counts]
    known = are_common(given)
    return known and all(one.isdecimal() and 0 < int(one) <= MOST for one in whole)


def _whole(given: dict[str, Any], counts: tuple[str, ...]) -> dict[str, Any]:
    return given | {one: int(given[one]) for one in counts if one in given}


def _budgets(name: str) -> str:
    return (
        f"NORM {', '.join(steps.NORMS)} and BUDGET above 0, for linf at most 1, for example "
        f"{name}:linf,8/255"
    )
