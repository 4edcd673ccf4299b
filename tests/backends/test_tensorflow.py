"""tf.image.resize in its three grids, by hand and against float64; tf.io beyond test_decoders."""

from __future__ import annotations

import subprocess
import sys

import images
import numpy as np
import pytest
from decoding import JPEGS, decoder, rgb
from hypothesis import given, settings
from hypothesis import strategies as st

from backends import pillow
from backends.tensorflow_image import BACKEND, TensorFlowDecoder, TensorFlowResizer
from simulator.contract import Encoded, Resizer, SampleError, Stage
from simulator.reference.resize import resize

GRIDS = ("half_pixel", "legacy", "legacy_align_corners")
ROW = np.array([[0, 10, 20, 30]], np.uint8)
PICTURE = images.picture(101, 121)


def resizer(interpolation: str, antialias: bool, coordinates: str = "half_pixel") -> Resizer:
    fields = {"interpolation": interpolation, "antialias": antialias, "coordinates": coordinates}
    (offer,) = (
        offer
        for offer in BACKEND.of(Stage.RESIZE)
        if all(value in offer.options[field] for field, value in fields.items())
    )
    return offer.make(fields)


# --- by hand ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("interpolation", "antialias", "coordinates", "want"),
    [
        # Centres at 0.5 and 2.5; at 0 and 2; at 0 and 3.
        ("bilinear", False, "half_pixel", [5, 25]),
        ("bilinear", False, "legacy", [0, 20]),
        ("bilinear", False, "legacy_align_corners", [0, 30]),
        # Weights 3 3 1 of 7: what is outside is dropped, as in Pillow.
        ("bilinear", True, "half_pixel", [50 / 7, 160 / 7]),
        # Keys, a = -0.5, at 1/2: -1 9 9 -1 sixteenths; the tap outside is dropped:
        # (9 x 0 + 9 x 10 - 20) / 17.
        ("bicubic", False, "half_pixel", [70 / 17, 30 - 70 / 17]),
        ("bicubic", False, "legacy", [0, 20]),
        # exp(-2 d^2) up to d = 1.5: half the sum of both neighbours; widened to d / 2:
        # 0.8825 at 1/4, 0.3247 at 3/4, 0.0439 at 5/4, so 16.635 / 2.1335.
        ("gaussian", False, "half_pixel", [5, 25]),
        ("gaussian", True, "half_pixel", [7.797, 22.203]),
        ("area", True, "half_pixel", [5, 25]),
        ("area", True, "legacy", [5, 25]),
    ],
)
def test_four_pixels_become_two(interpolation, antialias, coordinates, want):
    got = resizer(interpolation, antialias, coordinates).resize(ROW, 1, 2)

    assert got.dtype == np.float32
    assert got[0] == pytest.approx(want, abs=2e-3)


def test_nearest_by_hand():
    """10 to 4: floor((i + 1/2) 2.5), floor(2.5 i) as in OpenCV, and round(3 i)."""
    row = np.arange(0, 100, 10, dtype=np.uint8)[None]
    got = [resizer("nearest", False, grid).resize(row, 1, 4) for grid in GRIDS]

    assert [each.tolist() for each in got] == [
        [[10, 30, 60, 80]],
        [[0, 20, 50, 70]],
        [[0, 30, 60, 90]],
    ]
    assert all(each.dtype == np.uint8 for each in got)


def test_area_is_the_mean_when_halving():
    block = np.array([[0, 10, 100, 104], [20, 30, 108, 113]], np.uint8)

    assert resizer("area", True).resize(block, 1, 2).tolist() == [[15, 106.25]]


def test_the_result_is_not_clipped():
    """Keys at 3/4 of 0 0 255 255: -9/128 of 255, over 131/128 as the tap outside is dropped."""
    step = np.array([[0, 0, 255, 255]], np.uint8)

    got = resizer("bicubic", False).resize(step, 1, 8)[0]

    assert got.min() == pytest.approx(-255 * 9 / 131, abs=0.01)
    assert got.max() == pytest.approx(255 + 255 * 9 / 131, abs=0.01)


# --- against float64 --------------------------------------------------------------------------

HALF_PIXEL = {
    # Without antialias bicubic takes its weights from a table of 1024 steps.
    ("bilinear", False): ("bilinear", 0.002),
    ("bilinear", True): ("bilinear", 0.002),
    ("bicubic", False): ("bicubic", 0.1),
    ("bicubic", True): ("bicubic", 0.002),
    ("lanczos3", False): ("lanczos", 0.002),
    ("lanczos3", True): ("lanczos", 0.002),
}
SIZES = [st.integers(1, 60)] * 4


@pytest.mark.parametrize("which", HALF_PIXEL, ids=str)
def test_half_pixel_drops_what_is_outside(which):
    reference, allowed = HALF_PIXEL[which]
    shared = resizer(*which)

    @settings(max_examples=40, deadline=None, derandomize=True)
    @given(*SIZES)
    def near(height, width, rows, columns):
        plane = images.picture(height, width).reshape(height, width, 3)
        want = resize(plane, rows, columns, reference, antialias=which[1], edge="drop")
        assert np.abs(shared.resize(plane, rows, columns) - want).max() < allowed

    near()


def legacy(size: int, wanted: int, corners: bool, a: float | None) -> np.ndarray:
    """The (wanted, size) weights of TensorFlow 1: triangle, or Keys with *a*; edges repeated."""
    scale = (size - 1) / (wanted - 1) if corners and wanted > 1 else size / wanted
    out = np.zeros((wanted, size))
    for row, x in zip(out, np.arange(wanted) * scale, strict=True):
        low = min(int(x), size - 1)
        for tap in range(low - 1, low + 3):
            d = abs(tap - x)
            near = max(0.0, 1 - d) if a is None else (((a + 2) * d - (a + 3)) * d * d + 1)
            far = 0.0 if a is None else ((((d - 5) * d + 8) * d - 4) * a)
            weight = near if d < 1 else far if d < 2 else 0.0
            row[min(max(tap, 0), size - 1)] += weight
    return out


@pytest.mark.parametrize("corners", [False, True], ids=GRIDS[1:])
@pytest.mark.parametrize(
    ("kernel", "a", "allowed"), [("bilinear", None, 0.01), ("bicubic", -0.75, 0.2)]
)
def test_the_old_grids(kernel, a, allowed, corners):
    """And Keys' a is -0.75 there, with the edge repeated."""
    shared = resizer(kernel, False, GRIDS[1 + corners])

    @settings(max_examples=40, deadline=None, derandomize=True)
    @given(*SIZES)
    def near(height, width, rows, columns):
        plane = images.picture(height, width).reshape(height, width, 3)
        down, across = legacy(height, rows, corners, a), legacy(width, columns, corners, a)
        want = np.einsum("hy,yxc,wx->hwc", down, plane.astype(float), across)
        assert np.abs(shared.resize(plane, rows, columns) - want).max() < allowed

    near()


@pytest.mark.parametrize("kernel", ["bilinear", "bicubic"])
def test_antialiased_it_is_pillow_without_the_rounding(kernel):
    fields = {"interpolation": kernel, "antialias": True}
    theirs = pillow.PillowResizer(fields).resize(PICTURE, 41, 37)

    apart = np.abs(resizer(kernel, True).resize(PICTURE, 41, 37) - theirs)

    assert 0.4 < apart.max() < 1.25
    assert apart.mean() < 0.3


# --- decoding ---------------------------------------------------------------------------------


def test_its_defaults_are_the_fast_idct_and_fancy_chroma():
    rgb("tensorflow", JPEGS["odd"])
    import tensorflow as tf

    for data in JPEGS.values():
        left_alone = tf.io.decode_jpeg(data, channels=3).numpy()
        assert np.array_equal(rgb("tensorflow", data, idct="ifast"), left_alone)


def test_a_refusal_is_tensorflows_reason_alone():
    broken = Encoded("test", b"\xff\xd8\xff\xd9", "jpeg", 8, 8, 3, 8, 1)

    with pytest.raises(SampleError) as caught:
        decoder("tensorflow").rgb(broken)

    assert str(caught.value).startswith("TensorFlow: jpeg::Uncompress failed.")
    assert "{{" not in str(caught.value)


def test_nothing_is_printed():
    probe = (
        "import numpy as np\n"
        "from backends.tensorflow_image import TensorFlowResizer\n"
        "fields = {'interpolation': 'bilinear', 'antialias': True, 'coordinates': 'half_pixel'}\n"
        "TensorFlowResizer(fields).resize(np.zeros((4, 4), np.uint8), 2, 2)\n"
    )

    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_only_nearest_fits_yuv_planes():
    """What gives float32 is refused for ``resize.domain: yuv``; see test_choose.py."""
    gives = {offer.make.gives for offer in BACKEND.of(Stage.RESIZE)}

    assert gives == {np.float32, np.uint8}
    assert resizer("nearest", False).gives is np.uint8
    assert TensorFlowResizer.gives is np.float32
    assert not TensorFlowDecoder.gives_planes


@pytest.mark.prove
def test_pytorch_can_compile_behind_it():
    """PyTorch's CUDA builds bring Triton, which ends a process that has TensorFlow already."""
    code = (
        "from backends.tensorflow_library import tensorflow\ntensorflow.load()\n"
        "import torch._dynamo\nprint('both')"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert (done.returncode, done.stdout) == (0, "both\n"), done.stderr
