"""``simulate robustness`` against single runs under each condition and frame, figures by hand."""

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

JPEG = ["jpeg:60", "jpeg:5", "jpeg:1"]
SEQUENCES = {
    "hiss": {"condition": "p_gaussian_noise", "frames": 4, "noise": True},
    "pan": {"condition": "p_translate", "frames": 9},
    "roll": {"condition": "p_rotate", "frames": 7, "difficulty": 3},
}
SUITE = {
    "schema": 1,
    "name": "mine",
    "summary": "a camera link, a memory, noise, two movements, and other resizers",
    "conditions": {"digital": {"jpeg": JPEG}, "faults": {"exponent": ["flip:22", "flip:30"]}},
    "sequences": SEQUENCES,
    "left_out_of_means": ["exponent"],
    "system_noise": "robustmq-s",
}
RULES = {
    "deploy.NCI.jpeg > -900%": ("stacks", "deploy", "NCI", "jpeg", "value"),
    "deploy.mNR.low > -1%": ("stacks", "deploy", "mNR", "ci95", 0),
    "interaction.deploy.jpeg > -100 points": ("interaction", "deploy", "jpeg", "value"),
    "deploy.mNCI > -9 * train.mNR": ("stacks", "deploy", "mNCI", "value"),
    "deploy.FP.pan >= 0%": ("sequences", "stacks", "deploy", "FP", "pan", "value"),
    "train.mFP >= 0%": ("sequences", "stacks", "train", "mFP", "value"),
    "deploy.uT5D.pan > 0": ("sequences", "stacks", "deploy", "uT5D", "pan", "value"),
}
"""With the place of the figure in the summary; all fail."""
PASSING = {
    "deploy.mFR < 0": ("sequences", "stacks", "deploy", "mFR", "value"),
    "train.mT5D > 1.5": ("sequences", "stacks", "train", "mT5D", "value"),
    "sequences.interaction.deploy.roll.value > 100 points": (
        "sequences", "interaction", "deploy", "roll", "value"
    ),
}  # fmt: skip
PAIR = {"train": "pillow_fp32", "deploy": "pillow_fp32",
        "overrides": ["deploy.color.order=bgr", "deploy.resize.interpolation=nearest"]}  # fmt: skip
SIDES = ("train", "deploy")


@pytest.fixture(scope="module")
def card(home):
    return tiny.card(home / "model")


@pytest.fixture(scope="module")
def data(home):
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


def suite(folder, **changes):
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump({**SUITE, **changes}, sort_keys=False))
    return str(path)


@pytest.fixture(scope="module")
def measured(card, data, home):
    """A run that several tests look at, with a gate."""
    (result,) = robustness(
        suite(home), **PAIR, models=[card], data=data, out=home / "runs",
        fail_on=[*RULES, *PASSING],
    )  # fmt: skip
    return result


@pytest.fixture
def ran(card, data, tmp_path):
    """Runs a changed suite on the pair."""

    def run(**changes):
        changes = {"system_noise": None, **changes}
        (result,) = robustness(
            suite(tmp_path, **changes), **PAIR, models=[card], data=data, out=tmp_path / "o"
        )
        return result

    return run


def summary_of(result):
    return json.loads((result.folder / "summary.json").read_text())


def column(folder, side, text, name="prediction"):
    """A column of the records of one stack under one condition, one entry for each sample."""
    rows = pq.read_table(folder / "records.parquet").to_pylist()
    return [r[name] for r in rows if (r["side"], r["condition"]) == (side, text)]


def test_each_cell_is_what_a_single_run_under_the_condition_gives(measured, card, data):
    """Records of all arms against calls of simulate --under, which plan nothing together."""
    frames = [f"{one['condition']}:{at}" for one in SEQUENCES.values()
              for at in (0, 1, one["frames"] - 1)]  # fmt: skip
    for text in [None, *JPEG, *SUITE["conditions"]["faults"]["exponent"], *frames]:
        under = {} if text is None else {"under": text}
        alone = simulator.compare(**PAIR, model=card, data=data, quick=True, **under)
        rows = alone.records().to_pylist()
        for side in SIDES:
            for name in ("sample", "prediction", "correct", "digest", "changed"):
                theirs = [r[name] for r in rows if r["side"] == side]
                assert column(measured.folder, side, text, name) == theirs, (text, name)


def test_figures_of_conditions_follow_from_the_records(measured):
    """Each figure again from the rows, by its definition."""
    summary = summary_of(measured)

    def top1(side, text):
        return np.mean(column(measured.folder, side, text, "correct"))

    levels = {side: [top1(side, text) for text in JPEG] for side in SIDES}
    for side, values in levels.items():
        stack, clean = summary["stacks"][side], top1(side, None)
        nr = sum(values) / 3
        assert stack["levels"]["jpeg"] == values
        assert stack["NR"]["jpeg"]["value"] == pytest.approx(nr)
        assert stack["NCI"]["jpeg"]["value"] == pytest.approx((clean - nr) / clean)
        assert stack["mNR"]["value"] == stack["NR"]["jpeg"]["value"]  # faults are left out
    lost = {side: sum(1 - value for value in values) for side, values in levels.items()}
    assert lost["train"] > 0
    found = summary["stacks"]["deploy"]["CE"]["jpeg"]["value"]
    assert found == pytest.approx(lost["deploy"] / lost["train"])
    more = (sum(levels["deploy"]) / 3 - top1("deploy", None)) - (
        sum(levels["train"]) / 3 - top1("train", None)
    )
    assert summary["interaction"]["deploy"]["jpeg"]["value"] == pytest.approx(more)
    assert (summary["family"], list(summary["rows"])) == (2, ["jpeg", "exponent"])
    assert list(summary["sequences"]["rows"]) == list(SEQUENCES)


def pairs_of(spec, frames):
    """Which frames of a sample are compared: with the first, or one some frames before."""
    step = spec.get("difficulty", 1)
    if spec.get("noise"):
        return [(frames[0], other) for other in frames[1:]]
    return [(frames[at - step], frames[at]) for at in range(step, len(frames))]


def moved_places(before, after):
    """Of each class of the first list, how many places it moves; beyond the fifth is the sixth."""
    rank = {klass: place for place, klass in enumerate(after, 1)}
    return sum(abs(place - rank.get(klass, 6)) for place, klass in enumerate(before, 1))


@pytest.mark.parametrize(
    ("figure", "ratio", "name", "apart"),
    [("FP", "FR", "prediction", lambda a, b: a != b), ("uT5D", "T5D", "best", moved_places)],
)
def test_figures_of_sequences_follow_from_the_records(measured, figure, ratio, name, apart):
    """Flips and distances again, frame by frame; ratios and differences are by the first stack."""
    found, mean = summary_of(measured)["sequences"], {}
    for side in SIDES:
        for one, spec in SEQUENCES.items():
            frames = [column(measured.folder, side, f"{spec['condition']}:{at}", name)
                      for at in range(spec["frames"])]  # fmt: skip
            mean[side, one] = np.mean([
                np.mean([apart(*both) for both in pairs_of(spec, sample)])
                for sample in zip(*frames, strict=True)
            ])  # fmt: skip
            value = found["stacks"][side][figure][one]
            assert value["value"] == pytest.approx(mean[side, one])
            assert value["ci95"][0] <= value["value"] <= value["ci95"][1]
        whole = np.mean([mean[side, one] for one in SEQUENCES])
        assert found["stacks"][side][f"m{figure}"]["value"] == pytest.approx(whole)
    assert mean["train", "pan"] > 0 < mean["train", "roll"]
    ratios = {one: mean["deploy", one] / mean["train", one] for one in SEQUENCES
              if mean["train", one]}  # fmt: skip
    own = found["stacks"]["deploy"][ratio]
    assert {one: value["value"] for one, value in own.items() if value} == pytest.approx(ratios)
    whole = np.mean(list(ratios.values()))
    assert found["stacks"]["deploy"][f"m{ratio}"]["value"] == pytest.approx(whole)
    if figure == "FP":
        more = {one: mean["deploy", one] - mean["train", one] for one in SEQUENCES}
        assert {one: e["value"] for one, e in found["interaction"]["deploy"].items()} == (
            pytest.approx(more)
        )
        assert found["family"] == 3


def test_the_interval_is_over_samples(measured):
    """The standard error of a mean over 12 samples, from the records; a tenth is Monte Carlo."""
    frames = np.array([column(measured.folder, "train", f"p_translate:{at}") for at in range(9)])
    shares = (frames[1:] != frames[:-1]).mean(axis=0)
    low, high = measured.summary["sequences"]["stacks"]["train"]["FP"]["pan"]["ci95"]
    assert (high - low) / 2 / 1.96 == pytest.approx(shares.std() / np.sqrt(12), rel=0.2)


def test_one_plan_disturbs_an_image_once_for_both_stacks(measured, card, data, tmp_path):
    """Two stacks take fewer steps than twice those of one: they share conditions and decoders."""
    manifest = json.loads((measured.folder / "manifest.json").read_text())
    assert len(manifest["conditions"]) == 5 + 4 + 9 + 7
    (alone,) = robustness(
        suite(tmp_path), ["pillow_fp32"], models=[card], data=data, limit=1, out=tmp_path / "o"
    )
    assert measured.summary.unique_steps <= 2 * alone.summary.unique_steps - 25


@pytest.mark.parametrize("stop", [1, 5])
def test_a_stopped_run_goes_on_with_equal_records(measured, card, data, tmp_path, stop, capsys):
    asked = {**PAIR, "models": [card], "data": data, "fail_on": [*RULES, *PASSING]}
    with pytest.raises(KeyboardInterrupt):
        robustness(suite(tmp_path), **asked, out=tmp_path / "out", progress=StopsAt(stop))
    folder = tmp_path / "out" / measured.folder.name

    assert cli.main(["resume", str(folder), "--json"]) == 1  # as the gate said before

    again, once = ((f / "records.parquet").read_bytes() for f in (folder, measured.folder))
    assert again == once
    figures = [json.loads((f / "summary.json").read_text()) for f in (folder, measured.folder)]
    for one in figures:
        del one["seconds"]
        one["verdict"].pop("next")  # with the run's own folder
    assert figures[0] == figures[1]
    drawn = [
        {one.name: one.read_bytes() for one in (f / "looks").iterdir()}
        for f in (folder, measured.folder)
    ]
    assert drawn[0] == drawn[1] != {}


@pytest.mark.parametrize("form", ["markdown", "latex", "csv"])
def test_tables_have_the_figures_of_the_summary(measured, capsys, form):
    assert show(EXPERIMENTS.of("robustness"), [measured], False, form) == 1  # its gate fails
    out = capsys.readouterr().out
    summary = summary_of(measured)
    stack, flips = (part["stacks"]["deploy"] for part in (summary, summary["sequences"]))
    if form == "csv":
        by = {(r["stack"], r["condition"]): r for r in csv.DictReader(io.StringIO(out))}
        jpeg, pan = by["deploy", "jpeg"], by["deploy", "pan"]
        assert float(jpeg["NR"]) == pytest.approx(stack["NR"]["jpeg"]["value"])
        for name in ("FP", "uT5D", "T5D"):
            assert float(pan[name]) == pytest.approx(flips[name]["pan"]["value"])
        assert (pan["NR"], pan["category"]) == ("", "sequence")
    else:
        head, *_, last = [line for line in out.splitlines() if "&" in line or "|" in line]
        assert all(name in head for name in ("FP pan", "mFP", "mNR", "relative mCE"))
        for one in (stack["NR"]["jpeg"], flips["FP"]["pan"], flips["mFP"]):
            assert f"{100 * one['value']:.2f}" in last
        assert f"{flips['muT5D']['value']:.2f}" in last and "deploy" in last
        assert len(out.splitlines()) == {"markdown": 4, "latex": 6}[form]


def test_screen_and_report_show_them(measured, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert show(EXPERIMENTS.of("robustness"), [measured], False) == 1
    out = capsys.readouterr().out
    whole = str(measured.folder)
    wide = [line for line in out.splitlines()[1:] if len(line) > 80 and whole not in line]
    assert not wide and "…" not in out
    assert "Not in the means: exponent." in out
    stack = measured.summary["sequences"]["stacks"]["deploy"]
    pan, far = f"{100 * stack.fp['pan'].value:.2f}", f"{stack.ut5d['pan'].value:.2f}"
    first, second, *_ = [line for line in out.splitlines() if line.split()[:1] == ["pan"]]
    assert (first.split()[-1], second.split()[-1]) == (pan, far)
    text = page.write(measured.folder).read_text()
    assert "Answers that flip from frame to frame" in text
    assert f">{pan}<" in text and f">{far}<" in text


def test_rules_name_figures_of_stacks_and_conditions(measured):
    summary, rules = summary_of(measured), {**RULES, **PASSING}
    for outcome, (rule, path) in zip(measured.summary.gate.rules, rules.items(), strict=True):
        found = summary
        for part in path:
            found = found[part]
        assert (outcome.rule, outcome.value, outcome.failed) == (rule, found, rule in RULES)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("stacks.deploy.NCI.fog.value > 20%", "NCI"),
        ("deploy.FP.pam > 1%", "deploy.FP.pam > 1%"),
        ("deploy.FP.pan > 0.01", "deploy.FP.pan > 0.01"),
    ],
)
def test_a_wrong_rule_is_told_before_the_run(card, data, tmp_path, rule, message):
    with pytest.raises(UserError, match=message):
        robustness(suite(tmp_path), **PAIR, models=[card], data=data, out=tmp_path / "o",
                   fail_on=[rule])  # fmt: skip
    assert not (tmp_path / "o").exists()


def test_a_condition_of_its_own_is_refused(card, data, tmp_path):
    with pytest.raises(TypeError, match="unknown option 'under'"):
        robustness(suite(tmp_path), **PAIR, models=[card], data=data, under="jpeg:5")


NET = {"name": "Net", "source": "a table", "clean": 0.4}
FLIPS = {"hiss": 0.2, "pan": 0.25, "roll": 0.5}


def test_published_figures_are_the_reference(ran):
    """Figures by the published ones; CE is the mean error over severities by the published one."""
    distances = {"hiss": 2.0, "pan": 3.0, "roll": 5.0}
    errors = {"jpeg": 0.25, "exponent": 0.5}
    summary = ran(
        reference=NET | {"errors": errors, "flips": FLIPS, "distances": distances}
    ).summary
    stack, flips = summary["stacks"]["deploy"], summary["sequences"]["stacks"]["train"]

    assert summary["reference"] == summary["sequences"]["reference"] == "Net"
    expected = (1 - stack["NR"]["jpeg"]["value"]) / 0.25
    assert stack["CE"]["jpeg"]["value"] == pytest.approx(expected)
    for figure, mean, given in (("FP", "mFR", FLIPS), ("uT5D", "mT5D", distances)):
        rates = [flips[figure][name]["value"] / one for name, one in given.items()]
        assert flips[mean]["value"] == pytest.approx(sum(rates) / 3)


def test_sequences_alone_without_published_distances(ran, capsys):
    result = ran(conditions={}, left_out_of_means=[], reference=NET | {"flips": FLIPS})
    stack = result.summary["sequences"]["stacks"]["train"]

    assert stack["T5D"] == {"hiss": None, "pan": None, "roll": None}
    assert stack["mT5D"] is None and stack["uT5D"]["pan"]["value"] > 0
    show(EXPERIMENTS.of("robustness"), [result], False)
    assert "clean top-1" in capsys.readouterr().out
    show(EXPERIMENTS.of("robustness"), [result], False, "markdown")
    assert "mNR" not in capsys.readouterr().out


def test_a_suite_whose_every_condition_is_left_out_of_means(ran, capsys):
    """It has figures of conditions and no mean; it failed after the last sample."""
    rows = {"noise": {"gaussian_noise": ["gaussian_noise:1"], "shot_noise": ["shot_noise:1"]}}
    result = ran(conditions=rows, sequences={}, left_out_of_means=[*rows["noise"]])

    show(EXPERIMENTS.of("robustness"), [result], False)
    assert "Not in the means: gaussian_noise, shot_noise." in capsys.readouterr().out
    assert "shot_noise" in page.write(result.folder).read_text()


def test_the_difficulty_of_noise_is_its_strength(ran):
    """As in the released sets ``_2`` and ``_3``; frames are still compared with the first."""
    hiss = {"condition": "p_gaussian_noise", "frames": 3, "noise": True}
    result = ran(sequences={"hiss": hiss, "hiss_3": hiss | {"difficulty": 3}})
    frames = [column(result.folder, "train", f"p_gaussian_noise:{at},difficulty=3")
              for at in range(3)]  # fmt: skip
    flips = [frames[at][one] != frames[0][one] for one in range(12) for at in (1, 2)]

    value = result.summary["sequences"]["stacks"]["train"]["FP"]["hiss_3"]["value"]
    assert value == pytest.approx(np.mean(flips))
    digests = [column(result.folder, "train", f"p_gaussian_noise:1{more}", "digest")
               for more in ("", ",difficulty=3")]  # fmt: skip
    assert not set(digests[0]) & set(digests[1])


def sequence(**change):
    return {"sequences": {"pan": {"condition": "p_translate", "frames": 9} | change}}


def published(**figures):
    return {"reference": NET | {"errors": {"jpeg": 0.5, "exponent": 0.5}, "flips": FLIPS} | figures}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"conditions": {}, "sequences": {}}, "conditions: at least one is needed"),
        ({"conditions": {"a": {"x": []}}}, "x: a list of conditions is needed"),
        ({"conditions": {"a": {"x": ["jpeg:101"]}}}, ":7: x: jpeg:101: jpeg:QUALITY expected"),
        ({"conditions": {"a": {"x": ["fogg:1"]}}}, "fogg"),
        ({"conditions": {"a": {"x": ["jpeg:1"]}, "b": {"x": ["jpeg:2"]}}}, "is there twice"),
        ({"conditions": {"a": {"pan": ["jpeg:5"]}}}, "'pan' is there twice"),
        ({"left_out_of_means": ["expnent"]}, "did you mean 'exponent'"),
        ({"conditions": {"corruptions": {"x": ["fgsm:4/255"]}}}, "corruptions: another kind of"),
        ({"where": "nowhere"}, "where"),
        (published(errors={"jpeg": 0.5}), "no error of exponent"),
        (published(clean=40.0), "clean"),
        (published(flips={"pan": 0.1}), "no flip probability of hiss, roll"),
        (published(distances={"pan": 1.0}), "no distance of hiss, roll"),
        (sequence(frames=42), "pan: p_translate:41: p_translate:FRAME or"),
        (sequence(frames=1), "frames"),
        (sequence(condition="p_translat"), "p_translat"),
        (sequence(difficulty=9), "less than its 9 frames"),
        (sequence(difficulty=0), "difficulty"),
        (sequence(noise=True, difficulty=2), "pan: p_translate:0,difficulty=2: p_translate:FRAME"),
        (sequence(condition="p_shot_noise", noise=True, difficulty=4), "difficulty=3"),
    ],
)  # fmt: skip
def test_a_malformed_suite_says_where(tmp_path, change, message):
    path = suite(tmp_path, **change)
    with pytest.raises(ProfileError) as error:
        document.load_suite(path)
    assert message in str(error.value)
    assert all(path in line for line in error.value.problems)


def test_an_unknown_suite_names_the_nearest():
    with pytest.raises(ProfileError, match="did you mean 'imagenet-c'"):
        document.load_suite("imagenetc")


def test_a_task_without_one_class_is_refused(tmp_path):
    model, boxes = tiny_tasks.card(tmp_path / "model"), tiny_tasks.data(tmp_path / "data")
    with pytest.raises(UserError, match="compare one class from frame to frame; detection"):
        robustness(suite(tmp_path), **PAIR, models=[model], data=boxes, out=tmp_path / "o")


def test_imagenet_p_has_ten_sequences_of_the_published_lengths():
    loaded = document.load_suite("imagenet-p")
    names = ("gaussian_noise", "shot_noise", "motion_blur", "zoom_blur", "snow", "brightness",
             "translate", "rotate", "tilt", "scale")  # fmt: skip
    lengths = {one.name: len(one.frames) for one in loaded.sequences}
    assert lengths == dict.fromkeys(names, 31) | {"translate": 41}
    assert [one.name for one in loaded.sequences if one.spec.noise] == list(names[:2])
    assert all(",crop224" in one.condition.text for one in loaded.conditions())
