"""Resizers: checks of numbers, sizes, channels and invalid planes."""

from __future__ import annotations

from functools import cache

import numpy as np

from simulator.reference.resize import F64, resize
from simulator.testing import files
from simulator.testing.subject import Subject, expect, refused, words
from simulator.testing.work import working

# The kernels that go by a name: nearest takes the pixel that holds the centre, or the left one;
# Keys' a is -0.5 or -0.75; libraries say neither.
KERNELS = {
    "nearest": ("nearest", "left"),
    "nearest_exact": ("nearest",),
    "bilinear": ("bilinear",),
    "linear_exact": ("bilinear",),
    "triangular": ("bilinear",),
    "box": ("box",),
    "hamming": ("hamming",),
    "bicubic": ("bicubic", "bicubic_75"),
    "lanczos": ("lanczos",),
    "lanczos3": ("lanczos",),
}
PICTURE = (101, 121)
"""Odd sizes: no centre of an output pixel falls on a border between two."""
EDGES = ("drop", "repeat")
WORST, MEAN = 1.25, 0.55
"""Levels from the float64 reference: one rounding, and Pillow's between its two passes."""
EXACT = 0.02
"""Levels for a library that does not round: float32 sums, and weights in fixed point."""


def a_flat_plane_stays_flat(subject: Subject) -> None:
    """Weights add up to one: 0, 77 and 255 come out as they went in."""
    color = np.array((0, 77, 255), np.uint8)
    for variant in working(subject):
        resizer = variant.make()
        for size in ((5, 7), (31, 64)):
            got = resizer.resize(np.full((17, 11, 3), color), *size)
            worst = np.abs(got - color.astype(np.float64)).max()
            expect(
                worst <= (0 if resizer.gives is np.uint8 else EXACT),
                f"{words(variant)}: a flat plane is {worst:.3g} levels off",
            )


def agrees_with_float64(subject: Subject) -> str | None:
    """The pixels are those of the kernel of that name in float64, within rounding.

    Half-pixel centres; the edge repeated, or its weights dropped.
    """
    unknown = []
    for variant in working(subject):
        kernels = KERNELS.get(variant.options["interpolation"], ())
        if variant.options.get("coordinates", "half_pixel") != "half_pixel":
            kernels = ()
        if not kernels:
            unknown.append(words(variant))
            continue
        resizer = variant.make()
        limits = (WORST, MEAN) if resizer.gives is np.uint8 else (EXACT, EXACT)
        for size in ((41, 37), (150, 170), (41, 170)):
            got = resizer.resize(files.picture(*PICTURE), *size).astype(np.float64)
            antialias = variant.options.get("antialias", False)
            worst, mean = min(
                _error(got, _wanted(size, kernel, edge, antialias))
                for kernel in kernels
                for edge in EDGES
            )
            expect(
                worst <= limits[0] and mean <= limits[1],
                f"{words(variant)} to {size}: within {limits[0]} levels and {limits[1]} in the "
                f"mean expected, got {worst:.2f} and {mean:.2f}",
            )
    return f"no float64 kernel to compare with {'; '.join(unknown)}" if unknown else None


def _error(got: F64, want: F64) -> tuple[float, float]:
    """Return the largest and the mean error; a resizer that does not round need not clip either."""
    apart = np.minimum(np.abs(got - want), np.abs(got - want.clip(0, 255)))
    return float(apart.max()), float(apart.mean())


@cache
def _wanted(size: tuple[int, int], kernel: str, edge: str, antialias: bool) -> F64:
    plane = files.picture(*PICTURE)
    if kernel != "left":
        return resize(plane, *size, kernel, antialias=antialias, edge=edge)
    rows, columns = (np.arange(n) * m // n for n, m in zip(size, PICTURE, strict=True))
    return plane[rows][:, columns].astype(np.float64)


def channels_do_not_mix(subject: Subject) -> None:
    """Each of 2 or 3 channels becomes what it becomes alone, within a level of rounding."""
    plane = files.picture(51, 41)
    for variant in working(subject):
        resizer = variant.make()
        alone = [resizer.resize(plane[..., c].copy(), 23, 33).astype(float) for c in range(3)]
        for count in (2, 3):
            got = resizer.resize(plane[..., :count].copy(), 23, 33)
            worst = np.abs(got - np.stack(alone[:count], axis=-1)).max()
            expect(worst <= 1, f"{words(variant)}: a channel of {count} is {worst:.0f} levels off")


def any_size_will_do(subject: Subject) -> None:
    """From and to one pixel, one row and one column, of every number of channels."""
    resizer = subject.make()
    for height, width in ((1, 1), (17, 11), (1, 200), (200, 1)):
        picture = files.picture(height, width)
        for plane in (picture, picture[..., :2], picture[..., 0]):
            for size in ((1, 1), (7, 5), (1, 30), (30, 1)):
                got = resizer.resize(plane, *size)
                unchanged = plane.shape[:2] == size
                dtype = np.uint8 if unchanged else resizer.gives
                want = (*size, *plane.shape[2:])
                expect(
                    got.shape == want and got.dtype == dtype,
                    f"{plane.shape} to {size}: {np.dtype(dtype)} {want} expected, "
                    f"got {got.dtype} {got.shape}",
                )


def what_is_no_plane_is_refused(subject: Subject) -> None:
    """A float plane, one row of samples, a batch, and a size without pixels are refused."""
    resizer = subject.make()
    plane = files.picture(17, 11)
    cases = {
        "a float32 plane": (plane.astype(np.float32), 8, 8),
        "a plane of rank 1": (plane[0, :, 0], 8, 8),
        "a plane of rank 4": (plane[None], 8, 8),
        "no rows": (plane, 0, 8),
        "no columns": (plane, 8, 0),
    }
    for what, arguments in cases.items():
        refused(what, resizer.resize, *arguments)
