"""How far waveforms are apart, against numbers worked out by hand and librosa's filters."""

import numpy as np
import pytest
from shared_data import shared

from simulator.reference.log_mel import log_mel
from simulator.reference.sound import mel_filters
from simulator.tasks.settings import Network
from simulator.tasks.text_to_speech.distance import distance, warped
from simulator.tasks.text_to_speech.task import Speech, TextToSpeech

RATE = 8000


def tone(hertz, count=4000):
    return np.sin(2 * np.pi * hertz * np.arange(count) / RATE).astype(np.float32)


def test_the_filters_are_librosas():
    npy = np.load(shared("audio") / "fsdd_mel40_8k_256.npy")
    found = mel_filters(8000, 256, 40, (0.0, 4000.0), "slaney", "slaney", "hertz")
    assert np.abs(found - npy).max() < 1e-7


def test_a_tenth_less_is_twenty_decibels():
    found = distance(tone(440), np.float32(0.9) * tone(440), RATE)

    assert found.snr == pytest.approx(20, abs=1e-4)
    assert found.mse == pytest.approx(0.005, rel=1e-3), "a hundredth of the power of a sine, 1/2"
    assert found.log_mel_mse < 0.012, "ln(0.9) squared is 0.011, and less where the floor is"


def test_equal_waveforms_are_not_apart():
    assert distance(tone(440), tone(440), RATE).snr is None
    assert distance(tone(440), tone(440), RATE).warped == 0


def test_one_waveform_may_be_empty():
    found = distance(tone(440), np.empty(0, np.float32), RATE)
    assert np.isfinite([found.mse, found.log_mel_mse, found.warped]).all()


def test_warping_pairs_what_sounds_alike():
    """A frame said twice costs nothing; a frame of 1 in place of 0 costs 2 of the path's 6."""
    bands = np.array([[0.0, 1.0, 2.0]])

    assert warped(bands, np.array([[0.0, 1.0, 1.0, 2.0]])) == 0
    assert warped(np.zeros((1, 3)), np.ones((1, 3))) == pytest.approx(1)
    assert warped(np.zeros((1, 2)), np.array([[0.0, 3.0]])) == pytest.approx(9 / 4)
    assert warped(bands, bands) == 0


def test_warping_agrees_with_the_plain_recursion():
    draw = np.random.default_rng(7)
    one, other = draw.normal(size=(3, 9)), draw.normal(size=(3, 7))
    costs = ((one[:, :, None] - other[:, None]) ** 2).mean(0)
    best = np.full((10, 8), np.inf)
    best[0, 0] = 0
    for i in range(1, 10):
        for j in range(1, 8):
            c = costs[i - 1, j - 1]
            diagonal = best[i - 1, j - 1] + 2 * c
            best[i, j] = min(best[i - 1, j] + c, best[i, j - 1] + c, diagonal)
    assert warped(one, other) == pytest.approx(best[-1, -1] / 16)


def test_a_duration_that_changed_counts():
    task = TextToSpeech(TextToSpeech.Output(rate=RATE, durations="w"), Network())
    before = Speech(tone(440), RATE, (3, 4, 5))
    after = Speech(tone(440)[:-256], RATE, (3, 3, 5))
    found = task.change(before, after, None)

    assert (found["changed"], found["units"], found["lengths"]) == (1, 3, 1)
    assert found["mse"] == 0, "one is the beginning of the other"


def test_sentences_are_joined():
    task = TextToSpeech(TextToSpeech.Output(rate=RATE, waveform="y", durations="w"), Network())
    parts = [
        {"y": np.full((1, 1, 2), value, np.float32), "w": np.array([[value]])} for value in (1, 2)
    ]
    found = task.decode(tuple(parts), None, None)

    assert found.samples.tolist() == [1, 1, 2, 2] and found.durations == (1, 2)


def test_a_short_sound_has_a_spectrogram():
    assert log_mel(np.zeros(1, np.float32), RATE).shape[0] == 80
