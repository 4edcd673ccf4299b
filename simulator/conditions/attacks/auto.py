"""AutoAttack and its black-box part, Square."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from simulator import registry
from simulator.conditions.attacks import steps
from simulator.conditions.attacks.asked import Asked
from simulator.conditions.attacks.attack import Attack, Seen
from simulator.conditions.attacks.options import Option
from simulator.conditions.attacks.target import Feed, Target
from simulator.contract import Adversary, Stage
from simulator.contract.recipe import Recipe
from simulator.model.card import Card
from simulator.model.onnxfile import ModelFile
from simulator.profile.implementations import Choice, implementation

F32 = NDArray[np.float32]
SQUARE = "square"
PARTS = ("apgd-ce", "apgd-dlr", "apgd-t", "fab", "fab-t", SQUARE)
STANDARD = f"apgd-ce+apgd-t+fab-t+{SQUARE}"
STEPS, QUERIES = 100, 5000
MOST = 100_000


def _parts(text: str) -> str:
    names = text.split("+")
    if not set(names) <= set(PARTS) or len(set(names)) < len(names):
        raise ValueError(text)
    return text


@dataclass(frozen=True, eq=False)
class AutoAttack(Attack):
    """Several searches, one after the other, until one finds an image that is answered wrongly.

    An image that is answered wrongly before stays as it is, and one that withstands them all.

    Attributes:
        parts: the searches, joined by ``+``.
        steps: of each that follows gradients.
        queries: of the one that does not.
    """

    parts: str = STANDARD
    steps: int = STEPS
    queries: int = QUERIES
    name = "autoattack"
    summary = "AutoAttack: several searches within the budget, until one succeeds"
    has_chance: ClassVar[bool] = True
    options: ClassVar[Mapping[str, Option]] = {
        "parts": Option(STANDARD, _parts, f"{STANDARD} (of {', '.join(PARTS)})"),
        "steps": Option.count(STEPS, MOST),
        "queries": Option.count(QUERIES, MOST),
    }

    def searches(self) -> list[Choice]:
        """Return the implementation of each part."""
        parts = self.parts.split("+")
        return [_search(part, self.budget.norm, self.steps, self.queries) for part in parts]

    def attacked(self, clean: F32, truth: int, model: Seen, rng: np.random.Generator) -> F32:
        """Run the parts until one succeeds."""
        return _first_success(self, clean, truth, model, rng)


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
    options: ClassVar[Mapping[str, Option]] = {
        "queries": Option.count(QUERIES, MOST),
        "on": Option("", str, "PROFILE (whose model is asked)"),
    }

    @property
    def asks(self) -> str | None:
        """The profile of the stack that is asked."""
        return self.on or None

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
        return _first_success(self, clean, truth, model, rng)


def _first_success(
    attack: Attack, clean: F32, truth: int, model: Seen, rng: np.random.Generator
) -> F32:
    """Return the first image that is answered wrongly; the clean one where there is none."""
    if int(model.logits(clean).argmax()) != truth:
        return clean
    victim, seed = model.victim(), int(rng.integers(2**31))
    budget = attack.budget
    for choice in attack.searches():
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
