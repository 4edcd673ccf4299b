"""Encoders and converters: RGB to YUV and back, against the standards in float64."""

from __future__ import annotations

import numpy as np

from simulator.contract import Array, Frame, PixelFormat, rgb_frame
from simulator.reference.color import F64, downsample, rgb_to_yuv, upsample, yuv_to_rgb
from simulator.testing import files
from simulator.testing.subject import Subject, expect, refused, words
from simulator.testing.work import legal, working, yuv

LEVELS = {"convert": (3.0, 1.1), "encode": (2.0, 0.8)}
"""Allowed largest and mean error against float64: integer matrices, floors and early rounding of
chroma stay below. A wrong range has a mean error of 5-7, a wrong matrix a larger maximum."""
SIZES = ((1, 1), (2, 2), (17, 11), (1, 40), (40, 1))


def neutral_chroma_is_gray(subject: Subject) -> None:
    """U and V of 128 give R = G = B: of Y 126, 126 in full range, 110 x 255 / 219 in limited."""
    for variant in working(subject):
        converter = variant.make()
        frame = yuv(variant, 6, 6)
        luma = np.full_like(frame.planes[0], 126)
        chroma = [np.full_like(plane, 128) for plane in frame.planes[1:]]
        _, range = converter.assumes
        want = 126 if range == "full" else 110 * 255 / 219
        got = converter.convert(Frame(frame.format, (luma, *chroma), *converter.assumes)).rgb
        worst = np.abs(got - want).max()
        expect(
            worst <= 1.5,
            f"{words(variant)}: Y 126 is gray {want:.1f}, got {tuple(got[0, 0].tolist())}",
        )


def converts_like_float64(subject: Subject) -> None:
    """The pixels match the matrix, range and chroma filter that it claims, in float64."""
    for variant in working(subject):
        converter = variant.make()
        frame = yuv(variant, 61, 45)
        want = _rgb(frame, variant.options["chroma_upsampling"], *converter.assumes)
        got = converter.convert(Frame(frame.format, frame.planes, *converter.assumes)).rgb
        _within(variant, "convert", np.abs(got - want))


def it_assumes_what_it_says(subject: Subject) -> None:
    """``assumes`` is the matrix and range of its options."""
    for variant in working(subject):
        matrix, range = variant.make().assumes
        for name, got in (("matrix", matrix), ("range", range)):
            want = variant.options.get(name, got)
            expect(got == want, f"{words(variant)}: {name} {want} requested, but it assumes {got}")


def rgb_is_not_converted(subject: Subject) -> None:
    """A frame that is RGB already is refused."""
    converter = subject.make()
    refused("an RGB frame", converter.convert, rgb_frame(files.picture(8, 8)))


def converts_any_size(subject: Subject) -> None:
    """One pixel, odd sizes, one row and one column keep their size."""
    converter = subject.make()
    for size in SIZES:
        frame = yuv(subject, *size)
        got = converter.convert(Frame(frame.format, frame.planes, *converter.assumes)).rgb
        expect(got.shape == (*size, 3), f"a frame of {size} became {got.shape}")


def gray_has_neutral_chroma(subject: Subject) -> None:
    """R = G = B = 100 is U = V = 128, and Y 100 in full range, 16 + 219 x 100 / 255 in limited."""
    for variant in working(subject):
        frame = variant.make().encode(rgb_frame(np.full((6, 6, 3), 100, np.uint8)))
        luma = 100 if frame.range == "full" else 16 + 219 * 100 / 255
        for name, plane, want in zip("YUV", _planes(frame), (luma, 128, 128), strict=True):
            worst = np.abs(plane - want).max()
            expect(
                worst <= 1, f"{words(variant)}: {name} of gray 100 is {want:.1f}, got {plane[0, 0]}"
            )


def encodes_like_float64(subject: Subject) -> None:
    """The planes match the requested matrix, range and chroma filter in float64."""
    for variant in working(subject):
        options = variant.options
        rgb = legal(files.picture(61, 45))
        frame = variant.make().encode(rgb_frame(rgb.copy()))
        exact = rgb_to_yuv(rgb, options["matrix"], options["range"])
        v, h = PixelFormat(options["format"]).subsampling
        small = (downsample(exact[..., c], v, h, options["chroma_downsampling"]) for c in (1, 2))
        for plane, want in zip(_planes(frame), (exact[..., 0], *small), strict=True):
            expect(plane.shape == want.shape, f"{words(variant)}: planes of another size")
            _within(variant, "encode", np.abs(plane - want))


def the_frame_says_what_it_is(subject: Subject) -> None:
    """Format, matrix and range of the frame are those requested."""
    for variant in working(subject):
        frame = variant.make().encode(rgb_frame(files.picture(8, 8)))
        for name in ("format", "matrix", "range"):
            want = variant.options.get(name, getattr(frame, name))
            got = getattr(frame, name)
            expect(got == want, f"{words(variant)}: the frame says {name} {got}")


def encodes_any_size(subject: Subject) -> None:
    """One pixel, odd sizes, one row and one column keep their size."""
    encoder = subject.make()
    for size in SIZES:
        frame = encoder.encode(rgb_frame(files.picture(*size)))
        got = (frame.height, frame.width)
        expect(got == size, f"a picture of {size} became {got}")


def _rgb(frame: Frame, how: str, matrix: str, range: str) -> F64:
    v, h = frame.format.subsampling
    size = (frame.height, frame.width)
    chroma = (upsample(plane.astype(np.float64), v, h, size, how) for plane in frame.chroma)
    full = np.stack((frame.planes[0], *chroma), axis=-1)
    return yuv_to_rgb(full, matrix, range).clip(0, 255)


def _planes(frame: Frame) -> tuple[Array, Array, Array]:
    return (frame.planes[0], *frame.chroma)


def _within(variant: Subject, what: str, errors: Array) -> None:
    worst, mean = LEVELS[what]
    expect(
        errors.max() <= worst and errors.mean() <= mean,
        f"{words(variant)}: within {worst} levels and {mean} in the mean expected, "
        f"got {errors.max():.1f} and {errors.mean():.2f}",
    )
