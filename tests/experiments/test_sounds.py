"""Sounds in a run and in its page: pictures, what is played, what is not."""

import io
import json
import wave
from pathlib import Path

import numpy as np
import pytest
import yaml
from shared_data import shared

from simulator import compare, sweep
from simulator.experiments.pictures import spectrograms
from simulator.reference.log_mel import log_mel
from simulator.reference.sound import mel_corners
from simulator.report import page
from simulator.report.sections.sounds import Tick, frequencies, times
from simulator.testing.audio_specimen import sine, wav, write
from simulator.typed import plain

ROOT = Path(__file__).parents[2]
RATE = 8000
SLANEY = [586.06267, 1194.23863, 2185.62451]
HTK = [426.80300, 1113.83571, 2219.76504]
"""Quarters of 4000 Hz on both mel scales, worked out from their formulas."""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Two sounds; the deployment stack halves what it hears of high frequencies, and swaps one."""
    folder = tmp_path_factory.mktemp("sounds")
    given = write(folder)
    (folder / "data").mkdir()
    for file in given.files:
        file.rename(folder / "data" / file.name)
    (folder / "data" / "long.wav").write_bytes(wav(sine(600, 44100, 44100 * 5), 44100))
    change = ["deploy.mel.scale=htk", "deploy.resample.quality=qq"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PIPELINE_SIMULATOR_CACHE", str(folder / "cache"))
        return compare(
            given.profile, given.profile, overrides=change, model=given.card,
            data=folder / "data", out=folder / "run",
        )  # fmt: skip


def test_each_sound_is_kept_with_both_spectrograms(run):
    looks = json.loads((run.folder / "summary.json").read_text())["pictures"]

    assert {one["sample"] for one in looks} == {"long.wav", "one.wav", "other.wav"}
    for one in looks:
        assert one["own"] and one["notes"] == [] and one["peak"] > 0
        for side in ("train", "deploy"):
            assert one[side]["bands"] == 3
            played = (run.folder / one[side]["sound"]).read_bytes()
            assert len(played) < 100_000
            with wave.open(io.BytesIO(played)) as file:
                assert file.getframerate() == RATE, "resampled as the network hears it"
                assert file.getnframes() <= spectrograms.SECONDS * RATE


def test_rows_have_their_frequencies_and_columns_their_time(run):
    """The hop is 64 samples of 8000 a second."""
    looks = json.loads((run.folder / "summary.json").read_text())["pictures"]

    for one in looks:
        assert one["train"]["hertz"] == pytest.approx(SLANEY, abs=1e-4)
        assert one["deploy"]["hertz"] == pytest.approx(HTK, abs=1e-4)
        assert one["train"]["hop"] == one["deploy"]["hop"] == 0.008
        assert one["why"] in ("worst flip", "one of the first sounds")


def test_ticks_are_round_and_where_their_bands_are():
    """The lower of two bands is at three quarters of the height; 200 Hz has no room."""
    found = frequencies([100, 1000], 160)
    assert [one.words for one in found] == ["100 Hz", "500 Hz", "1 kHz"]
    assert [one.at for one in found] == pytest.approx([120, 120 - 80 * 400 / 900, 40])
    assert frequencies([110.0, 130.0], 160) == [Tick(120, "110 Hz"), Tick(40, "130 Hz")]
    assert frequencies([], 160) == []
    assert [one.words for one in times(0.26, 260)] == ["0 s", "0.1 s", "0.2 s"]
    assert [one.at for one in times(4, 320)] == [0, 80, 160, 240, 320]
    assert times(0, 10) == []


def test_a_sine_is_brightest_at_its_frequency():
    hertz = mel_corners(0, 4000, 80)[1:-1]
    bands = log_mel(sine(1000, RATE, 4000), RATE)
    assert abs(hertz[bands[:, 5].argmax()] - 1000) <= np.diff(hertz).min()


def test_the_page_plays_them_and_allows_nothing_more(run):
    html = page.write(run.folder).read_text()

    assert html.count("<audio controls") >= 3
    policy = html.partition('Content-Security-Policy" content="')[2].partition('"')[0]
    assert "media-src data:;" in policy and "default-src 'none'" in policy


def test_a_damaged_sound_is_left_out_of_the_page(run):
    for file in run.folder.glob("looks/*.wav"):
        file.write_bytes(b"<script>")
    html = page.write(run.folder).read_text()
    assert "<audio" not in html


def test_what_differs_most_is_played():
    before = np.zeros((2, 100))
    after = before.copy()
    after[:, 70:80] = 1

    start = spectrograms.loudest(before, after, 10.0)
    assert 5 <= start <= 7, "the three seconds hold those from 7 to 8"
    assert spectrograms.loudest(before, after, 2.0) == 0


def test_a_picture_has_low_bands_at_the_bottom():
    pixels = spectrograms.picture(np.array([[0.0], [1.0]]), 0, 1)

    assert pixels[0, 0].tolist() == [252, 253, 191] and pixels[-1, 0].tolist() == [0, 0, 4]
    red = spectrograms.difference(np.zeros((1, 2)), np.ones((1, 2)), 1.0)
    assert red[0, 0].tolist() == [178, 24, 43]


EXPECTED = {
    "torch": (91.0, 0), "hamming": (89.67, 9), "zero-padding": (91.33, 5),
    "scipy-scaled": (13.0, 267), "not-centred": (90.67, 19), "torch-normalized": (49.67, 147),
    "htk-no-norm": (29.67, 208), "floor-max": (90.0, 9), "8-bit": (77.0, 51),
}  # fmt: skip
"""Accuracy and flips of 300 digits, measured apart from this package with the libraries alone."""


def test_the_digits_flip_as_measured_apart(tmp_path, cache):
    shared("audio")
    suite = yaml.safe_load((ROOT / "suites" / "audio.yaml").read_text())
    suite["columns"] = {
        column: few
        for column, options in suite["columns"].items()
        if (few := {name: one for name, one in options.items() if name in EXPECTED})
    }
    (tmp_path / "few.yaml").write_text(yaml.safe_dump(suite))
    cards = ROOT / "tests" / "cards"
    (found,) = sweep(
        str(tmp_path / "few.yaml"), models=[cards / "digits.yaml"],
        data=cards / "digits_test.yaml", out=tmp_path / "run", workers=1,
    )  # fmt: skip

    got = {
        name: (round(100 * one["top1"], 2), one["flips"])
        for column in plain(found.summary)["columns"].values()
        for name, one in column["options"].items()
    }
    assert got == EXPECTED


def test_the_readme_shows_what_comes_out(tmp_path, cache):
    shared("audio")
    cards = ROOT / "tests" / "cards"
    found = compare(
        "librosa_fp32", "torchaudio_defaults", model=cards / "digits.yaml",
        data=cards / "digits_test.yaml", out=tmp_path / "run", workers=1, quick=True,
    ).summary  # fmt: skip
    before, after = (100 * found[side]["metric"]["top1"] for side in ("train", "deploy"))
    shown = f"{found['flips']['count']} of {found['samples']} sounds change"

    assert shown in (ROOT / "README.md").read_text()
    assert f"top-1 goes from {before:.2f}% to {after:.2f}%" in (ROOT / "README.md").read_text()
