"""Where pixels go: torchvision's documented rule by hand, DALI's by DALI itself."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.errors import SampleError
from simulator.modalities.image.geometry import Geometry

ROUNDINGS = ["torchvision", "dali", "floor", "albumentations"]


def crop(size, short, rounding="torchvision"):
    return Geometry("short_side_crop", size, size, rounding, short_side=short)


def ramp(rows, columns):
    """Every pixel says where it is: (row, column, 0)."""
    y, x = np.mgrid[0:rows, 0:columns]
    return np.stack([y, x, np.zeros_like(y)], axis=-1).astype(np.uint8)


@pytest.mark.parametrize(
    ("height", "width", "resized"),
    [
        (375, 500, (256, 341)),  # 256 * 500 / 375 = 341.33
        (500, 375, (341, 256)),
        (333, 500, (256, 384)),  # 384.38
        (300, 301, (256, 256)),  # 256.85: cut off, not rounded
        (256, 256, (256, 256)),
        (100, 50, (512, 256)),
        (1, 1, (256, 256)),
        (1, 7, (256, 1792)),
    ],
)
def test_torchvisions_short_side(height, width, resized):
    """``Resize(256)``: the long side is int(size * long / short)."""
    assert crop(224, 256).resized(height, width) == resized


@pytest.mark.parametrize(
    ("rounding", "starts"),
    [
        ("torchvision", {256: 16, 341: 58, 227: 2, 225: 0, 229: 2, 231: 4}),
        ("dali", {227: 2, 225: 1, 229: 3, 341: 59}),
        ("floor", {227: 1, 225: 0, 229: 2, 230: 3}),
        ("albumentations", {227: 1, 225: 0, 229: 2, 230: 3}),
    ],
)
def test_a_center_crop_starts_at_a_half_rounded(rounding, starts):
    """``CenterCrop(224)`` starts at int(round((size - 224) / 2)), and Python rounds a half to
    even: 117 / 2 = 58.5 → 58, 3 / 2 → 2, 1 / 2 → 0, 5 / 2 → 2, 7 / 2 → 4. DALI: half up."""
    for size, start in starts.items():
        rows = np.arange(size)[:, None, None] * np.ones((1, 256, 3), np.int64)

        assert crop(224, 256, rounding).fit(rows)[0, 0, 0] == start


def dali_pipeline(image, short, size):
    """What DALI itself makes of an image: the resized one, and its center."""
    dali = pytest.importorskip("nvidia.dali")
    from nvidia.dali import fn, types

    pipeline = dali.Pipeline(
        batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1,
        exec_async=False, exec_pipelined=False,
    )  # fmt: skip
    with pipeline:
        source = fn.external_source(name="image", layout="HWC")
        small = fn.resize(
            source, resize_shorter=short, interp_type=types.INTERP_LINEAR, antialias=False
        )
        pipeline.set_outputs(small, fn.crop(small, crop=(size, size)))
    pipeline.build()
    pipeline.feed_input("image", [image])
    return [np.array(out.at(0)) for out in pipeline.run()]


@pytest.mark.parametrize(
    ("height", "width", "short", "size"),
    [(500, 375, 256, 224), (300, 301, 256, 224), (101, 257, 256, 224), (17, 11, 33, 20),
     (11, 17, 32, 25), (427, 640, 256, 224), (1, 1, 33, 20), (641, 427, 257, 224)],
)  # fmt: skip
def test_dalis_rounding_is_dalis(height, width, short, size):
    """The claim in profiles/dali_fp32.yaml, held against the real pipeline: equal size, and
    the crop starts at the same pixel (the image is a ramp, so a shift would show)."""
    y, x = np.mgrid[0:height, 0:width]
    image = np.stack([y * 255 // height, x * 255 // width, y ^ x], axis=-1).astype(np.uint8)
    small, center = dali_pipeline(image, short, size)
    geometry = crop(size, short, "dali")

    assert geometry.resized(height, width) == small.shape[:2]
    np.testing.assert_array_equal(geometry.fit(small), center)


def test_squash_ignores_the_shape():
    assert Geometry("squash", 30, 40).resized(1000, 3) == (30, 40)


@pytest.mark.parametrize(("rounding", "start"), [("floor", 3), ("torchvision", 4), ("dali", 4)])
def test_squash_crop(rounding, start):
    """Every image becomes 31 x 31 first; (31 - 24) / 2 = 3.5 down, to even, and up."""
    geometry = Geometry("squash_crop", 24, 24, rounding, short_side=31)
    image = ramp(31, 31)

    assert geometry.resized(1000, 3) == (31, 31)
    end = start + 24
    np.testing.assert_array_equal(geometry.fit(image), image[start:end, start:end])
    placed = geometry.placement((62, 310), (31, 31))
    assert (placed.top, placed.left, placed.factor) == (-start, -start, None)
    assert placed.scales("ratio") == (Fraction(1, 2), Fraction(1, 10))


@pytest.mark.parametrize(
    ("height", "width", "resized"),
    [(100, 200, (32, 64)), (200, 100, (64, 32)), (64, 64, (64, 64)), (1, 1000, (1, 64)),
     (3, 640, (1, 64)), (10, 30, (21, 64))],
)  # fmt: skip
def test_letterbox_scales_the_long_side(height, width, resized):
    """10 * 64 / 30 = 21.33; no side is ever less than one pixel."""
    assert Geometry("letterbox", 64, 64, "floor").resized(height, width) == resized


@pytest.mark.parametrize(("position", "top"), [("center", 2), ("top_left", 0)])
def test_letterbox_pads_with_its_value(position, top):
    image = np.full((3, 8, 3), 9, np.uint8)

    out = Geometry("letterbox", 8, 8, position=position, value=114).fit(image)

    assert (out[top : top + 3] == 9).all()
    assert (np.delete(out, range(top, top + 3), axis=0) == 114).all()


def test_too_small_to_crop_is_the_samples_fault():
    with pytest.raises(SampleError, match="20x30 pixels after resize are too few for 24x24"):
        crop(24, 20).fit(ramp(20, 30))


def test_a_long_thin_image_is_not_blown_up():
    """1 x 16,000,000 at a short side of 256 would be 4 billion columns of 256 rows."""
    with pytest.raises(SampleError, match="1x16000000 pixels would be resized to 256x4096000000"):
        crop(224, 256).resized(1, 16_000_000)


def test_nothing_to_do_is_no_copy():
    image = ramp(24, 24)

    assert crop(24, 24).fit(image) is image


@given(
    kind=st.sampled_from(["short_side_crop", "squash_crop", "squash", "letterbox"]),
    rounding=st.sampled_from(ROUNDINGS),
    position=st.sampled_from(["center", "top_left"]),
    height=st.integers(1, 400),
    width=st.integers(1, 400),
    size=st.tuples(st.integers(1, 48), st.integers(1, 48)),
    more=st.integers(0, 16),
)
def test_any_image_fits(kind, rounding, position, height, width, size, more):
    """Whatever comes in, an image of the network's size goes out, of pixels that came in."""
    geometry = Geometry(
        kind, *size, rounding, short_side=max(size) + more, position=position, value=200
    )

    rows, columns = geometry.resized(height, width)
    out = geometry.fit(np.full((rows, columns, 3), 7, np.uint8))

    assert out.shape == (*size, 3)
    assert set(np.unique(out)) <= ({7, 200} if kind == "letterbox" else {7})
    assert (out == 7).any()


@given(
    rounding=st.sampled_from(ROUNDINGS),
    height=st.integers(1, 3000),
    width=st.integers(1, 3000),
    short=st.integers(1, 300),
)
def test_the_short_side_is_exact_and_the_long_side_within_a_pixel(rounding, height, width, short):
    rows, columns = crop(1, short, rounding).resized(height, width)

    exact = short * max(height, width) / min(height, width)
    assert min(rows, columns) == short
    assert abs(max(rows, columns) - exact) <= (0.5 if rounding == "dali" else 1)
