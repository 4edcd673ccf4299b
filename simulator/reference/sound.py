"""Spectrograms and mel filters in float64, straight from their definitions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simulator.contract import Options

F64 = NDArray[np.float64]


def spectrum(samples: F64, n_fft: int, hop: int, conventions: Options) -> F64:
    """Return (n_fft // 2 + 1, frames), by the sum that defines the transform.

    Args:
        samples: (N,).
        n_fft: length of the transform and of the window.
        hop: samples from one frame to the next.
        conventions: the fields of a profile's ``stft`` section. Of frames that ``touch`` the sound
            only the whole ones are returned.

    Source:
        Allen, Rabiner, Proc. IEEE 65 (1977), 1558; the window and what it is divided by as in
        :class:`simulator.modalities.audio.sections.Stft`.
    """
    shape = window(conventions, n_fft)
    frames = _frames(samples, n_fft, hop, conventions)
    if conventions.get("remove_dc_offset"):
        frames = frames - frames.mean(1, keepdims=True)
    if share := conventions.get("preemph_coeff", 0.0):
        frames = frames - share * np.concatenate([frames[:, :1], frames[:, :-1]], axis=1)
    turns = np.exp(-2j * np.pi / n_fft * np.outer(np.arange(n_fft), np.arange(n_fft // 2 + 1)))
    by = {
        "none": 1.0,
        "window_sum": shape.sum(),
        "window_power": np.sqrt((shape**2).sum()),
        "sqrt_n": np.sqrt(n_fft),
    }
    magnitude: F64 = np.abs((frames * shape) @ turns).T / by[conventions["scaling"]]
    return np.square(magnitude) if conventions["power"] == 2 else magnitude


def inverse(spectra: NDArray[np.complex128], n_fft: int, hop: int, conventions: Options) -> F64:
    """Return the waveform of (n_fft // 2 + 1, frames), by the sums that define it.

    Args:
        spectra: of real frames.
        n_fft: length of the transform and of the window.
        hop: samples from one frame to the next.
        conventions: the fields of a profile's ``vocoder`` section.

    Source:
        Griffin, Lim, IEEE Trans. ASSP 32 (1984), 236, equation 6; the other ways to divide as in
        :class:`simulator.modalities.text.sections.Vocoder`.
    """
    shape = window(conventions, n_fft)
    bins = np.arange(n_fft // 2 + 1)
    twice = np.where((bins == 0) | (2 * bins == n_fft), 1.0, 2.0)
    turns = np.exp(2j * np.pi / n_fft * np.outer(np.arange(n_fft), bins)) * twice
    by = {"none": 1.0, "window_sum": shape.sum(), "sqrt_n": np.sqrt(n_fft)}
    frames = (turns @ spectra).real.T / n_fft * by[conventions["scaling"]] * shape
    found, total = (
        _overlapped(rows, hop) for rows in (frames, np.tile(shape**2, (len(frames), 1)))
    )
    if conventions["overlap"] == "constant":
        endless = np.pad(shape**2, (0, -n_fft % hop)).reshape(-1, hop).sum(0)
        total = np.resize(endless, found.size)
    if conventions["overlap"] != "none":
        found = found / np.where(total > 1e-11, total, 1)
    half = n_fft // 2
    return found[half : found.size - half] if conventions["center"] else found


def _overlapped(frames: F64, hop: int) -> F64:
    """Return the sum of frames, each a hop later than the one before."""
    count, length = frames.shape
    found = np.zeros((count - 1) * hop + length)
    for at, frame in enumerate(frames):
        found[at * hop : at * hop + length] += frame
    return found


def window(conventions: Options, length: int) -> F64:
    """Return (length,): Hann's, Hamming's or Povey's window, or ones."""
    if conventions["window"] == "none":
        return np.ones(length)
    steps = length if conventions["window_symmetry"] == "periodic" else length - 1
    floor = 0.54 if conventions["window"] == "hamming" else 0.5
    made: F64 = floor - (1 - floor) * np.cos(2 * np.pi * np.arange(length) / steps)
    return made**0.85 if conventions["window"] == "povey" else made


def _frames(samples: F64, n_fft: int, hop: int, conventions: Options) -> F64:
    size, half = samples.size, n_fft // 2
    first, count = 0, 1 + (size - n_fft) // hop
    if conventions["frames"] == "rounded":
        first, count = hop // 2 - half, (size + hop // 2) // hop
    elif conventions["center"]:
        first, size = -half, size + 2 * half
        count = 1 + (size - n_fft) // hop
    if conventions["frames"] == "padded":
        count = 1 + -(-(size - n_fft) // hop)
    elif conventions["frames"] == "every_hop":
        count = -(-size // hop)
    at = first + hop * np.arange(count)[:, None] + np.arange(n_fft)
    padded = half if conventions["center"] else 0
    inside = (at >= -padded) & (at < samples.size + padded)
    found: F64 = np.where(inside, _beyond(samples, at, conventions.get("pad_mode")), 0.0)
    return found


def _beyond(samples: F64, at: NDArray[np.int64], pad_mode: str | None) -> F64:
    """Return the sample at any time; beyond the ends as the padding says."""
    last = samples.size - 1
    outside = (at < 0) | (at > last)
    if pad_mode in ("reflect", "symmetric"):
        more = 1 if pad_mode == "symmetric" else 0
        at = np.where(outside, np.where(at < 0, -at - more, 2 * last + more - at), at)
    found: F64 = samples[at.clip(0, last)]
    if pad_mode in (None, "constant"):
        found[outside] = 0
    return found


def mel_filters(
    rate: int, n_fft: int, n_mels: int, band: tuple[float, float], scale: str, norm: str, axis: str
) -> F64:
    """Return (n_mels, n_fft // 2 + 1) triangles.

    Args:
        rate: samples a second.
        n_fft: length of the transform.
        n_mels: number of triangles.
        band: from where to where, in Hz.
        scale: ``slaney``, a line up to 1 kHz and a logarithm above; ``htk``, a logarithm.
        norm: ``slaney`` gives each the area 1 over Hz, ``none`` a peak of 1.
        axis: ``hertz`` or ``mel``, on which their sides are straight.

    Source:
        Slaney, Auditory Toolbox (1998); Young et al., The HTK Book 3.4 (2006), 5.4.
    """
    bins = np.arange(n_fft // 2 + 1) * rate / n_fft
    hertz = mel_corners(*band, n_mels, scale)
    at, edges = (bins, hertz) if axis == "hertz" else (mels(bins, scale), mels(hertz, scale))
    low, middle, high = (edges[part, None] for part in (slice(0, -2), slice(1, -1), slice(2, None)))
    found = np.minimum((at - low) / (middle - low), (high - at) / (high - middle)).clip(0)
    return found * 2 / (hertz[2:] - hertz[:-2])[:, None] if norm == "slaney" else found


def mel_corners(low: float, high: float, n_mels: int, scale: str = "slaney") -> F64:
    """Return (n_mels + 2,) Hz, equally far on a mel scale: filter k has its peak at corner k + 1.

    Args:
        low: where the first filter begins, in Hz.
        high: where the last one ends, in Hz.
        n_mels: filters.
        scale: see :func:`mel_filters`.
    """
    first, last = mels(np.array([low, high]), scale)
    at: F64 = np.linspace(first, last, n_mels + 2)
    if scale == "htk":
        return 700 * np.expm1(at / _HTK)
    return np.where(at < 15, 200 * at / 3, 1000 * 6.4 ** ((np.maximum(at, 15) - 15) / 27))


_HTK = 1127.01048
"""2595 / ln(10), as HTK has it."""


def mels(hertz: F64, scale: str) -> F64:
    """Return frequencies on the mel scale."""
    if scale == "htk":
        return np.log1p(hertz / 700) * _HTK
    line = 3 * hertz / 200
    return np.where(hertz < 1000, line, 15 + 27 * np.log(np.maximum(hertz, 1) / 1000) / np.log(6.4))
