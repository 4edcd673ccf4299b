"""RGB to YUV and back: by hand, against the float64 reference, and against each other."""

from __future__ import annotations

import images
import numpy as np
import pytest

from backends import aipp, itu, opencv, sysnoise
from simulator.contract import Frame, PixelFormat, Unsupported, rgb_frame
from simulator.contract.frame import Matrix, Range, yuv_frame
from simulator.reference.color import downsample, rgb_to_yuv, upsample, yuv_to_rgb

SHAPES = [(1, 1), (2, 2), (17, 11), (60, 44), (3, 8191), (8191, 3)]
MATRICES = [(m, r) for m in ("bt601", "bt709") for r in ("full", "limited")]
FOUR_TWO_ZERO = ("nv12", "nv21", "i420")


def encoder(backend: str, format: str, matrix="bt601", range="limited", down="average"):
    make = {
        "itu": itu.ItuEncoder,
        "opencv": opencv.OpenCVEncoder,
        "sysnoise": sysnoise.SysNoiseEncoder,
    }[backend]
    options = {"format": format, "matrix": matrix, "range": range, "chroma_downsampling": down}
    return make(options)


def converter(backend: str, format: str, up="nearest", **fields):
    make = {
        "itu": itu.ItuConverter,
        "opencv": opencv.OpenCVConverter,
        "sysnoise": sysnoise.SysNoiseConverter,
        "aipp": aipp.AippConverter,
    }[backend]
    return make({"format": format, "chroma_upsampling": up, **fields})


def yuv(format: str, height: int, width: int, matrix="bt601", range="limited") -> Frame:
    layout = PixelFormat(format)
    v, h = layout.subsampling
    small = (-(-height // v), -(-width // h))
    y = images.picture(height, width, 1).reshape(height, width)
    u, w = (images.picture(*small, 1, seed=seed).reshape(small) for seed in (1, 2))
    return yuv_frame(layout, y, u, w, Matrix(matrix), Range(range))


def one(y: int, u: int, v: int) -> Frame:
    planes = (np.array([[sample]], np.uint8) for sample in (y, u, v))
    return yuv_frame(PixelFormat.YUV444, *planes, Matrix.BT601, Range.FULL)


def full_size(frame: Frame, how: str) -> np.ndarray:
    size = (frame.height, frame.width)
    chroma = (
        upsample(plane.astype(float), *frame.format.subsampling, size, how)
        for plane in frame.chroma
    )
    return np.stack((frame.planes[0], *chroma), axis=-1)


# --- by hand ----------------------------------------------------------------------------------

# Y, U, V = 100, 90, 200: U - 128 = -38, V - 128 = 72.
BY_HAND = {
    # 25600 + 359 * 72 = 51448 -> 200; 25600 + 88 * 38 - 183 * 72 = 15768 -> 61;
    # 25600 - 454 * 38 = 8348 -> 32.
    "JPEG": (200, 61, 32),
    "BT601_WIDE": (200, 61, 32),
    # 298 * 84 = 25032; + 409 * 72 = 54480 -> 212; + 3800 - 14976 = 13856 -> 54;
    # - 516 * 38 = 5424 -> 21.
    "BT601_NARROW": (212, 54, 21),
    # 25032 + 459 * 72 = 58080 -> 226; + 2090 - 9792 = 17330 -> 67; - 20558 = 4474 -> 17.
    "BT709_NARROW": (226, 67, 17),
    # 25600 + 403 * 72 = 54616 -> 213; + 1824 - 8640 = 18784 -> 73; - 18050 = 7550 -> 29.
    "BT709_WIDE": (213, 73, 29),
}


@pytest.mark.parametrize("preset", BY_HAND)
def test_aipp_by_hand(preset):
    got = converter("aipp", "yuv444", preset=preset).convert(one(100, 90, 200))

    assert tuple(got.rgb[0, 0]) == BY_HAND[preset]


def test_every_preset_is_worked_by_hand():
    (offer,) = aipp.BACKEND.offers

    assert set(offer.options["preset"]) == set(BY_HAND)


def test_aipp_floors_and_clips():
    """298 * (0 - 16) is negative; 256 * 255 + 359 * 127 is above 255; -88 >> 8 is -1, not 0."""
    narrow = converter("aipp", "yuv444", preset="BT601_NARROW")
    jpeg = converter("aipp", "yuv444", preset="JPEG")

    assert tuple(narrow.convert(one(0, 128, 128)).rgb[0, 0]) == (0, 0, 0)
    assert tuple(jpeg.convert(one(255, 128, 255)).rgb[0, 0]) == (255, 164, 255)
    # G: 25600 - 88 = 25512 -> 99 (99.66 floored); B: 25600 + 454 = 26054 -> 101 (101.77).
    assert tuple(jpeg.convert(one(100, 129, 128)).rgb[0, 0]) == (100, 99, 101)


def test_sysnoise_rounds_where_aipp_floors():
    """Equation 7: 54480 + 128 -> 213, 13856 + 128 -> 54, 5424 + 128 -> 21."""
    got = converter("sysnoise", "yuv444").convert(one(100, 90, 200))

    assert tuple(got.rgb[0, 0]) == (213, 54, 21)


def test_sysnoise_encodes_by_hand():
    """Equations 5-6 of (200, 100, 50).

    Y (13200 + 12900 + 1250 + 128 = 27478) >> 8 = 107, + 16. U (-7600 - 7400 + 5600 + 128 =
    -9272) >> 8 = -37, + 128. V (22400 - 9400 - 900 + 128 = 12228) >> 8 = 47, + 128.
    """
    rgb = rgb_frame(np.array([[[200, 100, 50]]], np.uint8))

    got = encoder("sysnoise", "yuv444").encode(rgb)

    assert [int(plane[0, 0]) for plane in got.planes] == [123, 91, 175]


@pytest.mark.parametrize(
    ("color", "full", "limited"),
    # Table of BT.601 color bars at 100 %: limited range, 8 bits; JFIF for the full range.
    [
        ((255, 255, 255), (255, 128, 128), (235, 128, 128)),
        ((0, 0, 0), (0, 128, 128), (16, 128, 128)),
        ((255, 0, 0), (76, 85, 255), (81, 90, 240)),
        ((0, 255, 0), (150, 44, 21), (145, 54, 34)),
        ((0, 0, 255), (29, 255, 107), (41, 240, 110)),
    ],
)
def test_color_bars(color, full, limited):
    rgb = rgb_frame(np.array([[color]], np.uint8))

    for range, want in (("full", full), ("limited", limited)):
        got = encoder("itu", "yuv444", range=range).encode(rgb)
        assert tuple(int(plane[0, 0]) for plane in got.planes) == want


def test_chroma_filters_by_hand():
    """A red and three black pixels: V is (255 + 3 x 128) / 4 or the top left one."""
    rgb = np.zeros((2, 2, 3), np.uint8)
    rgb[0, 0] = (255, 0, 0)

    for down, want in (("average", 160), ("nearest", 255)):
        got = encoder("itu", "i420", range="full", down=down).encode(rgb_frame(rgb))
        assert got.planes[2].tolist() == [[want]]
    nearest = encoder("opencv", "i420", down="nearest").encode(rgb_frame(rgb))
    assert nearest.planes[2].tolist() == [[240]]


def test_linear_chroma_by_hand():
    """Weights 3/4 and 1/4: U of 128 and 136 become 128, 130, 134, 136; B is Y + 1.772 (U - 128)."""
    y, chroma = np.full((1, 4), 100, np.uint8), np.array([[128, 136]], np.uint8)
    flat = np.full((1, 2), 128, np.uint8)
    frame = yuv_frame(PixelFormat.YUV422, y, chroma, flat, Matrix.BT601, Range.FULL)

    got = converter("itu", "yuv422", "linear", matrix="bt601", range="full").convert(frame)

    assert got.rgb[0, :, 2].tolist() == [100, 104, 111, 114]  # 103.5, 110.6, 114.2


# --- against the reference --------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("format", ["nv12", "nv21", "i420", "yuv444"])
@pytest.mark.parametrize("down", ["average", "nearest"])
@pytest.mark.parametrize(("matrix", "range"), MATRICES)
def test_itu_encodes_like_the_reference(matrix, range, down, format, shape):
    """The chroma is averaged before it is rounded, so half a level is all there is."""
    rgb = images.picture(*shape)
    want = rgb_to_yuv(rgb, matrix, range).clip(0, 255)

    got = encoder("itu", format, matrix, range, down).encode(rgb_frame(rgb))

    assert (got.matrix, got.range, got.format) == (matrix, range, format)
    assert np.abs(got.planes[0] - want[..., 0]).max() < 0.501
    for plane, exact in zip(got.chroma, (want[..., 1], want[..., 2]), strict=True):
        small = downsample(exact, *got.format.subsampling, down)
        assert np.abs(plane - small).max() < 0.501


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("format", ["nv12", "nv21", "i420", "yuv411", "yuv422", "yuv440", "yuv444"])
@pytest.mark.parametrize("up", ["nearest", "linear"])
@pytest.mark.parametrize(("matrix", "range"), MATRICES)
def test_itu_converts_like_the_reference(matrix, range, up, format, shape):
    frame = yuv(format, *shape, matrix, range)
    want = yuv_to_rgb(full_size(frame, up), matrix, range).clip(0, 255)
    shared = converter("itu", format, up, matrix=matrix, range=range)

    assert np.abs(shared.convert(frame).rgb - want).max() < 0.501
    assert shared.assumes == (matrix, range)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("format", ["nv12", "nv21", "i420", "yuv444"])
@pytest.mark.parametrize("up", ["nearest", "linear"])
@pytest.mark.parametrize("preset", BY_HAND)
def test_aipp_is_near_the_standard_it_names(preset, up, format, shape):
    """256ths, the floor and rounded chroma cost up to 3 levels, never 5-7 as a wrong range."""
    shared = converter("aipp", format, up, preset=preset)
    frame = yuv(format, *shape, *shared.assumes)
    want = yuv_to_rgb(full_size(frame, up), *shared.assumes).clip(0, 255)

    assert np.abs(shared.convert(frame).rgb - want).max() < 3
    assert np.abs(shared.convert(frame).rgb - want).mean() < 1.1


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("format", ["nv12", "nv21", "i420", "yuv444"])
@pytest.mark.parametrize("up", ["nearest", "linear"])
def test_sysnoise_is_near_bt601(up, format, shape):
    frame = yuv(format, *shape)
    want = yuv_to_rgb(full_size(frame, up), "bt601", "limited").clip(0, 255)

    assert np.abs(converter("sysnoise", format, up).convert(frame).rgb - want).max() < 2.5


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("down", ["average", "nearest"])
def test_sysnoise_encodes_near_bt601(down, shape):
    rgb = rgb_frame(images.picture(*shape))
    ours, exact = (encoder(name, "i420", down=down).encode(rgb) for name in ("sysnoise", "itu"))

    for a, b in zip(ours.planes, exact.planes, strict=True):
        assert np.abs(a.astype(int) - b).max() <= 2


# --- OpenCV -----------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("format", FOUR_TWO_ZERO)
def test_opencv_is_bt601_limited(format, shape):
    """Both ways, odd sizes included: the public formula with nearest chroma."""
    rgb = rgb_frame(images.picture(*shape))
    frame = yuv(format, *shape)
    frame = frame.with_planes(frame.planes[0].clip(16, 255), *frame.planes[1:])
    exact = converter("itu", format, matrix="bt601", range="limited").convert(frame)
    coded = encoder("itu", format, down="nearest").encode(rgb)

    got = converter("opencv", format).convert(frame)
    made = encoder("opencv", format, down="nearest").encode(rgb)

    assert np.abs(got.rgb.astype(int) - exact.rgb).max() <= 2
    assert np.abs(got.rgb.astype(int) - exact.rgb).mean() < 0.2
    assert (made.format, made.matrix, made.range) == (format, "bt601", "limited")
    for a, b in zip(made.planes, coded.planes, strict=True):
        assert np.abs(a.astype(int) - b).max() <= 1


def test_opencv_takes_footroom_for_black():
    """Y of 0 counts as 16, so red is 1.596 x 127 = 202.7; the formula gives 202.7 - 18.6 = 184."""
    planes = (np.full((2, 2), 0, np.uint8), *(np.array([[x]], np.uint8) for x in (128, 255)))
    frame = yuv_frame(PixelFormat.I420, *planes, Matrix.BT601, Range.LIMITED)
    exact = converter("itu", "i420", matrix="bt601", range="limited").convert(frame)

    assert converter("opencv", "i420").convert(frame).rgb[0, 0].tolist() == [203, 0, 0]
    assert exact.rgb[0, 0].tolist() == [184, 0, 0]


def test_opencv_refuses_other_layouts():
    with pytest.raises(Unsupported, match="not yuv444"):
        converter("opencv", "nv12").convert(yuv("yuv444", 4, 4))


# --- layouts ----------------------------------------------------------------------------------

CONVERT = [
    ("itu", {"matrix": "bt601", "range": "limited"}),
    ("opencv", {}),
    ("sysnoise", {}),
    ("aipp", {"preset": "JPEG"}),
]


@pytest.mark.parametrize(("backend", "fields"), CONVERT, ids=str)
def test_the_layout_does_not_change_the_color(backend, fields):
    a, b, c = (
        converter(backend, format, **fields).convert(yuv(format, 17, 11)).rgb
        for format in FOUR_TWO_ZERO
    )

    assert np.array_equal(a, b)
    assert np.array_equal(a, c)


@pytest.mark.parametrize("backend", ["itu", "opencv", "sysnoise"])
def test_encoders_agree_over_layouts(backend):
    rgb = rgb_frame(images.picture(17, 11))
    nv12, nv21, i420 = (
        encoder(backend, format, down="nearest").encode(rgb) for format in FOUR_TWO_ZERO
    )

    assert np.array_equal(nv12.planes[1], nv21.planes[1][..., ::-1])
    for a, b in zip(nv12.chroma, i420.chroma, strict=True):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("format", FOUR_TWO_ZERO)
@pytest.mark.parametrize("up", ["nearest", "linear"])
@pytest.mark.parametrize(("backend", "fields"), CONVERT, ids=str)
def test_inputs_are_left_alone(backend, fields, up, format):
    frame, same = yuv(format, 16, 10), yuv(format, 16, 10)
    for plane in frame.planes:
        plane.flags.writeable = False

    got = converter(backend, format, up, **fields).convert(frame)

    assert got.rgb.flags.writeable
    assert all(map(np.array_equal, frame.planes, same.planes))


@pytest.mark.parametrize("backend", ["itu", "opencv", "sysnoise"])
def test_encoders_leave_their_input_alone(backend):
    rgb = images.picture(17, 11)
    rgb.flags.writeable = False

    encoder(backend, "nv12", down="nearest").encode(rgb_frame(rgb))

    assert np.array_equal(rgb, images.picture(17, 11))
