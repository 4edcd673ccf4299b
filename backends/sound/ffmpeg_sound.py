"""FFmpeg's demuxers and decoders of sound, and its resampler, through PyAV."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from backends.ffmpeg_video import av
from backends.sound.pcm import reads
from simulator.contract import Array, Offer, Recording, Resampler, SampleError, SoundReader, Stage

_FULL = {"u8": 128, "s16": 2**15, "s32": 2**31, "flt": 1, "dbl": 1}


class FFmpegReader(SoundReader):
    """Decodes the first audio stream to its own sample format, which becomes numbers here."""

    def _read(self, recording: Recording) -> tuple[Array, int]:
        parts: list[Array] = []
        try:
            with av.open(io.BytesIO(recording.data), format=recording.format) as file:
                if not file.streams.audio:
                    raise SampleError("FFmpeg finds no sound in this file")
                stream = file.streams.audio[0]
                stream.codec_context.thread_count = 1
                for frame in file.decode(stream):
                    parts.append(_unit(frame))
                rate = stream.codec_context.sample_rate
        except av.FFmpegError as error:
            raise SampleError(f"FFmpeg: {error.strerror}") from error
        if not parts:
            raise SampleError("FFmpeg finds no samples in this file")
        return np.concatenate(parts), rate


def _unit(frame: Any) -> Array:
    """Return (N, channels) float64 of full scale 1."""
    name = frame.format.name
    rows, kind = frame.to_ndarray(), name.removesuffix("p")
    samples = rows.T if name.endswith("p") else rows.reshape(-1, frame.layout.nb_channels)
    if kind not in _FULL:
        raise SampleError(f"FFmpeg decodes this file to {name}, which is not read")
    low = 128 if kind == "u8" else 0
    made: Array = (samples.astype(np.float64) - low) / _FULL[kind]
    return made


class FFmpegResampler(Resampler):
    """Resamples with swresample and its defaults."""

    def _resample(self, samples: Array, rate: int, wanted: int) -> Array:
        try:
            frame = av.AudioFrame.from_ndarray(samples[None], format="flt", layout="mono")
            frame.sample_rate = rate
            swr = av.AudioResampler(format="flt", layout="mono", rate=wanted)
            made = [*swr.resample(frame), *swr.resample(None)]
        except (av.FFmpegError, ValueError) as error:
            raise SampleError(f"swresample: {error}") from error
        parts = [part.to_ndarray()[0] for part in made]
        found: Array = np.concatenate(parts) if parts else np.empty(0, np.float32)
        return found


OFFERS = (
    reads(FFmpegReader, "FFmpeg documentation, 'ffmpeg-formats' and 'ffmpeg-codecs'"),
    Offer(
        Stage.RESAMPLE,
        {"quality": ("swr",)},
        FFmpegResampler,
        source="FFmpeg documentation, 'ffmpeg-resampler': the defaults of swr",
    ),
)
