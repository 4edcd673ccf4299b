"""Rates and means over the inferences of a campaign on one stack, each with the weight it has."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from simulator.analysis import faults
from simulator.faults.campaign import Campaign
from simulator.faults.draw import Population
from simulator.results.faults import Mean, Rate
from simulator.statistics.strata import Estimate, Stratum, stratified

Mask = NDArray[np.bool_]
FEW = 10
"""A mean of fewer events gets no interval: the bootstrap of few is far too narrow."""


class Rates:
    """Estimates from the rows of one stack.

    Where strata were not drawn in proportion, an inference counts as much as its stratum has bits,
    by the inferences in it (Horvitz and Thompson); within a bit or a layer too.

    Args:
        campaign: the campaign.
        population: what faults were drawn from.
        rows: of the inferences that were run.
        number: of faults.
        resamples: of a bootstrap.
        seed: of its draws.
    """

    def __init__(
        self,
        campaign: Campaign,
        population: Population,
        rows: pa.Table,
        number: int,
        resamples: int,
        seed: int,
    ) -> None:
        self._permanent = campaign.permanent
        self._resamples, self._seed = resamples, seed
        allocation = population.allocation
        self.weighted = allocation.rule != "proportional"
        self._fault = np.asarray(rows["fault"].to_numpy(), np.int64)
        stratum = np.asarray(rows["stratum"].to_numpy(), np.int64)
        self._part, self._shares = allocation.parts(self._fault, stratum, number)
        self._of = np.bincount(self._part, minlength=len(self._shares))

    @property
    def weights(self) -> NDArray[np.float64]:
        """Return the weight of each inference."""
        return (np.array(self._shares) / np.maximum(self._of, 1))[self._part]

    def rate(self, hit: Mask, among: Mask) -> Rate:
        """Return a share of the inferences *among*; of a permanent fault they are not independent.

        The share of a part in *among* is estimated with the inferences that are there.
        """
        count, of = int((hit & among).sum()), int(among.sum())
        if self.weighted:
            estimate = self.estimate(hit, among)
            if estimate is None:
                return Rate(rate=None, ci95=[None, None], count=count, of=of)
            ends = [estimate.low, estimate.high]
            return Rate(rate=estimate.value, ci95=ends, count=count, of=of)
        if not of:
            return Rate(rate=None, ci95=[None, None], count=0, of=0)
        if self._permanent:
            of_faults = self._fault[among].tolist()
            found = faults.lasting(hit[among].tolist(), of_faults, self._resamples, self._seed)
        else:
            found = faults.rate(count, of)
        return Rate(rate=found.value, ci95=list(found.ci95), count=count, of=of)

    def estimate(self, hit: Mask, among: Mask) -> Estimate | None:
        """Return a rate over parts; None where nothing was run, or nothing of a part."""
        if not among.any() or not self._of.all():
            return None
        size = len(self._shares)
        trials = np.bincount(self._part[among], minlength=size)
        events = np.bincount(self._part[hit & among], minlength=size)
        shares = np.array(self._shares) * trials / self._of
        often = 2 * events.sum() > trials.sum()  # what hardly ever happens has the better interval
        counted = trials - events if often else events
        found = stratified(
            [
                Stratum(share, int(event), int(trial))
                for share, event, trial in zip(shares / shares.sum(), counted, trials, strict=True)
                if trial
            ]
        )
        ends = (1 - found.value, 1 - found.high, 1 - found.low, found.variance)
        return Estimate(*ends) if often else found

    def delta(self, more: Mask, less: Mask, among: Mask) -> tuple[float | None, list[float | None]]:
        """Return the difference of two rates that exclude each other, with its interval.

        Source:
            G. Y. Zou and A. Donner, Stat. Med. 27 (2008) 1693-1702.
        """
        estimate, other = self.estimate(more, among), self.estimate(less, among)
        if estimate is None or other is None:
            return None, [None, None]
        value = estimate.value - other.value
        low = math.hypot(estimate.value - estimate.low, other.high - other.value)
        high = math.hypot(estimate.high - estimate.value, other.value - other.low)
        return value, [max(-1.0, value - low), min(1.0, value + high)]

    def mean(self, values: Sequence[float | None], among: Mask, clusters: Sequence[int]) -> Mean:
        """Return the mean of what is known and finite.

        Args:
            values: one for each inference *among*.
            among: which ones.
            clusters: what each of them depends on.
        """
        known = [value if value is not None and np.isfinite(value) else None for value in values]
        weights = self.weights[among].tolist() if self.weighted else None
        found = faults.mean(known, clusters, self._resamples, self._seed, weights)
        ends = found.ci95 if found.events >= FEW else None
        return Mean(value=found.value, ci95=list(ends or (None, None)), of=found.events)


def ran(rows: pa.Table) -> pa.Table:
    """Return the rows of inferences that were not skipped."""
    return rows.filter(pc.is_null(rows["skipped"]))


def learnt(population: Population, rows: pa.Table) -> list[float]:
    """Return the weights of strata behind the pilot of Neyman's allocation, from its rows."""
    pilot = ran(rows.filter(pc.less(rows["fault"], population.allocation.pilot)))
    stratum = np.asarray(pilot["stratum"].to_numpy(), np.int64)
    return population.allocation.learnt(stratum, np.array(pc.fill_null(pilot["sdc"], False)))


def further(rates: Rates, sdc: pa.ChunkedArray, width: float) -> int:
    """Return how many more faults an interval needs to be no wider than asked.

    Args:
        rates: of the inferences so far.
        sdc: whether each answer was corrupted silently.
        width: from the lower to the upper end.

    Returns:
        0 where it is narrow enough. The rates are taken to stay as they are; an interval of strata
        to become narrower with the root of the number of faults.
    """
    hit = np.array(pc.fill_null(sdc, False))
    every = np.ones(len(hit), bool)
    if not rates.weighted:
        return faults.further(int(hit.sum()), len(hit), width) if len(hit) else 0
    found = rates.estimate(hit, every)
    if found is None or found.high - found.low <= width:
        return 0
    return math.ceil(len(hit) * (((found.high - found.low) / width) ** 2 - 1))
