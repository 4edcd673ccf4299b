"""A camera in float64: the unprocessing of Brooks et al., and a plain image signal processor.

Source:
    Brooks, Mildenhall, Xue, Chen, Sharlet, Barron, "Unprocessing Images for Learned Raw Denoising",
    CVPR 2019, section 3, with the matrices, gains and the protection of highlights of its code
    (github.com/google-research/google-research, ``unprocessing``). There gains and matrices are
    drawn for each image; here the profile writes them.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from simulator.contract import U8, Above, AtLeast, Backend, Encoded, Evidence, Offer, RawDecoder
from simulator.contract.image_formats.bayer import unpacked
from simulator.contract.image_formats.dng import XYZ
from simulator.contract.raw import (
    PATTERNS,
    Raw,
    Sensor,
    SteppedDeveloper,
    develops,
    light_of,
    mosaic,
    sites,
)
from simulator.reference.demosaic import bilinear

CAMERAS = {
    "camera_1": ((1.0234, -0.2969, -0.2266), (-0.5625, 1.6328, -0.0469), (-0.0703, 0.2188, 0.6406)),
    "camera_2": ((0.4913, -0.0541, -0.0202), (-0.6130, 1.3513, 0.2906), (-0.1564, 0.2151, 0.7183)),
    "camera_3": ((0.8380, -0.2630, -0.0639), (-0.2887, 1.0725, 0.2496), (-0.0627, 0.1427, 0.5438)),
    "camera_4": ((0.6596, -0.2079, -0.0562), (-0.4782, 1.3016, 0.1933), (-0.0970, 0.1581, 0.5181)),
}
"""Rows of a camera's own red, green and blue over X, Y, Z: the four that the paper mixes."""
_INFLECTION = 0.9


def to_camera(name: str) -> NDArray[np.float64]:
    """Return the camera's own colors over linear sRGB; white stays white."""
    matrix = np.array(CAMERAS[name]) @ np.array(XYZ)
    return np.asarray(matrix / matrix.sum(axis=1, keepdims=True))


class Unprocessing(Sensor):
    """Inverts tone, color matrix and white balance, and keeps one color a site."""

    def _expose(self, rgb: U8) -> Raw:
        said = self.options
        levels = np.arange(256) / 255
        smooth = np.maximum(0.5 - np.sin(np.arcsin(1 - 2 * levels) / 3), 1e-8) ** 2.2
        matrix = to_camera(said["camera"])
        image = (smooth if said["tone"] == "smoothstep" else light_of(levels))[rgb] @ matrix.T
        gains = np.array((said["red_gain"], 1, said["blue_gain"])) * said["exposure"]
        gray = image.mean(axis=-1, keepdims=True)
        near = (np.maximum(gray - _INFLECTION, 0) / (1 - _INFLECTION)) ** 2
        light = np.clip(image * np.maximum(near + (1 - near) / gains, 1 / gains), 0, 1)
        black, white = said["black"], 2 ** said["bits"] - 1
        levels = black + mosaic(light, said["pattern"]) * (white - black)
        plane = np.rint(levels).astype(np.uint16)
        own: Any = tuple(map(tuple, np.linalg.inv(matrix)))
        return Raw(plane, said["pattern"], black, white, tuple(gains), own)


class Float64Developer(SteppedDeveloper):
    """Demosaics bilinearly in float64."""

    def _demosaic(self, levels: NDArray[Any], pattern: str) -> NDArray[Any]:
        return bilinear(levels, sites(pattern, *levels.shape))


class BayerDecoder(RawDecoder):
    """Unpacks the samples of a Bayer plane."""

    reads: ClassVar[tuple[str, ...]] = ("bayer",)

    def _raw(self, image: Encoded) -> Raw:
        return unpacked(image.data)


_PAPER = "Brooks et al., 'Unprocessing Images for Learned Raw Denoising', CVPR 2019, section 3"
UNPROCESSING = Backend(
    name="unprocessing",
    summary="raw planes of pictures, by the unprocessing of Brooks et al. (CVPR 2019)",
    offers=(
        Offer(
            "sensor",
            {
                "tone": ("smoothstep", "srgb"),
                "camera": tuple(CAMERAS),
                "red_gain": Above(0.5),
                "blue_gain": Above(0.5),
                "exposure": Above(0.5),
                "pattern": PATTERNS,
                "black": AtLeast(0),
                "bits": (10, 12, 14, 16),
            },
            Unprocessing,
            evidence=Evidence.EMULATED,
            source=_PAPER,
        ),
    ),
    fields={
        "camera": "whose color matrix, of the paper's four",
        "red_gain": "of the white balance that is inverted; the paper draws 1.9 to 2.4",
        "blue_gain": "likewise; 1.5 to 1.9",
        "exposure": "the gain of all three; the paper draws about 1 / 0.8",
        "black": "the sample of no light",
    },
)
FLOAT64_ISP = Backend(
    name="float64_isp",
    summary="raw development in float64, demosaicing bilinearly",
    offers=(
        Offer(
            "develop",
            develops(("bilinear",)),
            Float64Developer,
            evidence=Evidence.EMULATED,
            source="the textbook's steps; curves of IEC 61966-2-1 and ITU-R BT.709-6",
        ),
    ),
)
BAYER = Backend(
    name="bayer",
    summary="packed Bayer planes with a header, as recordings have them",
    offers=(
        Offer(
            "decode",
            {"exif": ("ignore",)},
            BayerDecoder,
            source="MIPI CSI-2, RAW10 and RAW12; V4L2, SRGGB10P and SRGGB12P",
        ),
    ),
)
