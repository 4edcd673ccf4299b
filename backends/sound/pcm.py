"""Integers of a sound file as numbers of full scale 1."""

from __future__ import annotations

import numpy as np

from simulator.contract import Array, Offer, SampleError, SoundReader, Stage

WIDTHS = ("file", "16", "8")
SCALES = ("unit", "int16")
CHANNELS = ("mean", "first", "refuse")


def reads(make: type[SoundReader], source: str) -> Offer:
    """Return the offer of a reader; the contract itself applies these fields."""
    fields = {"width": WIDTHS, "scale": SCALES, "channels": CHANNELS}
    return Offer(Stage.READ, fields, make, source=source)


def unit(data: bytes, width: int, channels: int) -> Array:
    """Return (N, channels) float64 of full scale 1.

    Args:
        data: little-endian PCM, unsigned where *width* is 1.
        width: bytes of a sample, 1 to 4.
        channels: of a frame; an incomplete one at the end is dropped.

    Raises:
        SampleError: there is no such width.
    """
    if not 1 <= width <= 4:
        raise SampleError(f"samples of {width} bytes")
    rows = np.frombuffer(data, np.uint8)
    rows = rows[: rows.size // (width * channels) * width * channels].reshape(-1, width)
    if width == 1:
        return (rows[:, 0].astype(np.float64) - 128).reshape(-1, channels) / 128
    wide = np.zeros((len(rows), 4), np.uint8)
    wide[:, 4 - width :] = rows
    return wide.view("<i4").reshape(-1, channels).astype(np.float64) / 2**31
