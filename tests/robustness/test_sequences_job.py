"""Perturbation sequences in ``simulate robustness``: single runs per frame, figures by hand."""

import csv
import io
import json

import numpy as np
import pyarrow.parquet as pq
import pytest
import tiny
import tiny_tasks
import yaml
from PIL import Image
from stopping import StopsAt

import simulator
from simulator import cli, robustness
from simulator.cli.experiment import show
from simulator.command.experiment import EXPERIMENTS
from simulator.errors import ProfileError, UserError
from simulator.report import page
from simulator.robustness import document

SUITE = {
    "schema": 1,
    "name": "moving",
    "summary": "noise and two movements",
    "sequences": {
        "hiss": {"condition": "p_gaussian_noise", "frames": 4, "noise": True},
        "pan": {"condition": "p_translate", "frames": 9},
        "roll": {"condition": "p_rotate", "frames": 7, "difficulty": 3},
    },
}
RULES = {
    "deploy.FP.pan > 99%": False,
    "deploy.FP.pan >= 0%": True,
    "train.mFP >= 0%": True,
    "deploy.mFR < 0": False,
    "deploy.uT5D.pan > 0": True,
    "train.mT5D > 1.5": False,
    "sequences.interaction.deploy.roll.value > 100 points": False,
}
"""With whether they fail."""
PAIR = {"train": "pillow_fp32", "deploy": "pillow_fp32",
        "overrides": ["deploy.color.order=bgr", "deploy.resize.interpolation=nearest"]}  # fmt: skip


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def card(home):
    return tiny.card(home / "model")


@pytest.fixture(scope="module")
def undecided(home):
    """Photographs whose three colors are nearly tied, so that little moves change the answer.

    Each has the label of the color that it has most of, which the network answers as it is.
    """
    draws = np.random.default_rng(5)
    for number in range(12):
        columns = np.eye(3)[draws.integers(0, 3, 48)]
        image = np.broadcast_to(40 + 170 * columns, (40, 48, 3)).astype(np.uint8)
        name = ("red", "green", "blue")[columns.sum(axis=0).argmax()]
        folder = home / "photographs" / name
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(folder / f"{name}{number}.png")
    return home / "photographs"


def written(tmp_path, **changes):
    path = tmp_path / "moving.yaml"
    path.write_text(yaml.safe_dump({**SUITE, **changes}, sort_keys=False))
    return str(path)


@pytest.fixture(scope="module")
def measured(card, undecided, home):
    suite = written(home, conditions={"digital": {"jpeg": ["jpeg:60", "jpeg:5"]}})
    (result,) = robustness(suite, **PAIR, models=[card], data=undecided, out=home / "runs")
    return result


@pytest.fixture(scope="module")
def moving(card, undecided, home):
    """A run of the sequences alone, with a gate."""
    (home / "moving").mkdir()
    (result,) = robustness(
        written(home / "moving"), **PAIR, models=[card], data=undecided, out=home / "moving/runs",
        fail_on=list(RULES),
    )  # fmt: skip
    return result


def answers(folder, side, condition, frames, column="prediction"):
    """(frames, samples) of one stack, from the records."""
    rows = pq.read_table(folder / "records.parquet").to_pylist()
    return [
        [r[column] for r in rows if (r["side"], r["condition"]) == (side, f"{condition}:{i}")]
        for i in range(frames)
    ]


def test_each_frame_is_what_a_single_run_under_it_gives(measured, card, undecided):
    rows = pq.read_table(measured.folder / "records.parquet").to_pylist()
    texts = [f"{one['condition']}:{i}" for one in SUITE["sequences"].values()
             for i in (0, 1, one["frames"] - 1)]  # fmt: skip
    for text in texts:
        alone = simulator.compare(**PAIR, model=card, data=undecided, quick=True, under=text)
        for side in ("train", "deploy"):
            mine = [r for r in rows if (r["condition"], r["side"]) == (text, side)]
            theirs = [r for r in alone.records().to_pylist() if r["side"] == side]
            for column in ("sample", "prediction", "digest", "changed"):
                assert [r[column] for r in mine] == [r[column] for r in theirs], (text, column)


def test_figures_follow_from_the_records(measured):
    """Each share of flips again, frame by frame, as the definition has it."""
    found = json.loads((measured.folder / "summary.json").read_text())["sequences"]
    fp = {}
    for side in ("train", "deploy"):
        for name, one in SUITE["sequences"].items():
            frames = answers(measured.folder, side, one["condition"], one["frames"])
            shares = []
            for sample in zip(*frames, strict=True):
                step = one.get("difficulty", 1)
                pairs = (
                    [(sample[0], other) for other in sample[1:]]
                    if one.get("noise")
                    else [(sample[i - step], sample[i]) for i in range(step, len(sample))]
                )
                shares.append(sum(a != b for a, b in pairs) / len(pairs))
            fp[side, name] = sum(shares) / len(shares)
            value = found["stacks"][side]["FP"][name]
            assert value["value"] == pytest.approx(fp[side, name])
            assert value["ci95"][0] <= value["value"] <= value["ci95"][1]
        mean = sum(fp[side, name] for name in SUITE["sequences"]) / 3
        assert found["stacks"][side]["mFP"]["value"] == pytest.approx(mean)
    assert fp["train", "pan"] > 0 < fp["train", "roll"]
    rates = []
    for name in SUITE["sequences"]:
        more = fp["deploy", name] - fp["train", name]
        assert found["interaction"]["deploy"][name]["value"] == pytest.approx(more)
        rate = found["stacks"]["deploy"]["FR"][name]
        if fp["train", name]:
            rates.append(fp["deploy", name] / fp["train", name])
            assert rate["value"] == pytest.approx(rates[-1])
        else:
            assert rate is None
    assert found["stacks"]["deploy"]["mFR"]["value"] == pytest.approx(sum(rates) / len(rates))
    assert found["family"] == 3


def moved_places(before, after):
    """Of each class of the first list, how many places it moves; beyond the fifth is the sixth."""
    rank = {klass: place for place, klass in enumerate(after, 1)}
    return sum(abs(place - rank.get(klass, 6)) for place, klass in enumerate(before, 1))


def test_distances_of_lists_follow_from_the_records(measured):
    """Each distance again, frame by frame; T5D and its mean are by the first stack's."""
    found = json.loads((measured.folder / "summary.json").read_text())["sequences"]["stacks"]
    far = {}
    for side in ("train", "deploy"):
        for name, one in SUITE["sequences"].items():
            frames = answers(measured.folder, side, one["condition"], one["frames"], "best")
            step, noise = one.get("difficulty", 1), one.get("noise")
            means = [
                np.mean([moved_places(sample[0 if noise else at - step], sample[at])
                         for at in range(1 if noise else step, len(sample))])
                for sample in zip(*frames, strict=True)
            ]  # fmt: skip
            far[side, name] = np.mean(means)
            value = found[side]["uT5D"][name]
            assert value["value"] == pytest.approx(far[side, name])
            assert value["ci95"][0] <= value["value"] <= value["ci95"][1]
        mean = np.mean([far[side, name] for name in SUITE["sequences"]])
        assert found[side]["muT5D"]["value"] == pytest.approx(mean)
    rates = [far["deploy", name] / far["train", name] for name in ("pan", "roll")]
    assert [found["deploy"]["T5D"][name]["value"] for name in ("pan", "roll")] == pytest.approx(
        rates
    )


def test_the_interval_is_over_samples(measured):
    """The standard error of a mean over 12 samples, from the records; a tenth is Monte Carlo."""
    frames = np.array(answers(measured.folder, "train", "p_translate", 9))
    shares = (frames[1:] != frames[:-1]).mean(axis=0)
    low, high = measured.summary["sequences"]["stacks"]["train"]["FP"]["pan"]["ci95"]
    assert (high - low) / 2 / 1.96 == pytest.approx(shares.std() / np.sqrt(12), rel=0.2)


def test_conditions_of_the_same_suite_are_what_they_were(measured):
    summary = measured.summary
    assert list(summary["rows"]) == ["jpeg"]
    assert list(summary["sequences"]["rows"]) == ["hiss", "pan", "roll"]
    assert summary["family"] == 1
    manifest = json.loads((measured.folder / "manifest.json").read_text())
    assert len(manifest["conditions"]) == 2 + 4 + 9 + 7


def test_a_stopped_run_goes_on_with_equal_figures(card, undecided, tmp_path, capsys):
    asked = {**PAIR, "models": [card], "data": undecided}
    suite = written(tmp_path)
    (whole,) = robustness(suite, **asked, out=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        robustness(suite, **asked, out=tmp_path / "out", progress=StopsAt(5))
    folder = tmp_path / "out" / whole.folder.name

    assert cli.main(["resume", str(folder), "--json"]) == 0

    again, once = (json.loads((f / "summary.json").read_text()) for f in (folder, whole.folder))
    assert again["sequences"] == once["sequences"]
    equal = [(f / "records.parquet").read_bytes() for f in (folder, whole.folder)]
    assert equal[0] == equal[1]


@pytest.mark.parametrize("form", ["markdown", "latex", "csv"])
def test_tables_have_the_flip_probabilities(moving, capsys, form):
    show(EXPERIMENTS.of("robustness"), [moving], False, form)
    out = capsys.readouterr().out
    found = json.loads((moving.folder / "summary.json").read_text())["sequences"]["stacks"][
        "deploy"
    ]
    if form == "csv":
        (row,) = [r for r in csv.DictReader(io.StringIO(out))
                  if (r["stack"], r["condition"]) == ("deploy", "pan")]  # fmt: skip
        assert float(row["FP"]) == pytest.approx(found["FP"]["pan"]["value"])
        assert float(row["uT5D"]) == pytest.approx(found["uT5D"]["pan"]["value"])
        assert float(row["T5D"]) == pytest.approx(found["T5D"]["pan"]["value"])
        assert (row["NR"], row["category"]) == ("", "sequence")
    else:
        head, *_, last = [line for line in out.splitlines() if "&" in line or "|" in line]
        assert "FP pan" in head and "mFP" in head and "mNR" not in head
        assert f"{100 * found['FP']['pan']['value']:.2f}" in last
        assert f"{100 * found['mFP']['value']:.2f}" in last
        assert f"{found['muT5D']['value']:.2f}" in last


def test_screen_and_report_show_them(moving, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert show(EXPERIMENTS.of("robustness"), [moving], False) == 1  # two rules fail
    out = capsys.readouterr().out
    whole = str(moving.folder)
    wide = [line for line in out.splitlines()[1:] if len(line) > 80 and whole not in line]
    assert not wide and "…" not in out
    found = moving.summary["sequences"]
    pan = f"{100 * found['stacks']['deploy']['FP']['pan']['value']:.2f}"
    (line, *_) = [line for line in out.splitlines() if line.strip().startswith("pan")]
    assert line.split()[-1] == pan
    far = f"{found['stacks']['deploy']['uT5D']['pan']['value']:.2f}"
    _, line, *_ = [line for line in out.splitlines() if line.strip().startswith("pan")]
    assert line.split()[-1] == far
    text = page.write(moving.folder).read_text()
    assert "Answers that flip from frame to frame" in text
    assert f">{pan}<" in text and f">{far}<" in text


def test_gate_rules_name_flip_probabilities(moving):
    assert {one["rule"]: one["failed"] for one in moving.summary["gate"]["rules"]} == RULES


@pytest.mark.parametrize("rule", ["deploy.FP.pam > 1%", "deploy.FP.pan > 0.01"])
def test_a_wrong_rule_is_told_before_the_run(card, undecided, tmp_path, capsys, rule):
    code = cli.main(
        ["robustness", "--suite", written(tmp_path), "--train", "pillow_fp32",
         "--deploy", "opencv_fp32", "--model", str(card), "--data", str(undecided),
         "--out", str(tmp_path / "o"), "--fail-on", rule]
    )  # fmt: skip
    assert code == 2
    assert rule in capsys.readouterr().err


def test_published_flips_are_the_reference(card, undecided, tmp_path):
    flips = {"hiss": 0.2, "pan": 0.25, "roll": 0.5}
    suite = written(tmp_path, reference={"name": "Net", "source": "", "clean": 0.4, "flips": flips})
    (result,) = robustness(suite, **PAIR, models=[card], data=undecided, out=tmp_path / "o")
    found = result.summary["sequences"]
    stack = found["stacks"]["train"]
    rates = [stack["FP"][name]["value"] / flip for name, flip in flips.items()]
    assert found["reference"] == "Net"
    assert stack["mFR"]["value"] == pytest.approx(sum(rates) / 3)
    assert stack["T5D"] == {"hiss": None, "pan": None, "roll": None}
    assert stack["mT5D"] is None and stack["uT5D"]["pan"]["value"] > 0


def test_published_distances_are_the_reference(card, undecided, cache, tmp_path):
    given = {"hiss": 2.0, "pan": 3.0, "roll": 5.0}
    reference = {"name": "Net", "source": "", "clean": 0.4, "distances": given,
                 "flips": dict.fromkeys(given, 0.5)}  # fmt: skip
    suite = written(tmp_path, reference=reference)
    (result,) = robustness(suite, **PAIR, models=[card], data=undecided, out=tmp_path / "o")
    stack = result.summary["sequences"]["stacks"]["train"]
    rates = [stack["uT5D"][name]["value"] / one for name, one in given.items()]
    assert stack["mT5D"]["value"] == pytest.approx(sum(rates) / 3)


def sequence(**change):
    return {"sequences": {"pan": {"condition": "p_translate", "frames": 9} | change}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sequences": {}}, "at least one is needed"),
        (sequence(frames=42), "pan: p_translate:41: p_translate:FRAME or"),
        (sequence(frames=1), "frames"),
        (sequence(condition="p_translat"), "p_translat"),
        (sequence(difficulty=9), "less than its 9 frames"),
        (sequence(difficulty=0), "difficulty"),
        (sequence(noise=True, difficulty=2), "pan: p_translate:0,difficulty=2: p_translate:FRAME"),
        (sequence(condition="p_shot_noise", noise=True, difficulty=4), "difficulty=3"),
        ({"conditions": {"a": {"pan": ["jpeg:5"]}}}, "'pan' is there twice"),
        ({"reference": {"name": "A", "source": "", "clean": 0.4, "flips": {"pan": 0.1}}},
         "no flip probability of hiss, roll"),
        ({"reference": {"name": "A", "source": "", "clean": 0.4, "distances": {"pan": 1.0},
                        "flips": {"hiss": 0.1, "pan": 0.1, "roll": 0.1}}},
         "no distance of hiss, roll"),
    ],
)  # fmt: skip
def test_a_malformed_sequence_says_where(tmp_path, change, message):
    path = written(tmp_path, **change)
    with pytest.raises(ProfileError) as error:
        document.load_suite(path)
    assert message in str(error.value)
    assert all(path in line for line in error.value.problems)


def test_the_difficulty_of_noise_is_its_strength(card, undecided, cache, tmp_path):
    """As in the released sets ``_2`` and ``_3``; frames are still compared with the first."""
    hiss = {"condition": "p_gaussian_noise", "frames": 3, "noise": True}
    louder = {"hiss": hiss, "hiss_3": hiss | {"difficulty": 3}}
    suite = written(tmp_path, sequences=louder)
    (result,) = robustness(suite, **PAIR, models=[card], data=undecided, out=tmp_path / "o")
    manifest = json.loads((result.folder / "manifest.json").read_text())
    texts = {one["text"] for one in manifest["conditions"]}
    assert texts == {f"p_gaussian_noise:{frame}{more}" for frame in range(3)
                     for more in ("", ",difficulty=3")}  # fmt: skip
    rows = pq.read_table(result.folder / "records.parquet").to_pylist()
    said = {(r["sample"], r["condition"]): r["prediction"] for r in rows if r["side"] == "train"}
    samples = {sample for sample, _ in said}
    flips = [
        said[one, f"p_gaussian_noise:{frame},difficulty=3"]
        != said[one, "p_gaussian_noise:0,difficulty=3"]
        for one in samples for frame in (1, 2)
    ]  # fmt: skip
    value = result.summary["sequences"]["stacks"]["train"]["FP"]["hiss_3"]["value"]
    assert value == pytest.approx(np.mean(flips))


def test_a_task_without_one_class_is_refused(tmp_path, cache):
    model, data = tiny_tasks.card(tmp_path / "model"), tiny_tasks.data(tmp_path / "data")
    with pytest.raises(UserError, match="compare one class from frame to frame; detection"):
        robustness(written(tmp_path), **PAIR, models=[model], data=data, out=tmp_path / "o")


def test_imagenet_p_has_ten_sequences_of_the_published_lengths():
    suite = document.load_suite("imagenet-p")
    lengths = {one.name: len(one.frames) for one in suite.sequences}
    assert lengths == {
        "gaussian_noise": 31, "shot_noise": 31, "motion_blur": 31, "zoom_blur": 31, "snow": 31,
        "brightness": 31, "translate": 41, "rotate": 31, "tilt": 31, "scale": 31,
    }  # fmt: skip
    assert [one.name for one in suite.sequences if one.spec.noise] == [
        "gaussian_noise", "shot_noise",
    ]  # fmt: skip
    assert all(",crop224" in one.condition.text for one in suite.conditions())
