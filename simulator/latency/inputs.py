"""How the latency depends on the input: on its size, and on the instance itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import stats

from simulator.latency.figures import Floats
from simulator.latency.times import Times
from simulator.results.timed import (
    EqualSize,
    InputEffect,
    Instances,
    LengthEffect,
    SizeEffect,
    TallEffect,
)
from simulator.results.times import ABSENT, Ints
from simulator.statistics.density import fit, pairwise
from simulator.statistics.percentiles import MS

INFER = "infer"
COMPARED = 24
"""How many instances have their distributions compared."""
ROUNDS_NEEDED = 5
"""The smallest number of rounds for the distribution of one instance."""
MEGA = 1e6


@dataclass(frozen=True, slots=True)
class Inputs:
    """The names and sizes of n samples.

    Attributes:
        names: n of them.
        sizes: n values of each size that the modality has, by its name: ``bytes`` of the files,
            and for images ``width`` and ``height`` in pixels.
        length: the name of one of them, see :attr:`simulator.modalities.modality.Modality.length`.
        fed: (n,) how many values the network's first input has, by stack; those are left out that
            get equally many for each sample.
        unit: what these values are, in the plural.
    """

    names: Sequence[str]
    sizes: Mapping[str, Sequence[int]]
    length: str = ""
    fed: Mapping[str, Ints] = field(default_factory=dict)
    unit: str = "values"

    @property
    def pixels(self) -> Floats | None:
        """(n,) width times height; None where samples are not images."""
        if not {"width", "height"} <= set(self.sizes):
            return None
        width, height = (np.array(self.sizes[key], np.float64) for key in ("width", "height"))
        return width * height


def influence(times: Mapping[str, Times], inputs: Inputs) -> dict[str, InputEffect]:
    """Return, for each stack, how its latency depends on the input.

    Samples that are answered together are one observation, with the sum of their sizes; single
    instances are then not compared.

    Source:
        The questions of figures 2 to 4 of Yang et al., arXiv 2212.13925.
    """
    return {
        side: InputEffect(
            size=of_size(inputs, found),
            length=of_length(inputs, found) if inputs.length else None,
            tall=tallness(inputs, found),
            network=of_network(inputs, side, found),
            equal_size=equal_size(found, inputs) if found.together == 1 else None,
            instances=instances(found, inputs) if found.together == 1 else None,
        )
        for side, found in times.items()
    }


def medians(times: Times) -> Floats:
    """Return (n,) the median of each sample over the rounds, in ms."""
    found: Floats = np.median(times.finite(), axis=0) / MS
    return found


def of_size(inputs: Inputs, times: Times) -> SizeEffect | None:
    """Fit a line to the queries' medians over their pixels; None where samples are not images."""
    if inputs.pixels is None:
        return None
    return regression(times.of_queries(inputs.pixels), times.latencies(medians(times)))


def regression(pixels: Floats, ms: Floats) -> SizeEffect | None:
    """Fit a line to medians over sizes.

    Args:
        pixels: (n,) size of each image, or of all images of a query.
        ms: (n,) its median latency.

    Returns:
        None with fewer than three, or where all have the same size.

    Source:
        Least squares, ``scipy.stats.linregress``.
    """
    line = _line(pixels / MEGA, ms)
    if line is None:
        return None
    slope, ci95, intercept, r2, p = line
    return SizeEffect(ms_per_megapixel=slope, ci95=ci95, intercept_ms=intercept, r2=r2, p=p)


def of_length(inputs: Inputs, times: Times) -> LengthEffect | None:
    """Fit a line to the queries' medians over their length; see :func:`regression`."""
    lengths = np.array(inputs.sizes[inputs.length], np.float64)
    return _of_length(lengths, inputs.length, times, medians(times))


def of_network(inputs: Inputs, side: str, times: Times) -> LengthEffect | None:
    """Fit a line to the network's mean times over what it is fed.

    Source:
        Figure 2 (c) of Yang et al.: mean inference times over numbers of tokens.
    """
    if side not in inputs.fed or INFER not in times.stages:
        return None
    return _of_length(inputs.fed[side], inputs.unit, times, network_means(times))


def network_means(times: Times) -> Floats:
    """Return (n,) the mean time of the network for each sample, in ms; NaN where all failed."""
    ns = times.stages[INFER]
    there = ns != ABSENT
    with np.errstate(invalid="ignore"):
        found: Floats = np.where(there, ns, 0).sum(axis=0) / there.sum(axis=0) / MS
    return found


def tallness(inputs: Inputs, times: Times) -> TallEffect | None:
    """Fit the queries' medians to their pixels and to how many images are taller than wide.

    Source:
        Section 3.3 of Yang et al.: of images of one size the higher ones take longer. Least
        squares; Student's t.
    """
    if inputs.pixels is None:
        return None
    tall = np.array(inputs.sizes["height"]) > np.array(inputs.sizes["width"])
    ms = times.latencies(medians(times))
    n, sizes = len(ms), times.of_queries(inputs.pixels) / MEGA
    columns = np.stack([np.ones(n), sizes, times.of_queries(tall.astype(np.float64))], axis=1)
    if n < 5 or np.linalg.matrix_rank(columns) < 3:
        return None
    fitted, *_ = np.linalg.lstsq(columns, ms, rcond=None)
    variance = np.square(ms - columns @ fitted).sum() / (n - 3)
    error = float(np.sqrt(variance * np.linalg.inv(columns.T @ columns)[2, 2]))
    effect, half = float(fitted[2]), stats.t.ppf(0.975, n - 3) * error
    p = 2 * stats.t.sf(abs(effect) / error, n - 3) if error else float(effect == 0)
    return TallEffect(
        ms=effect, ci95=[effect - half, effect + half], p=p, tall=tall.sum(), others=(~tall).sum()
    )


def _of_length(lengths: Floats | Ints, unit: str, times: Times, ms: Floats) -> LengthEffect | None:
    own, ms = times.of_queries(np.array(lengths, np.float64)), times.latencies(ms)
    there = np.isfinite(ms)
    line = _line(own[there] / 1e3, ms[there])
    if line is None:
        return None
    slope, ci95, intercept, r2, p = line
    return LengthEffect(
        unit=unit, ms_per_thousand=slope, ci95=ci95, intercept_ms=intercept, r2=r2, p=p
    )


def _line(sizes: Floats, ms: Floats) -> tuple[float, list[float], float, float, float] | None:
    """Slope with its 95 % interval, intercept, share of the variance, and p for a slope of 0."""
    if len(sizes) < 3 or not np.ptp(sizes):
        return None
    if not np.ptp(ms):
        return 0.0, [0.0, 0.0], float(ms[0]), 0.0, 1.0
    line = stats.linregress(sizes, ms)
    half = stats.t.ppf(0.975, len(ms) - 2) * line.stderr
    ends = [float(line.slope - half), float(line.slope + half)]
    return line.slope, ends, line.intercept, line.rvalue**2, line.pvalue


def equal_size(times: Times, inputs: Inputs) -> EqualSize | None:
    """Return how far instances of the most frequent size differ, which size cannot explain.

    None where no two images have the same size, or samples are not images.
    """
    if inputs.pixels is None:
        return None
    sizes = np.stack([inputs.sizes["width"], inputs.sizes["height"]], axis=1)
    known, which, counts = np.unique(sizes, axis=0, return_inverse=True, return_counts=True)
    most = int(counts.argmax())
    if counts[most] < 2:
        return None
    among = medians(times)[which.ravel() == most]
    width, height = known[most].tolist()
    return EqualSize(
        width=width, height=height, instances=int(counts[most]),
        min_ms=among.min(), median_ms=float(np.median(among)), max_ms=among.max(),
    )  # fmt: skip


def instances(times: Times, inputs: Inputs) -> Instances | None:
    """Return how far the latency distributions of instances are apart, in pairs.

    They are up to :data:`COMPARED`, evenly spread over the sizes from small to large; None with
    fewer than :data:`ROUNDS_NEEDED` rounds.
    """
    if times.rounds < ROUNDS_NEEDED:
        return None
    size = inputs.sizes[inputs.length or "bytes"] if inputs.pixels is None else inputs.pixels
    order = np.argsort(size, kind="stable")
    chosen = order[np.unique(np.linspace(0, len(order) - 1, COMPARED).astype(np.int64))]
    apart = pairwise(fit(times.finite()[:, chosen]))
    return Instances(samples=[inputs.names[at] for at in chosen], rjsd=apart.round(4).tolist())
