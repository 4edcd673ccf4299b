"""TensorFlow: tf.audio.decode_wav, tf.signal.stft, tf.signal.linear_to_mel_weight_matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from backends.sound.framing import reflectable, transforms
from backends.sound.pcm import reads
from backends.sound.vocoders import Transform, TransformVocoder, vocoders
from backends.tensorflow_library import tf_of_one_thread
from simulator.contract import (
    Array,
    MelFilters,
    ModelError,
    Offer,
    Options,
    Recording,
    SampleError,
    SoundReader,
    Stage,
    Stft,
)


class TensorFlowReader(SoundReader):
    """``tf.audio.decode_wav``: 16-bit WAV files only."""

    reads = ("wav",)

    def _read(self, recording: Recording) -> tuple[Array, int]:
        tf = tf_of_one_thread()
        try:
            samples, rate = tf.audio.decode_wav(recording.data)
        except tf.errors.InvalidArgumentError as error:
            reason = error.message.partition("}} ")[2].partition(" [Op:")[0]
            raise SampleError(f"TensorFlow: {reason or error.message}") from error
        except UnicodeDecodeError as error:  # its message quotes the file
            raise SampleError("TensorFlow: not a WAV file that it reads") from error
        return np.array(samples), int(rate)


class TensorFlowStft(Stft):
    """``tf.signal.stft``; ``center`` is ``tf.pad`` before it, as scripts write it.

    Without ``center`` a frame is as long as the window, and the transform pads it at its end.
    ``frames: every_hop`` is ``pad_end=True``.
    """

    def _spectrum(self, samples: Array, n_fft: int, win_length: int, hop: int) -> Array:
        tf, options = tf_of_one_thread(), self.options
        length, before = win_length, 0
        with tf.device("CPU"):
            signal = tf.constant(samples)
            if options["center"]:
                reflectable(samples.size, options["pad_mode"], n_fft)
                half, length, before = n_fft // 2, n_fft, (n_fft - win_length) // 2
                signal = tf.pad(signal, [[half, half]], options["pad_mode"].upper())

            def shape(_: Any, dtype: Any) -> Any:
                made = _window(options, tf, win_length, dtype)
                return tf.pad(made, [[before, length - win_length - before]])

            found = tf.abs(
                tf.signal.stft(
                    signal, length, hop, n_fft, window_fn=shape,
                    pad_end=options["frames"] == "every_hop",
                )
            )  # fmt: skip
            return np.array(found**2 if options["power"] == 2 else found).T


def _window(options: Options, tf: Any, length: int, dtype: Any) -> Any:
    kind = options["window"]
    if kind == "none":
        return tf.ones(length, dtype)
    make = {"hann": tf.signal.hann_window, "hamming": tf.signal.hamming_window}[kind]
    return make(length, options["window_symmetry"] == "periodic", dtype)


class TensorFlowVocoder(TransformVocoder):
    """``tf.signal.inverse_stft`` and ``tf.signal.stft``, with ``tf.pad`` and a slice around them.

    ``overlap: constant`` is its ``inverse_stft_window_fn``; ``none`` its default, the window alone.
    """

    def _pair(self, n_fft: int, win_length: int, hop: int) -> tuple[Transform, Transform]:
        tf, options = tf_of_one_thread(), self.options
        before = (n_fft - win_length) // 2
        half = n_fft // 2 if options["center"] else 0

        def shape(_: Any, dtype: Any) -> Any:
            made = _window(options, tf, win_length, dtype)
            return tf.pad(made, [[before, n_fft - win_length - before]])

        constant = options["overlap"] == "constant"
        behind = tf.signal.inverse_stft_window_fn(hop, shape) if constant else shape

        def forward(samples: Array) -> Array:
            with tf.device("CPU"):
                signal = tf.pad(tf.constant(samples), [[half, half]], options["pad_mode"].upper())
                return np.array(tf.signal.stft(signal, n_fft, hop, n_fft, window_fn=shape)).T

        def back(spectrum: Array) -> Array:
            with tf.device("CPU"):
                rows = tf.constant(spectrum.T)
                found = np.array(tf.signal.inverse_stft(rows, n_fft, hop, n_fft, window_fn=behind))
            return found[half : found.size - half]

        return forward, back


class TensorFlowFilters(MelFilters):
    """``tf.signal.linear_to_mel_weight_matrix``: HTK's mels, peaks of 1, no weight at 0 Hz."""

    def _matrix(self, rate: int, n_fft: int, n_mels: int, fmin: float, fmax: float) -> Array:
        tf = tf_of_one_thread()
        try:
            bank = tf.signal.linear_to_mel_weight_matrix(n_mels, n_fft // 2 + 1, rate, fmin, fmax)
        except ValueError as error:
            raise ModelError(f"TensorFlow: {' '.join(str(error).split())}") from error
        return np.array(bank).T


_SOURCE = "https://www.tensorflow.org/api_docs/python/tf/"
OFFERS = (
    reads(TensorFlowReader, _SOURCE + "audio/decode_wav"),
    *transforms(
        TensorFlowStft,
        _SOURCE + "signal/stft",
        pads=("reflect", "constant"),
        frames=("whole", "every_hop"),
    ),
    *vocoders(TensorFlowVocoder, _SOURCE + "signal/inverse_stft", overlap=("constant", "none")),
    Offer(
        Stage.MEL,
        {"scale": ("htk",), "norm": ("none",), "triangles": ("mel",)},
        TensorFlowFilters,
        source=_SOURCE + "signal/linear_to_mel_weight_matrix",
    ),
)
