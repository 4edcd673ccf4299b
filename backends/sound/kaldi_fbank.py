"""Kaldi's features through kaldi-native-fbank: window, transform and mel banks."""

from __future__ import annotations

from typing import Any

import numpy as np

from backends.sound.framing import check_one_frame, transforms
from simulator.contract import (
    Array,
    Backend,
    Library,
    MelFilters,
    ModelError,
    Offer,
    SampleError,
    Stage,
    Stft,
)

_knf = Library("kaldi_native_fbank", distribution="kaldi-native-fbank", extra="audio")


class KaldiStft(Stft):
    """Frames, window and transform of Kaldi's ``fbank``.

    A frame is as long as the window, and the transform pads it at its end. ``frames: whole`` is
    ``snip_edges``; with ``center`` it is off: frames stand in the middle of their hops, and beyond
    both ends the sound is mirrored. ``remove_dc_offset`` and ``preemph_coeff`` act on each frame.
    """

    def _spectrum(self, samples: Array, n_fft: int, win_length: int, hop: int) -> Array:
        if n_fft % 2:
            raise ModelError(f"Kaldi's transform has an even length, not {n_fft}")
        frames: Array = self._frames(samples, win_length, hop).astype(np.float32)
        if self.options["remove_dc_offset"]:
            frames = frames - frames.mean(axis=1, keepdims=True)
        if coefficient := np.float32(self.options["preemph_coeff"]):
            before = np.concatenate([frames[:, :1], frames[:, :-1]], axis=1)
            frames = frames - coefficient * before
        shaped = frames * np.array(self._window(win_length), np.float32)
        rows = np.pad(shaped, ((0, 0), (0, n_fft - win_length)))
        transform = _knf.Rfft(n_fft)
        packed = np.array([transform.compute(row.tolist()) for row in rows], np.float32)
        power = np.empty((len(rows), n_fft // 2 + 1), np.float32)
        power[:, 0], power[:, -1] = packed[:, 0] ** 2, packed[:, 1] ** 2
        power[:, 1:-1] = packed[:, 2::2] ** 2 + packed[:, 3::2] ** 2
        return power.T if self.options["power"] == 2 else np.sqrt(power.T)

    def _frames(self, samples: Array, win_length: int, hop: int) -> Array:
        if not self.options["center"]:
            check_one_frame(samples.size, win_length)
            return np.lib.stride_tricks.sliding_window_view(samples, win_length)[::hop]
        count = (samples.size + hop // 2) // hop
        if not count:
            raise SampleError(f"{samples.size} samples are too few for a hop of {hop}")
        starts = np.arange(count) * hop + hop // 2 - win_length // 2
        at = (starts[:, None] + np.arange(win_length)) % (2 * samples.size)
        return samples[np.where(at < samples.size, at, 2 * samples.size - 1 - at)]

    def _window(self, length: int) -> Any:
        options = _knf.FrameExtractionOptions()
        options.samp_freq, options.frame_length_ms = 1000, length
        kind = self.options["window"]
        options.window_type = {"hann": "hanning", "none": "rectangular"}.get(kind, kind)
        return _knf.FeatureWindowFunction(options).apply([1.0] * length)


class KaldiFilters(MelFilters):
    """Kaldi's mel banks: triangles on the mel axis, with peaks of 1, and none at half the rate."""

    def _matrix(self, rate: int, n_fft: int, n_mels: int, fmin: float, fmax: float) -> Array:
        frames, mels = _knf.FrameExtractionOptions(), _knf.MelBanksOptions()
        frames.samp_freq, frames.frame_length_ms = rate, n_fft * 1000 / rate
        frames.round_to_power_of_two = False
        mels.num_bins, mels.low_freq, mels.high_freq = n_mels, fmin, fmax
        try:
            found: Array = np.array(_knf.MelBanks(mels, frames).get_matrix())
        except (RuntimeError, ValueError) as error:
            raise ModelError(f"kaldi-native-fbank: {' '.join(str(error).split())}") from error
        return found


BACKEND = Backend(
    name="kaldi_native_fbank",
    summary="Kaldi's fbank: frames, Povey's window, transform and mel banks",
    library=_knf,
    offers=(
        *transforms(
            KaldiStft,
            "https://github.com/csukuangfj/kaldi-native-fbank: feature-window.cc, rfft.cc",
            pads=(),
            windows=("povey", "hann", "hamming", "none"),
            symmetry=("symmetric",),
            remove_dc_offset=(True, False),
            preemph_coeff=(0.97, 0.0),
        ),
        *transforms(
            KaldiStft,
            "https://github.com/csukuangfj/kaldi-native-fbank: snip_edges false",
            pads=("symmetric",),
            windows=("povey", "hann", "hamming", "none"),
            symmetry=("symmetric",),
            frames=("rounded",),
            uncentred=False,
            remove_dc_offset=(True, False),
            preemph_coeff=(0.97, 0.0),
        ),
        Offer(
            Stage.MEL,
            {"scale": ("htk",), "norm": ("none",), "triangles": ("mel",)},
            KaldiFilters,
            source="https://github.com/csukuangfj/kaldi-native-fbank: mel-computations.cc",
        ),
    ),
    fields={
        "remove_dc_offset": "the mean of each frame is subtracted",
        "preemph_coeff": "the share of the sample before that is subtracted in each frame",
    },
)
