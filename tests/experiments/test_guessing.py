"""A training stack that is no better than guessing: nothing is judged by it."""

import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest
import tiny
import yaml
from scipy.stats import beta, binomtest

from simulator import cli
from simulator.command.experiment import EXPERIMENTS
from simulator.experiments.guessing import guessing
from simulator.notices import Kind
from simulator.tasks.detection.task import Detection
from simulator.tasks.segmentation.confusion import guessed
from simulator.tasks.settings import Network
from simulator.tasks.task import TASKS

CLASSES = {"y": (1, 10)}
BGR = ["train.color.order=bgr", "deploy.color.order=bgr"]
"""Both stacks see blue for red: one class of three is right."""


def classified(right, samples, classes=10):
    """The score of a classifier with so many right answers, and the task."""
    task = TASKS["classification"](TASKS["classification"].Output(kind="logits"), Network())
    answers = [task.examples()[0][1]] * samples
    truths = [0] * right + [1] * (samples - right)
    records = task.records, [task.record(*both) for both in zip(answers, truths, strict=True)]
    return task, task.score(records[1], truths)


@pytest.mark.parametrize(("right", "samples"), [(0, 50), (4, 6), (5, 50), (11, 50), (12, 50)])
def test_a_classifier_is_held_against_one_by_classes_with_the_exact_interval(right, samples):
    task, score = classified(right, samples)

    found = guessing(task, CLASSES, score, 0)

    ends = binomtest(right, samples).proportion_ci(0.95)
    assert (found.low, found.high) == pytest.approx((ends.low, ends.high), abs=1e-12)
    assert (found.chance, found.samples) == (0.1, samples)
    assert found.beaten == (ends.low > 0.1)


def test_how_many_samples_would_tell():
    task, score = classified(8, 50)

    found = guessing(task, CLASSES, score, 0)

    def low(samples):
        return beta.ppf(0.025, 0.16 * samples, samples - 0.16 * samples + 1)

    assert not found.beaten
    assert low(50 + found.more) > 0.1 >= low(50 + found.more - 1)
    assert guessing(task, CLASSES, classified(5, 50)[1], 0).more is None


def test_a_guess_of_questions_has_one_by_choices_of_each():
    task = TASKS["multiple_choice"](None, Network())
    records = [
        {"label": label, "loglikelihoods": [0.0] * choices}
        for label, choices in ((0, 2), (1, 4), (None, 100), (0, 5))
    ]

    assert task.chance({}, records) == pytest.approx((1 / 2 + 1 / 4 + 1 / 5) / 3)
    assert task.chance({}, records[2:3]) is None


def test_a_guess_of_masks_is_the_better_of_one_class_and_any_class():
    truth = np.array([80, 15, 5])

    assert guessed(truth) == pytest.approx(0.8 / 3)  # all pixels are the commonest class
    even = np.array([50, 50])  # any of two: 25 % overlap, by 75 % of the pixels
    assert guessed(even) == pytest.approx(1 / 3)
    assert guessed(truth * 0) is None


def test_tasks_without_a_level_of_guessing_say_so():
    assert TASKS["text_to_speech"].guess is None
    assert Detection.guess == 0.0


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """A classifier whose training stack is right on one class of three."""
    folder = tmp_path_factory.mktemp("inputs")
    card = tiny.card(folder / "model", input={**tiny.SPEC["input"], "order": "bgr"})
    return "--model", card, "--data", tiny.data(folder / "data", each=8)


@pytest.fixture
def doubtful(inputs, tmp_path, monkeypatch, capsys):
    """Run a command on it."""
    monkeypatch.chdir(tmp_path)

    def run(command, *arguments, out="run"):
        code = cli.main([*command.split(), *map(str, (*inputs, "--out", out, *arguments))])
        told = capsys.readouterr()
        assert not told.err.startswith("error"), told.err
        (place,) = [*(tmp_path / out).glob("summary.json")] or (tmp_path / out).glob(
            "*/summary.json"
        )
        return code, json.loads(place.read_text()), told.out

    return run


PAIR = ("--train", "pillow_fp32", "--deploy", "opencv_fp32")
REPAIR = ("--gate", "flip_rate < 90%", "--options", "options.yaml")


def test_a_gate_is_not_judged_and_fails(doubtful):
    code, found, out = doubtful("", *PAIR, "--fail-on", "flip_rate > 90%")

    assert code == 1
    assert found["verdict"]["decision"] == "not judged"
    said = "The training stack itself answers at chance: top-1 33.33% of 24 images"
    assert found["verdict"]["lost"][0].startswith(said)
    assert found["verdict"]["cause"] is None
    assert " ".join(out.split()).startswith(f"NOT JUDGED: {said}")
    (rule,) = found["gate"]["rules"]
    assert (rule["failed"], rule["judged"], rule["undecided"]) == (True, False, False)
    assert cli.main(["gate", "run", "--fail-on", "flip_rate > 99%", "--undecided", "pass"]) == 1


def test_without_a_gate_it_is_a_strict_notice(doubtful):
    code, found, out = doubtful("", *PAIR)
    assert code == 0
    assert [one["kind"] for one in found["warnings"]].count(Kind.AT_CHANCE) == 1
    assert out.startswith("NOT JUDGED")

    code, found, _ = doubtful("", *PAIR, "--strict", out="strict")
    assert (code, found["gate"]) == (1, {"passed": False, "rules": []})


@pytest.mark.parametrize(
    ("command", "arguments", "fails"),
    [
        ("", (*PAIR, "--fail-on", "flip_rate > 90%", "--until-decided"), True),
        ("explain", PAIR, False),
        ("sweep", ("--suite", "suite.yaml"), False),
        ("sweep", ("--suite", "suite.yaml", "--until-decided", "--fail-on", "flip_rate > 9%"),
         True),
        ("worst", ("--suite", "suite.yaml"), False),
        ("repair", (*PAIR, *REPAIR), True),
        ("repair", (*PAIR, *REPAIR, "--until-decided"), True),
        ("robustness", ("--profile", "pillow_fp32", "--suite", "conditions.yaml"), False),
        ("faults", (*PAIR, "--campaign", "campaign.yaml", "--fail-on", "deploy.SDC > 99%"), True),
        ("tail", (*PAIR, "--rounds", "1", "--fail-on", "deploy.latency.p50 > 9 s"), True),
    ],
)  # fmt: skip
def test_no_job_judges_by_such_a_stack(doubtful, tmp_path, command, arguments, fails):
    documents = {
        "suite.yaml": {
            "schema": 1, "name": "two", "summary": "resize", "train": "pillow_fp32",
            "columns": {"resize": {"box": {"resize": "pil-box"}}},
        },
        "conditions.yaml": {
            "schema": 1, "name": "one", "summary": "fog", "source": "made up",
            "conditions": {"weather": {"fog": ["fog:1"]}},
        },
        "campaign.yaml": {
            "schema": 1, "name": "few", "summary": "few", "source": "made up", "faults": 4,
            "targets": ["weights"], "kind": "flip", "lasts": "transient", "bits": "all",
        },
    }  # fmt: skip
    for name, content in documents.items():
        (tmp_path / name).write_text(yaml.safe_dump(content))
    EXPERIMENTS.of("repair").specimen(tmp_path)  # writes options.yaml

    code, found, _ = doubtful(command, *arguments)

    assert found["verdict"]["decision"] == "not judged"
    assert "training stack" in found["verdict"]["lost"][0]
    assert code == int(fails)


def test_an_audit_says_it_of_the_pair_in_every_report(cache, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cards = {
        "good": str(tiny.card(tmp_path / "good")),
        "bad": str(tiny.card(tmp_path / "bad", input={**tiny.SPEC["input"], "order": "bgr"})),
    }
    document = {
        "schema": 1, "name": "colors", "train": "pillow_fp32", "deploy": {"box": "opencv_fp32"},
        "models": {name: {"card": card} for name, card in cards.items()},
        "data": str(tiny.data(tmp_path / "data", each=8)),
        "rules": [{"fail_on": "flip_rate > 90%", "because": "an example"}],
    }  # fmt: skip
    (tmp_path / "audit.yaml").write_text(yaml.safe_dump(document))

    assert cli.main(["audit", "audit.yaml", "--out", "run"]) == 1

    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["verdict"]["decision"] == "not judged"
    assert {pair["model"]: pair["passed"] for pair in summary["pairs"]} == {
        "good": True, "bad": False,
    }  # fmt: skip
    text = (tmp_path / "run" / "audit.md").read_text()
    assert "❌ **NOT JUDGED**: The training stack itself answers at chance" in text
    suites = {one.get("name"): one for one in ET.parse(tmp_path / "run" / "junit.xml").getroot()}
    errors = {name: suite.get("errors") for name, suite in suites.items()}
    assert errors == {"good.box": "0", "bad.box": "1"}
    assert cli.main(["verify", "run/bundle.zip"]) == 0
