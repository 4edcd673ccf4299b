"""Probe images: made so that options of a stack give different pixels.

Most are written sample by sample (:func:`simulator.testing.files.jpeg`), with the chroma
subsampling that they are about; sizes are chosen so that geometries place them differently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from simulator import registry
from simulator.contract import U8, Stage
from simulator.contract.recipe import generator
from simulator.errors import SampleError
from simulator.modalities.image.card import ImageCard
from simulator.modalities.image.geometry import Geometry
from simulator.profile.implementations import implementation
from simulator.testing import files

SIZES = 6
"""Sizes at most that are chosen to tell geometries apart."""
_SHORT, _LONG = (190, 331), (191, 520)
"""Rows and columns, from and to, of the sizes that are tried."""
_STEP = 11


@dataclass(frozen=True, slots=True)
class Probe:
    """One probe image.

    Attributes:
        name: of its file.
        about: what it is for, in a few words.
        data: the bytes of the file.
    """

    name: str
    about: str
    data: bytes


Samples = Callable[[int, int], U8]


def probes(card: ImageCard, geometries: Mapping[str, Geometry]) -> Iterator[Probe]:
    """Yield the probe images for a model.

    Args:
        card: of the model.
        geometries: those to be told apart, by name.
    """
    for height, width in sizes(list(geometries.values())):
        name = f"zone_{width}x{height}.jpg"
        yield _jpeg(name, "geometry, kernel, antialiasing", zone(height, width), (2, 2))
    yield from _subsampled()
    network = card.input.one_size("identify")
    exact = zone(*network)
    exact[..., 1:] = ramps(*network)[..., 1:]
    yield _jpeg("network_size.jpg", "colors and normalization without a resize", exact, (1, 1))
    yield _jpeg("ramps.jpg", "matrix, range and clipping", ramps(240, 320), (1, 1))
    yield _jpeg("ramps_420.jpg", "range where chroma is subsampled", ramps(240, 320), (2, 2))
    yield _jpeg("noise.jpg", "inverse DCT", noise(256, 256), (1, 1))
    yield _jpeg("noise_420.jpg", "inverse DCT and chroma upsampling", noise(241, 323), (2, 2))
    yield _jpeg("gray.jpg", "a file without chroma", zone(240, 320)[..., 0], (1, 1))
    yield _jpeg("small.jpg", "enlarging", edges(61, 47), (2, 2))
    yield _jpeg("wide.jpg", "an extreme ratio of sides", edges(97, 401), (2, 2))
    yield _jpeg("large.jpg", "shrinking by 3 and more", zone(601, 801), (2, 2))
    for orientation in (3, 6):
        name = f"exif_{orientation}.jpg"
        yield _jpeg(name, "EXIF orientation", edges(160, 240), (2, 2), orientation)
    rgb = files.picture(299, 401)
    write = implementation(Stage.WRITE, registry.reference(Stage.WRITE), {}).make()
    best = write.jpeg(rgb, 100, chroma="4:4:4")
    yield Probe("quality_100.jpg", "fine quantization: rounding of the inverse DCT", best)
    yield Probe("progressive.jpg", "several scans", write.jpeg(rgb, 90, progressive=True))
    yield Probe("exact.png", "resize and color without a JPEG decoder", write.png(rgb))


def _subsampled() -> Iterator[Probe]:
    about = "chroma upsampling and phase"
    for name, layout in (("444", (1, 1)), ("422", (1, 2)), ("440", (2, 1)), ("420", (2, 2))):
        yield _jpeg(f"edges_{name}.jpg", about, edges(243, 325), layout)
    yield _jpeg("edges_even_420.jpg", about, edges(240, 320), (2, 2))


def _jpeg(
    name: str, about: str, samples: U8, layout: tuple[int, int], orientation: int | None = None
) -> Probe:
    return Probe(name, about, files.jpeg(samples, layout, orientation).data)


def zone(height: int, width: int) -> U8:
    """Waves that become finer away from a point off the center, up to one pixel; slight colors.

    Returns:
        (height, width, 3) Y, Cb, Cr.
    """
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    dy, dx = y - 0.4 * height, x - 0.3 * width
    waves = np.cos(np.pi * (dy**2 / height + dx**2 / width) / 1.4)
    chroma = [128 + 40 * np.sin(dx / 17), 128 + 40 * np.cos(dy / 13)]
    return _rounded(np.stack([127.5 + 115 * waves, *chroma], axis=-1))


def edges(height: int, width: int) -> U8:
    """Fields of saturated colors, with edges at even and odd rows and columns."""
    y, x = np.mgrid[0:height, 0:width]
    luma = 70 + 110 * ((x // 7 + y // 5) % 2) + x % 16
    blue = np.where(((x + 3) // 11 + (y + 1) // 9) % 2, 232, 24)
    red = np.where(((x + 6) // 13 + (y + 4) // 7) % 2, 228, 28)
    return _rounded(np.stack([luma, blue, red], axis=-1))


def ramps(height: int, width: int) -> U8:
    """All levels of luma against chroma from end to end, also those that no color has."""
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    luma = 255 * x / (width - 1)
    turn = 2 * np.pi * y / height
    reach = 127 * (0.25 + 0.75 * (x // 8 % 4) / 3)
    return _rounded(
        np.stack([luma, 128 + reach * np.cos(turn), 128 + reach * np.sin(turn)], axis=-1)
    )


def noise(height: int, width: int) -> U8:
    """Independent samples: every coefficient of the DCT is used."""
    drawn = generator("probe", height, width).normal(128, 48, (height, width, 3))
    return _rounded(drawn)


def _rounded(samples: Any) -> U8:
    return np.asarray(np.rint(samples).clip(0, 255), np.uint8)


def small(card: ImageCard, geometries: Mapping[str, Geometry]) -> Iterator[Probe]:
    """Yield fewer and smaller images, two to five times as large as the network's input.

    For a search that is repeated many times; arguments as for :func:`probes`.
    """
    side = min(card.input.one_size("identify"))
    step = max(1, side // 12)
    short, long = range(2 * side, 3 * side, step), range(2 * side + 1, 5 * side, step)
    for height, width in sizes(list(geometries.values()), SIZES, short, long):
        name = f"zone_{width}x{height}.jpg"
        yield _jpeg(name, "geometry, kernel, antialiasing", zone(height, width), (2, 2))
    odd, even = 2 * side + 1, 2 * side + 10
    for name, layout in (("444", (1, 1)), ("422", (1, 2)), ("420", (2, 2))):
        yield _jpeg(f"edges_{name}.jpg", "chroma upsampling", edges(odd, odd + 16), layout)
    yield _jpeg("ramps.jpg", "matrix, range and clipping", ramps(even, even + 14), (1, 1))
    yield _jpeg("noise_420.jpg", "inverse DCT", noise(even, even + 16), (2, 2))
    yield _jpeg("exif_6.jpg", "EXIF orientation", edges(odd, even + 20), (2, 2), 6)


def sizes(
    geometries: Sequence[Geometry],
    most: int = SIZES,
    short: range = range(*_SHORT, _STEP),
    long: range = range(*_LONG, _STEP),
) -> list[tuple[int, int]]:
    """Return few (rows, columns) of images that all geometries place differently, if there are any.

    They are chosen one after the other, each so that it tells most of the remaining pairs apart.

    Args:
        geometries: that are to be told apart.
        most: how many sizes.
        short: of the one side, those that are tried.
        long: of the other side.
    """
    places = {
        size: [placement(geometry, *size) for geometry in geometries]
        for one in short
        for other in long
        for size in ((one, other), (other, one))
    }
    left = set(combinations(range(len(geometries)), 2))
    chosen: list[tuple[int, int]] = []
    while left and len(chosen) < most:
        told = {size: {p for p in left if at[p[0]] != at[p[1]]} for size, at in places.items()}
        best = max(told, key=lambda size: len(told[size]))
        if not told[best]:
            break
        chosen.append(best)
        left -= told[best]
    return chosen


def placement(geometry: Geometry, height: int, width: int) -> tuple[Any, ...]:
    """Return all that a geometry decides for an image of a size; the error if it has no place."""
    try:
        cut = geometry.cut(height, width)
        inside = height - cut.rows, width - cut.columns
        size = geometry.resized(*inside)
        place = geometry.placement(inside, size)
    except SampleError as error:
        return (str(error),)
    padded = geometry.value if size != (geometry.height, geometry.width) else None
    return cut, size, place.top, place.left, padded if geometry.kind == "letterbox" else None
