"""The way of a sound to the network's input: conventions, sizes, layouts, refusals."""

from __future__ import annotations

import json

import numpy as np
import pytest
from pydantic import ValidationError
from sounds import DIGITS, TRAINED, WAVEFORM, card, way

from simulator.errors import ModelError, ProfileError
from simulator.modalities.audio import sections
from simulator.modalities.audio.modality import AUDIO
from simulator.modalities.audio.steps import Log, Normalize, fitted, laid_out
from simulator.profile.implementations import choose
from simulator.profile.load import load
from simulator.testing.audio_specimen import sine, wav

TONE = wav(sine(440, 8000, 1000), 8000)
NULL = ("stft=null", "mel=null", "log=null")
CASES = {
    "ln, added": (["ln", "add", 1.0, "none"], [[0.0, np.log(2)], [np.log(11), np.log(101)]]),
    "log10, at least": (["log10", "max", 1e-2, "none"], [[-2.0, 0.0], [1.0, 2.0]]),
    "db, 20 below the top": (["db", "max", 1e-2, 20.0], [[0.0, 0.0], [10.0, 20.0]]),
    "log10, 20 dB below the top": (["log10", "max", 1e-2, 20.0], [[0.0, 0.0], [1.0, 2.0]]),
}


@pytest.mark.parametrize("case", CASES)
def test_a_logarithm_by_hand(case):
    (kind, floor, value, top_db), want = CASES[case]
    asked = sections.Log(kind=kind, floor=floor, value=value, top_db=top_db)

    found = Log(asked).of(np.array([[0, 1], [10, 100]], np.float32))

    assert found.dtype == np.float32
    np.testing.assert_allclose(found, want, atol=1e-5)


def test_normalizations_by_hand():
    array = np.array([[1, 3], [5, 7]], np.float32)

    def normalized(**asked):
        return Normalize(sections.Normalize(**asked), "NMT").of(array)

    fixed = normalized(kind="fixed", mean=3.0, std=2.0)
    clip = normalized(kind="clip", epsilon=0.0, divide=True)
    bands = normalized(kind="bands", epsilon=0.0, divide=False)

    assert fixed.tolist() == [[-1, 0], [1, 2]]
    np.testing.assert_allclose(clip, np.array([[-3, -1], [1, 3]]) / np.sqrt(5), rtol=1e-6)
    assert bands.tolist() == [[-1, 1], [-1, 1]]
    assert normalized(kind="none") is array


@pytest.mark.parametrize(
    ("layout", "shape"),
    [("NMT", (1, 2, 3)), ("NTM", (1, 3, 2)), ("NCMT", (1, 1, 2, 3)), ("NCTM", (1, 1, 3, 2))],
)
def test_layouts(layout, shape):
    found = laid_out(np.arange(6, dtype=np.float32).reshape(2, 3), layout)

    assert found.shape == shape
    assert found.flags.c_contiguous
    flat = found.reshape(shape[-2:])
    assert (flat if layout.endswith("MT") else flat.T).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_sounds_are_cut_or_padded_at_their_end():
    assert fitted(np.array([1, 2, 3]), 2).tolist() == [1, 2]
    assert fitted(np.array([1, 2, 3]), 5).tolist() == [1, 2, 3, 0, 0]
    assert fitted(np.array([[1, 2]]), 3).tolist() == [[1, 2, 0]]


def test_a_network_of_a_fixed_length_gets_it():
    given = card({**WAVEFORM, "samples": 1500}, {"normalize": {"kind": "none"}})
    assert way("librosa_fp32", given, *NULL)(TONE).shape == (1, 1500)
    assert AUDIO.feeds(given)[0].shape == (1, 1500)

    frames = way("librosa_fp32", card(frames=20))(TONE)
    assert frames.shape == AUDIO.feeds(card(frames=20))[0].shape == (1, 40, 20)
    assert np.allclose(frames[..., -1], np.log(1e-6))  # silence


def test_a_waveform_is_normalized_too():
    given = card(WAVEFORM, {"normalize": {"kind": "clip", "epsilon": 1e-7, "divide": True}})

    found = way("librosa_fp32", given, *NULL)(TONE)

    assert found.mean() == pytest.approx(0, abs=1e-6)
    assert found.std() == pytest.approx(1, abs=1e-4)


def test_what_model_means_shares_its_work_with_the_same_words_written_out():
    profiles = [load("librosa_fp32"), load("librosa_fp32", ["stft.center=true", "mel.fmin=0.0"])]
    chains = [AUDIO.front_end(one, choose(one), card()) for one in profiles]

    assert chains[0] == chains[1]
    assert "model" not in json.dumps([one.identity() for one in chains[0]])


def test_a_card_that_does_not_say_is_one_line():
    with pytest.raises(ModelError, match=r"librosa_fp32\.yaml:\d+: stft\.center: model, but the"):
        way("librosa_fp32", card(trained={**TRAINED, "stft": None}))


def test_conventions_that_a_library_does_not_have_are_one_line():
    trained = {**TRAINED, "stft": {**TRAINED["stft"], "window": "povey"}}
    words = ("stft.backend=pytorch", "stft.algorithm=null", "stft.arithmetic=null")

    with pytest.raises(ModelError, match=r"as digits was trained: window: pytorch offers") as told:
        way("librosa_fp32", card(trained=trained), *words)

    assert "\n" not in str(told.value)


def test_a_network_of_spectrograms_needs_them():
    with pytest.raises(ModelError, match="stft is null, but digits takes log_mel"):
        way("librosa_fp32", card(), *NULL)
    with pytest.raises(ProfileError, match="stft, mel and log are all there, or none is"):
        load("librosa_fp32", ["mel=null"])


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"n_fft": None}, "log_mel needs n_fft"),
        ({"win_length": 300}, "win_length is at most n_fft"),
        ({"fmax": 5000}, "fmax, which is at most 4000"),
        ({"layout": "NS"}, "does not fit layout NS"),
        ({"rate": 1}, "greater than or equal to 100"),
    ],
)
def test_sizes_that_do_not_fit(changed, line):
    with pytest.raises(ValidationError, match=line):
        card(**changed)


def test_a_waveform_has_no_bands():
    with pytest.raises(ValidationError, match="waveform has no"):
        card({**WAVEFORM, "n_mels": 40})


def test_a_band_beyond_half_the_rate_is_one_line():
    with pytest.raises(ModelError, match="a band within 0 to 4000 Hz expected, got 0 to 5000"):
        way("librosa_fp32", None, "mel.fmax=5000.0")


@pytest.mark.parametrize(
    ("profile", "factor"), [("librosa_fp32", 10 / np.log(10)), ("whisper_cpp_like", 40.0)]
)
def test_differences_are_told_in_decibels(profile, factor):
    assert AUDIO.scale(load(profile), card()) == pytest.approx(factor)


def test_kaldi_in_steps_is_kaldi_at_once():
    knf = pytest.importorskip("kaldi_native_fbank")
    options = knf.FbankOptions()
    options.frame_opts.samp_freq = 8000
    options.frame_opts.frame_length_ms, options.frame_opts.frame_shift_ms = 32, 16
    options.frame_opts.dither = 0
    options.mel_opts.num_bins = 40
    fbank = knf.OnlineFbank(options)
    samples = np.rint(sine(440, 8000, 1000) * 32768).astype(np.float32) / 32768
    fbank.accept_waveform(8000, samples.tolist())
    fbank.input_finished()
    want = np.array([fbank.get_frame(at) for at in range(fbank.num_frames_ready)]).T

    found = way("kaldi_fbank", None, "stft.dither=0.0")(TONE)[0]

    assert found.shape == want.shape
    np.testing.assert_allclose(found, want, atol=2e-3)


def test_dither_is_the_same_each_time_and_differs_between_sounds():
    through = way("librosa_fp32", None, "stft.dither=1.0")

    assert np.array_equal(through(TONE, "a"), through(TONE, "a"))
    assert not np.array_equal(through(TONE, "a"), through(TONE, "b"))


def test_a_recording_says_its_sizes(tmp_path):
    path = tmp_path / "tone.wav"
    path.write_bytes(TONE)

    assert AUDIO.sizes(AUDIO.read("tone.wav", path)) == {
        "bytes": 2044,
        "samples": 1000,
        "milliseconds": 125,
        "rate": 8000,
    }
    assert DIGITS["rate"] == 8000
