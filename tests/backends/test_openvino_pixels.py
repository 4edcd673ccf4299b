"""OpenVINO's PrePostProcessor by hand, against float64, and against whom it imitates."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import images
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backends import itu, opencv, pillow
from backends.intel.openvino_pixels import OpenVinoConverter, OpenVinoResizer
from simulator.contract import Frame, PixelFormat, Unsupported
from simulator.contract.frame import Matrix, Range, yuv_frame
from simulator.reference.resize import resize

ROW = np.array([[0, 10, 20, 30]], np.uint8)
PICTURE = images.picture(101, 121)
SHAPES = [(1, 1), (2, 2), (17, 11), (60, 44), (3, 8191), (8191, 3)]
LIMITED = {"matrix": "bt601", "range": "limited", "chroma_upsampling": "nearest"}
REFERENCE = {
    ("bilinear", False): ("bilinear", "repeat"),
    ("bicubic", False): ("bicubic_75", "repeat"),
    ("bilinear", True): ("bilinear", "drop"),
    ("bicubic", True): ("bicubic", "drop"),
}


def resizer(interpolation: str, antialias: bool) -> OpenVinoResizer:
    return OpenVinoResizer({"interpolation": interpolation, "antialias": antialias})


def converter(format: str) -> OpenVinoConverter:
    return OpenVinoConverter({**LIMITED, "format": format})


def yuv(format: str, height: int, width: int) -> Frame:
    small = (-(-height // 2), -(-width // 2))
    y = images.picture(height, width, 1).reshape(height, width)
    u, v = (images.picture(*small, 1, seed=seed).reshape(small) for seed in (1, 2))
    return yuv_frame(PixelFormat(format), y, u, v, Matrix.BT601, Range.LIMITED)


# --- resize -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("interpolation", "antialias", "want"),
    [
        ("bilinear", False, [5, 25]),
        # Weights 3 3 1 of 7, what is outside is dropped.
        ("bilinear", True, [50 / 7, 160 / 7]),
        # Keys, a = -0.75, at 1/2: -3 19 19 -3 thirty-seconds, the edge is repeated:
        # (-3 x 0 + 19 x 0 + 19 x 10 - 3 x 20) / 32.
        ("bicubic", False, [130 / 32, 30 - 130 / 32]),
        # At a tie the left one: OpenCV's nearest_exact and Pillow take 10 and 30.
        ("nearest", False, [0, 20]),
    ],
)
def test_four_pixels_become_two(interpolation, antialias, want):
    got = resizer(interpolation, antialias).resize(ROW, 1, 2)

    assert got.dtype == np.float32
    assert got[0] == pytest.approx(want, abs=1e-3)


@pytest.mark.parametrize("which", REFERENCE, ids=str)
def test_resize_is_the_reference(which):
    """Float32 all the way: a hundredth of a level, and nothing is rounded."""
    shared, (reference, edge) = resizer(*which), REFERENCE[which]

    @settings(max_examples=30, deadline=None, derandomize=True)
    @given(*[st.integers(1, 60)] * 4)
    def near(height, width, rows, columns):
        plane = images.picture(height, width).reshape(height, width, 3)
        want = resize(plane, rows, columns, reference, antialias=which[1], edge=edge)
        assert np.abs(shared.resize(plane, rows, columns) - want).max() < 0.01

    near()


@pytest.mark.parametrize(
    ("which", "theirs"),
    [
        (("bilinear", False), opencv.OpenCVResizer),
        (("bicubic", False), opencv.OpenCVResizer),
        (("bilinear", True), pillow.PillowResizer),
        (("bicubic", True), pillow.PillowResizer),
        (("nearest", False), pillow.PillowResizer),
    ],
    ids=str,
)
def test_it_is_whom_it_imitates_without_the_rounding(which, theirs):
    ours = resizer(*which)
    other = theirs({"interpolation": which[0], "antialias": which[1]})

    apart = np.abs(ours.resize(PICTURE, 41, 37).clip(0, 255) - other.resize(PICTURE, 41, 37))

    assert apart.max() < (1.25 if which[0] != "nearest" else 1e-6)


# --- color ------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["nv12", "i420"])
def test_a_block_by_hand(format):
    """Y U V = 100 90 200: 1.1644 x 84 = 97.81; R + 1.5960 x 72 = 212.7;
    G + 0.3918 x 38 - 0.8130 x 72 = 54.2; B - 2.0172 x 38 = 21.2."""
    planes = (np.full((2, 2), 100, np.uint8), *(np.array([[x]], np.uint8) for x in (90, 200)))
    frame = yuv_frame(PixelFormat(format), *planes, Matrix.BT601, Range.LIMITED)

    got = converter(format).convert(frame).rgb

    assert got.reshape(-1, 3).tolist() == [[213, 54, 21]] * 4
    assert converter(format).assumes == (Matrix.BT601, Range.LIMITED)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_convert_is_the_public_formula(shape):
    """Odd sizes included; NV12 and I420 are the same; OpenCV differs below black only."""
    nv12, i420 = (converter(format).convert(yuv(format, *shape)).rgb for format in ("nv12", "i420"))
    frame = yuv("nv12", *shape)
    exact = itu.ItuConverter({**LIMITED, "format": "nv12"}).convert(frame).rgb
    theirs = opencv.OpenCVConverter({**LIMITED, "format": "nv12"}).convert(frame).rgb
    above = frame.planes[0] >= 16

    assert np.array_equal(nv12, i420)
    assert np.abs(nv12.astype(int) - exact).max() <= 1
    assert np.abs(nv12.astype(int) - theirs)[above].max(initial=0) <= 2


def test_footroom_goes_on_below_black():
    """Y of 0 is 18.6 below black, so red is 202.7 - 18.6 = 184; OpenCV says 203."""
    planes = (np.zeros((2, 2), np.uint8), *(np.array([[x]], np.uint8) for x in (128, 255)))
    frame = yuv_frame(PixelFormat.I420, *planes, Matrix.BT601, Range.LIMITED)

    assert converter("i420").convert(frame).rgb[0, 0].tolist() == [184, 0, 0]


def test_inputs_are_left_alone_and_results_kept():
    frame, same = yuv("nv12", 16, 10), yuv("nv12", 16, 10)
    for plane in frame.planes:
        plane.flags.writeable = False
    shared = converter("nv12")

    got = shared.convert(frame).rgb
    kept = got.copy()
    shared.convert(yuv("nv12", 60, 44))

    assert got.flags.writeable
    assert np.array_equal(got, kept)
    assert all(map(np.array_equal, frame.planes, same.planes))


def test_four_threads_convert_the_same():
    frames = [yuv("nv12", 10 + i, 30 - i) for i in range(12)] * 2
    shared = converter("nv12")
    want = [converter("nv12").convert(frame).rgb for frame in frames]

    with ThreadPoolExecutor(4) as pool:
        got = list(pool.map(lambda frame: shared.convert(frame).rgb, frames))

    assert all(map(np.array_equal, got, want))


def test_a_frame_of_another_layout_is_refused():
    with pytest.raises(Unsupported, match="OpenVINO converts nv12, i420, not nv21"):
        converter("nv12").convert(yuv("nv21", 4, 4))
