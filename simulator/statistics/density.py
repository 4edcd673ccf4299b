"""Gaussian kernel densities of latencies, one per instance, and the divergence of two of them."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simulator.statistics import special

Floats = NDArray[np.float64]

RESOLUTION_NS = max(1.0, time.get_clock_info("perf_counter").resolution * 1e9)
"""The smallest bandwidth, in ns: the resolution of the clock that measures the latencies."""

REACH = 3.0
"""How many bandwidths beyond the first and the last time the grid is evenly spaced."""

PER_BANDWIDTH = 3
"""The smallest number of grid points per bandwidth; with 2 a divergence is up to 0.0013 off."""

PAIRWISE_LIMIT = 64
"""The largest number of instances for :func:`pairwise`."""

# Grid points beyond REACH, in bandwidths. At 10 a density is 1e-22 of its peak, so that the
# trapezoid to the other fit's next point is negligible, even 1e13 bandwidths away.
_TAIL = np.array([3.5, 4.0, 5.0, 6.0, 8.0, 10.0])

# Elements of a temporary array: 256 KiB of float64, which fit into a core's cache.
_BLOCK = 1 << 15


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A kernel density per instance: the mean of normal densities around its times.

    Attributes:
        times: (R, n) latencies in ns, a row per round and a column per instance.
        bandwidth: (n,) standard deviations of the kernels in ns, above 0.
    """

    times: Floats
    bandwidth: Floats

    def only(self, which: slice | NDArray[np.bool_] | NDArray[np.intp]) -> Fit:
        """Return the fit of some of the instances."""
        return Fit(self.times[:, which], self.bandwidth[which])

    def density(self, points: Floats) -> Floats:
        """Return the densities, each at points of its own.

        Args:
            points: (G, n) times in ns.

        Returns:
            (G, n) in 1/ns. Temporary memory is one column of points, or 1 MiB.
        """
        rounds = len(self.times)
        return _mixture(self.times, np.full(rounds, 1 / rounds), self.bandwidth, points)

    def grid(self) -> Floats:
        """Return (G, n) ascending points that resolve every instance's density.

        They are evenly spaced, at least three per bandwidth, from three bandwidths below the first
        time to three above the last, then in growing steps up to ten. A few are enough, however far
        away an outlier is: R times that span D have a standard deviation of at least
        D / sqrt(2 (R - 1)), so D is at most sqrt(2 (R - 1)) R**0.2 bandwidths. G is chosen for that
        bound and depends only on R, so that an instance's figures do not depend on other instances.
        """
        low, high = self.times.min(axis=0), self.times.max(axis=0)
        middle = np.linspace(
            low - REACH * self.bandwidth,
            high + REACH * self.bandwidth,
            _even_points(len(self.times)),
        )
        tail = _TAIL[:, None] * self.bandwidth
        return np.concatenate([low - tail[::-1], middle, high + tail])


def fit(times: ArrayLike, floor: float = RESOLUTION_NS) -> Fit:
    """Fit a kernel density to each instance's times, with the bandwidth of Scott's rule.

    Args:
        times: (R, n) latencies in ns, R at least 1.
        floor: the smallest bandwidth in ns. It is used where the times are constant, or where
            there is only one round.

    Returns:
        The fit; where the floor is not used, its density is that of
        ``scipy.stats.gaussian_kde(times[:, i])``.

    Raises:
        ValueError: the times are not a finite table, or the floor is not above 0.

    Source:
        D. W. Scott, Multivariate Density Estimation (1992), 6.3: h = R**(-1/5) s, where s is the
        standard deviation with R - 1 in the denominator.
    """
    table = np.asarray(times, dtype=np.float64)
    if table.ndim != 2 or not len(table) or not np.isfinite(table).all():
        raise ValueError(f"times must be finite, (rounds, instances); got shape {table.shape}")
    if not floor > 0:
        raise ValueError(f"floor must be above 0 ns; got {floor}")
    rounds, instances = table.shape
    spread = table.std(axis=0, ddof=1) if rounds > 1 else np.zeros(instances)
    return Fit(table, np.maximum(floor, rounds**-0.2 * spread))


def divergence(a: Fit, b: Fit) -> Floats:
    """Return the square root of the Jensen-Shannon divergence between each instance's fits.

    It is integrated by the trapezoid rule over the points of both grids, as the bandwidths may
    differ by orders of magnitude: 1 ns while an instance was constant, seconds after an outlier.

    Args:
        a: n instances, any number of rounds.
        b: the same instances.

    Returns:
        (n,) in base 2: 0 for equal densities, 1 for densities that do not overlap.

    Raises:
        ValueError: the fits have different numbers of instances.

    Source:
        J. Lin, IEEE Trans. Inf. Theory 37 (1991) 145-151; its root is a metric: D. M. Endres,
        J. E. Schindelin, IEEE Trans. Inf. Theory 49 (2003) 1858-1860.
    """
    instances = len(a.bandwidth)
    if len(b.bandwidth) != instances:
        raise ValueError(f"the fits have {instances} and {len(b.bandwidth)} instances")
    found = np.empty(instances)
    rows = sum(_even_points(len(fit.times)) + 2 * len(_TAIL) for fit in (a, b))
    for block in _blocks(instances, rows):
        left, right = a.only(block), b.only(block)
        points = np.sort(np.concatenate([left.grid(), right.grid()]), axis=0)
        found[block] = _root(points, left.density(points), right.density(points))
    return found


def pairwise(fitted: Fit) -> Floats:
    """Return (n, n) the :func:`divergence` of every instance from every other.

    Raises:
        ValueError: there are more than 64 instances.
    """
    instances = len(fitted.bandwidth)
    if instances > PAIRWISE_LIMIT:
        raise ValueError(f"at most {PAIRWISE_LIMIT} instances can be compared; got {instances}")
    found = np.zeros((instances, instances))
    one, other = np.triu_indices(instances, 1)
    found[one, other] = found[other, one] = divergence(fitted.only(one), fitted.only(other))
    return found


def pooled_divergence(a: Fit, b: Fit) -> float:
    """Return :func:`divergence` for two large samples, such as the times of all instances.

    Each sample is first reduced to the means and counts of bins, whose width is a quarter of its
    bandwidth. This moves no time by more than that width, and the result by less than 0.001.

    Args:
        a: one instance, for example ``fit(times.reshape(-1, 1))``; any number of rounds.
        b: one instance too.

    Returns:
        The root of the divergence in base 2, from 0 to 1.

    Raises:
        ValueError: a fit has more than one instance.
    """
    if len(a.bandwidth) != 1 or len(b.bandwidth) != 1:
        raise ValueError(f"one instance each; got {len(a.bandwidth)} and {len(b.bandwidth)}")
    points = np.sort(np.concatenate([a.grid(), b.grid()]), axis=0)
    left, right = (_mixture(*_binned(fitted), fitted.bandwidth, points) for fitted in (a, b))
    return float(_root(points, left, right)[0])


def _even_points(rounds: int) -> int:
    """How many evenly spaced points resolve any *rounds* times; see :meth:`Fit.grid`."""
    span = math.sqrt(2 * (rounds - 1)) * math.pow(rounds, 0.2) + 2 * REACH
    return math.ceil(PER_BANDWIDTH * span) + 1


def _blocks(instances: int, rows: int) -> Iterator[slice]:
    """Split instances with *rows* points each into blocks, so that temporary arrays are small."""
    step = max(1, _BLOCK // rows)
    return (slice(start, start + step) for start in range(0, instances, step))


def _mixture(times: Floats, shares: Floats, bandwidth: Floats, points: Floats) -> Floats:
    """Sum normal densities around (R, n) *times* with (R,) *shares*, at (G, n) *points*."""
    total = np.zeros(points.shape)
    for block in _blocks(points.shape[1], max(1, len(points))):
        width, at = bandwidth[block], points[:, block]
        part = np.zeros(at.shape)
        kernel = np.empty(at.shape)
        for row, share in zip(times[:, block], shares, strict=True):
            np.subtract(at, row, out=kernel)
            kernel /= width
            np.square(kernel, out=kernel)
            kernel *= -0.5
            np.exp(kernel, out=kernel)
            kernel *= share
            part += kernel
        total[:, block] = part / (math.sqrt(2 * math.pi) * width)
    return total


def _binned(fitted: Fit) -> tuple[Floats, Floats]:
    """Return (B, 1) the mean time of every bin that is not empty, and (B,) its share."""
    first = fitted.times.min()
    since = fitted.times[:, 0] - first
    bins = np.floor(since * 4 / fitted.bandwidth).astype(np.int64)
    _, which, counts = np.unique(bins, return_inverse=True, return_counts=True)
    means = np.bincount(which, weights=since) / counts
    return (first + means)[:, None], counts / len(since)


def _root(points: Floats, p: Floats, q: Floats) -> Floats:
    """Return (n,) the root of the divergence of two (G, n) densities at ascending points."""
    gaps = np.diff(points, axis=0, prepend=points[:1], append=points[-1:])
    weights = gaps[:-1] + gaps[1:]
    p, q = _shares(p * weights), _shares(q * weights)
    middle = (p + q) / 2
    nats = (special.kl_div(p, middle) + special.kl_div(q, middle)).sum(axis=0) / 2
    root: Floats = np.sqrt(np.clip(nats / math.log(2), 0, 1))
    return root


def _shares(weighed: Floats) -> Floats:
    """Scale columns to sum 1; subnormal shares become 0, as half of one may underflow."""
    shares: Floats = weighed / weighed.sum(axis=0)
    shares[shares < np.finfo(np.float64).tiny] = 0
    return shares
