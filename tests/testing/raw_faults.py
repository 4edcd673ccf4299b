"""A correct sensor and developer, and the faults of each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from backends.camera import FLOAT64_ISP, UNPROCESSING, Float64Developer, Unprocessing

CORRECT = {
    "sensor": (Unprocessing, UNPROCESSING.offers[0].options),
    "develop": (Float64Developer, FLOAT64_ISP.offers[0].options),
}


class SaysAnotherPattern(Unprocessing):
    def _expose(self, rgb):
        raw = super()._expose(rgb)
        return replace(raw, pattern=raw.pattern[1::-1] + raw.pattern[:1:-1])


class DimsHighlights(Unprocessing):
    def _expose(self, rgb):
        raw = super()._expose(rgb)
        return replace(raw, plane=np.minimum(raw.plane, raw.white - 2))


class ForgetsToCurve(Float64Developer):
    def _develop(self, raw):
        rgb = super()._develop(raw)
        return rgb if self.options["tone"] == "linear" else rgb // 2


class SwapsRedAndBlueSites(Float64Developer):
    def _demosaic(self, levels, pattern):
        return super()._demosaic(levels, pattern[::-1])


FAULTS = {
    "sensor": {
        "gray_is_gray_behind_its_gains": SaysAnotherPattern,
        "white_fills_every_site": DimsHighlights,
    },
    "develop": {
        "a_quarter_of_the_light_by_hand": ForgetsToCurve,
        "red_and_blue_have_their_sites": SwapsRedAndBlueSites,
    },
}
