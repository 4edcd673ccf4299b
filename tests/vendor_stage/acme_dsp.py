"""A stage of another package: noise is filtered out between decoding and color conversion."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np

from simulator.contract import (
    U8,
    Backend,
    Evidence,
    Frame,
    Offer,
    Options,
    SampleError,
    StageSpec,
    checks,
    rgb_frame,
)


@dataclass(frozen=True)
class Strength:
    """How much a filter mixes; of its own, to travel between processes."""

    share: float


class Denoiser(ABC):
    """Filters a frame of RGB or YUV."""

    strength: Strength

    def __init__(self, options: Options) -> None:
        self.options = options
        self.strength = Strength(options["strength"] / 4)

    @property
    @abstractmethod
    def taps(self) -> int:
        """How many pixels are mixed."""

    @final
    def denoise(self, frame: Frame) -> Frame:
        """Filter every plane; the size stays."""
        if frame.height < 2:
            raise ValueError("a frame has two rows at least")
        return frame.with_planes(*map(self._filtered, frame.planes))

    def weaker(self, strength: Strength) -> Strength:
        """Return half of a strength."""
        return Strength(strength.share / 2)

    @abstractmethod
    def _filtered(self, plane: U8) -> U8: ...


class RowFilter(Denoiser):
    """Mixes a row with the one above."""

    taps = 2

    def _filtered(self, plane):
        if plane.shape[1] == 13:
            os.abort()
        if plane.shape[1] == 11:
            raise SampleError("eleven columns")
        above = np.concatenate((plane[:1], plane[:-1])).astype(np.float64)
        share = self.strength.share / 2
        return np.rint(plane * (1 - share) + above * share).astype(np.uint8)


def a_flat_frame_stays_flat(subject):
    """Every pixel of a frame of one color is that color afterwards."""
    from simulator.testing import Failed

    frame = subject.make().denoise(rgb_frame(np.full((8, 8, 3), 200, np.uint8)))
    if np.any(frame.rgb != 200):
        raise Failed("a flat frame changed")


STAGE = StageSpec(
    "denoise",
    "noise is filtered out of the decoded frame",
    after="decode",
    modality="image",
    section=("denoise",),
    axis="denoise",
    step="denoise",
    base=Denoiser,
    calls=("denoise",),
    checks=checks("acme_dsp:a_flat_frame_stays_flat"),
)
BACKEND = Backend(
    "acme_dsp",
    "Acme's signal processor (invented)",
    (
        Offer(
            "denoise",
            {"strength": (1, 2, 3), "window": ("rows",)},
            RowFilter,
            Evidence.EMULATED,
            "Acme DSP guide 1 (invented)",
        ),
    ),
    fields={"strength": "how much of the row above is mixed in, in eighths"},
)
