"""Readers, resamplers, transforms and mel filters: how they are run, and their checks."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np

from simulator.contract import Array, Recording
from simulator.errors import SampleError
from simulator.modalities.audio.headers import inspect
from simulator.reference import sound as reference
from simulator.testing.audio_specimen import sine, wav
from simulator.testing.subject import Subject, expect, refused, words
from simulator.testing.work import Job, Work, working

RATE = 8000
N_FFT, HOP = 64, 16
LENGTHS = (1, 2, 3, 17, 33, 63, 64, 65, 1001)
RATES = ((16000, 8000), (8000, 16000), (44100, 16000))


class Reading(Work):
    """A job is a WAV file of 8000 samples of 16 bits."""

    def _jobs(self) -> list[Job]:
        return [(np.frombuffer(wav(_noise(8000, seed), RATE), np.uint8),) for seed in range(4)]

    def _do(self, made: object, job: Job) -> Job:
        return (made.read(inspect("job", job[0].tobytes())).samples,)  # type: ignore[attr-defined]


class Resampling(Work):
    """A job is 8192 samples at 16 kHz, to become 8 kHz."""

    def _jobs(self) -> list[Job]:
        return [(_noise(8192, seed).astype(np.float32),) for seed in range(4)]

    def _do(self, made: object, job: Job) -> Job:
        return (made.resample(job[0], 16000, 8000),)  # type: ignore[attr-defined]


class Transforming(Work):
    """A job is 2000 samples."""

    def _jobs(self) -> list[Job]:
        return [(_noise(2000, seed).astype(np.float32),) for seed in range(4)]

    def _do(self, made: object, job: Job) -> Job:
        return (made.spectrum(job[0], N_FFT, N_FFT, HOP),)  # type: ignore[attr-defined]


class Filtering(Work):
    """A job is the frequency at which 40 bands begin."""

    def _jobs(self) -> list[Job]:
        return [(np.array([20.0 * seed]),) for seed in range(4)]

    def _do(self, made: object, job: Job) -> Job:
        return (made.matrix(RATE, 512, 40, float(job[0][0]), 4000.0),)  # type: ignore[attr-defined]


def pcm_keeps_its_samples(subject: Subject) -> str | None:
    """Samples of 8, 16, 24 and 32 bits come out exactly; or a width is refused in one line."""
    unread = []
    for variant in working(subject):
        options = variant.options
        for width in (1, 2, 3, 4):
            samples = _noise(501)
            try:
                got = variant.make().read(inspect("pcm", wav(samples, RATE, width)))
            except SampleError:
                unread.append(f"{8 * width} bits")
                continue
            kept = 8 * width if options["width"] == "file" else int(options["width"])
            want = _rounded(_rounded(samples, 8 * width), kept)
            want *= 32768 if options["scale"] == "int16" else 1
            worst = np.abs(got.samples - want).max() / np.abs(want).max()
            twice = kept < 8 * width  # a library may round to float32 first
            expect(
                worst < (2.5 / 2**kept if twice else 1e-6) and got.rate == RATE,
                f"{words(variant)}: {8 * width} bits are {worst:.2g} of full scale off, "
                f"at {got.rate} Hz",
            )
    expect(len(set(unread)) < 4, "a WAV file of integers expected to be read")
    return f"refuses {', '.join(dict.fromkeys(unread))}" if unread else None


def channels_are_as_claimed(subject: Subject) -> None:
    """Two channels become their mean, the first, or a refusal in one line."""
    left, right = _noise(300), _noise(300, 1)
    recording = inspect("stereo", wav(np.stack([left, right], 1), RATE))
    for variant in working(subject):
        if variant.options["channels"] == "refuse":
            refused("two channels", variant.make().read, recording)
            continue
        mean = variant.options["channels"] == "mean"
        want = (left + right) / 2 if mean else left
        got = variant.make().read(recording).samples
        full = 32768 if variant.options["scale"] == "int16" else 1
        step = 2 / 2 ** (7 if variant.options["width"] == "8" else 15)
        fits = got.shape == want.shape and np.abs(got / full - want).max() < step
        expect(
            fits, f"{words(variant)}: the {'mean' if mean else 'first'} of two channels expected"
        )


def any_length_is_read(subject: Subject) -> None:
    """One sample, two, and odd numbers of them."""
    for count in LENGTHS:
        got = subject.make().read(inspect("length", wav(_noise(count), RATE))).samples
        fits = got.shape == (count,) and got.dtype == np.float32
        expect(fits, f"({count},) float32 expected, got {got.shape} {got.dtype}")


def bad_sounds_are_refused(subject: Subject) -> None:
    """Noise, noise behind a header, and fewer samples than the header says are refused."""
    noise = np.random.default_rng(0).integers(0, 256, 3000, np.uint8).tobytes()
    whole = wav(_noise(1000), RATE)
    cases = {
        "noise": noise,
        "noise behind RIFF": b"RIFF" + struct.pack("<I", 3000) + b"WAVE" + noise,
        "a file that ends early": whole[: len(whole) // 2],
        "a header alone": whole[:44],
    }
    for what, data in cases.items():
        bad = Recording(data, "wav", RATE, 1, 1000)
        refused(what, subject.make().read, bad)


def what_is_not_finite_is_refused(subject: Subject) -> None:
    """A sample that is NaN is refused in one line, as is a file of floats that is not read."""
    samples = np.array([0.5, np.nan, 0.25], np.float32).tobytes()
    form = struct.pack("<HHIIHH", 3, 1, RATE, 4 * RATE, 4, 32)
    body = b"WAVEfmt " + struct.pack("<I", 16) + form
    body += b"data" + struct.pack("<I", len(samples)) + samples
    file = b"RIFF" + struct.pack("<I", len(body)) + body
    refused("NaN", lambda: subject.make().read(inspect("nan", file)))


def equal_rates_change_nothing(subject: Subject) -> None:
    """A sound that has the rate already comes out as it went in, bit by bit."""
    samples = _noise(501).astype(np.float32)
    got = subject.make().resample(samples, RATE, RATE)
    expect(np.array_equal(got, samples), "the same samples expected at equal rates")


def a_constant_stays_constant(subject: Subject) -> None:
    """A constant is that constant at every rate, away from both ends."""
    for variant, rate, wanted, made in _resampled(subject, lambda rate: np.full(rate // 4, 0.5)):
        worst = np.abs(_middle(made) - 0.5).max()
        told = f"{words(variant)}, {rate} to {wanted} Hz: a constant is {worst:.2g} off"
        expect(worst < 0.01, told)


def a_low_sine_stays_that_sine(subject: Subject) -> None:
    """50 Hz keep their frequency, phase and amplitude, and the sound its duration."""
    for variant, rate, wanted, made in _resampled(
        subject, lambda rate: sine(50, rate, rate // 4 + 1)
    ):
        told = f"{words(variant)}, {rate} to {wanted} Hz:"
        count = (rate // 4 + 1) * wanted / rate
        expect(abs(made.size - count) <= 2, f"{told} {count:.0f} samples expected, got {made.size}")
        worst = np.abs(_middle(made - sine(50, wanted, made.size))).max()
        expect(worst < 0.03, f"{told} a sine of 0.5 is {worst:.2g} off")


def any_length_is_resampled(subject: Subject) -> None:
    """One sample, two, and odd numbers of them; what cannot be is refused in one line."""
    for count in LENGTHS:
        for rate, wanted in RATES:
            try:
                got = subject.make().resample(_noise(count).astype(np.float32), rate, wanted)
            except SampleError as error:
                expect("\n" not in str(error), f"{count} samples: refused in several lines")
                continue
            fits = got.ndim == 1 and got.dtype == np.float32 and np.isfinite(got).all()
            lost = 2 if count > 100 else count  # filters that are longer than the sound
            near = abs(got.size - count * wanted / rate) <= lost
            expect(
                fits and near,
                f"{count} samples of {rate} Hz: {count * wanted / rate:.1f} finite float32 at "
                f"{wanted} Hz expected, got {got.size} {got.dtype}",
            )


def spectra_agree_with_float64(subject: Subject) -> None:
    """The frames and numbers are those of the definition, in the conventions asked for."""
    samples = _noise(1000).astype(np.float32)
    for variant in working(subject):
        got = variant.make().spectrum(samples.copy(), N_FFT, N_FFT, HOP)
        want = reference.spectrum(samples.astype(np.float64), N_FFT, HOP, variant.options)
        more, count = got.shape[1] - want.shape[1], want.shape[1]
        touching = variant.options["frames"] == "touching"  # there are some before and after
        expect(
            0 <= more <= (2 * N_FFT // HOP if touching else 0),
            f"{words(variant)}: {count} frames expected, got {got.shape[1]}",
        )
        errors = (np.abs(got[:, at : at + count] - want).max() for at in range(more + 1))
        worst = min(errors) / want.max()
        limit = TOLERANCES.get(variant.options.get("arithmetic", "float32"), 1e-5)
        expect(worst < limit, f"{words(variant)}: {worst:.2g} of the largest value off")


TOLERANCES = {"float16": 5e-3, "bfloat16": 4e-2}
"""Shares of the largest value: ten units of the type."""


def a_sine_has_its_bin(subject: Subject) -> None:
    """A sine of 8 periods a frame is largest in bin 8, in every frame away from the ends."""
    samples = sine(1000, RATE, 1000).astype(np.float32)
    got = subject.make().spectrum(samples, N_FFT, N_FFT, HOP)
    found = got.argmax(0)[4:-8]
    expect((found == 8).all(), f"bin 8 expected, got {', '.join(map(str, np.unique(found)))}")


def any_length_is_transformed(subject: Subject) -> None:
    """From one sample up there are finite frames, or a refusal in one line."""
    for count in LENGTHS:
        try:
            got = subject.make().spectrum(_noise(count).astype(np.float32), N_FFT, N_FFT, HOP)
        except SampleError as error:
            expect("\n" not in str(error), f"{count} samples: refused in several lines")
            expect(count <= N_FFT, f"{count} samples: refused, but {N_FFT} are one frame: {error}")
            continue
        fits = got.shape[0] == N_FFT // 2 + 1 and got.shape[1] and np.isfinite(got).all()
        expect(fits, f"{count} samples: finite frames of {N_FFT // 2 + 1} expected: {got.shape}")


def what_is_no_waveform_is_refused(subject: Subject) -> None:
    """Doubles, two axes, nothing, a window longer than the transform, and a hop of 0."""
    transform, samples = subject.make(), _noise(500).astype(np.float32)
    cases = {
        "float64": (samples.astype(np.float64), N_FFT, N_FFT, HOP),
        "two axes": (samples[None], N_FFT, N_FFT, HOP),
        "no samples": (samples[:0], N_FFT, N_FFT, HOP),
        "a window longer than the transform": (samples, N_FFT, N_FFT + 2, HOP),
        "a hop of 0": (samples, N_FFT, N_FFT, 0),
    }
    for what, arguments in cases.items():
        refused(what, transform.spectrum, *arguments)


def filters_agree_with_float64(subject: Subject) -> None:
    """The triangles are those of the mel scale and the norm asked for."""
    for variant in working(subject):
        options = variant.options
        for n_fft, n_mels, band in ((256, 20, (0.0, 4000.0)), (512, 40, (20.0, 3800.0))):
            got = variant.make().matrix(RATE, n_fft, n_mels, *band).astype(np.float64)
            want = reference.mel_filters(
                RATE, n_fft, n_mels, band, options["scale"], options["norm"], options["triangles"]
            )
            inner = slice(1, -1)  # libraries leave out 0 Hz, or half the rate
            worst = np.abs(got - want)[:, inner].max() / want.max()
            expect(worst < 1e-3, f"{words(variant)}: {worst:.2g} of the largest weight off")


def filters_keep_to_their_band(subject: Subject) -> None:
    """No weight is below 0, or outside of the band."""
    for variant in working(subject):
        got = variant.make().matrix(RATE, 512, 20, 500.0, 2000.0)
        hertz = np.arange(257) * RATE / 512
        expect(got.min() >= 0, f"{words(variant)}: a weight is {got.min():.2g}")
        outside = got[:, (hertz < 499) | (hertz > 2001)].max()
        expect(outside < 1e-6, f"{words(variant)}: a weight outside of the band is {outside:.2g}")


def an_empty_band_is_refused(subject: Subject) -> None:
    """A band that ends where it begins, or beyond half the rate, is refused in one line."""
    for band in ((2000.0, 2000.0), (3000.0, 1000.0), (0.0, 5000.0)):
        refused(f"{band}", subject.make().matrix, RATE, 256, 20, *band)


def _resampled(subject: Subject, make: object) -> Iterator[tuple[Subject, int, int, Array]]:
    """Yield what becomes of sounds at several rates; rates that a variant refuses are left out."""
    for variant in working(subject):
        for rate, wanted in RATES:
            samples = make(rate).astype(np.float32)  # type: ignore[operator]
            try:
                yield variant, rate, wanted, variant.make().resample(samples, rate, wanted)
            except SampleError:
                continue


def _middle(samples: Array) -> Array:
    return samples[samples.size // 4 : -samples.size // 4]


def _noise(count: int, seed: int = 0) -> Array:
    made: Array = np.random.default_rng(seed).uniform(-0.9, 0.9, count)
    return made


def _rounded(samples: Array, bits: int) -> Array:
    top = 2 ** (bits - 1)
    made: Array = np.rint(samples * top).clip(-top, top - 1) / top
    return made
