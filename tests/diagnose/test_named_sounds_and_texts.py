"""Slips of spectrograms and of tokens, made here with numpy, are named."""

from types import SimpleNamespace

import numpy as np
import pytest

from simulator.diagnose.finding import Certainty
from simulator.diagnose.sounds import name_sounds
from simulator.diagnose.tokens import name_tokens

SOUND_CARD = SimpleNamespace(
    input=SimpleNamespace(features="log_mel", layout="NMT", rate=8000, n_fft=256, hop=128),
    trained=SimpleNamespace(log=SimpleNamespace(kind="ln")),
)
TEXT_CARD = SimpleNamespace(input=SimpleNamespace(names=SimpleNamespace(ids="ids", mask="mask")))


def spectrogram(samples):
    """ln of 8 sums of squares for each frame of 256, 128 apart."""
    count = 1 + (samples.size - 256) // 128
    frames = np.stack([samples[128 * at : 128 * at + 256] for at in range(count)])
    return np.log((frames.reshape(count, 8, 32) ** 2).sum(axis=2).T + 1e-6)[None]


def centered(samples):
    return spectrogram(np.pad(samples, 128, mode="reflect"))


SOUNDS = {
    "no center padding (61 frames for 63)": spectrogram,
    "the sound is not resampled (16,000 Hz taken for 8,000 Hz, 126 frames for 63)":
        lambda s: centered(np.repeat(s, 2)),
    "log10 in place of ln": lambda s: centered(s) / np.log(10),
    "decibels in place of ln": lambda s: centered(s) * 10 / np.log(10),
    "samples of 16 bits are not divided by 32768": lambda s: centered(s) + 2 * np.log(32768),
    "scale 0.25 and offset 1 of the logarithms": lambda s: centered(s) / 4 + 1,
}  # fmt: skip


@pytest.mark.parametrize("name", SOUNDS)
def test_slips_of_spectrograms(name):
    sounds = [np.random.default_rng(seed).normal(size=8000).astype("f4") for seed in (1, 2)]
    rate = 16000 if "16,000" in name else 8000
    files = [SimpleNamespace(frames=8000 * rate // 8000, rate=rate) for _ in sounds]

    (found,) = name_sounds(
        [centered(one) for one in sounds], [SOUNDS[name](one) for one in sounds], SOUND_CARD, files
    )

    assert found.name == name
    assert (found.certainty is Certainty.NEAREST) == (rate == 16000)


def test_spectrograms_of_other_sounds_have_no_name():
    sounds = [np.random.default_rng(seed).normal(size=8000) for seed in (1, 2)]
    files = [SimpleNamespace(frames=8000, rate=8000)]

    assert not name_sounds([centered(sounds[0])], [centered(sounds[1])], SOUND_CARD, files)


TEXTS = [[1, 7, 8, 9], [1, 5, 5, 6, 4]]
TOKENS = {
    "no token of the beginning (id 1 is missing at the start of every text)":
        [one[1:] for one in TEXTS],
    "a token of the beginning too many (id 1 at the start of every text)":
        [[1, *one] for one in TEXTS],
    "a token of the end too many (id 2 at the end of every text)": [[*one, 2] for one in TEXTS],
    "texts are cut to the first 3 tokens": [one[:3] for one in TEXTS],
    "padding or mask differ, the ids do not": TEXTS,
    "the ids of 1 of 2 texts are others: another tokenizer": [[1, 7, 8, 3], TEXTS[1]],
}  # fmt: skip


@pytest.mark.parametrize("name", TOKENS)
def test_slips_of_tokens(name):
    (found,) = name_tokens([batch(TEXTS, left=True)], [batch(TOKENS[name])], TEXT_CARD)

    assert found.name == name
    assert (found.certainty is Certainty.EXACT) == ("another" not in name)


def batch(rows, left=False):
    """Padded with 0."""
    width = max(map(len, rows))
    pads = [[0] * (width - len(one)) for one in rows]
    ones = [[1] * len(one) for one in rows]
    pairs = [
        (list(zip(rows, pads, strict=True)), "ids"),
        (list(zip(ones, pads, strict=True)), "mask"),
    ]
    return {name: np.array([b + a if left else a + b for a, b in some]) for some, name in pairs}
