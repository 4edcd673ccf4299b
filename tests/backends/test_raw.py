"""Raw planes: against OpenCV's and LibRaw's own demosaic, by hand, and there and back."""

from __future__ import annotations

import io
import json
import tracemalloc

import cv2
import numpy as np
import pytest
import rawpy
import tiny

from backends.camera import BayerDecoder, Float64Developer, Unprocessing
from backends.libraw import LibRawDecoder, LibRawDeveloper
from backends.opencv import OpenCVDeveloper
from simulator import cli
from simulator.conditions.corruptions.camera import camera_noise
from simulator.contract import SampleError, inspect, rgb_frame
from simulator.contract.encoded import read_image
from simulator.contract.image_formats.dng import written
from simulator.contract.raw import IDENTITY, PATTERNS, Raw, sites
from simulator.reference.demosaic import bilinear

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


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_dng_says_to_libraw_what_was_written(pattern):
    raw = Unprocessing({**SENSOR, "pattern": pattern, "bits": 12}).expose(
        rgb_frame(np.random.default_rng(1).integers(0, 256, (41, 38, 3), np.uint8))
    )
    data = written(raw)

    found = LibRawDecoder({"exif": "ignore"}).raw(inspect("one", data))

    with rawpy.imread(io.BytesIO(data)) as opened:
        np.testing.assert_array_equal(opened.raw_image_visible, raw.plane)
        assert opened.black_level_per_channel == [256] * 4
        assert opened.white_level == 4095
    np.testing.assert_array_equal(found.plane, raw.plane)
    assert (found.pattern, found.black, found.white) == (pattern, 256, 4095)
    np.testing.assert_allclose(found.gains, (2.15, 1, 1.7), rtol=1e-5)
    np.testing.assert_allclose(found.color_matrix, raw.color_matrix, atol=1e-4)


@pytest.mark.parametrize(
    ("packing", "samples", "row"),
    [
        # MIPI CSI-2: the high eight bits of each sample, then their low bits, the first lowest.
        ("raw10", bytes((0x01, 0x80, 0xFF, 0x00, 0b11_10_01_00)), (4, 513, 1022, 3)),
        ("raw12", bytes((0x01, 0x80, 0xA5, 0xFF, 0x00, 0x0F)), (0x015, 0x80A, 0xFFF, 0x000)),
        ("raw16", bytes((0x34, 0x12, 0xFF, 0x00, 0, 0, 1, 0)), (0x1234, 255, 0, 1)),
    ],
)
def test_packed_samples_by_hand(tmp_path, packing, samples, row):
    file = tmp_path / f"0001.{packing}"
    file.write_bytes((samples + b"pad") * 2)
    said = {"width": 4, "height": 2, "pattern": "GRBG", "black": 1, "white": 1023}
    beside = tmp_path / f"{file.name}.json"
    beside.write_text(json.dumps({**said, "stride": len(samples) + 3}, indent=2))

    image = read_image("one", file)
    found = BayerDecoder({"exif": "ignore"}).raw(image)

    assert (image.format, image.bits) == ("bayer", int(packing[3:]))
    assert found.plane.tolist() == [list(row)] * 2
    assert (found.pattern, found.black, found.white) == ("GRBG", 1, 1023)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pattern": "RGB"}, "RGGB or BGGR or GRBG or GBRG"),
        ({"white": 3}, "black 4 is not below white 3"),
        ({"colour": 1}, "unknown colour"),
        ({"width": "4"}, "width: a whole number expected, got '4'"),
        ({"white_balance": [1, 0, 1]}, "numbers above 0 expected"),
        ({"white_balance": ["a"]}, "numbers like"),
        ({"color_matrix": [[1, 2], [3]]}, "color_matrix: numbers like"),
        ({"height": 9}, "16 bytes of samples; 9 rows of 8 expected"),
    ],
)
def test_a_wrong_header_is_refused_in_one_line(change, message):
    said = {"width": 4, "height": 2, "pattern": "RGGB", "black": 4, "white": 9, "packing": "raw16"}
    data = json.dumps({**said, **change}).encode() + b"\n" + bytes(16)

    with pytest.raises(SampleError, match=message) as caught:
        BayerDecoder({"exif": "ignore"}).raw(inspect("one", data))
    assert "\n" not in str(caught.value)


def test_dngs_are_data_for_two_isps(tmp_path, card, capsys):
    folder = tmp_path / "data"
    for color, rgb in tiny.COLORS.items():
        (folder / color).mkdir(parents=True)
        pixels = np.asarray(tiny.picture(rgb))
        raw = Unprocessing({**SENSOR, "bits": 12}).expose(rgb_frame(pixels))
        (folder / color / "0.dng").write_bytes(written(raw))
    given = ["--model", str(card), "--data", str(folder), "--out", str(tmp_path / "run")]
    isp = "{backend: opencv, black_level: subtract, white_balance: as_shot, demosaic: bilinear, "
    isp += "color_matrix: file, tone: smoothstep, denoise: none, bits: 12}"
    both = [f"--set={who}.develop={isp}" for who in ("train", "deploy")]
    both += [f"--set={who}.decode={{backend: libraw}}" for who in ("train", "deploy")]
    pair = ["--train", "pillow_fp32", "--deploy", "pillow_fp32", *given]

    assert cli.main([*pair, *both, "--set", "deploy.develop.white_balance=none"]) == 0
    assert "3 images" in capsys.readouterr().out
    assert "not shown" not in (tmp_path / "run" / "report.html").read_text()
    for under, told in (("camera_noise:2", "3 images"), ("fog:1", "fog acts on pixels")):
        cli.main([*pair, *both, "--under", under, "--overwrite"])
        said = capsys.readouterr()
        assert told in said.out + said.err
        assert "Traceback" not in said.err
    assert cli.main([*pair, "--overwrite"]) == 2
    assert "these backends can: dng: libraw" in capsys.readouterr().err
    assert cli.main([*pair, *both[2:], "--overwrite"]) == 2
    assert "a section develop makes RGB of it" in capsys.readouterr().err


def test_camera_noise_is_added_to_the_light_of_sites():
    """Of severity 2: sqrt(0.02^2 + 0.01^2) of the range, times (1 - 0.25)^2."""
    plane = np.full((300, 300), 64 + 1000, np.uint16)
    raw = Raw(plane, "RGGB", 64, 4064, (2.0, 1.0, 1.5), IDENTITY)

    found = camera_noise(2).open()(raw, np.random.default_rng(0)).plane

    assert found.mean() == pytest.approx(1064, abs=1)
    assert found.std() == pytest.approx(4000 * 0.022361 * 0.5625, rel=0.02)


def test_a_developer_holds_little_more_than_the_planes():
    """A site is 2 bytes of plane, 6 of colors and 3 of levels; float64 alone would be 24."""
    shape = 1024, 2048
    raw = Raw(noise(shape), "RGGB", 0, 4095, (2.0, 1.0, 1.5), IDENTITY)
    tracemalloc.start()
    OpenCVDeveloper(DEVELOP).develop(raw)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert most < 16 * shape[0] * shape[1]
