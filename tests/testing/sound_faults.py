"""Correct readers, resamplers, transforms and mel filters, and the faults of each."""

from __future__ import annotations

import numpy as np

from backends.sound.numpy_arrays import FormulaFilters, NumpyResampler, NumpyStft
from backends.sound.pcm import CHANNELS, SCALES, WIDTHS
from backends.sound.python_wave import WaveReader
from backends.sound.vocoders import NumpyVocoder
from simulator.contract import Sound, Stage
from simulator.errors import ModelError, SampleError

CORRECT = {
    Stage.READ: (WaveReader, {"width": WIDTHS, "scale": SCALES, "channels": CHANNELS}),
    Stage.RESAMPLE: (NumpyResampler, {"quality": ("linear", "nearest")}),
    Stage.STFT: (
        NumpyStft,
        {
            "center": (True,),
            "pad_mode": ("reflect", "edge"),
            "frames": ("whole",),
            "window": ("hann",),
            "window_symmetry": ("periodic",),
            "scaling": ("none",),
            "power": (2,),
            "algorithm": ("fft",),
            "arithmetic": ("float32",),
        },
    ),
    Stage.MEL: (
        FormulaFilters,
        {"scale": ("slaney",), "norm": ("slaney", "none"), "triangles": ("hertz",)},
    ),
    Stage.VOCODE: (
        NumpyVocoder,
        {
            "method": ("istft",),
            "center": (True,),
            "window": ("hann",),
            "window_symmetry": ("periodic", "symmetric"),
            "scaling": ("none",),
            "overlap": ("window_square",),
        },
    ),
}


class LosesWideBits(WaveReader):
    def _read(self, recording):
        samples, rate = super()._read(recording)
        wide = recording.data[34] == 24
        return (np.rint(samples * 256) / 256 if wide else samples), rate


class SwapsChannels(WaveReader):
    def _read(self, recording):
        samples, rate = super()._read(recording)
        return samples[:, ::-1], rate


class WantsTwoSamples(WaveReader):
    def _read(self, recording):
        if recording.frames == 1:
            raise SampleError("two samples are the least")
        return super()._read(recording)


def silence_of(frames):
    class FillsWithSilence(WaveReader):
        def read(self, recording):
            try:
                return super().read(recording)
            except SampleError:
                if recording.frames != frames:
                    raise
                return Sound(np.zeros(frames, np.float32), recording.rate)

    return FillsWithSilence


class ConvertsForNothing(NumpyResampler):
    def resample(self, samples, rate, wanted):
        made = super().resample(samples, rate, wanted)
        return made * np.float32(0.999) if rate == wanted else made


class Amplifies(NumpyResampler):
    def _resample(self, samples, rate, wanted):
        return super()._resample(samples, rate, wanted) * 1.04


class Delays(NumpyResampler):
    def _resample(self, samples, rate, wanted):
        return np.roll(super()._resample(samples, rate, wanted), 8)


class WantsThreeSamples(NumpyResampler):
    def _resample(self, samples, rate, wanted):
        if samples.size < 3:
            raise IndexError("three samples are the least")
        return super()._resample(samples, rate, wanted)


class AlwaysSymmetric(NumpyStft):
    def __init__(self, options):
        super().__init__({**options, "window_symmetry": "symmetric"})


class TurnsQuietSounds(NumpyStft):
    def _spectrum(self, samples, *sizes):
        found = super()._spectrum(samples, *sizes)
        return found[::-1] if np.abs(samples).max() < 0.6 else found


class WantsEvenLengths(NumpyStft):
    def _spectrum(self, samples, *sizes):
        if samples.size % 2:
            raise SampleError("an even number of samples expected")
        return super()._spectrum(samples, *sizes)


class TakesAnyArray(NumpyStft):
    def spectrum(self, samples, n_fft, win_length, hop):
        try:
            return super().spectrum(samples, n_fft, win_length, hop)
        except (SampleError, ValueError):
            return np.zeros((n_fft // 2 + 1, 1), np.float32)


class AlwaysHtk(FormulaFilters):
    def __init__(self, options):
        super().__init__({**options, "scale": "htk"})


class LeavesTheBand(FormulaFilters):
    def _matrix(self, rate, n_fft, n_mels, fmin, fmax):
        return super()._matrix(rate, n_fft, n_mels, fmin, fmax) + (0.01 if fmin == 500 else 0)


class TakesAnyBand(FormulaFilters):
    def matrix(self, rate, n_fft, n_mels, fmin, fmax):
        try:
            return super().matrix(rate, n_fft, n_mels, fmin, fmax)
        except ModelError:
            return np.zeros((n_mels, n_fft // 2 + 1), np.float32)


class AlwaysFades(NumpyVocoder):
    def __init__(self, options):
        super().__init__({**options, "overlap": "constant"})


class TurnsQuietSpectra(NumpyVocoder):
    """A tone has bins without anything; noise has none."""

    def _wave(self, spectrum, *sizes):
        quiet = np.abs(spectrum).min() < 1e-3
        return super()._wave(spectrum[::-1] if quiet else spectrum, *sizes)


class WantsManyFrames(NumpyVocoder):
    def _wave(self, spectrum, *sizes):
        if spectrum.shape[1] < 20:
            raise SampleError("twenty frames are the least")
        return super()._wave(spectrum, *sizes)


class TakesAnySpectrum(NumpyVocoder):
    def wave(self, spectrum, n_fft, win_length, hop):
        try:
            return super().wave(spectrum, n_fft, win_length, hop)
        except (SampleError, ValueError):
            return np.zeros(10, np.float32)


FAULTS = {
    Stage.READ: {
        "pcm_keeps_its_samples": LosesWideBits,
        "channels_are_as_claimed": SwapsChannels,
        "any_length_is_read": WantsTwoSamples,
        "bad_sounds_are_refused": silence_of(1000),
        "what_is_not_finite_is_refused": silence_of(3),
    },
    Stage.RESAMPLE: {
        "equal_rates_change_nothing": ConvertsForNothing,
        "a_constant_stays_constant": Amplifies,
        "a_low_sine_stays_that_sine": Delays,
        "any_length_is_resampled": WantsThreeSamples,
    },
    Stage.STFT: {
        "spectra_agree_with_float64": AlwaysSymmetric,
        "a_sine_has_its_bin": TurnsQuietSounds,
        "any_length_is_transformed": WantsEvenLengths,
        "what_is_no_waveform_is_refused": TakesAnyArray,
    },
    Stage.MEL: {
        "filters_agree_with_float64": AlwaysHtk,
        "filters_keep_to_their_band": LeavesTheBand,
        "an_empty_band_is_refused": TakesAnyBand,
    },
    Stage.VOCODE: {
        "waves_agree_with_float64": AlwaysFades,
        "a_tone_keeps_its_magnitudes": TurnsQuietSpectra,
        "any_number_of_frames": WantsManyFrames,
        "what_is_no_spectrum_is_refused": TakesAnySpectrum,
    },
}
