"""Raw planes: what a sensor measured behind its color filters, and the two stages around them.

The section ``develop`` of a profile makes RGB of a raw plane, as a camera's image signal processor
does; its ``sensor`` turns decoded pixels into a raw plane.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from simulator.contract.backend import Admits, Implementation
from simulator.contract.frame import U8, Frame, rgb_frame
from simulator.contract.stage import CLAIMS, REPEATS, StageSpec, proved_by
from simulator.errors import SampleError

F64 = NDArray[np.float64]
Three = tuple[float, float, float]
PATTERNS = ("RGGB", "BGGR", "GRBG", "GBRG")
"""Bayer's four arrangements: the first two sites of the first row, then of the second."""
IDENTITY = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
TONES = ("linear", "srgb", "bt709", "smoothstep")
BITS = (8, 10, 12, 14, 16)


@dataclass(frozen=True, slots=True)
class Raw:
    """One exposure, before anything was made of it.

    Attributes:
        plane: (H, W) uint16, one sample a site.
        pattern: which color each site measured, one of :data:`PATTERNS`.
        black: the sample of no light.
        white: the sample of a full site.
        gains: white balance as shot, of red, green and blue; a common factor is exposure.
        color_matrix: rows R, G, B of linear sRGB over the camera's own, white to white.
    """

    plane: NDArray[np.uint16]
    pattern: str
    black: int
    white: int
    gains: Three
    color_matrix: tuple[Three, Three, Three]


def sites(pattern: str, height: int, width: int) -> NDArray[np.intp]:
    """Return (height, width) channels, 0 red, 1 green, 2 blue, of a sensor's sites."""
    tile = np.array(["RGB".index(color) for color in pattern]).reshape(2, 2)
    return np.tile(tile, (-(-height // 2), -(-width // 2)))[:height, :width]


def mosaic(rgb: NDArray[Any], pattern: str) -> NDArray[Any]:
    """Return (H, W): of (H, W, 3) the one color that each site measures."""
    at = sites(pattern, *rgb.shape[:2])
    return np.asarray(np.take_along_axis(rgb, at[..., None], axis=-1)[..., 0])


def srgb(light: F64) -> F64:
    """Return levels in [0, 1] of linear light in [0, 1] (IEC 61966-2-1)."""
    return np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)


def light_of(level: F64) -> F64:
    """Return linear light of levels of sRGB, the inverse of :func:`srgb`."""
    return np.where(level <= 0.04045, level / 12.92, ((level + 0.055) / 1.055) ** 2.4)


def toned(light: F64, tone: str) -> F64:
    """Return display levels in [0, 1] of linear light in [0, 1].

    Source:
        ``srgb``: :func:`srgb`. ``bt709``: ITU-R BT.709-6, 1.2. ``smoothstep``: Brooks et al.,
        "Unprocessing Images for Learned Raw Denoising", CVPR 2019: gamma 2.2, then 3 y^2 - 2 y^3.
    """
    if tone == "srgb":
        return srgb(light)
    if tone == "bt709":
        return np.where(light < 0.018, 4.5 * light, 1.099 * light**0.45 - 0.099)
    if tone == "smoothstep":
        level = light ** (1 / 2.2)
        return level * level * (3 - 2 * level)
    return light


class Sensor(Implementation):
    """Gives the raw plane that a sensor would have measured where a picture was taken.

    Args:
        options: the checked fields of the profile's ``develop.sensor``.
    """

    @final
    def expose(self, frame: Frame) -> Raw:
        """Return the raw plane of an RGB frame; of the same size."""
        raw = self._expose(frame.rgb)
        if raw.plane.shape != frame.rgb.shape[:2] or raw.plane.dtype != np.uint16:
            raise SampleError(f"{type(self).__name__} gave {raw.plane.dtype} {raw.plane.shape}")
        return raw

    @abstractmethod
    def _expose(self, rgb: U8) -> Raw:
        """Return the raw plane of (H, W, 3) uint8."""


class Developer(Implementation):
    """Makes RGB of a raw plane.

    Args:
        options: the checked fields of the profile's ``develop`` section.
    """

    @final
    def develop(self, raw: Raw) -> Frame:
        """Return an RGB frame of the same size."""
        if not isinstance(raw, Raw):
            raise SampleError("develop takes a raw plane, and got pixels; write develop.sensor")
        rgb = self._develop(raw)
        if rgb.shape != (*raw.plane.shape, 3) or rgb.dtype != np.uint8:
            raise SampleError(f"{type(self).__name__} gave {rgb.dtype} {rgb.shape}")
        return rgb_frame(np.ascontiguousarray(rgb))

    @abstractmethod
    def _develop(self, raw: Raw) -> U8:
        """Return (H, W, 3) uint8 in R, G, B order."""


def develops(
    demosaic: tuple[str, ...],
    tone: tuple[str, ...] = TONES,
    denoise: tuple[str, ...] = ("none",),
    bits: tuple[int, ...] = BITS,
) -> dict[str, Admits]:
    """Return what an offer of a developer admits, in the order of its work."""
    return {
        "black_level": ("subtract", "ignore"),
        "white_balance": ("as_shot", "gray_world", "none"),
        "demosaic": demosaic,
        "color_matrix": ("file", "none"),
        "tone": tone,
        "denoise": denoise,
        "bits": bits,
    }


def _bands(rows: int) -> Iterator[slice]:
    """An even number of rows at a time: a camera's image in float64 would take gigabytes."""
    return (slice(at, at + 32) for at in range(0, rows, 32))


class SteppedDeveloper(Developer):
    """Does one step after the other: black level, white balance, demosaic, matrix, tone, denoise.

    Samples are whole numbers of ``bits`` from the white balance to the demosaic.
    """

    def _develop(self, raw: Raw) -> U8:
        top = 2 ** self.options["bits"] - 1
        gains = self._gains(raw)
        levels = np.empty(raw.plane.shape, np.uint8 if top == 255 else np.uint16)
        for rows in _bands(len(levels)):
            light = self._light(raw, rows)
            at = sites(raw.pattern, *light.shape)
            levels[rows] = np.rint(np.clip(light * gains[at], 0, 1) * top)
        colors = self._demosaic(levels, raw.pattern)
        found = np.empty(colors.shape, np.uint8)
        for rows in _bands(len(levels)):
            rgb = np.asarray(colors[rows], np.float64) / top
            if self.options["color_matrix"] == "file":
                rgb = rgb @ np.array(raw.color_matrix).T
            found[rows] = np.rint(toned(np.clip(rgb, 0, 1), self.options["tone"]) * 255)
        return self._denoise(found)

    def _light(self, raw: Raw, rows: slice) -> F64:
        """Light in [0, 1] of the sites of some rows."""
        low = raw.black if self.options["black_level"] == "subtract" else 0
        return np.asarray(np.clip((raw.plane[rows] - float(low)) / (raw.white - low), 0, 1))

    def _gains(self, raw: Raw) -> F64:
        """Of red, green and blue; what they lift above white is cut."""
        exposure, how = raw.gains[1], self.options["white_balance"]
        gains = np.array(raw.gains if how == "as_shot" else (exposure,) * 3)
        if how == "gray_world":
            light = self._light(raw, slice(None))
            at = sites(raw.pattern, *light.shape)
            means = [light[at == c].mean() if np.any(at == c) else 0 for c in range(3)]
            gains *= [means[1] / max(mean, 1e-6) for mean in means]
        return gains

    @abstractmethod
    def _demosaic(self, levels: NDArray[Any], pattern: str) -> NDArray[Any]:
        """Return (H, W, 3) of the levels of (H, W) sites."""

    def _denoise(self, rgb: U8) -> U8:
        return rgb


SENSOR = StageSpec(
    "sensor",
    "pixels become the raw plane of a sensor",
    110,
    after="decode",
    modality="image",
    section=("develop", "sensor"),
    axis="develop",
    step="sensor",
    base=Sensor,
    calls=("expose",),
    work="simulator.testing.raw:Exposing",
    checks=(
        *CLAIMS,
        *proved_by("raw", "gray_is_gray_behind_its_gains", "white_fills_every_site"),
        *REPEATS,
    ),
)
DEVELOP = StageSpec(
    "develop",
    "a raw plane becomes RGB",
    120,
    after="sensor",
    modality="image",
    section=("develop",),
    axis="develop",
    step="develop",
    base=Developer,
    calls=("develop",),
    own=("sensor",),
    model="simulator.modalities.image.develop:Develop",
    work="simulator.testing.raw:Developing",
    checks=(
        *CLAIMS,
        *proved_by("raw", "a_quarter_of_the_light_by_hand", "red_and_blue_have_their_sites"),
        *REPEATS,
    ),
)
