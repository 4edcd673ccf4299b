"""A stage of Acme's own: its signal processor filters noise between decoding and color conversion.

``STAGE`` is the stage, ``BACKEND`` the one library that implements it. In a profile::

    denoise: {backend: acme_dsp, strength: 2}
"""

from __future__ import annotations

from abc import abstractmethod
from typing import final

import numpy as np

from simulator.contract import (
    U8,
    Backend,
    Evidence,
    Frame,
    Implementation,
    Offer,
    StageSpec,
    checks,
    rgb_frame,
)

EIGHTHS = 8


class Denoiser(Implementation):
    """Filters a frame of RGB or YUV; whoever implements the stage derives from it."""

    @final
    def denoise(self, frame: Frame) -> Frame:
        """Filter every plane; size, type and format stay."""
        if any(plane.dtype != np.uint8 for plane in frame.planes):
            raise ValueError("a frame of uint8 planes expected")
        return frame.with_planes(*map(self._filtered, frame.planes))

    @abstractmethod
    def _filtered(self, plane: U8) -> U8: ...


class RowFilter(Denoiser):
    """Mixes a row with the one above; the first row stays."""

    def _filtered(self, plane: U8) -> U8:
        above = np.concatenate((plane[:1], plane[:-1])).astype(np.int32)
        share = self.options["strength"]
        mixed = plane * np.int32(EIGHTHS - share) + above * share
        return ((mixed + EIGHTHS // 2) // EIGHTHS).astype(np.uint8)


def a_flat_frame_stays_flat(subject):
    """Every pixel of a frame of one color is that color afterwards."""
    from simulator.testing import Failed

    frame = subject.make().denoise(rgb_frame(np.full((8, 8, 3), 200, np.uint8)))
    if np.any(frame.rgb != 200):
        raise Failed("a flat frame of 200 expected, got other pixels")


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
    checks=checks("acme_npu.denoise:a_flat_frame_stays_flat"),
)
BACKEND = Backend(
    "acme_dsp",
    "Acme's signal processor (invented): rows mixed in eighths",
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
