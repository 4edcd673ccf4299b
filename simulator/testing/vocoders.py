"""Vocoders: how they are run, and their checks."""

from __future__ import annotations

import numpy as np

from simulator.contract import Array
from simulator.errors import SampleError
from simulator.reference import sound as reference
from simulator.testing.subject import Subject, expect, refused, words
from simulator.testing.work import Job, Work, working

RATE, N_FFT, HOP, FRAMES = 8000, 64, 16, 24
LIMIT = 0.25
"""Of Griffin and Lim's spectral convergence for a tone, 0 where magnitudes come back exactly."""


class Vocoding(Work):
    """A job is 120 frames."""

    def _jobs(self) -> list[Job]:
        return [(_given(self.subject, _spectra(120, seed)),) for seed in range(4)]

    def _do(self, made: object, job: Job) -> Job:
        return (made.wave(job[0], N_FFT, N_FFT, HOP),)  # type: ignore[attr-defined]


def waves_agree_with_float64(subject: Subject) -> None:
    """An inverse transform is that of the definition, in the conventions asked for."""
    spectra = _spectra(FRAMES)
    for variant in working(subject):
        if variant.options["method"] != "istft":
            continue
        got = variant.make().wave(spectra.copy(), N_FFT, N_FFT, HOP)
        want = reference.inverse(spectra.astype(np.complex128), N_FFT, HOP, variant.options)
        told = f"{words(variant)}:"
        expect(got.shape == want.shape, f"{told} {want.size} samples expected, got {got.size}")
        worst = np.abs(got - want).max() / np.abs(want).max()
        expect(worst < 1e-5, f"{told} {worst:.2g} of the largest sample off")


def a_tone_keeps_its_magnitudes(subject: Subject) -> None:
    """The waveform of a tone's spectrogram has that spectrogram, by a library's transform or not.

    Ends that fade, and windows that are not divided by, are left to the float64 yardstick.
    """
    times = np.arange((FRAMES - 1) * HOP) / RATE
    tone = 0.5 * np.sin(2 * np.pi * 1000 * times) + 0.2 * np.sin(2 * np.pi * 2300 * times)
    for variant in working(subject):
        options = {"power": 1, "frames": "whole", "pad_mode": "reflect", **variant.options}
        if not options["center"] or options["overlap"] == "none":
            continue
        whole = _transformed(tone, options)
        made = (variant.changed(iterations=60) if "iterations" in options else variant).make()
        got = made.wave(_given(variant, whole), N_FFT, N_FFT, HOP)
        again = _transformed(got.astype(np.float64), options)
        inner = slice(N_FFT // HOP, -N_FFT // HOP)
        off = np.abs(again) - np.abs(whole)
        worst = np.linalg.norm(off[:, inner]) / np.linalg.norm(whole[:, inner])
        expect(worst < LIMIT, f"{words(variant)}: magnitudes are {worst:.2g} off")


def any_number_of_frames(subject: Subject) -> None:
    """From one frame up there is a finite waveform, or a refusal in one line."""
    for count in (1, 2, 3, 5, 17, 40):
        try:
            got = subject.make().wave(_given(subject, _spectra(count)), N_FFT, N_FFT, HOP)
        except SampleError as error:
            expect("\n" not in str(error), f"{count} frames: refused in several lines")
            expect((count - 1) * HOP <= N_FFT, f"{count} frames: refused: {error}")
            continue
        fits = got.ndim == 1 and got.size and got.dtype == np.float32 and np.isfinite(got).all()
        expect(fits, f"{count} frames: finite float32 expected, got {got.shape} {got.dtype}")


def what_is_no_spectrum_is_refused(subject: Subject) -> None:
    """Doubles, one axis, too many bins, no frames, a window that is too long, and a hop of 0."""
    made, spectra = subject.make(), _given(subject, _spectra(FRAMES))
    wide = np.complex128 if subject.options["method"] == "istft" else np.float64
    cases = {
        "doubles": (spectra.astype(wide), N_FFT, N_FFT, HOP),
        "one axis": (spectra[:, 0], N_FFT, N_FFT, HOP),
        "a bin too many": (np.concatenate([spectra, spectra[:1]]), N_FFT, N_FFT, HOP),
        "no frames": (spectra[:, :0], N_FFT, N_FFT, HOP),
        "a window longer than the transform": (spectra, N_FFT, N_FFT + 2, HOP),
        "a hop of 0": (spectra, N_FFT, N_FFT, 0),
    }
    for what, arguments in cases.items():
        refused(what, made.wave, *arguments)


def _transformed(samples: Array, options: dict[str, object]) -> Array:
    """The complex spectrogram of a sound, by the definition."""
    shape = reference.window(options, N_FFT)
    by = {"none": 1.0, "window_sum": shape.sum(), "sqrt_n": np.sqrt(N_FFT)}
    mode = "reflect" if options["pad_mode"] == "reflect" else "constant"
    whole = np.pad(samples, N_FFT // 2, mode=mode)  # type: ignore[call-overload]
    frames = np.lib.stride_tricks.sliding_window_view(whole, N_FFT)[::HOP]
    found: Array = np.fft.rfft(frames * shape, axis=1).T / by[str(options["scaling"])]
    return found


def _given(subject: Subject, spectra: Array) -> Array:
    """What the method takes of complex spectra."""
    inverts = subject.options["method"] == "istft"
    found: Array = spectra.astype(np.complex64) if inverts else np.abs(spectra).astype(np.float32)
    return np.ascontiguousarray(found)


def _spectra(frames: int, seed: int = 0) -> Array:
    """Return (N_FFT // 2 + 1, frames) complex64 noise, which is no transform of any sound."""
    draw = np.random.default_rng(seed).standard_normal((2, N_FFT // 2 + 1, frames))
    made: Array = (draw[0] + 1j * draw[1]).astype(np.complex64)
    return made
