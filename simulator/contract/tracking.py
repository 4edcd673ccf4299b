"""Tracking: boxes in the frames of a clip become tracks, and tracks are held against others."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from simulator.contract.backend import Implementation

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
FoundBoxes = tuple[F64, F64]
"""The boxes of one class in a frame: (n, 4) x1, y1, x2, y2 in pixels, and (n,) scores."""
Matchable = tuple[I64, I64, F64]
"""A frame of two sets of tracks: (n,) numbers of the reference's, (m,) of the others', and (n, m)
in [0, 1] how well their boxes agree; no number stands twice in a set."""


class Tracker(Implementation):
    """Follows the objects of one class through a clip, by their boxes alone."""

    @abstractmethod
    def follow(self, clip: Sequence[FoundBoxes], threshold: float, rate: float) -> list[I64]:
        """Return the number of each box's track.

        Args:
            clip: the boxes of every frame, in the order of the frames.
            threshold: a box with a larger score is an object; only a method that says so also
                takes others.
            rate: frames a second.

        Returns:
            (n,) for each frame, from 0, in the order of its boxes; -1 for those of no track.
        """


class TrackMetrics(Implementation):
    """Measures how well tracks agree with reference tracks."""

    @abstractmethod
    def measure(self, clips: Sequence[Sequence[Matchable]], counts: I64) -> Mapping[str, F64]:
        """Return figures of all clips together, for several draws of them.

        Args:
            clips: the frames of each, in order; somewhere there is a reference track.
            counts: (r, clips), how often each clip was drawn.

        Returns:
            (r,) by name: ``hota``, ``deta`` and ``assa`` (Luiten et al. 2021), ``mota``,
            ``switches`` and ``fragmentations`` (Bernardin and Stiefelhagen 2008), ``idf1``
            (Ristani et al. 2016); MOTA and IDF1 with boxes that agree by at least 0.5.
        """
