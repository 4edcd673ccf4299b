"""Decoders: numbers, orientation, planes and bad files."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from itertools import product

import numpy as np

from simulator.contract import U8, Array, Encoded, PixelFormat, Range, SampleError, inspect
from simulator.errors import Unsupported
from simulator.reference.color import upsample, yuv_to_rgb
from simulator.testing import files
from simulator.testing.files import F64, Jpeg
from simulator.testing.subject import Failed, Subject, expect, refused, words
from simulator.testing.values import NOISE, one_line
from simulator.testing.work import working

FLAT = 2.0
"""Levels from the truth of a flat color: chroma and RGB are each rounded once."""

WORST = {"islow": 3.5, "ifast": 12.0, "ffmpeg": 3.5}
MEAN = {"islow": 0.6, "ifast": 2.5, "ffmpeg": 0.6}
"""Levels from the float64 decoder. One level of U, which the IDCT may miss, is 1.77 of B; the
fast IDCT keeps 8 bits of each factor (libjpeg-turbo, jidctfst.c)."""
_LAYOUTS = {"4:4:4": (1, 1), "4:2:2": (1, 2), "4:2:0": (2, 2)}


Check = Callable[[Subject], str | None]


def on_jpeg(check: Callable[[Subject], None]) -> Check:
    """Make a check of one whose files are JPEGs: a decoder that reads none has nothing to show."""

    @wraps(check)
    def checked(subject: Subject) -> str | None:
        if "jpeg" not in subject.offer.make.reads:
            return "reads no JPEG"
        check(subject)
        return None

    return checked


@on_jpeg
def flat_files_by_hand(subject: Subject) -> None:
    """A gray JPEG of 77 is 77 everywhere; Y, Cb, Cr of 100, 90, 200 is R, G, B of 201, 62, 33.

    100 + 1.402 x 72 = 200.9; 100 + 0.344 x 38 - 0.714 x 72 = 61.7; 100 - 1.772 x 38 = 32.7.
    """
    decoder = subject.make()
    gray = files.jpeg(np.full((17, 11), 77, np.uint8))
    _near("a flat gray JPEG of level 77", _rgb(decoder, gray.data), (77, 77, 77), 1)
    color = np.full((17, 11, 3), (100, 90, 200), np.uint8)
    for name, layout in _LAYOUTS.items():
        got = _rgb(decoder, files.jpeg(color, layout).data)
        _near(f"a flat {name} JPEG", got, (200.9, 61.7, 32.7), FLAT)


@on_jpeg
def agrees_with_float64(subject: Subject) -> None:
    """JPEG pixels match the inverse DCT and BT.601 in float64, within a few levels."""
    calm = files.picture(61, 45)
    calm[..., 1:] = calm[..., 1:] // 4 + 96  # smooth chroma, because chroma filters differ
    for variant in working(subject):
        decoder = variant.make()
        idct = variant.options.get("idct", "islow")
        for name, layout in _LAYOUTS.items():
            image = files.jpeg(calm, layout)
            got = _rgb(decoder, image.data).astype(np.float64)
            upsamplings = {"fancy": ["linear"], "plain": ["nearest"]}
            how = upsamplings.get(variant.options.get("chroma_upsampling", ""))
            errors = [np.abs(got - exact(image, layout, up)) for up in how or ("linear", "nearest")]
            nearest = min(errors, key=lambda e: float(e.mean()))
            loose = 1.0 if layout == (1, 1) or how else 5.0  # the filter is the library's own
            worst, mean = WORST.get(idct, 3.5) * loose, MEAN.get(idct, 0.6) * loose
            expect(
                nearest.max() <= worst and nearest.mean() <= mean,
                f"{name} {words(variant)}: within {worst} levels and {mean} in the mean expected, "
                f"got {nearest.max():.1f} and {nearest.mean():.2f}",
            )


def exact(image: Jpeg, layout: tuple[int, int], chroma_upsampling: str) -> F64:
    """The (H, W, 3) RGB of a color JPEG in float64, clipped and not rounded."""
    y, *chroma = image.planes
    v, h = layout
    size = (y.shape[0], y.shape[1])
    full = [upsample(np.rint(plane), v, h, size, chroma_upsampling) for plane in chroma]
    return yuv_to_rgb(np.stack((np.rint(y), *full), axis=-1), "bt601", "full").clip(0, 255)


def png_keeps_its_samples(subject: Subject) -> str | None:
    """A PNG is exact: gray repeated, alpha dropped, 16 bits cut or rounded; or it is refused."""
    decoder = subject.make()
    rgb = files.picture(17, 11)
    deep = (rgb.astype(np.uint16) << 8) | rgb[::-1]
    alpha = np.full((17, 11, 1), 9, np.uint8)
    gray = np.repeat(rgb[..., :1], 3, axis=2)
    kinds: dict[str, tuple[Array, U8]] = {
        "RGB": (rgb, rgb),
        "gray": (rgb[..., 0], gray),
        "gray and alpha": (np.concatenate((rgb[..., :1], alpha), axis=2), gray),
        "RGBA": (np.concatenate((rgb, alpha), axis=2), rgb),
        "16-bit RGB": (deep, rgb),
        "16-bit gray": (deep[..., 0], gray),
    }
    lacks = []
    for name, (samples, want) in kinds.items():
        data = files.png(samples)
        try:
            got = _rgb(decoder, data)
        except SampleError:
            reason = refused(f"a {name} PNG", _rgb, decoder, data)
            expect("png" in reason.lower(), f"a {name} PNG is refused without saying so: {reason}")
            lacks.append(name)
            continue
        worst = np.abs(got.astype(int) - want).max()
        slack = int(samples.dtype == np.uint16)
        expect(worst <= slack, f"a {name} PNG is {worst} levels off; it holds its samples exactly")
    return f"refuses PNG: {', '.join(lacks)}" if lacks else None


@on_jpeg
def any_size_will_do(subject: Subject) -> None:
    """One pixel, odd sizes, one row and one column come out in the size of the header."""
    decoder = subject.make()
    for size, layout in product(((1, 1), (17, 11), (1, 40), (40, 1), (8, 8)), _LAYOUTS.values()):
        got = _rgb(decoder, files.jpeg(files.picture(*size), layout).data)
        expect(got.shape == (*size, 3), f"a JPEG of {size} became {got.shape}")


@on_jpeg
def exif_is_obeyed(subject: Subject) -> None:
    """``apply`` turns by EXIF's orientation (table 6 of EXIF 2.32), ``ignore`` does not."""
    for variant in working(subject):
        decoder = variant.make()
        how = variant.options.get("exif", "ignore")
        picture = files.picture(17, 11)
        stored = _rgb(decoder, files.jpeg(picture).data)
        turned = {1: stored, 3: stored[::-1, ::-1], 6: stored.swapaxes(0, 1)[:, ::-1]}
        for orientation, upright in turned.items():
            want = upright if how == "apply" else stored
            got = _rgb(decoder, files.jpeg(picture, orientation=orientation).data)
            expect(
                np.array_equal(got, want),
                f"{words(variant)}: orientation {orientation} is not as it should be",
            )


@on_jpeg
def planes_are_as_claimed(subject: Subject) -> None:
    """With ``gives_planes`` planes are the JPEG's own, within a level; else they are refused."""
    decoder = subject.make()
    claimed = bool(getattr(subject.offer.make, "gives_planes", False))
    image = files.jpeg(files.picture(17, 11), (2, 2))
    try:
        frame = decoder.planes(inspect("planes", image.data))
    except Unsupported as error:
        expect(not claimed, f"gives_planes is claimed, but planes are refused: {one_line(error)}")
        return
    expect(claimed, "gives YUV planes, but does not claim gives_planes")
    expect(frame.range is Range.FULL, f"a JPEG is full range, got {frame.range}")
    expect(
        frame.format in (PixelFormat.I420, PixelFormat.NV12, PixelFormat.NV21),
        f"the planes of a 4:2:0 JPEG came as {frame.format}",
    )
    for name, got, want in zip("YUV", (frame.planes[0], *frame.chroma), image.planes, strict=True):
        expect(got.shape == want.shape, f"{name} of {want.shape} expected, got {got.shape}")
        worst = np.abs(got - want).max()
        expect(worst <= 1.1, f"{name} is {worst:.1f} levels from the float64 inverse DCT")


@on_jpeg
def results_may_be_written(subject: Subject) -> None:
    """The next stage may work in place: the pixels are writable and C-contiguous."""
    image = inspect("suite", files.jpeg(files.picture(17, 11)).data)
    got = subject.make().rgb(image).rgb
    expect(got.flags.writeable, "the pixels are read-only")
    expect(got.flags.c_contiguous, "the pixels are not C-contiguous")


def bad_files_are_refused(subject: Subject) -> None:
    """Data that is not an image is refused in one line, even if its header was accepted."""
    decoder = subject.make()
    for image in _noise():
        refused(image.name, decoder.rgb, image)


@on_jpeg
def a_bad_file_leaves_no_trace(subject: Subject) -> None:
    """After noise or a truncated scan, whether refused or not, the next file decodes correctly."""
    decoder = subject.make()
    good = files.jpeg(files.picture(61, 45)).data
    want = _rgb(decoder, good)
    scan = good.index(b"\xff\xda")
    cuts = [good[: scan + keep] + b"\xff\xd9" for keep in (14, 60, (len(good) - scan) // 2)]
    for image in (*_noise(), *(inspect("a cut file", cut) for cut in cuts)):
        try:
            decoder.rgb(image)
        except SampleError as error:
            expect("\n" not in str(error), f"{image.name}: several lines: {one_line(error)}")
        except Exception as error:
            raise Failed(f"{image.name}: SampleError expected, got {one_line(error)}") from error
        expect(np.array_equal(_rgb(decoder, good), want), f"{image.name} spoils the next file")


def _noise() -> list[Encoded]:
    found = {"noise": NOISE, "noise in a JPEG": b"\xff\xd8\xff" + NOISE}
    return [Encoded(name, data, "jpeg", 16, 16, 3, 8, 1) for name, data in found.items()]


def _rgb(decoder: object, data: bytes) -> U8:
    return np.array(decoder.rgb(inspect("suite", data)).rgb)  # type: ignore[attr-defined]


def _near(what: str, got: Array, want: tuple[float, ...], levels: float) -> None:
    worst = np.abs(got - np.array(want)).max()
    expect(
        worst <= levels,
        f"{what} is {tuple(got[0, 0].tolist())} at the corner and {worst:.1f} levels off {want}",
    )
