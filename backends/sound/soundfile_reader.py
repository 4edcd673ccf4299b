"""libsndfile through the package soundfile."""

from __future__ import annotations

import io

from backends.sound.pcm import reads
from simulator.contract import Array, Backend, Library, Recording, SampleError, SoundReader

_LIBRARY = Library("soundfile", distribution="soundfile", extra="audio")


class SoundfileReader(SoundReader):
    """Reads WAV, FLAC, MP3 and OGG with libsndfile, as ``soundfile.read(dtype="float32")``."""

    def _read(self, recording: Recording) -> tuple[Array, int]:
        try:
            with _LIBRARY.SoundFile(io.BytesIO(recording.data)) as file:
                return file.read(dtype="float32", always_2d=True), file.samplerate
        except (RuntimeError, TypeError, ValueError) as error:
            reason = str(error).partition(": ")[2] or str(error)
            raise SampleError(f"libsndfile: {reason.rstrip('.')}") from error


BACKEND = Backend(
    name="soundfile",
    summary="libsndfile: WAV, FLAC, MP3 and OGG",
    library=_LIBRARY,
    offers=(
        reads(SoundfileReader, "https://python-soundfile.readthedocs.io: read, dtype float32"),
    ),
)
