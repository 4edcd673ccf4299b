"""How the latency depends on the input: on its size, and on the instance itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from simulator.latency.figures import Floats
from simulator.latency.times import Times
from simulator.statistics.density import fit, pairwise
from simulator.statistics.percentiles import MS

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
    """

    names: Sequence[str]
    sizes: Mapping[str, Sequence[int]]
    length: str = ""

    @property
    def pixels(self) -> Floats | None:
        """(n,) width times height; None where samples are not images."""
        if not {"width", "height"} <= set(self.sizes):
            return None
        width, height = (np.array(self.sizes[key], np.float64) for key in ("width", "height"))
        return width * height


def influence(times: Mapping[str, Times], inputs: Inputs) -> dict[str, Any]:
    """Return, for each stack, how its latency depends on the input.

    Source:
        The questions of figures 2 to 4 of Yang et al., arXiv 2212.13925.
    """
    return {
        side: {
            "size": None if inputs.pixels is None else regression(inputs.pixels, medians(found)),
            **({"length": of_length(inputs, medians(found))} if inputs.length else {}),
            "equal_size": equal_size(found, inputs),
            "instances": instances(found, inputs),
        }
        for side, found in times.items()
    }


def medians(times: Times) -> Floats:
    """Return (n,) the median of each sample over the rounds, in ms."""
    found: Floats = np.median(times.finite(), axis=0) / MS
    return found


def regression(pixels: Floats, ms: Floats) -> dict[str, Any] | None:
    """Fit a line to the samples' medians.

    Args:
        pixels: (n,) size of each image.
        ms: (n,) median latency of each image.

    Returns:
        ``ms_per_megapixel`` with ``ci95``, ``intercept_ms``, ``r2`` (the share of the variance that
        the size explains) and ``p`` for a slope of 0. None with fewer than three images, or where
        all have the same size.

    Source:
        Least squares, ``scipy.stats.linregress``.
    """
    found = _line(pixels / MEGA, ms)
    return None if found is None else {"ms_per_megapixel": found.pop("slope"), **found}


def of_length(inputs: Inputs, ms: Floats) -> dict[str, Any] | None:
    """Fit a line to the samples' medians over their length.

    Returns:
        As :func:`regression`, with ``unit``, and ``ms_per_thousand`` of these units.
    """
    found = _line(np.array(inputs.sizes[inputs.length], np.float64) / 1e3, ms)
    if found is None:
        return None
    return {"unit": inputs.length, "ms_per_thousand": found.pop("slope"), **found}


def _line(sizes: Floats, ms: Floats) -> dict[str, Any] | None:
    if len(sizes) < 3 or not np.ptp(sizes):
        return None
    if not np.ptp(ms):
        return {
            "slope": 0.0, "ci95": [0.0, 0.0], "intercept_ms": float(ms[0]), "r2": 0.0, "p": 1.0,
        }  # fmt: skip
    line = stats.linregress(sizes, ms)
    half = stats.t.ppf(0.975, len(ms) - 2) * line.stderr
    return {
        "slope": float(line.slope),
        "ci95": [float(line.slope - half), float(line.slope + half)],
        "intercept_ms": float(line.intercept),
        "r2": float(line.rvalue**2),
        "p": float(line.pvalue),
    }


def equal_size(times: Times, inputs: Inputs) -> dict[str, Any] | None:
    """Return how far instances of the most frequent size differ, which size cannot explain.

    Returns:
        ``width``, ``height``, ``instances``, and of their medians the ``min_ms``, ``median_ms`` and
        ``max_ms``; None where no two images have the same size, or samples are not images.
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
    return {
        "width": width, "height": height, "instances": int(counts[most]),
        "min_ms": float(among.min()), "median_ms": float(np.median(among)),
        "max_ms": float(among.max()),
    }  # fmt: skip


def instances(times: Times, inputs: Inputs) -> dict[str, Any] | None:
    """Return how far the latency distributions of instances are apart, in pairs.

    Returns:
        ``samples``, up to 24, evenly spread over the sizes from small to large; and ``rjsd``, the
        matrix of their root Jensen-Shannon divergences in base 2 (0 to 1). None with fewer than 5
        rounds.
    """
    if times.rounds < ROUNDS_NEEDED:
        return None
    size = inputs.sizes[inputs.length or "bytes"] if inputs.pixels is None else inputs.pixels
    order = np.argsort(size, kind="stable")
    chosen = order[np.unique(np.linspace(0, len(order) - 1, COMPARED).astype(np.int64))]
    apart = pairwise(fit(times.finite()[:, chosen]))
    return {"samples": [inputs.names[at] for at in chosen], "rjsd": apart.round(4).tolist()}
