"""Raw planes: against OpenCV's and LibRaw's own demosaic, by hand, and there and back."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from backends.camera import Float64Developer, Unprocessing
from backends.libraw import LibRawDeveloper
from simulator.contract import SampleError, rgb_frame
from simulator.contract.raw import PATTERNS, Raw, sites
from simulator.reference.demosaic import bilinear

IDENTITY = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
DEVELOP = {
    "black_level": "subtract",
    "white_balance": "as_shot",
    "demosaic": "bilinear",
    "color_matrix": "file",
    "tone": "linear",
    "denoise": "none",
    "bits": 16,
}
SENSOR = {
    "tone": "smoothstep",
    "camera": "camera_4",
    "red_gain": 2.15,
    "blue_gain": 1.7,
    "exposure": 1.25,
    "pattern": "GBRG",
    "black": 256,
    "bits": 16,
}
HAND = Raw(
    np.array(((30, 50), (50, 60)) * 2, np.uint16), "RGGB", 10, 110, (2.0, 1.0, 1.5), IDENTITY
)


def noise(shape=(40, 42)):
    return np.random.default_rng(7).integers(0, 4096, shape).astype(np.uint16)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_bilinear_is_opencvs_and_libraws_but_for_rounding(pattern):
    levels = noise()

    exact = bilinear(levels, sites(pattern, *levels.shape))

    opencv = cv2.cvtColor(levels, getattr(cv2, f"COLOR_Bayer{pattern}2RGB"))
    raw = Raw(levels, pattern, 0, 4095, (1.0, 1.0, 1.0), IDENTITY)
    libraw = LibRawDeveloper({**DEVELOP, "demosaic": "linear"}).develop(raw).rgb
    inside = np.s_[1:-1, 1:-1]
    assert np.abs(exact - opencv)[inside].max() <= 0.5
    assert np.abs(exact / 4095 * 255 - libraw)[inside].max() <= 1


@pytest.mark.parametrize(
    ("said", "rgb"),
    [
        # Light 0.2, 0.4 and 0.5; times 2, 1 and 1.5: 0.4, 0.4 and 0.75; times 255.
        ({}, (102, 102, 191)),
        ({"white_balance": "none"}, (51, 102, 128)),
        # All channels have green's mean.
        ({"white_balance": "gray_world"}, (102, 102, 102)),
        # Of 110: 30, 50 and 60, times the gains.
        ({"black_level": "ignore"}, (139, 116, 209)),
    ],
)
def test_balance_and_black_level_by_hand(said, rgb):
    found = Float64Developer({**DEVELOP, **said}).develop(HAND).rgb

    assert found.reshape(-1, 3).tolist() == [list(rgb)] * 8


def test_the_matrix_takes_the_cameras_colors_by_rows():
    matrix = ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (0.5, 0.5, 0.0))
    raw = Raw(HAND.plane, "RGGB", 10, 110, HAND.gains, matrix)

    found = Float64Developer(DEVELOP).develop(raw).rgb

    assert found[0, 0].tolist() == [191, 102, 102]  # blue, green, and half of red and green


@pytest.mark.parametrize("tone", ["smoothstep", "srgb"])
@pytest.mark.parametrize("color", [(10, 20, 30), (200, 60, 90), (128, 128, 128), (40, 180, 160)])
def test_what_is_unprocessed_and_developed_is_back(color, tone):
    flat = np.full((9, 8, 3), color, np.uint8)

    raw = Unprocessing({**SENSOR, "tone": tone}).expose(rgb_frame(flat))
    found = Float64Developer({**DEVELOP, "tone": tone}).develop(raw).rgb

    assert raw.plane.min() > 256  # nothing is cut
    assert np.abs(found - flat.astype(float)).max() <= 1


def test_pixels_are_not_developed_and_libraw_wants_a_picture():
    developer = LibRawDeveloper({**DEVELOP, "demosaic": "ahd"})

    with pytest.raises(SampleError, match=r"write develop\.sensor"):
        developer.develop(rgb_frame(np.zeros((40, 40, 3), np.uint8)))
    with pytest.raises(SampleError, match="22 rows and columns"):
        developer.develop(HAND)
