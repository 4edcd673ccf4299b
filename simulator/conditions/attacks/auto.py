"""AutoAttack and its black-box part, Square."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from simulator import registry
from simulator.conditions.attacks import steps
from simulator.conditions.attacks.attack import Attack, Seen
from simulator.conditions.attacks.options import Option
from simulator.contract import Adversary, SampleError, Stage, Victim
from simulator.errors import UserError
from simulator.profile.implementations import Choice, implementation

F32 = NDArray[np.float32]
T = TypeVar("T")
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
        evaluations: how often all parts together may ask the network for one image, forwards or
            back; 0 for no limit. What withstood until then stays as it is.
    """

    parts: str = STANDARD
    steps: int = STEPS
    queries: int = QUERIES
    evaluations: int = 0
    name = "autoattack"
    summary = "AutoAttack: several searches within the budget, until one succeeds"
    has_chance: ClassVar[bool] = True
    options: ClassVar[Mapping[str, Option]] = {
        "parts": Option(STANDARD, _parts, f"{STANDARD} (of {', '.join(PARTS)})"),
        "steps": Option.count(STEPS, MOST),
        "queries": Option.count(QUERIES, MOST),
        "evaluations": Option.count(0, 10 * MOST),
    }

    def __post_init__(self) -> None:
        """Refuse a limit within the first search, which gives an image at its end only.

        Raises:
            UserError: nothing would be found.
        """
        first, *_ = self.parts.split("+")
        if first != SQUARE and 0 < self.evaluations <= self.steps + 1:
            raise UserError(
                f"--under {self.text}: evaluations={self.evaluations} end {first} before its "
                f"{self.steps} steps, so it finds nothing; at least {self.steps + 2} are needed"
            )

    def searches(self) -> list[Choice]:
        """Return the implementation of each part."""
        parts = self.parts.split("+")
        return [_search(part, self.budget.norm, self.steps, self.queries) for part in parts]

    def attacked(self, clean: F32, truth: int, model: Seen, rng: np.random.Generator) -> F32:
        """Run the parts until one succeeds."""
        return _first_success(self, clean, truth, model, rng)


@dataclass(frozen=True, eq=False)
class Square(Attack):
    """A search that needs answers only: of the card's model, or of a stack's in its own runtime."""

    queries: int = QUERIES
    name = SQUARE
    summary = "Square: colored squares within the budget, found by asking a model for answers"
    has_chance: ClassVar[bool] = True
    gradient: ClassVar[bool] = False
    options: ClassVar[Mapping[str, Option]] = {"queries": Option.count(QUERIES, MOST)}

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
    limit = attack.evaluations if isinstance(attack, AutoAttack) else 0
    victim, seed = _limited(model.victim(), limit), int(rng.integers(2**31))
    budget = attack.budget
    for choice in attack.searches():
        adversary: Adversary = choice.make()
        try:
            found = adversary.attacked(clean, truth, victim, budget.size, seed)
        except _Exhausted:
            return clean
        change = found.astype(np.float64) - clean
        held = steps.inside(clean, steps.projected(change, budget.norm, budget.size))
        if int(model.logits(held).argmax()) != truth:
            return held
    return clean


class _Exhausted(SampleError):
    """An image was asked for as often as it may be."""


def _limited(victim: Victim, limit: int) -> Victim:
    """Return a victim that answers so many times; 0 for one that always does."""
    if not limit:
        return victim
    left = iter(range(limit))

    def counted(function: Callable[[F32], T]) -> Callable[[F32], T]:
        def called(part: F32) -> T:
            if next(left, None) is None:
                raise _Exhausted
            return function(part)

        return called

    return Victim(counted(victim.logits), victim.at and counted(victim.at))


def _search(part: str, norm: str, steps: int, queries: int) -> Choice:
    count = {"queries": queries} if part == SQUARE else {"steps": steps}
    backend = next(one for one in registry.backends() if one.of(Stage.ATTACK))
    return implementation(Stage.ATTACK, backend, {"part": part, "norm": norm, **count})
