"""The space of a search: every combination of options, what it costs, and which are not beaten."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from simulator.errors import ProfileError, UserError
from simulator.experiments.common import chosen
from simulator.experiments.search import space as search
from simulator.experiments.search.space import Pick, Picks
from simulator.pipeline.stack import ResolvedProfile
from simulator.profile import axes
from simulator.profile.suite import overrides
from simulator.repair.document import MEASURED, OptionSpec, Repairs
from simulator.results.repair import Cost

EXACT = 64
"""Up to this many stacks, every one runs on every image of the search; beyond it, halving."""
MOST = 1024
"""More stacks than these are refused."""
NAME = "deploy"
"""The name of the deployment as it is."""

_MEASURES = ("ms", "hours", "memory_mib")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Candidate:
    """One stack of the search."""

    picks: Picks
    chosen: ResolvedProfile = field(compare=False)

    @property
    def name(self) -> str:
        """As records call it: ``resize/area + precision/fp16``."""
        return name_of(self.picks)


def name_of(picks: Picks) -> str:
    """Return the name of a stack with these changes."""
    return " + ".join("/".join(pick) for pick in picks) or NAME


@dataclass(frozen=True)
class Space(search.Space):
    """Every combination that can be built, of at most one option of each axis.

    Attributes:
        repairs: the document.
        candidates: the deployment as it is first.
        left_out: why the others cannot be built, by name.
    """

    repairs: Repairs = field(kw_only=True)
    candidates: tuple[Candidate, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)

    def stack(self, picks: Picks | Mapping[str, str]) -> ResolvedProfile:
        """Return the deployment with some options.

        Raises:
            UserError: two options write another value into one field, or the profile is refused.
        """
        return chosen(self.base, [*self.changes, *overrides(self.written(picks))])

    def written(self, picks: Picks | Mapping[str, str]) -> dict[str, Any]:
        """Return what options write together: dotted keys of a profile and their values.

        A field that one option takes away (None) stays away, whatever another says of it.

        Raises:
            UserError: two options write another value into the same field.
        """
        fields: dict[str, tuple[Any, str]] = {}
        for axis, name in dict(picks).items():
            own = f"{axis}/{name}"
            for key, value in axes.flat(self.axes[axis][name]).items():
                before, by = fields.get(key, (value, own))
                if before != value and None not in (before, value):
                    raise UserError(f"{by} and {own} both set {key}")
                fields[key] = (None if before is None else value), own
        gone = tuple(f"{key}." for key, (value, _) in fields.items() if value is None)
        return {key: value for key, (value, _) in fields.items() if not key.startswith(gone)}

    def option(self, pick: Pick) -> OptionSpec:
        """Return what the document says of an option."""
        return self.repairs.spec.axes[pick[0]][pick[1]]

    @property
    def order(self) -> Sequence[str]:
        """The measures of cost, the first one counts most."""
        return self.repairs.spec.order

    @property
    def measured(self) -> list[Pick]:
        """The options whose milliseconds are measured."""
        return [pick for pick in self.picks if self.option(pick).cost.ms == MEASURED]

    def cost(self, picks: Picks, measured: Mapping[Pick, float]) -> Cost:
        """Return what a stack costs: the sum over its changes.

        Args:
            picks: its changes.
            measured: the milliseconds of the options whose cost is measured.
        """
        specs = [self.option(pick).cost for pick in picks]
        ms, hours, memory_mib = (math.fsum(of) for of in self._each(picks, measured, _MEASURES))
        return Cost(
            ms=round(ms, 6),
            measured=any(spec.ms == MEASURED for spec in specs),
            hours=hours,
            memory_mib=memory_mib,
            work=[spec.work for spec in specs if spec.work],
        )

    def rank(self, picks: Picks, measured: Mapping[Pick, float]) -> tuple[Any, ...]:
        """Return what stacks are ordered by, the cheapest first: cost, then fewer changes.

        What an option saves counts as free: to be faster is no reason for a change, and pays for
        no other one.
        """
        own = self._each(picks, measured, self.order)
        costs = (round(math.fsum(max(0.0, one) for one in of), 9) for of in own)
        return (*costs, len(picks), name_of(picks))

    def _each(
        self, picks: Picks, measured: Mapping[Pick, float], measures: Sequence[str]
    ) -> Iterator[list[float]]:
        """Yield by measure what each change costs; the milliseconds of some are *measured*."""
        for by in measures:
            costs = [(pick, getattr(self.option(pick).cost, by)) for pick in picks]
            yield [measured.get(pick, 0.0) if c == MEASURED else float(c) for pick, c in costs]


def space(repairs: Repairs, deploy: str, changes: Sequence[str]) -> Space:
    """Build every combination of a document.

    Raises:
        ProfileError: an option is in no combination that can be built.
        UserError: there are too many combinations.
    """
    options = {
        axis: {name: option.set_ for name, option in some.items()}
        for axis, some in repairs.spec.axes.items()
    }
    whole = Space(deploy, options, changes, repairs=repairs)
    if whole.size > MOST:
        raise UserError(
            f"{repairs.spec.name}: {whole.size:,} combinations of options, and {MOST:,} are the "
            "most; leave out options or axes"
        )
    found, left_out = [], {}
    for picks in whole.combinations():
        try:
            found.append(Candidate(picks, whole.stack(picks)))
        except UserError as error:
            left_out[name_of(picks)] = "; ".join(str(error).splitlines())
    _refuse_useless(whole, found, left_out)
    found.sort(key=lambda candidate: len(candidate.picks))
    return replace(whole, candidates=tuple(found), left_out=left_out)


def _refuse_useless(whole: Space, found: Sequence[Candidate], left_out: Mapping[str, str]) -> None:
    """Refuse options that no combination can have; the first reason is the shortest one's."""
    used = {pick for candidate in found for pick in candidate.picks}
    problems = [
        f"{whole.repairs.where(*pick)}: {left_out['/'.join(pick)]}"
        for pick in whole.picks
        if pick not in used
    ]
    if problems:
        raise ProfileError(problems)


def fronts(points: Mapping[T, tuple[Any, Any]]) -> list[list[T]]:
    """Sort points into layers: nothing in a layer is beaten by another of it, or of a later one.

    Args:
        points: by name the loss and the cost, in any types that can be ordered; less is better.

    Returns:
        The layers, the first one is the Pareto front; in each the cheapest first. Equal points are
        in one layer.
    """
    left = sorted(points, key=lambda name: (points[name][1], points[name][0]))
    layers: list[list[T]] = []
    while left:
        layer: list[T] = []
        later: list[T] = []
        for name in left:
            loss, cost = points[name]
            beaten = layer and not (
                loss < points[layer[-1]][0] or (loss, cost) == points[layer[-1]]
            )
            (later if beaten else layer).append(name)
        layers.append(layer)
        left = later
    return layers


def better_half(points: Mapping[T, tuple[Any, Any]], keep: int) -> list[T]:
    """Return the *keep* best points: by layers of :func:`fronts`, in a layer the least loss first.

    Args:
        points: see :func:`fronts`.
        keep: how many.
    """
    ordered = [
        name for layer in fronts(points) for name in sorted(layer, key=lambda one: points[one])
    ]
    return ordered[:keep]
