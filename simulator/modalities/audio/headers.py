"""The header of a sound file, read without any library."""

from __future__ import annotations

import struct

from simulator.contract.audio import Recording
from simulator.errors import SampleError
from simulator.files import SOUND
from simulator.places import Where, read_sample

SUFFIXES = (".wav", ".flac", ".mp3", ".ogg")
"""The file name suffixes of the formats that :func:`inspect` reads."""
MAX_SAMPLES = 2**27
"""Longer sounds are refused, all channels together: 2 h 19 min at 16 kHz and one channel."""
RATES = (100, 768_000)
"""The lowest and the highest sample rate that is read."""
MAX_CHANNELS = 64

_LAYER3 = {3: (44100, 48000, 32000), 2: (22050, 24000, 16000), 0: (11025, 12000, 8000)}
_KBITS = {
    3: (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    2: (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}


def read_sound(name: str, path: Where) -> Recording:
    """Read one sound file and check its header.

    Args:
        name: what messages call the file.
        path: where its bytes are.

    Raises:
        SampleError: it cannot be read, or :func:`inspect` refuses it.
    """
    return inspect(name, read_sample(path, SOUND))


def inspect(name: str, data: bytes) -> Recording:
    """Read the header of a sound file.

    Args:
        name: what messages call the file.
        data: the whole file.

    Raises:
        SampleError: the file is empty, no WAV, FLAC, MP3 or OGG file, truncated or corrupt, it
            has no samples, or more than :data:`MAX_SAMPLES`.

    Source:
        Multimedia Programming Interface and Data Specifications 1.0 (WAV); RFC 9639 8.2 (FLAC);
        ISO/IEC 11172-3 2.4.1.3 (MP3); RFC 3533 6, Vorbis I 4.2.2, RFC 7845 5.1 (OGG).
    """
    if not data:
        raise SampleError("the file is empty")
    try:
        format, rate, channels, frames = _read(data)
    except (IndexError, struct.error) as error:
        raise SampleError("the header ends too early; the file is truncated") from error
    if not RATES[0] <= rate <= RATES[1]:
        raise SampleError(
            f"the header says {rate:,} samples a second; {RATES[0]} to 768,000 can be"
        )
    if not 1 <= channels <= MAX_CHANNELS:
        raise SampleError(f"the header says {channels} channels; 1 to {MAX_CHANNELS} can be")
    if frames * channels > MAX_SAMPLES:
        raise SampleError(
            f"{frames:,} samples of {channels} channels are more than {MAX_SAMPLES:,}: refused as "
            "too long"
        )
    return Recording(data, format, rate, channels, frames, name)


def _read(data: bytes) -> tuple[str, int, int, int]:
    """Return format, rate, channels and frames."""
    if data[:4] == b"RIFF":
        return "wav", *_wav(data)
    if data[:4] == b"fLaC":
        return "flac", *_flac(data)
    if data[:4] == b"OggS":
        return "ogg", *_ogg(data)
    if data[:3] == b"ID3" or _mp3_frame(data, 0):
        return "mp3", *_mp3(data)
    raise SampleError("neither a WAV, a FLAC, an MP3 nor an OGG file")


def _wav(data: bytes) -> tuple[int, int, int]:
    if data[8:12] != b"WAVE":
        raise SampleError("a RIFF file, but not a WAV file")
    at, format = 12, None
    while True:
        if at >= len(data):
            raise SampleError("the WAV file has no data chunk; the file is truncated")
        kind, size = struct.unpack_from("<4sI", data, at)
        at += 8
        if kind == b"data":
            break
        if kind == b"fmt ":
            format = struct.unpack_from("<HHIIHH", data, at)
        at += size + (size & 1)
    if format is None:
        raise SampleError("the WAV file has no format chunk before its data")
    _, channels, rate, _, block, _ = format
    if size == 0:
        raise SampleError("the WAV file has no samples")
    if at + size > len(data):
        raise SampleError(
            f"the WAV file is truncated: {size:,} bytes of samples expected, "
            f"{len(data) - at:,} are there"
        )
    if not block:
        raise SampleError("the WAV file says that a sample has 0 bytes")
    if size < block:
        raise SampleError("the WAV file has less than one sample")
    return rate, channels, size // block


def _flac(data: bytes) -> tuple[int, int, int]:
    kind = data[4] & 0x7F
    if kind != 0:
        raise SampleError("corrupt FLAC: its first block is not STREAMINFO")
    packed = struct.unpack_from(">Q", data, 18)[0]
    rate, channels = packed >> 44, (packed >> 41 & 7) + 1
    frames = packed & (1 << 36) - 1  # 0: the encoder did not know
    at, last = 4, False
    while not last:
        last = bool(data[at] & 0x80)
        at += 4 + int.from_bytes(data[at + 1 : at + 4], "big")
    if at >= len(data):
        raise SampleError("the FLAC file has no samples, or it is truncated")
    return rate, channels, frames


def _ogg(data: bytes) -> tuple[int, int, int]:
    start = 27 + data[26]
    packet = data[start : start + 32]
    if packet[:7] == b"\x01vorbis":
        channels, rate = struct.unpack_from("<BI", packet, 11)
        skipped = 0
    elif packet[:8] == b"OpusHead":
        channels, skipped = struct.unpack_from("<BH", packet, 9)
        rate = 48_000
    elif packet[:5] == b"\x7fFLAC":
        raise SampleError("FLAC inside of OGG is not read; convert it to a .flac file")
    else:
        raise SampleError("an OGG file of neither Vorbis nor Opus")
    last = data.rfind(b"OggS")
    flags, position = struct.unpack_from("<BQ", data, last + 5)
    if last == 0:
        raise SampleError("the OGG file has no samples, or it is truncated")
    table = data[last + 27 : last + 27 + data[last + 26]]
    if not flags & 4 or last + 27 + len(table) + sum(table) > len(data):
        raise SampleError("the OGG file is truncated: its last page is missing")
    if position <= skipped or position >= 1 << 62:
        raise SampleError("the OGG file has no samples")
    return rate, channels, position - skipped


def _mp3(data: bytes) -> tuple[int, int, int]:
    at = 0
    while data[at : at + 3] == b"ID3":
        size = data[at + 6 : at + 10]
        at += 10 + (size[0] << 21 | size[1] << 14 | size[2] << 7 | size[3])
    first = _mp3_frame(data, at)
    if first is None:
        raise SampleError("no MP3 frame is where the first one should be")
    rate, channels, samples, length = first
    head = data[at : at + length]
    info = max(head.find(b"Xing"), head.find(b"Info"))
    told = 0
    if info > 0 and head[info + 7] & 1:
        told = struct.unpack_from(">I", head, info + 8)[0]
        at += length  # this frame has no sound
    count = 0
    while (frame := _mp3_frame(data, at)) and at + frame[3] <= len(data):
        count += 1
        at += frame[3]
    if not count:
        raise SampleError("the MP3 file has no samples, or it is truncated")
    if told > count:
        raise SampleError(f"the MP3 file is truncated: {told:,} frames expected, {count:,} there")
    if frame is not None:
        raise SampleError("the MP3 file is truncated: its last frame ends too early")
    return rate, channels, count * samples


def _mp3_frame(data: bytes, at: int) -> tuple[int, int, int, int] | None:
    """Return rate, channels, samples and bytes of the layer III frame at a place; None if none."""
    head = data[at : at + 4]
    if len(head) < 4 or head[0] != 0xFF or head[1] & 0xE0 != 0xE0 or head[1] >> 1 & 3 != 1:
        return None
    version, kbits, rates = head[1] >> 3 & 3, head[2] >> 4, head[2] >> 2 & 3
    if version == 1 or kbits in (0, 15) or rates == 3:
        return None
    rate = _LAYER3[version][rates]
    samples = 1152 if version == 3 else 576
    size = samples // 8 * _KBITS[3 if version == 3 else 2][kbits] * 1000 // rate
    channels = 1 if head[3] >> 6 == 3 else 2
    return rate, channels, samples, size + (head[2] >> 1 & 1)
