"""What several vocoders share: Griffin and Lim's iteration, the sum of frames, offers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from backends.sound.framing import divisor, window
from simulator.contract import Admits, Array, AtLeast, Evidence, Offer, SampleError, Stage, Vocoder

Transform = Callable[[Array], Array]
_TINY = 1e-16


class TransformVocoder(Vocoder):
    """A library's inverse transform, alone or in an iteration with its forward one.

    Args:
        options: of ``griffin_lim`` ``iterations``; ``momentum`` (0: Griffin and Lim's own method);
            ``phase``, those that it begins with: ``zeros`` or ``random``, the same at every call.

    Source:
        Griffin, Lim, IEEE Trans. ASSP 32 (1984), 236; Perraudin, Balazs, Søndergaard, WASPAA 2013,
        with the momentum as librosa and torchaudio write it.
    """

    @abstractmethod
    def _pair(self, n_fft: int, win_length: int, hop: int) -> tuple[Transform, Transform]:
        """Return the transform from (N,) to complex (bins, frames), and the one back."""

    def _wave(self, spectrum: Array, n_fft: int, win_length: int, hop: int) -> Array:
        forward, back = self._pair(n_fft, win_length, hop)
        if self.options["method"] == "istft":
            return back(spectrum)
        options, frames = self.options, spectrum.shape[1]
        if (frames - 1) * hop < n_fft:
            raise SampleError(
                f"{frames} frames are too few for griffin_lim: {n_fft} samples expected"
            )
        share = np.float32(options["momentum"] / (1 + options["momentum"]))
        angles, before = first_phases(options["phase"], spectrum.shape), np.zeros(1, np.complex64)
        for _ in range(options["iterations"]):
            again = forward(back(spectrum * angles))[:, :frames]
            moved = again - share * before
            angles, before = moved / (np.abs(moved) + np.float32(_TINY)), again
        return back((spectrum * angles).astype(np.complex64))


def first_phases(how: str, shape: tuple[int, ...]) -> Array:
    """Return complex64 of magnitude 1: those that an iteration begins with."""
    if how == "zeros":
        return np.ones(shape, np.complex64)
    turns = 2j * np.pi * np.random.default_rng(0).random(shape)
    drawn: Array = np.exp(turns).astype(np.complex64)
    return drawn


def overlapped(frames: Array, hop: int) -> Array:
    """Return the sum of (count, length) frames, each *hop* samples later than the one before."""
    count, length = frames.shape
    found = np.zeros((count - 1) * hop + length, frames.dtype)
    for at in range(count):
        found[at * hop : at * hop + length] += frames[at]
    return found


def endless(shape: Array, hop: int) -> Array:
    """Return (hop,): the sum of a squared window over endless frames, *hop* samples apart."""
    found: Array = np.pad(shape**2, (0, -shape.size % hop)).reshape(-1, hop).sum(0)
    return found


class NumpyVocoder(TransformVocoder):
    """``numpy.fft.irfft`` of every frame, the window, and the sum, as scripts write it."""

    def _pair(self, n_fft: int, win_length: int, hop: int) -> tuple[Transform, Transform]:
        options = self.options
        shape = window(options, win_length, n_fft)
        factor = divisor(options, shape)
        half = n_fft // 2 if options["center"] else 0

        def forward(samples: Array) -> Array:
            mode = options.get("pad_mode", "constant")
            whole = np.pad(samples, half, mode=mode)
            frames = np.lib.stride_tricks.sliding_window_view(whole, n_fft)[::hop]
            found: Array = np.fft.rfft(frames * (shape / factor), axis=1).T.astype(np.complex64)
            return found

        def back(spectrum: Array) -> Array:
            frames = np.fft.irfft(spectrum.T, n_fft, axis=1) * (factor * shape)
            found: Array = overlapped(frames, hop) / self._total(shape, len(frames), hop)
            return found[half : found.size - half].astype(np.float32)

        return forward, back

    def _total(self, shape: Array, count: int, hop: int) -> Any:
        """Return what the sum of frames is divided by, at every sample; 1 where it is nothing."""
        if self.options["overlap"] == "none":
            return 1.0
        found = overlapped(np.tile(shape**2, (count, 1)), hop)
        if self.options["overlap"] == "constant":
            found = np.resize(endless(shape, hop), found.size)
        return np.where(found > 1e-11, found, 1)


def vocoders(
    make: type[Any],
    source: str,
    *,
    pads: Sequence[str] = ("reflect", "constant"),
    windows: Sequence[str] = ("hann", "hamming"),
    symmetry: Sequence[str] = ("periodic", "symmetric"),
    scaling: Sequence[str] = ("none",),
    overlap: Sequence[str] = ("window_square",),
    uncentred: bool = True,
    evidence: Evidence = Evidence.EMULATED,
    **found: Admits,
) -> tuple[Offer, ...]:
    """Return the offers of a library's inverse transform, and of the iteration over its pair.

    Args:
        make: the implementation.
        source: where it is documented.
        pads: values of ``pad_mode`` of the transform that is iterated.
        windows: values of ``window``; ``none`` has no symmetry.
        symmetry: values of ``window_symmetry``.
        scaling: values of ``scaling``.
        overlap: values of ``overlap``.
        uncentred: whether it can leave both ends as they are.
        evidence: how we know of the iteration; the inverse transform is the library's own.
        found: fields of the iteration, in place of the usual ones.
    """
    shapes: list[dict[str, Admits]] = []
    if curved := tuple(window for window in windows if window != "none"):
        shapes.append({"window": curved, "window_symmetry": tuple(symmetry)})
    if "none" in windows:
        shapes.append({"window": ("none",)})
    common: dict[str, Admits] = {"scaling": tuple(scaling), "overlap": tuple(overlap)}
    iterated = found or {
        "iterations": AtLeast(1), "momentum": (0.0, 0.99), "phase": ("zeros", "random"),
    }  # fmt: skip
    ends = (True, False) if uncentred else (True,)
    inverts: dict[str, Admits] = {"method": ("istft",), "center": ends}
    finds: dict[str, Admits] = {
        "method": ("griffin_lim",), "center": (True,), "pad_mode": tuple(pads), **iterated,
    }  # fmt: skip
    return tuple(
        Offer(Stage.VOCODE, {**how, **shape, **common}, make, evidence=known, source=source)
        for how, known in ((inverts, Evidence.NATIVE), (finds, evidence))
        for shape in shapes
    )


FIELDS = {
    "iterations": "of griffin_lim",
    "momentum": "of griffin_lim: 0 is its own method, 0.99 the fast one",
    "phase": "those that griffin_lim begins with",
}
"""Descriptions of fields, for backends."""
