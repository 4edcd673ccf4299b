"""Flips against the size of pictures, or of the network's input where it takes several."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.conditions.condition import AppliedCondition
from simulator.contract import Encoded
from simulator.contract.recipe import Boundary
from simulator.errors import SampleError
from simulator.experiments.session import Session
from simulator.pipeline.inference import Answer
from simulator.pipeline.stack import Stack
from simulator.pipeline.walk import Walk
from simulator.results.pair import BySize, SizeClass
from simulator.statistics.bootstrap import RATE, Ratio, Resamples, interval
from simulator.tasks.score import Record, numbers

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


def sizing(stacks: Sequence[Stack], under: AppliedCondition | None = None) -> Sizing:
    """Return what has a size: the input of the first stack that takes several, or the picture.

    Under a condition on the source it is the picture's, since the input is made of another one.
    """
    disturbed = under is not None and under.condition.acts_on is Boundary.SOURCE
    for stack in () if disturbed else stacks:
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
        for at in (at for at in which if not self.known[at].any()):
            with suppress(SampleError):  # the file is gone since it was run
                item = session.dataset.items[at]
                self.known[at] = self.sizing.size(session.card.modality.read(item.name, item.path))
                if not self.known[at].any():  # no images, then
                    break
        return self.known[[*which]]


def by_size(
    session: Session, seen: Sizes, which: Sequence[int], records: Sequence[Record]
) -> BySize | None:
    """Return the flips of each size, or of quarters of the samples by their pixels.

    Args:
        session: the model and the samples.
        seen: sizes of the samples.
        which: numbers of those that went through.
        records: theirs, of the deployment stack.
    """
    sizes = seen.of(session, which)
    known = np.flatnonzero(sizes[:, 0])
    sizes, pixels = sizes[known], sizes[known].prod(axis=1)
    distinct = np.unique(sizes, axis=0)
    if len(known) < 4 * LEAST or len(distinct) < 2:
        return None
    if len(distinct) <= FEW:
        distinct = distinct[np.argsort(distinct.prod(axis=1), kind="stable")]
        named = {f"{one[1]}×{one[0]}": (sizes == one).all(axis=1) for one in distinct}
    else:
        edges = np.unique(np.quantile(pixels, (0.25, 0.5, 0.75, 1), method="higher"))
        quarter = np.searchsorted(edges, pixels)
        named = {f"to {most:,} pixels": quarter == at for at, most in enumerate(edges)}
    changed, units = (numbers(records, name)[0][known] for name in ("changed", "units"))
    number = session.card.task.resamples if units.max() > 1 else 0  # then the interval is exact
    classes = []
    for size, its in named.items():
        ratio = Ratio(changed[its], units[its])
        rate = Resamples(int(its.sum()), session.seed, number).of(ratio)
        rated = {"rate": float(rate[0]), "ci95": [*interval(rate, number, RATE)]}
        sums = {"changed": int(changed[its].sum()), "units": int(units[its].sum())}
        classes.append(
            SizeClass(size=size, samples=its.sum(), **sums, **(rated if sums["units"] else {}))
        )
    rho, p = _trend(pixels[units > 0], changed[units > 0] / units[units > 0])
    return BySize(of=seen.sizing.of, classes=classes, rho=rho, p=p)


def _trend(
    pixels: NDArray[np.int64], shares: NDArray[np.float64]
) -> tuple[float | None, float | None]:
    """Spearman's rank correlation and its p; None where all are alike."""
    if len(np.unique(shares)) < 2 or len(np.unique(pixels)) < 2:
        return None, None
    from scipy import stats

    rho, p = stats.spearmanr(pixels, shares)
    return float(rho), float(p)
