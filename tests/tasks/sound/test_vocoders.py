"""Waveforms of spectrograms: by hand, against SciPy's transform, and from a network to a run."""

from types import SimpleNamespace

import numpy as np
import onnxruntime
import pytest
import scipy.signal
import tiny_voice
import yaml
from tiny_voice import BANDS, HOP, N_FFT, RATE

from simulator import compare, registry, sweep
from simulator.errors import DataError, ModelError
from simulator.model.card import Card
from simulator.pipeline.inference import Finish
from simulator.profile.implementations import choose, implementation
from simulator.profile.load import load
from simulator.reference.log_mel import log_mel
from simulator.tasks.settings import Network
from simulator.tasks.text_to_speech.spectrogram import WAVEFORM
from simulator.tasks.text_to_speech.task import TextToSpeech

INVERSE = {
    "method": "istft", "center": False, "window": "hann", "window_symmetry": "periodic",
    "scaling": "none", "overlap": "window_square",
}  # fmt: skip
NUMPY = "vocoder.backend=numpy"


def task(**changed):
    return TextToSpeech(TextToSpeech.Output(**BANDS, **changed), Network())


def tone():
    return 0.5 * np.sin(2 * np.pi * 1000 * np.arange(8192) / RATE)


def inverse(**options):
    return implementation("vocode", registry.backend("numpy"), {**INVERSE, **options}).make()


@pytest.mark.parametrize(
    ("overlap", "expected"),
    [
        ("none", [0, 0.5, 1, 1, 1, 0.5]),
        ("window_square", [0, 2, 1, 2, 1, 2]),
        ("constant", [0, 1, 1, 2, 1, 1]),
    ],
)
def test_two_frames_of_ones_by_hand(overlap, expected):
    """
    Hann's window of 4 is 0, 1/2, 1, 1/2; its squares, 2 samples apart, sum to 1 and 1/2.
    """
    spectra = np.array([[4, 4], [0, 0], [0, 0]], np.complex64)
    found = inverse(overlap=overlap).wave(spectra, 4, 4, 2)

    assert found.tolist() == pytest.approx(expected)


def test_vocoders_that_differ_in_no_word_read_differently():
    """In the printed plan, where centred and not centred frames both read istft hann."""
    numpy = registry.backend("numpy")
    choices = [implementation("vocode", numpy, {**INVERSE, "center": it}) for it in (True, False)]
    steps = [Finish(SimpleNamespace(choice=choice), "vocode") for choice in choices]
    assert [step.words().count("center True") for step in steps] == [1, 0]


@pytest.mark.parametrize("window", ["hann", "hamming"])
def test_what_scipy_transformed_comes_back(window):
    sound = np.random.default_rng(3).uniform(-1, 1, 1600)
    _, _, spectra = scipy.signal.stft(
        sound, window=window, nperseg=64, noverlap=48, boundary="even", padded=False
    )
    made = inverse(center=True, window=window, scaling="window_sum")
    found = made.wave(spectra.astype(np.complex64), 64, 64, 16)

    assert np.abs(found - sound).max() < 1e-6


@pytest.mark.parametrize(("inverse", "off"), [("pinv", 0.4), ("nnls", 0.1)])
def test_a_tone_comes_back_from_its_mel_bands(inverse, off):
    """Least squares spread it over its bands, whose parts do not add up to all of it."""
    profile = load("griffin_lim_fp32", [NUMPY, f"vocoder.mel_inverse={inverse}"])
    mel = log_mel(tone()[:6144], RATE).astype(np.float32)[None]
    made = task().back_end(profile, choose(profile)).open()({"mel": mel})[WAVEFORM]
    peak = np.abs(np.fft.rfft(made * np.hanning(made.size))).argmax() * RATE / made.size

    assert made.size == 6144
    assert peak == pytest.approx(1000, abs=25)
    assert np.sqrt(2 * np.mean(made**2)) == pytest.approx(0.5, rel=off), "its amplitude"


def test_a_db_of_power_is_as_a_neper_of_magnitudes():
    """10 log10(m ** 2) = 20 log10(m): the same bands, told otherwise, are the same sound."""
    profile = load("griffin_lim_fp32", [NUMPY, "vocoder.iterations=1"])
    log = {"kind": "log10", "floor": "max", "value": 1e-5}
    other = TextToSpeech.Output(**BANDS | {"trained": {**BANDS["trained"], "log": log}})
    mel = log_mel(tone(), RATE)[None]
    waves = [
        one.back_end(profile, choose(profile)).open()({"mel": mel / scale})[WAVEFORM]
        for one, scale in ((task(), 1), (TextToSpeech(other, Network()), np.log(10)))
    ]

    assert np.abs(waves[0] - waves[1]).max() < 1e-4 * np.abs(waves[0]).max()


def test_what_does_not_fit_is_one_line():
    for profile, changes, speaks, why in (
        ("phoneme_ids_fp32", [], BANDS, "has no vocoder, and the network gives a spectrogram"),
        ("istft_fp32", [], BANDS, "istft, but the network gives log_mel"),
        ("istft_fp32", [], {"rate": RATE}, "the network gives a waveform; write vocoder: null"),
        ("griffin_lim_fp32", ["vocoder.mel_norm=null"], BANDS, "mel bands; write mel_norm"),
    ):
        loaded = load(profile, changes)
        made = TextToSpeech(TextToSpeech.Output(**speaks), Network())
        with pytest.raises(ModelError, match=why) as caught:
            made.back_end(loaded, choose(loaded))
        assert "\n" not in str(caught.value)
    with pytest.raises(DataError, match="frames of each phoneme expected"):
        task().truth_of("3 x", "row 2")


@pytest.fixture
def voice(tmp_path):
    return tiny_voice.voice(tmp_path)


def test_a_window_changes_the_waveform_and_not_what_the_network_says(voice, tmp_path):
    stacks = [f"{side}.{NUMPY}" for side in ("train", "deploy")]
    run = compare(
        "griffin_lim_fp32", "griffin_lim_fp32", **voice, out=tmp_path / "run",
        overrides=[*stacks, "deploy.vocoder.window=hamming"],
    )  # fmt: skip
    flips = run.summary["flips"]

    assert run.summary["train"]["metric"]["durations_right"] == pytest.approx((1 + 1 / 2) / 2)
    assert flips["count"] == 0 and flips["waveforms"] == 2
    assert flips["output_mse"] == 0 and flips["mse"] > 0 and flips["log_mel_mse"] > 0


COMPLEX = {
    "outputs": ["real", "imaginary"], "features": "complex", "layout": "NMT", "n_fft": N_FFT,
    "win_length": N_FFT, "hop": HOP,
}  # fmt: skip


@pytest.mark.parametrize(
    ("layout", "says", "profile", "changes", "samples"),
    [
        ("NMT", {"waveform": "waveform"}, "phoneme_ids_fp32", [], 24),
        ("NTM", {"waveform": "waveform"}, "phoneme_ids_fp32", [], 24),
        ("NMT", {"waveform": "waveform"}, "griffin_lim_fp32", [NUMPY], 23 * HOP),
        ("NMT", {"spectrogram": COMPLEX}, "istft_fp32", [NUMPY], 23 * HOP),
    ],
)
def test_a_second_network_speaks_unless_the_stack_does(
    voice, tmp_path, layout, says, profile, changes, samples
):
    """Three ids of eight frames each: a sample a frame, or a hop a frame but for both ends."""
    voice["model"] = tiny_voice.speaking(tmp_path, layout, **says)
    run = compare(
        profile, profile, **voice, out=tmp_path / "run",
        overrides=[f"{side}.{one}" for side in ("train", "deploy") for one in changes],
    )  # fmt: skip
    counts = run.records().column("samples").to_pylist()

    assert max(counts) == samples, "of the longer text"
    assert run.summary["flips"]["output_mse"] == 0 and run.summary["flips"]["count"] == 0


def test_what_the_second_network_says_is_what_its_graph_computes(voice, tmp_path):
    card = Card(tiny_voice.speaking(tmp_path, waveform="waveform"))
    first, second = (
        onnxruntime.InferenceSession(str(one.model), providers=["CPUExecutionProvider"])
        for one in card.networks
    )
    mel, spans = first.run(["mel", "durations"], {"ids": np.array([[0, 1, 2]])})
    step = card.task.handover(None)
    fed = step.feeds({"mel": mel, "durations": spans}, None)
    (wave,) = second.run(["waveform"], {"bands": fed["bands"]})
    kept = {name: fed[name] for name in step.kept}
    answer = card.task.decode({**kept, "waveform": wave}, None, None)

    assert answer.samples == pytest.approx(mel[0].mean(0))
    assert answer.durations == (8, 8, 8) and np.array_equal(answer.spectrogram, mel[0])


@pytest.mark.parametrize(
    ("changed", "profile", "why"),
    [
        ({"vocoder": {"input": "band", "layout": "NMT", "waveform": "waveform"}}, None,
         "unknown input 'band'; did you mean 'bands'"),
        ({"vocoder": {"input": "bands", "layout": "NTM", "waveform": "waveform"}}, None,
         "second network's input 'bands': expected float32 1x.x80, got float32 1x80x"),
        ({"vocoder": {"input": "bands", "layout": "NMT"}}, None, "waveform or spectrogram"),
        ({}, "istft_fp32", "the network gives a waveform; write vocoder: null"),
    ],
)  # fmt: skip
def test_a_second_network_that_does_not_fit_is_one_line(voice, tmp_path, changed, profile, why):
    card = tiny_voice.speaking(tmp_path, waveform="waveform")
    spec = yaml.safe_load(card.read_text())
    spec["output"] |= changed
    card.write_text(yaml.safe_dump(spec))
    profile = profile or "phoneme_ids_fp32"
    with pytest.raises(ModelError, match=why):
        compare(profile, profile, model=card, data=voice["data"], out=tmp_path / "run")


def test_a_suite_tells_distances(voice, tmp_path):
    suite = {
        "schema": 1, "name": "trial", "summary": "one window", "train": "griffin_lim_fp32",
        "columns": {"stft": {"hamming": {"vocoder.window": "hamming"},
                             "scipy": {"vocoder.backend": "scipy"}}},
    }  # fmt: skip
    (tmp_path / "suite.yaml").write_text(yaml.safe_dump(suite))
    (found,) = sweep(
        tmp_path / "suite.yaml", models=[voice["model"]], data=voice["data"],
        overrides=[f"train.{NUMPY}"], out=tmp_path / "run",
    )  # fmt: skip
    options = found.summary["columns"]["stft"]["options"]

    assert options["hamming"]["log_mel_mse"] > options["scipy"]["log_mel_mse"] > 0
