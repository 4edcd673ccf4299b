"""The figures of ``simulate sensitivity``: samples that flip, and whether a goal holds of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NotRequired, TypedDict

from simulator.analysis import gate, outcomes
from simulator.errors import UserError
from simulator.results.repair import Judged
from simulator.statistics.paired import clopper_pearson, mcnemar_midp

PROFILE = "profile.yaml"
"""The file of the stack that keeps layers."""
Flips = dict[str, bool]
"""Whether each sample flips, by its name; one that a stack cannot read is not among them."""
_FIGURE = ("flip_rate", "flips.rate")
"""The figure that a goal is about."""


class FlipRate(TypedDict):
    """How many samples flip."""

    flips: int
    images: int
    rate: float
    ci95: list[float]


class Won(TypedDict):
    """What a keep list wins against none, on the samples that went through with both."""

    flips: int
    won: int
    p: float


class Layer(TypedDict):
    """A layer; what it wins alone where that was measured."""

    name: str
    noise: float | None
    flips: NotRequired[int]
    won: NotRequired[int]
    p: NotRequired[float]


Confirmed = TypedDict(
    "Confirmed",
    {
        "without": FlipRate, "with": FlipRate, "p": float,
        "holds": bool, "sure": bool, "more": int | None,
    },
)  # fmt: skip
"""A keep list on samples that were not searched."""


class SensitivitySummary(TypedDict):
    """What is in ``summary.json``."""

    profile: str
    model: str
    goal: str
    images: dict[str, int]
    layers: list[Layer]
    searched: FlipRate
    keep: list[str] | None
    confirmed: NotRequired[Confirmed]
    skipped: int


@dataclass(frozen=True, slots=True)
class Goal:
    """What must hold, ``flip_rate < 2%``."""

    rule: gate.Rule

    @classmethod
    def parse(cls, text: str) -> Goal:
        """Read a rule.

        Raises:
            UserError: it is none, or of another figure than ``flip_rate``.
        """
        found = gate.parse(text)
        if found.name not in _FIGURE or found.times or found.op not in ("<", "<="):
            raise UserError(f"--goal {text!r}: write flip_rate < N%, for example 2%")
        return cls(gate.check([found], Judged, {})[0])

    def holds(self, flips: Flips) -> bool:
        """Whether it holds of these samples."""
        return gate.OPS[self.rule.op](sum(flips.values()) / len(flips), self.rule.limit)

    def confirmed(self, bare: Flips, kept: Flips) -> Confirmed:
        """Judge a keep list by samples that were not searched."""
        bare, kept = common(bare, kept)
        found = rate(kept)
        flips = {"count": found["flips"], "units": found["images"], **found}
        against = replace(self.rule, op=">" if self.rule.op == "<=" else ">=")
        judged = {"samples": found["images"], "flips": flips}
        (outcome,) = outcomes.evaluate([against], judged, shape=Judged).rules
        return {
            "without": rate(bare),
            "with": found,
            "p": paired(bare, kept)["p"],
            "holds": not outcome.failed,
            "sure": not outcome.chance,
            "more": outcome.more,
        }


def common(bare: Flips, kept: Flips) -> tuple[Flips, Flips]:
    """Return both on the samples that went through with both keep lists."""
    names = [name for name in bare if name in kept]
    return {name: bare[name] for name in names}, {name: kept[name] for name in names}


def paired(bare: Flips, kept: Flips) -> Won:
    """Return the flips of a keep list, how many it wins, and whether that may be chance."""
    one, other = common(bare, kept)
    lost = sum(other[name] and not one[name] for name in one)
    won = sum(one[name] and not other[name] for name in one)
    return {"flips": sum(other.values()), "won": won - lost, "p": mcnemar_midp(lost, won)}


def rate(flips: Flips) -> FlipRate:
    """Return the share of samples that flip."""
    count, total = sum(flips.values()), len(flips)
    return {
        "flips": count,
        "images": total,
        "rate": count / total,
        "ci95": [*clopper_pearson(count, total)],
    }
