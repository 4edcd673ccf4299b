"""Least squares say what a tensor is of pixels: slips made here with numpy are named."""

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from PIL import Image

from simulator.data import example
from simulator.identify.affine import affine, shortest
from simulator.identify.solve import alike, solve

MEAN, STD = np.array([123.675, 116.28, 103.53]), np.array([58.395, 57.12, 57.375])


@pytest.fixture(scope="module")
def photos():
    """Two photographs, (3, 96, 128) uint8."""
    files = [item.path for item in example.images().items[:2]]
    return [np.asarray(Image.open(one).resize((128, 96))).transpose(2, 0, 1) for one in files]


def normalized(pixels, mean=MEAN, std=STD):
    """(x - mean) / std in float32, as most code does it."""
    mean, std = (np.float32(one)[:, None, None] for one in (mean, std))
    return (np.float32(pixels) - mean) / std


def padded(pixels, stride):
    """Rows of a buffer of bytes with a stride, read as if they had none."""
    _, height, width = pixels.shape
    buffer = np.zeros((height, stride), np.float32)
    buffer[:, : 3 * width] = pixels.transpose(1, 2, 0).reshape(height, -1)
    read = buffer.ravel()[: 3 * height * width]
    return read.reshape(height, width, 3).transpose(2, 0, 1)


SLIPS = {
    "nothing": (normalized, "in order", STD, MEAN),
    "255 forgotten": (lambda p: normalized(p, MEAN / 255, STD / 255), "in order",
                      [0.229, 0.224, 0.225], [0.485, 0.456, 0.406]),
    "twice": (lambda p: normalized(normalized(p), MEAN / 255, STD / 255), "in order",
              STD * [0.229, 0.224, 0.225], MEAN + STD * [0.485, 0.456, 0.406]),
    "rows of pixels": (lambda p: normalized(p).transpose(1, 2, 0).reshape(p.shape),
                       "NHWC read as NCHW", STD, MEAN),
    "bytes read as rows of pixels": (lambda p: normalized(p.transpose(1, 2, 0).reshape(p.shape)),
                                     "NHWC read as NCHW", STD, MEAN),
    "columns": (lambda p: normalized(p).transpose(0, 2, 1).reshape(p.shape),
                "width and height exchanged", STD, MEAN),
    "signed": (lambda p: normalized(p.view(np.int8)), "in order", STD, MEAN),
    "a stride of 64": (lambda p: normalized(padded(p, 448)), "padded rows", STD, MEAN),
    "mirrored": (lambda p: normalized(p[:, :, ::-1]), "mirrored left to right", STD, MEAN),
}  # fmt: skip


@pytest.mark.parametrize("slip", SLIPS)
def test_slips_are_solved(photos, slip):
    do, order, std, mean = SLIPS[slip]

    found = solve([do(one) for one in photos], photos)

    assert (found.order, found.fit.order, found.fit.exact) == (order, (0, 1, 2), True)
    assert found.fit.std == pytest.approx(std, rel=1e-6)
    assert found.fit.zero == pytest.approx(mean, abs=1e-4)
    assert found.stride == (448 if order == "padded rows" else None)
    assert found.raw == (slip in ("bytes read as rows of pixels", "a stride of 64"))
    assert found.signed == (slip == "signed")


NUMBERS = {
    "std": st.lists(st.floats(0.01, 1000), min_size=3, max_size=3),
    "zero": st.lists(st.floats(-300, 300), min_size=3, max_size=3),
}
QUICK = settings(
    max_examples=15, phases=[Phase.explicit, Phase.generate]
)  # shrinking takes minutes


@QUICK
@given(order=st.permutations(range(3)), **NUMBERS)
def test_any_affine_relation_and_any_order_of_channels(photos, order, std, zero):
    found = solve([normalized(one[list(order)], zero, std) for one in photos], photos)

    assert (found.order, found.fit.order, found.fit.exact) == ("in order", tuple(order), True)
    assert found.fit.std == pytest.approx(std, rel=1e-3)
    assert found.fit.zero == pytest.approx(zero, abs=0.1)


@settings(QUICK, max_examples=4)
@given(stride=st.integers(385, 600), **NUMBERS)
def test_any_stride(photos, stride, std, zero):
    found = solve([normalized(padded(one, stride), zero, std) for one in photos], photos)

    assert (found.order, found.stride, found.fit.exact) == ("padded rows", stride, True)
    assert np.isnan(alike(found, photos, photos)[0 if not found.raw else 1][0]).any()


def test_wrong_pixels_leave_what_no_number_explains(photos):
    """A shift by 4 pixels of 128."""
    found = solve([normalized(np.roll(one, 4, axis=2)) for one in photos], photos)

    assert not found.fit.exact
    assert found.fit.levels > 50


def test_clipped_values_are_left_out_and_counted(photos):
    """Limited range is widened: below 16 and above 235 nothing is left."""
    wide = [np.clip((np.float64(one) - 16) * 255 / 219, 0, 255) for one in photos]
    seen = np.concatenate([one.reshape(3, -1) for one in photos], axis=1)
    ends = ((seen <= 16) | (seen >= 235)).any(axis=0).mean()

    found = affine(wide, photos)

    assert found.largest < 1e-9
    assert found.left_out == pytest.approx(ends, abs=0.002)
    assert found.std == pytest.approx([219 / 255] * 3)
    assert found.zero == pytest.approx([16] * 3)


def test_integers_fit_but_for_their_rounding(photos):
    tensors = [np.rint(np.float64(one) / 2 - 20).astype(np.int8) for one in photos]

    found = solve(tensors, photos).fit

    assert (found.step, found.exact) == (1.0, True)
    assert found.std == pytest.approx([2] * 3, rel=0.002)


def test_a_matrix_of_channels(photos):
    """BT.601's luma, whatever the scale."""
    luma = np.array([0.299, 0.587, 0.114])
    tensors = [np.tensordot([luma / 58] * 3, np.float64(one), 1) - 2 for one in photos]

    found = solve(tensors, photos).fit

    assert found.order is None
    assert found.matrix == pytest.approx(np.array([luma / 58] * 3))
    assert found.std == pytest.approx([58] * 3)


def test_gray_photos_keep_their_channels(photos):
    """Of equal channels any is as good; the tensor's own is named."""
    gray = [np.repeat(one[:1], 3, axis=0) for one in photos]

    found = solve([normalized(one) for one in gray], gray).fit

    assert (found.order, found.exact) == ((0, 1, 2), True)


def test_shapes_that_differ_are_refused(photos):
    with pytest.raises(ValueError, match="of equal shapes"):
        solve(photos, [photos[0]])


def test_the_number_with_the_fewest_digits():
    assert shortest(58.3950004, 1e-5) == 58.395
    assert shortest(0.268629536, 5e-9) == 0.26862954
    assert shortest(2.0, 0.0) == 2.0
