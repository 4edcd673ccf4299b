"""Flips against the size of pictures, or of the network's input where it takes several."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.contract import Encoded
from simulator.errors import SampleError
from simulator.experiments.answers import StackRecords
from simulator.experiments.session import Session
from simulator.pipeline.inference import Answer
from simulator.pipeline.stack import Stack
from simulator.pipeline.walk import Walk
from simulator.results.pair import BySize, SizeClass
from simulator.statistics.bootstrap import RATE, Resamples, interval
from simulator.tasks.score import flip_rate, numbers

LEAST = 8
"""Samples of a quarter, at least."""
FEW = 6
"""Up to so many sizes, each is a class of its own."""


@dataclass(frozen=True, slots=True)
class Sizing:
    """What has a size; plain data, so that it can be pickled.

    Attributes:
        of: in words.
        placing: of a stack whose network takes several sizes; None: the size is the picture's.
    """

    of: str
    placing: Any

    def see(self, walk: Walk) -> tuple[int, int]:
        """Return the size of one sample."""
        return self.size(walk.context.source)

    def size(self, source: Any) -> tuple[int, int]:
        """Return rows and columns; 0 of a sample that is no image."""
        if self.placing is not None:
            place = self.placing(source)
            return place.network_height, place.network_width
        return (source.height, source.width) if isinstance(source, Encoded) else (0, 0)


def sizing(stacks: Sequence[Stack]) -> Sizing:
    """Return what has a size: the input of the first stack that takes several, or the picture."""
    for stack in stacks:
        last = stack.chain.last
        if isinstance(last, Answer) and getattr(last.placing, "any_size", False):
            return Sizing(f"{stack.side}'s input", last.placing)
    return Sizing("the picture", None)


class Sizes:
    """The sizes of a run's samples, as far as they were observed.

    Args:
        sizing: what has a size.
        samples: how many there are.

    Attributes:
        known: (samples, 2) rows and columns; 0 of one that was not observed, or is no image.
    """

    def __init__(self, sizing: Sizing, samples: int) -> None:
        self.sizing = sizing
        self.known = np.zeros((samples, 2), np.int64)

    def of(self, session: Session, which: Sequence[int]) -> NDArray[np.int64]:
        """Return the sizes of some samples; those of an earlier attempt are read again."""
        lacking = [at for at in which if not self.known[at].any()] if self.known.any() else []
        for at in lacking:
            with suppress(SampleError):  # the file is gone since it was run
                item = session.dataset.items[at]
                self.known[at] = self.sizing.size(session.card.modality.read(item.name, item.path))
        return self.known[[*which]]


def by_size(
    session: Session, seen: Sizes, which: Sequence[int], records: StackRecords
) -> BySize | None:
    """Return the flips of each size, or of quarters of the samples by their pixels.

    Args:
        session: the model and the samples.
        seen: sizes of the samples.
        which: numbers of those that went through.
        records: theirs, of the deployment stack.
    """
    sizes = seen.of(session, which)
    draws = Resamples(len(sizes), session.seed, session.card.task.resamples)
    pixels = sizes.prod(axis=1)
    known = np.flatnonzero(pixels)
    distinct = np.unique(sizes[known], axis=0)
    if len(known) < 4 * LEAST or len(distinct) < 2:
        return None
    if len(distinct) <= FEW:
        distinct = distinct[np.argsort(distinct.prod(axis=1), kind="stable")]
        names = [f"{width}×{height}" for height, width in distinct.tolist()]
        members = [np.flatnonzero((sizes == one).all(axis=1)) for one in distinct]
    else:
        edges = np.unique(np.quantile(pixels[known], (0.25, 0.5, 0.75, 1), method="higher"))
        names = [f"to {most:,} pixels" for most in edges.tolist()]
        quarter = np.searchsorted(edges, pixels[known])
        members = [known[quarter == at] for at in range(len(edges))]
    classes = [
        _class(name, records.chosen(which), draws)
        for name, which in zip(names, members, strict=True)
    ]
    rho, p = _trend(pixels[known], records.chosen(known))
    return BySize(of=seen.sizing.of, classes=classes, rho=rho, p=p)


def _class(name: str, records: StackRecords, draws: Resamples) -> SizeClass:
    changed, units = (numbers(records, one)[0] for one in ("changed", "units"))
    found = SizeClass(
        size=name, samples=len(records), changed=int(changed.sum()), units=int(units.sum())
    )
    if not found.units:
        return found
    number = draws.number if units.max() > 1 else 0  # of zeros and ones the interval is exact
    rate = flip_rate(records, Resamples(len(records), draws.seed, number))
    ends = interval(rate, number, RATE)
    return found.model_copy(update={"rate": float(rate[0]), "ci95": [*ends]})


def _trend(pixels: NDArray[np.int64], records: StackRecords) -> tuple[float | None, float | None]:
    """Spearman's rank correlation of pixels and the share of a sample that changes, and its p."""
    changed, units = (numbers(records, one)[0] for one in ("changed", "units"))
    some = units > 0
    shares = changed[some] / units[some]
    if len(np.unique(shares)) < 2 or len(np.unique(pixels[some])) < 2:
        return None, None
    from scipy import stats

    rho, p = stats.spearmanr(pixels[some], shares)
    return float(rho), float(p)
