"""Spectrograms as pictures, and sounds as small WAV files."""

from __future__ import annotations

import io
import math
import wave

import numpy as np
from numpy.typing import NDArray

from simulator.contract import U8, Array

Floats = NDArray[np.float64]
RATE, SECONDS = 16_000, 3.0
"""Of a sound in a report, at most: 96 kB of 16 bits."""
WIDE, HIGH = 360, 160
"""Pixels of a picture, about; cells are enlarged by whole factors, or averaged."""
_STOPS = np.linspace(0, 1, 6)
_LOUD = np.array(
    [(0, 0, 4), (59, 15, 112), (140, 41, 129), (222, 73, 104), (254, 159, 109), (252, 253, 191)],
    np.float64,
)
"""Magma (Smith, van der Walt; CC0), at six places."""
_SIGNED = np.array([(33, 102, 172), (247, 247, 247), (178, 24, 43)], np.float64)
"""Blue, white and red of ColorBrewer's RdBu."""


def picture(bands: Array, low: float, high: float) -> U8:
    """Return (H, W, 3) pixels of a spectrogram, low bands at the bottom.

    Args:
        bands: (bands, frames).
        low: what is black.
        high: what is light yellow.
    """
    share = np.clip((_fitted(bands) - low) / max(high - low, 1e-12), 0, 1)
    return _colored(share, _STOPS, _LOUD)


def difference(before: Array, after: Array, peak: float) -> U8:
    """Return pixels of *after* less *before* on their common frames: red is more, blue less.

    Args:
        before: (bands, frames).
        after: the same bands.
        peak: the difference that is full red, above 0.
    """
    frames = min(before.shape[1], after.shape[1])
    moved = after[:, :frames].astype(np.float64) - before[:, :frames]
    return _colored(np.clip(_fitted(moved) / peak, -1, 1), np.array([-1.0, 0.0, 1.0]), _SIGNED)


def loudest(before: Array, after: Array, seconds: float) -> float:
    """Return where in two spectrograms the most different part of :data:`SECONDS` begins.

    Args:
        before: (bands, frames).
        after: the same bands.
        seconds: that all frames of *before* last.
    """
    frames = min(before.shape[1], after.shape[1])
    window = max(1, round(SECONDS / seconds * before.shape[1])) if seconds else frames
    if window >= frames:
        return 0.0
    squares = np.square(after[:, :frames].astype(np.float64) - before[:, :frames]).sum(0)
    sums = np.concatenate([[0.0], np.cumsum(squares)])
    return float(np.argmax(sums[window:] - sums[:-window]) / before.shape[1] * seconds)


def wav(samples: Array, rate: int, start: float) -> bytes:
    """Return a WAV file of 16 bits: at most :data:`SECONDS` from *start*, at most :data:`RATE`.

    Args:
        samples: (N,), full scale -1 to 1; what is beyond is clipped.
        rate: samples a second.
        start: seconds that are left out.
    """
    first = round(start * rate)
    part = np.asarray(samples[first : first + round(SECONDS * rate)], np.float64)
    if rate > RATE and part.size:
        from scipy.signal import resample_poly  # takes longer than many a run

        common = math.gcd(RATE, rate)
        part, rate = resample_poly(part, RATE // common, rate // common), RATE
    whole = np.clip(np.rint(part * 32767), -32768, 32767).astype("<i2")
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes(whole.tobytes())
    return file.getvalue()


def _fitted(bands: Array) -> Floats:
    """The rows from top to bottom, enlarged or averaged to about the size of a picture."""
    found: Floats = np.asarray(bands[::-1], np.float64)
    for axis, room in ((0, HIGH), (1, WIDE)):
        size = found.shape[axis]
        if size > room:
            edges = np.linspace(0, size, room + 1).astype(int)[:-1]
            widths = np.diff([*edges, size])
            shape = (-1, 1) if axis == 0 else (1, -1)
            found = np.add.reduceat(found, edges, axis=axis) / widths.reshape(shape)
        elif size:
            found = np.repeat(found, room // size, axis=axis)
    return found


def _colored(values: Floats, stops: Floats, colors: Floats) -> U8:
    channels = [np.interp(values, stops, colors[:, channel]) for channel in range(3)]
    return np.ascontiguousarray(np.rint(np.stack(channels, axis=-1)).astype(np.uint8))
