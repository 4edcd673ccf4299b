"""Faults drawn from all bits of a network that a campaign allows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.contract.bits import EXPONENTS, Kind
from simulator.contract.injection import BitFault, Site
from simulator.contract.recipe import generator
from simulator.errors import UserError
from simulator.faults.allocation import Allocation
from simulator.faults.campaign import Campaign, CampaignSpec

SHOWN = 5
"""How many names a message lists."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """One fault, of one or several bits.

    Attributes:
        number: from 0; a fault depends on its number and on the seed, not on how many there are.
        sites: the indices of the sites, in ascending order.
        faults: what happens to which bits of them.
        stratum: the index of the stratum.
        sample: the index of the sample; None for a permanent fault.
    """

    number: int
    sites: tuple[int, ...]
    faults: tuple[BitFault, ...]
    stratum: int
    sample: int | None


@dataclass(frozen=True, slots=True)
class _Cell:
    """Equal bits of one site: (elements x bits) faults of the same probability."""

    site: int
    elements: int
    bits: tuple[int, ...]

    @property
    def size(self) -> int:
        return self.elements * len(self.bits)


class Population:
    """All bits that a campaign may hit.

    Args:
        sites: of the artifact.
        campaign: which of them.

    Attributes:
        chosen: the indices of the sites that may be hit.
        bits: how many bits may be hit.
        possible: how many bits these sites have.
        strata: the parts that faults are drawn from: the share of all bits of each bit, layer or
            operator; ``all`` where there is one.
        allocation: how many come from each.

    Raises:
        UserError: there are none, or a site has no such bit, or there are too few faults for the
            strata; the message says what there is.
    """

    def __init__(self, sites: Sequence[Site], campaign: Campaign) -> None:
        self.campaign = campaign
        self.sites = tuple(sites)
        spec = campaign.spec
        self.chosen = chosen = _chosen(sites, spec)
        groups: dict[str, list[_Cell]] = {}
        for index in sorted(chosen, key=self._form):
            for name, bits in _grouped(sites[index], spec):
                groups.setdefault(name, []).append(_Cell(index, sites[index].elements, bits))
        self._cells = list(groups.values())
        total = sum(cell.size for cells in self._cells for cell in cells)
        self.bits = total
        self.possible = sum(sites[index].elements * sites[index].bits for index in chosen)
        self.strata = {
            name: sum(cell.size for cell in cells) / total for name, cells in groups.items()
        }
        shares = list(self.strata.values())
        self.allocation = Allocation.of(spec.allocation, shares, spec.faults, spec.name)
        self._strata = _ends(shares)
        self._ends = [_ends([cell.size for cell in cells]) for cells in self._cells]

    def alike(self, other: Population) -> bool:
        """Whether another network has the same layers, so that equal draws are the same faults."""
        forms, others = map(self._form, self.chosen), map(other._form, other.chosen)
        return sorted(forms) == sorted(others)

    def _form(self, at: int) -> tuple[Any, ...]:
        site = self.sites[at]
        return site.layer, site.target, site.storage, site.shape

    def draw(
        self, number: int, seed: int, samples: int, weights: Sequence[float] | None = None
    ) -> Drawn:
        """Return a fault; equal arguments give equal faults.

        Args:
            number: of the fault, from 0.
            seed: of the campaign.
            samples: how many there are to choose from.
            weights: of the strata, behind the pilot of Neyman's allocation.
        """
        rng = generator("fault", seed, number)
        stratum = self.allocation.stratum(number, weights)
        if stratum is None:
            stratum = _one_of(self._strata, rng)
        places: dict[tuple[_Cell, int], None] = {}
        while len(places) < min(self.campaign.spec.at_once, self.bits):
            cell = self._cells[stratum][_one_of(self._ends[stratum], rng)]
            places[cell, int(rng.integers(cell.size))] = None
        sites = tuple(sorted({cell.site for cell, _ in places}))
        faults = tuple(self._fault(cell, place, sites) for cell, place in places)
        sample = None if self.campaign.permanent else int(rng.integers(samples))
        return Drawn(number, sites, faults, stratum, sample)

    def _fault(self, cell: _Cell, place: int, sites: Sequence[int]) -> BitFault:
        index, bit = divmod(place, len(cell.bits))
        kind = Kind(self.campaign.spec.kind)
        return BitFault(index, cell.bits[bit], kind, sites.index(cell.site))


def _ends(sizes: Sequence[float]) -> NDArray[np.float64]:
    """Where each part ends, as a share of all."""
    chances = np.array(sizes, np.float64)
    ends: NDArray[np.float64] = np.cumsum(chances / chances.sum())
    ends /= ends[-1]
    return ends


def _one_of(ends: NDArray[np.float64], rng: np.random.Generator) -> int:
    """Draw a part, as ``rng.choice`` does of its chances."""
    return int(ends.searchsorted(rng.random(), side="right"))


def _chosen(sites: Sequence[Site], spec: CampaignSpec) -> list[int]:
    """The indices of the sites that a campaign names."""
    of_target = [at for at, site in enumerate(sites) if site.target in spec.targets]
    if not of_target:
        there = ", ".join(sorted({site.target for site in sites}))
        wanted = " or ".join(spec.targets)
        raise UserError(f"{spec.name}: targets: the artifact has no {wanted}, only {there}")
    for word, patterns, names in (
        ("layer", spec.layers, [sites[at].layer for at in of_target]),
        ("operator", spec.operators, [sites[at].operator for at in of_target]),
    ):
        for pattern in patterns:
            if not any(fnmatchcase(name, pattern) for name in names):
                raise UserError(
                    f"{spec.name}: {word}s: no such {word} can be reached: {pattern!r}"
                    f"{_offered(pattern, list(dict.fromkeys(names)))}"
                )
    chosen = [
        at
        for at in of_target
        if _named(sites[at].layer, spec.layers) and _named(sites[at].operator, spec.operators)
    ]
    if not chosen:
        raise UserError(f"{spec.name}: operators: none of these layers has such an operator")
    return chosen


def _offered(pattern: str, names: Sequence[str]) -> str:
    """What a person may have meant, and some of what there is."""
    near = get_close_matches(pattern, names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    more = ", ..." if len(names) > SHOWN else ""
    return f"{hint} (there are {len(names)}: {', '.join(names[:SHOWN])}{more})"


def _named(name: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def _grouped(site: Site, spec: CampaignSpec) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The strata of a site's allowed bits."""
    bits = _bits(site, spec)
    if spec.strata == "bit":
        yield from ((str(bit), (bit,)) for bit in bits)
    elif spec.strata == "layer":
        yield site.layer, bits
    elif spec.strata == "operator":
        yield site.operator, bits
    else:
        yield "all", bits


def _bits(site: Site, spec: CampaignSpec) -> tuple[int, ...]:
    if spec.bits == "all":
        return tuple(range(site.bits))
    if spec.bits == "exponent":
        return tuple(EXPONENTS.get(site.storage, range(site.bits)))
    assert isinstance(spec.bits, list)
    for bit in spec.bits:
        if bit >= site.bits:
            raise UserError(
                f"{spec.name}: bits: {bit}: the {site.target} of {site.layer!r} are stored as "
                f"{site.storage}, whose bits are 0 to {site.bits - 1}"
            )
    return tuple(spec.bits)
