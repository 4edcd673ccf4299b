"""The example vendor's stage, with what only tests need: properties, crashes, refusals."""

from __future__ import annotations

import os
import sys
from abc import abstractmethod
from dataclasses import dataclass, replace
from pathlib import Path

from simulator.contract import Options, SampleError, checks

# A worker is given this file alone, by a link.
sys.path.append(str(Path(__file__).resolve().parents[1] / "vendor_example"))

from acme_npu import denoise
from acme_npu.denoise import a_flat_frame_stays_flat


@dataclass(frozen=True)
class Strength:
    """How much a filter mixes; of its own, to travel between processes."""

    share: float


class Denoiser(denoise.Denoiser):
    """A base class that says something of itself."""

    strength: Strength

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.strength = Strength(options["strength"] / 4)

    @property
    @abstractmethod
    def taps(self) -> int:
        """How many pixels are mixed."""

    def weaker(self, strength: Strength) -> Strength:
        """Return half of a strength."""
        return Strength(strength.share / 2)


class RowFilter(Denoiser, denoise.RowFilter):
    """The vendor's; frames of 13 columns kill it, and those of 11 it refuses."""

    taps = 2

    def _filtered(self, plane):
        if plane.shape[1] == 13:
            os.abort()
        if plane.shape[1] == 11:
            raise SampleError("eleven columns")
        return super()._filtered(plane)


__all__ = ["BACKEND", "STAGE", "a_flat_frame_stays_flat"]
STAGE = replace(denoise.STAGE, base=Denoiser, checks=checks("acme_dsp:a_flat_frame_stays_flat"))
BACKEND = replace(
    denoise.BACKEND,
    offers=tuple(replace(offer, make=RowFilter) for offer in denoise.BACKEND.offers),
)
