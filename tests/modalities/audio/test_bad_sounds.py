"""Hostile and unusual sound files: one line each, or the very samples that are in them."""

from __future__ import annotations

import io
import struct
import wave

import av
import numpy as np
import pytest
import soundfile
from sounds import WAVEFORM, card, floats, riff, way

from simulator.contract import Recording
from simulator.errors import SampleError
from simulator.modalities.audio.headers import MAX_SAMPLES, inspect
from simulator.modalities.audio.modality import AUDIO
from simulator.profile.implementations import implementation
from simulator.registry import backend
from simulator.testing.audio_specimen import sine, wav

TONE = sine(440, 8000, 4000)
READERS = ("soundfile", "ffmpeg", "scipy", "wave", "tensorflow")


def reader(name, **options):
    fields = {"width": "file", "scale": "unit", "channels": "mean", **options}
    return implementation("read", backend(name), fields).make()


def encoded(format, samples=TONE, rate=8000, **more):
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format=format, **more)
    return file.getvalue()


def header(data=b"", *, rate=8000, channels=1, size=None, block=2):
    """A WAV file that says what it is told to say."""
    file = bytearray(riff(data))
    struct.pack_into("<HI", file, 22, channels, rate)
    struct.pack_into("<H", file, 32, block)
    struct.pack_into("<I", file, 40, len(data) if size is None else size)
    return bytes(file)


def outcome(name, recording):
    """The samples or None, and the line that refuses them."""
    try:
        return reader(name).read(recording).samples, ""
    except SampleError as error:
        return None, str(error)


BAD = {
    "empty": (b"", "the file is empty"),
    "words": (b"These are words.\n" * 9, "neither a WAV, a FLAC, an MP3 nor an OGG file"),
    "RIFF of pictures": (b"RIFF\x10\0\0\0WEBPVP8 " + bytes(64), "a RIFF file, but not a WAV file"),
    "no data chunk": (header()[:36], "no data chunk"),
    "half a header": (header()[:30], "truncated"),
    "data before the format": (
        b"RIFF\x10\0\0\0WAVEdata\x04\0\0\0\0\0\0\0",
        "no format chunk before its data",
    ),
    "no samples": (header(), "has no samples"),
    "half a sample": (header(b"\0"), "less than one sample"),
    "samples of 0 bytes": (header(b"\0\0", block=0), "0 bytes"),
    "truncated": (wav(TONE, 8000)[:2000], "8,000 bytes of samples expected, 1,956 are there"),
    "a stream without a length": (header(b"\0\0", size=2**32 - 1), "truncated"),
    "no rate": (header(b"\0\0", rate=0), "0 samples a second"),
    "an absurd rate": (header(b"\0\0", rate=2**32 - 1), "4,294,967,295 samples a second"),
    "no channels": (header(b"\0\0", channels=0), "0 channels"),
    "60,000 channels": (header(b"\0\0", channels=60000), "60000 channels"),
    "FLAC alone": (b"fLaC", "truncated"),
    "FLAC without frames": (encoded("FLAC")[:80], "truncated"),
    "FLAC of another first block": (b"fLaC\x81" + bytes(60), "not STREAMINFO"),
    "MP3 cut in a frame": (encoded("MP3")[:-3], "truncated"),
    "MP3 of one header": (b"\xff\xfb\x90\x64", "no samples, or it is truncated"),
    "ID3 alone": (b"ID3\x04\0\0\0\0\0\x0a" + bytes(10), "no MP3 frame"),
    "OGG cut": (encoded("OGG")[:-9], "truncated"),
    "OGG of something else": (b"OggS" + bytes(22) + b"\x01\x05hello", "neither Vorbis nor Opus"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_file_is_one_line(what, tmp_path):
    data, line = BAD[what]
    path = tmp_path / "sound.wav"
    path.write_bytes(data)

    with pytest.raises(SampleError) as raised:
        AUDIO.read("sound.wav", path)

    assert line in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_missing_file_and_a_pipe_are_one_line(tmp_path):
    with pytest.raises(SampleError, match="cannot be read: No such file"):
        AUDIO.read("x.wav", tmp_path / "x.wav")
    with pytest.raises(SampleError, match="cannot be read"):
        AUDIO.read("folder", tmp_path)


def test_a_sound_that_is_too_long_is_refused():
    streaminfo = bytearray(encoded("FLAC"))
    packed = struct.unpack_from(">Q", streaminfo, 18)[0] | (MAX_SAMPLES + 1)
    struct.pack_into(">Q", streaminfo, 18, packed)

    with pytest.raises(SampleError, match="refused as too long"):
        inspect("long", bytes(streaminfo))


@pytest.mark.parametrize("format", ["WAV", "FLAC", "OGG"])
@pytest.mark.parametrize("channels", [1, 2])
def test_the_header_says_what_the_encoder_was_told(format, channels):
    data = encoded(format, np.repeat(TONE[:, None], channels, 1), 22050)

    found = inspect("sound", data)

    assert (found.format, found.rate, found.channels, found.frames) == (
        format.lower(), 22050, channels, 4000,
    )  # fmt: skip


@pytest.mark.parametrize("rate", [8000, 22050, 44100])
def test_the_frames_of_an_mp3_are_counted(rate):
    data = encoded("MP3", sine(440, rate, 5000), rate)

    found = inspect("sound", data)

    size = 1152 if rate > 32000 else 576
    assert (found.rate, found.channels, found.frames % size) == (rate, 1, 0)
    assert 5000 <= found.frames <= 5000 + 3 * size
    with av.open(io.BytesIO(data)) as file:  # FFmpeg's demuxer counts them, too
        assert found.frames == size * sum(1 for packet in file.demux() if packet.size)


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_integers_of_every_width(name, width):
    if name == "tensorflow" and width != 2:
        with pytest.raises(SampleError, match=r"^TensorFlow: [^\n]+$"):
            reader(name).read(inspect("pcm", wav(TONE, 8000, width)))
        return

    sound = reader(name).read(inspect("pcm", wav(TONE, 8000, width)))

    top = 2 ** (8 * width - 1)
    assert sound.rate == 8000
    np.testing.assert_allclose(sound.samples, np.rint(TONE * top) / top, rtol=0, atol=1e-7)


@pytest.mark.parametrize("name", ["soundfile", "ffmpeg", "scipy"])
def test_floats_are_kept(name):
    sound = reader(name).read(inspect("floats", floats(TONE)))

    assert np.array_equal(sound.samples, TONE.astype(np.float32))


@pytest.mark.parametrize("name", ["soundfile", "ffmpeg"])
def test_flac_is_kept_and_mp3_and_ogg_are_near(name):
    want = np.rint(TONE * 2**15) / 2**15
    assert np.array_equal(reader(name).read(inspect("f", encoded("FLAC"))).samples, want)

    for format in ("OGG", "MP3"):
        got = reader(name).read(inspect(format, encoded(format))).samples
        peak = np.abs(np.fft.rfft(got)).argmax() * 8000 / got.size
        assert peak == pytest.approx(440, abs=4)


@pytest.mark.parametrize("name", READERS)
def test_two_channels_are_a_mean_the_first_or_refused(name):
    stereo = inspect("stereo", wav(np.stack([TONE, TONE / 2], 1), 8000))

    mean = reader(name).read(stereo).samples
    first = reader(name, channels="first").read(stereo).samples
    with pytest.raises(SampleError, match="one channel expected, got 2"):
        reader(name, channels="refuse").read(stereo)

    np.testing.assert_allclose(mean, TONE * 0.75, atol=1e-4)
    np.testing.assert_allclose(first, TONE, atol=1e-4)


@pytest.mark.parametrize("name", READERS)
def test_samples_that_are_not_finite_are_refused(name):
    for bad in (np.nan, np.inf, -np.inf):
        with pytest.raises(SampleError) as raised:
            reader(name).read(inspect("bad", floats([0.5, bad, 0.25])))
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", ["soundfile", "ffmpeg"])
@pytest.mark.parametrize("format", ["FLAC", "MP3", "OGG"])
def test_compressed_sounds_that_end_early_are_refused_or_shorter(name, format):
    data = encoded(format, sine(440, 8000, 30000))
    cut = Recording(data[: len(data) // 2], format.lower(), 8000, 1, 30000)

    found, line = outcome(name, cut)

    assert "\n" not in line
    if found is not None:
        assert format == "MP3"  # its header counts no samples
        assert found.size < 30000


@pytest.mark.parametrize("name", READERS)
def test_noise_behind_a_header_is_refused(name):
    noise = np.random.default_rng(1).bytes(4000)
    with pytest.raises(SampleError, match=r"^[^\n]+$"):
        reader(name).read(Recording(b"RIFF\xa0\x0f\0\0WAVE" + noise, "wav", 8000, 1, 0))
    for format, start in (("flac", b"fLaC"), ("ogg", b"OggS"), ("mp3", b"\xff\xfb\x90\x64")):
        with pytest.raises(SampleError) as raised:
            reader(name).read(Recording(start + noise, format, 8000, 1, 0))
        assert "\n" not in str(raised.value)


def test_a_wave_of_a_law_is_read_or_refused_in_a_line():
    data = riff(bytes(range(256)), form=6, bits=8)
    for name in READERS:
        found, line = outcome(name, inspect("a-law", data))
        assert "\n" not in line
        assert found is None or np.abs(found).max() <= 1


def test_a_sound_of_another_rate_is_resampled_or_refused():
    given = card(WAVEFORM, {"normalize": {"kind": "none"}})
    null = ["stft=null", "mel=null", "log=null"]
    fast = wav(sine(440, 16000, 8000), 16000)

    assert way("librosa_fp32", given, *null)(fast).shape == (1, 4000)
    with pytest.raises(SampleError, match="8000 samples a second expected, got 16000"):
        way("librosa_fp32", given, *null, "resample=null")(fast)


def test_a_sound_shorter_than_a_frame_is_refused_in_a_line():
    with pytest.raises(SampleError, match="1 samples are too few to be reflected"):
        way("librosa_fp32")(wav(TONE[:1], 8000))


def test_the_wave_module_agrees_about_the_files_of_these_tests():
    with wave.open(io.BytesIO(header(b"\0\0\1\0"))) as file:
        assert file.getnframes() == 2
