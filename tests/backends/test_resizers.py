"""Every resizer against the float64 reference, against the others, and by hand."""

from __future__ import annotations

import images
import numpy as np
import pytest

from backends import opencv, pillow, tensorflow_image
from backends.intel import openvino_pixels
from backends.nvidia import dali_operators as dali
from simulator.contract import Offer, PixelFormat, Resizer, Stage
from simulator.contract.frame import Matrix, Range, yuv_frame
from simulator.reference.resize import resize

# On the CPU, and of DALI's two interfaces the first: test_dali.py compares them.
OFFERS: dict[str, list[Offer]] = {
    name: [
        offer
        for offer in offers
        if offer.stage == Stage.RESIZE
        and "cpu" in offer.options.get("device", ("cpu",))
        and "pipeline" in offer.options.get("api", ("pipeline",))
    ]
    for name, offers in {
        "pillow": pillow.BACKEND.offers,
        "opencv": opencv.BACKEND.offers,
        "dali": dali.BACKEND.offers,
        "openvino": openvino_pixels.OFFERS,
        "tensorflow": tensorflow_image.BACKEND.offers,
    }.items()
}
ROUNDS = ("pillow", "opencv", "dali")
EVERY = [
    (name, kernel, antialias, *coordinates)
    for name, offers in OFFERS.items()
    for offer in offers
    for kernel in offer.options["interpolation"]
    for antialias in offer.options["antialias"]
    for coordinates in [(each,) for each in offer.options.get("coordinates", ())] or [()]
]
# (library, its name, antialias) -> (the reference's name, what happens at the edge).
KNOWN = {
    **{
        ("pillow", kernel, True): (kernel, "drop")
        for kernel in ("bilinear", "bicubic", "box", "hamming", "lanczos")
    },
    ("pillow", "nearest", False): ("nearest", "drop"),
    ("opencv", "bilinear", False): ("bilinear", "repeat"),
    ("opencv", "linear_exact", False): ("bilinear", "repeat"),
    ("opencv", "bicubic", False): ("bicubic_75", "repeat"),
    ("opencv", "nearest_exact", False): ("nearest", "repeat"),
    ("dali", "nearest", False): ("nearest", "repeat"),
    **{
        ("dali", kernel, antialias): (reference, "repeat")
        for kernel, reference in (
            ("bilinear", "bilinear"),
            ("triangular", "bilinear"),
            ("bicubic", "bicubic"),
            ("lanczos3", "lanczos"),
        )
        for antialias in (True, False)
    },
}
# 101 x 121 are odd: no centre of an output pixel falls on a border, so `nearest` has no ties.
PICTURE = images.picture(101, 121)
SIZES = [(41, 37), (150, 170), (41, 170), (1, 1), (51, 121)]


def resizer(name: str, *fields: str | bool) -> Resizer:
    """The resizer of *name* with interpolation, antialias and, where it has them, coordinates."""
    options = dict(zip(("interpolation", "antialias", "coordinates"), fields, strict=False))
    (offer,) = (
        offer
        for offer in OFFERS[name]
        if all(value in offer.options[field] for field, value in options.items())
    )
    return offer.make(options | {"device": "cpu", "api": "pipeline", "subpixel_scale": True})


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("which", KNOWN, ids=str)
def test_within_a_level_of_the_reference(which, size):
    """Pillow rounds between its two passes, so a kernel with negative lobes adds a little."""
    reference, edge = KNOWN[which]
    want = resize(PICTURE, *size, reference, antialias=which[2], edge=edge).clip(0, 255)

    got = resizer(*which).resize(PICTURE, *size)

    assert np.abs(got - want).max() <= (0 if reference == "nearest" else 1.25)
    assert np.abs(got - want).mean() < 0.55


def test_every_kernel_that_the_reference_knows_is_compared():
    """What does not round is compared to a thousandth, in a file of its own."""
    beyond = {which for which in EVERY if which not in KNOWN and which[0] in ROUNDS}

    assert set(KNOWN) <= set(EVERY)
    assert beyond == {
        ("opencv", "nearest", False),
        ("opencv", "lanczos4", False),
        ("opencv", "area", True),
        ("dali", "gaussian", True),
        ("dali", "gaussian", False),
    }


def test_opencv_nearest_takes_the_left_pixel():
    """Index floor(i x scale), not the centre: OpenCV issue 9096; here 0, 2, 5, 7 of 10."""
    row = np.arange(0, 100, 10, dtype=np.uint8)[None]

    assert resizer("opencv", "nearest", False).resize(row, 1, 4).tolist() == [[0, 20, 50, 70]]
    # Centres at 1.25, 3.75, 6.25, 8.75.
    for name, kernel in (("opencv", "nearest_exact"), ("pillow", "nearest"), ("dali", "nearest")):
        got = resizer(name, kernel, False).resize(row, 1, 4)
        assert got.tolist() == [[10, 30, 60, 80]]


def test_opencv_area_is_the_mean_when_halving():
    block = np.array([[0, 10, 100, 104], [20, 30, 108, 112]], np.uint8)

    assert resizer("opencv", "area", True).resize(block, 1, 2).tolist() == [[15, 106]]


def test_halving_without_antialias_averages_two():
    """Half-pixel centres lie between two source pixels: (0 + 10) / 2, (20 + 30) / 2."""
    row = np.array([[0, 10, 20, 30]], np.uint8)

    for name in ("opencv", "dali"):
        got = resizer(name, "bilinear", False).resize(row, 1, 2)
        assert got.tolist() == [[5, 25]]


def test_halving_with_antialias_weighs_four():
    """Weights 1/8 3/8 3/8 1/8: Pillow drops what is outside, DALI repeats the edge.

    Pillow (3 x 0 + 3 x 10 + 1 x 20) / 7 = 7.14; DALI (1 x 0 + 3 x 0 + 3 x 10 + 20) / 8 = 6.25.
    """
    row = np.array([[0, 10, 20, 30]], np.uint8)

    assert resizer("pillow", "bilinear", True).resize(row, 1, 2).tolist() == [[7, 23]]
    assert resizer("dali", "bilinear", True).resize(row, 1, 2).tolist() == [[6, 24]]


def test_triangular_is_dalis_old_name_for_bilinear():
    for antialias in (True, False):
        old, new = (resizer("dali", name, antialias) for name in ("triangular", "bilinear"))
        assert np.array_equal(old.resize(PICTURE, 41, 37), new.resize(PICTURE, 41, 37))


@pytest.mark.parametrize("kernel", ["bilinear", "bicubic", "lanczos3", "gaussian", "triangular"])
def test_dali_obeys_antialias_when_shrinking_only(kernel):
    wide, narrow = (resizer("dali", kernel, antialias) for antialias in (True, False))

    assert not np.array_equal(wide.resize(PICTURE, 41, 37), narrow.resize(PICTURE, 41, 37))
    assert np.array_equal(wide.resize(PICTURE, 150, 170), narrow.resize(PICTURE, 150, 170))


@pytest.mark.parametrize("which", EVERY, ids=str)
def test_channels_do_not_mix(which):
    """Two channels are U and V, not gray and alpha; OpenCV's bicubic rounds by the count."""
    shared = resizer(*which)
    alone = [shared.resize(np.ascontiguousarray(PICTURE[..., i]), 41, 37) for i in range(3)]
    allowed = 1 if which[:2] == ("opencv", "bicubic") else 0 if which[0] in ROUNDS else 1e-4

    for count in (2, 3):
        got = shared.resize(PICTURE[..., :count], 41, 37).astype(float)
        assert np.abs(got - np.stack(alone[:count], axis=-1)).max() <= allowed


@pytest.mark.parametrize("shape", [(1, 1), (17, 11), (8191, 3), (3, 8191)], ids=str)
@pytest.mark.parametrize("which", EVERY, ids=str)
def test_odd_shapes_keep_a_flat_color(which, shape):
    shared, color = resizer(*which), np.array((0, 77, 255), np.uint8)
    flat = np.broadcast_to(color, (*shape, 3))
    allowed = 0 if which[0] in ROUNDS else 0.01

    for size in ((1, 1), (7, 5), (31, 64) if max(shape) < 100 else (31, 8)):
        assert np.abs(shared.resize(flat, *size) - color.astype(float)).max() <= allowed


@pytest.mark.parametrize("name", ROUNDS)
def test_a_frame_resizes_every_plane(name):
    u, v = images.picture(50, 61, seed=1)[..., 0], images.picture(50, 61, seed=2)[..., 0]
    nv12 = yuv_frame(PixelFormat.NV12, PICTURE[:99, :, 0], u, v, Matrix.BT601, Range.FULL)
    shared = resizer(name, "bilinear", name == "pillow")

    got = shared.frame(nv12, 33, 45)

    assert [plane.shape for plane in got.planes] == [(33, 45), (17, 23, 2)]
    for plane, alone in zip(got.chroma, (u, v), strict=True):
        assert np.array_equal(plane, shared.resize(alone, 17, 23))
