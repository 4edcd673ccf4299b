"""PNG files of arrays, for pictures of which every value counts, and what they show."""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

from simulator.contract import U8

LONGEST = 512
"""Pixels of the longer side that the picture of a file has at most."""
WINDOW = 320
"""Rows and columns that are kept of a larger tensor; what is to be compared is never resampled."""
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_GRAY, _RGB = 0, 2


def png(pixels: U8) -> bytes:
    """Return a PNG file without loss; equal pixels give equal bytes on one machine.

    Args:
        pixels: (H, W) gray or (H, W, 3) RGB uint8.

    Source:
        PNG specification 5.3 (chunks), 9.2 (filters), 11.2.2 (IHDR), 12.7 (the filter of a row
        is the one whose bytes, taken as signed, have the least sum of absolute values).
    """
    height, width = pixels.shape[:2]
    channels = 3 if pixels.ndim == 3 else 1
    color = _RGB if channels == 3 else _GRAY
    header = struct.pack(">IIBBBBB", width, height, 8, color, 0, 0, 0)
    rows = _filtered(pixels.reshape(height, width * channels), channels)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 4)), (b"IEND", b""))
    return _SIGNATURE + b"".join(_chunk(kind, data) for kind, data in chunks)


def thumbnail(rgb: U8) -> tuple[U8, int]:
    """Shrink a picture by a whole factor, until its longer side has :data:`LONGEST` pixels at most.

    Args:
        rgb: (H, W, 3).

    Returns:
        The picture, each pixel the rounded mean of factor x factor pixels, fewer at the right and
        lower edge; and the factor, 1 where nothing was shrunk.
    """
    factor = -(-max(rgb.shape[:2]) // LONGEST)
    if factor == 1:
        return rgb, 1
    rows, columns = (np.arange(0, side, factor) for side in rgb.shape[:2])
    sums = np.add.reduceat(np.add.reduceat(rgb, rows, 0, np.uint32), columns, 1)
    down, across = (
        np.diff(np.append(starts, side))
        for starts, side in zip((rows, columns), rgb.shape[:2], strict=True)
    )
    found: U8 = np.rint(sums / np.outer(down, across)[..., None]).astype(np.uint8)
    return found, factor


def eight_bits(levels: NDArray[np.float64]) -> tuple[U8, int, int]:
    """Round to whole levels of 0 to 255.

    Returns:
        The levels; how many values were clipped; how many were no numbers and became 0.
    """
    lost = ~np.isfinite(levels)
    whole = np.rint(np.where(lost, 0.0, levels))
    clipped = int(np.count_nonzero((whole < 0) | (whole > 255)))
    return np.clip(whole, 0, 255).astype(np.uint8), clipped, int(np.count_nonzero(lost))


def window(pixels: U8) -> U8:
    """Return the middle of a picture, :data:`WINDOW` rows and columns at most."""
    rows, columns = (
        slice((side - min(side, WINDOW)) // 2, (side - min(side, WINDOW)) // 2 + WINDOW)
        for side in pixels.shape[:2]
    )
    return pixels[rows, columns]


def _chunk(kind: bytes, data: bytes) -> bytes:
    checksum = zlib.crc32(data, zlib.crc32(kind))
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)


def _filtered(rows: U8, step: int) -> bytes:
    """Each row after the number of its filter; *step* bytes are a pixel."""
    x = rows.astype(np.int16)
    left, above, corner = np.zeros_like(x), np.zeros_like(x), np.zeros_like(x)
    left[:, step:], above[1:], corner[1:, step:] = x[:, :-step], x[:-1], x[:-1, :-step]
    guess = left + above - corner
    far = np.stack([np.abs(guess - near) for near in (left, above, corner)])
    paeth = np.choose(far.argmin(axis=0), [left, above, corner])
    foretold = (np.zeros_like(x), left, above, (left + above) // 2, paeth)
    made = np.stack([(x - each).astype(np.uint8) for each in foretold])
    best = np.abs(made.view(np.int8).astype(np.int64)).sum(axis=2).argmin(axis=0)
    chosen = made[best, np.arange(len(rows))]
    return np.concatenate([best[:, None].astype(np.uint8), chosen], axis=1).tobytes()
