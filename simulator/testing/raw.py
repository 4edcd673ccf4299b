"""Sensors and developers: gray, white, and which site has which color, worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from simulator.contract import Array, rgb_frame
from simulator.contract.raw import IDENTITY, PATTERNS, Raw, sites
from simulator.testing import files
from simulator.testing.subject import Subject, expect, words
from simulator.testing.work import Job, OfPictures, Work, working

GAINS = (2.0, 1.0, 1.5)
BLACK, WHITE = 64, 1023
QUARTER = {"linear": 63.75, "srgb": 136.96, "bt709": 124.93, "smoothstep": 139.92}
"""The levels of a quarter of the light: 255 times 1 / 4, 1.055 / 4^(1 / 2.4) - 0.055,
1.099 / 4^0.45 - 0.099, and 3 y^2 - 2 y^3 of y = 1 / 4^(1 / 2.2)."""


class Exposing(OfPictures):
    """The result is a raw plane."""

    def _do(self, made: Any, job: Job) -> Job:
        return (made.expose(rgb_frame(job[0])).plane,)


class Developing(Work):
    """A job is a raw plane of 48x64."""

    def _jobs(self) -> list[Job]:
        pictures = (files.picture(48, 64, seed=seed) for seed in range(4))
        return [(BLACK + picture[..., 1].astype(np.uint16),) for picture in pictures]

    def _do(self, made: Any, job: Job) -> Job:
        return (made.develop(_raw(job[0], "RGGB")).rgb,)


def gray_is_gray_behind_its_gains(subject: Subject) -> None:
    """Times its color's gain, every site of a gray picture has the same light."""
    for variant in working(subject):
        raw = variant.make().expose(rgb_frame(np.full((6, 8, 3), 120, np.uint8)))
        gains = np.array(raw.gains)[sites(raw.pattern, 6, 8)]
        light = (raw.plane - float(raw.black)) * gains
        expect(
            np.ptp(light) <= 2 * gains.max(),
            f"{words(variant)}: one light expected, got {light.min():.0f} to {light.max():.0f}",
        )


def white_fills_every_site(subject: Subject) -> None:
    """A white picture saturates all colors: highlights are not dimmed by the inverse gains."""
    for variant in working(subject):
        raw = variant.make().expose(rgb_frame(np.full((6, 8, 3), 255, np.uint8)))
        expect(
            raw.plane.min() >= raw.white - 1,
            f"{words(variant)}: {raw.white} expected everywhere, got {raw.plane.min()}",
        )


def a_quarter_of_the_light_by_hand(subject: Subject) -> None:
    """A gray of a quarter of white has the level of its tone curve, within three, in the middle."""
    pattern = "RGGB"
    at = sites(pattern, 48, 64)
    plane = np.rint(BLACK + (WHITE - BLACK) / 4 / np.array(GAINS)[at]).astype(np.uint16)
    for variant in working(subject):
        said = variant.options
        if said["black_level"] != "subtract" or said["white_balance"] == "none":
            continue
        rgb = variant.make().develop(_raw(plane, pattern)).rgb[8:-8, 8:-8]
        worst = np.abs(rgb - QUARTER[said["tone"]]).max()
        expect(worst <= 3, f"{words(variant)}: a gray is {worst:.1f} levels off")


def red_and_blue_have_their_sites(subject: Subject) -> None:
    """Light on red sites only is red, on blue sites only blue, in each of Bayer's patterns."""
    developer = subject.make()
    for pattern in PATTERNS:
        at = sites(pattern, 48, 64)
        for channel, name in ((0, "red"), (2, "blue")):
            plane = np.where(at == channel, 400, BLACK).astype(np.uint16)
            middle = developer.develop(_raw(plane, pattern)).rgb[16:32, 16:48].mean(axis=(0, 1))
            got = int(np.argmax(middle))
            expect(
                got == channel, f"{pattern}: {name} light became {('red', 'green', 'blue')[got]}"
            )


def _raw(plane: Array, pattern: str) -> Raw:
    return Raw(plane, pattern, BLACK, WHITE, GAINS, IDENTITY)
