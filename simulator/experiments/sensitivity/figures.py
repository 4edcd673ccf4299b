"""What ``simulate sensitivity`` finds and prints: samples that flip, and whether a goal holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NotRequired, TypedDict

from rich.console import Console

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


def show(found: SensitivitySummary, folder: str, console: Console) -> None:
    """Print the keep list and what it wins."""
    for line in _lines(found, f"{folder}/{PROFILE}"):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _lines(found: SensitivitySummary, profile: str) -> Iterator[str]:
    layers, goal, searched = len(found["layers"]), found["goal"], found["searched"]
    if found["keep"] is None:
        yield f"no keep list reaches {goal}, not even all {layers} layers in FP32"
        yield f"without: {_rate(searched)}"
    else:
        told, kept = found["confirmed"], len(found["keep"])
        what = f"{kept} of {layers} layers in FP32 reach" if kept else "no layer need be kept for"
        yield f"{what} {goal}: {_confirmed(told)}"
        yield f"without: {_rate(told['without'])}"
        if kept:
            yield f"with:    {_rate(told['with'])}, paired p {told['p']:.2g}"
            yield f"profile: {profile}"
    if found["skipped"]:
        yield f"skipped: {found['skipped']} images that a stack could not read"
    tried = [one for one in found["layers"] if "flips" in one]
    yield (
        f"alone in FP32, flips of {searched['images']} (without {searched['flips']}); with "
        f"{len(tried)} layers tried, p above {0.05 / max(len(tried), 1):.2g} is within chance:"
    )
    for one in tried:
        yield f"  {one['name']}: {one['flips']} ({-one['won']:+d}), p {one['p']:.2g}"


def _confirmed(told: Confirmed) -> str:
    """Return whether images that were not searched confirm it, and how sure that is."""
    flips, images = told["with"]["flips"], told["with"]["images"]
    seen = f"{flips} of {images} images that were not searched flip"
    if told["sure"]:
        return f"confirmed, {seen}" if told["holds"] else f"not confirmed, {seen}"
    end = told["with"]["ci95"][1 if told["holds"] else 0]
    more = f"; {told['more']:,} more would decide it if the rate stays" if told["more"] else ""
    return f"UNDECIDED, {seen}, but {100 * end:.1f} % cannot be excluded{more}"


def _rate(of: FlipRate) -> str:
    low, high = (100 * end for end in of["ci95"])
    return (
        f"{100 * of['rate']:.1f} % of {of['images']} images flip "
        f"(95 % interval {low:.1f} to {high:.1f})"
    )
