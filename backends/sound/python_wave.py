"""The standard library's wave module."""

from __future__ import annotations

import io
import wave

from backends.sound.pcm import reads, unit
from simulator.contract import Array, Backend, Recording, SampleError, SoundReader


class WaveReader(SoundReader):
    """Reads PCM of 8, 16, 24 and 32 bits with ``wave``; its bytes become numbers here."""

    reads = ("wav",)

    def _read(self, recording: Recording) -> tuple[Array, int]:
        try:
            with wave.open(io.BytesIO(recording.data)) as file:
                data = file.readframes(file.getnframes())
                return unit(data, file.getsampwidth(), file.getnchannels()), file.getframerate()
        except (wave.Error, EOFError, RuntimeError, ValueError) as error:
            raise SampleError(f"wave: {error or 'the file ends too early'}") from error


BACKEND = Backend(
    name="wave",
    summary="The standard library's wave: WAV files of integers",
    offers=(reads(WaveReader, "Python documentation, wave"),),
)
