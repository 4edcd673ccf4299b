"""``simulate robustness`` against single runs under each condition, and worked by hand."""

import csv
import io
import json
import signal

import pyarrow.parquet as pq
import pytest
import tiny
import warm
import yaml
from ending import ended
from stopping import StopsAt

import simulator
from simulator import cli, robustness
from simulator.cli.experiment import show
from simulator.command.experiment import EXPERIMENTS
from simulator.errors import ProfileError, UserError
from simulator.robustness import document

SUITE = {
    "schema": 1,
    "name": "mine",
    "summary": "a camera link and a memory",
    "conditions": {
        "digital": {"jpeg": ["jpeg:60", "jpeg:5", "jpeg:1"]},
        "faults": {"exponent": ["flip:22", "flip:30"]},
    },
    "left_out_of_means": ["exponent"],
}
RULES = {
    "deploy.NCI.jpeg > -1%": ("stacks", "deploy", "NCI", "jpeg", "value"),
    "deploy.mNR.low > -1%": ("stacks", "deploy", "mNR", "ci95", 0),
    "interaction.deploy.jpeg > -100 points": ("interaction", "deploy", "jpeg", "value"),
    "deploy.mNCI > -5 * train.mNR": ("stacks", "deploy", "mNCI", "value"),
}
"""With the place of the figure in the summary; all fail."""
PAIR = {"train": "pillow_fp32", "deploy": "pillow_fp32",
        "overrides": ["deploy.color.order=bgr"]}  # fmt: skip


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def card(home):
    return tiny.card(home / "model")


@pytest.fixture(scope="module")
def data(home):
    return tiny.data(home / "data")


@pytest.fixture(scope="module")
def suite(home):
    path = home / "mine.yaml"
    path.write_text(yaml.safe_dump(SUITE, sort_keys=False))
    return str(path)


@pytest.fixture(scope="module")
def measured(suite, card, data, home):
    """A run that several tests look at, with a gate."""
    (result,) = robustness(
        suite, **PAIR, models=[card], data=data, out=home / "runs", fail_on=list(RULES)
    )
    return result


def test_each_cell_is_what_a_single_run_under_the_condition_gives(measured, card, data):
    """Records of 6 arms against six calls of simulate --under, which plan nothing together."""
    rows = pq.read_table(measured.folder / "records.parquet").to_pylist()
    texts = [None, *(t for by in SUITE["conditions"].values() for ts in by.values() for t in ts)]
    for text in texts:
        under = {} if text is None else {"under": text}
        alone = simulator.compare(**PAIR, model=card, data=data, quick=True, **under)
        for side in ("train", "deploy"):
            mine = [r for r in rows if (r["condition"], r["side"]) == (text, side)]
            theirs = [r for r in alone.records().to_pylist() if r["side"] == side]
            for column in ("sample", "prediction", "correct", "digest", "changed"):
                assert [r[column] for r in mine] == [r[column] for r in theirs], (text, column)


def test_figures_follow_from_the_records(measured):
    """Each figure again from the rows, by its definition."""
    rows = pq.read_table(measured.folder / "records.parquet").to_pylist()

    def top1(side, text):
        found = [r["correct"] for r in rows if (r["side"], r["condition"]) == (side, text)]
        return sum(found) / len(found)

    summary = json.loads((measured.folder / "summary.json").read_text())
    levels = {
        side: [top1(side, text) for text in SUITE["conditions"]["digital"]["jpeg"]]
        for side in ("train", "deploy")
    }
    for side, values in levels.items():
        stack, clean = summary["stacks"][side], top1(side, None)
        nr = sum(values) / 3
        assert stack["levels"]["jpeg"] == values
        assert stack["NR"]["jpeg"]["value"] == pytest.approx(nr)
        assert stack["NCI"]["jpeg"]["value"] == pytest.approx((clean - nr) / clean)
        assert stack["mNR"]["value"] == stack["NR"]["jpeg"]["value"]  # faults are left out
    lost = {side: sum(1 - value for value in values) for side, values in levels.items()}
    if lost["train"]:
        found = summary["stacks"]["deploy"]["CE"]["jpeg"]["value"]
        assert found == pytest.approx(lost["deploy"] / lost["train"])
    else:
        assert summary["stacks"]["deploy"]["CE"]["jpeg"] is None
    more = (sum(levels["deploy"]) / 3 - top1("deploy", None)) - (
        sum(levels["train"]) / 3 - top1("train", None)
    )
    assert summary["interaction"]["deploy"]["jpeg"]["value"] == pytest.approx(more)
    assert summary["family"] == 2


def test_one_plan_disturbs_an_image_once_for_both_stacks(measured):
    """Without sharing, 6 conditions on 2 stacks would decode 12 times; here it is 4."""
    manifest = json.loads((measured.folder / "manifest.json").read_text())
    assert len(manifest["conditions"]) == 5
    assert measured.summary.unique_steps < 12 * 5


@pytest.mark.parametrize("stop", [1, 5])
def test_a_stopped_run_goes_on_with_equal_records(suite, card, data, tmp_path, capsys, stop):
    asked = {
        **PAIR,
        "models": [card],
        "data": data,
        "undecided": "pass",
    }
    (whole,) = robustness(suite, **asked, out=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        robustness(suite, **asked, out=tmp_path / "out", progress=StopsAt(stop))
    folder = tmp_path / "out" / whole.folder.name

    assert cli.main(["resume", str(folder), "--json"]) == 0

    again, once = ((f / "records.parquet").read_bytes() for f in (folder, whole.folder))
    assert again == once
    figures = [json.loads((f / "summary.json").read_text()) for f in (folder, whole.folder)]
    for one in figures:
        del one["seconds"]
    assert figures[0] == figures[1]
    drawn = [
        {one.name: one.read_bytes() for one in (f / "looks").iterdir()}
        for f in (folder, whole.folder)
    ]
    assert drawn[0] == drawn[1] != {}


def test_a_killed_run_loses_nothing(suite, card, tmp_path, capsys):
    many = tiny.data(tmp_path / "many", each=15)  # 45: a part is 32
    command = [
        "robustness", "--suite", suite, "--train", "pillow_fp32", "--deploy", "opencv_fp32",
        "--model", card, "--data", many, "--out",
    ]  # fmt: skip
    whole, folder = tmp_path / "whole", tmp_path / "out" / "colors"
    assert cli.main([*map(str, command), str(whole), "--format", "latex"]) == 0
    assert capsys.readouterr().out.startswith("\\begin{tabular}")
    ended(signal.SIGKILL, folder, "parts/*.parquet", 1, *command, tmp_path / "out")
    assert json.loads((folder / "manifest.json").read_text())["status"] == "running"

    done = warm.command("resume", folder)

    assert done.returncode == 0, done.stderr
    equal = (
        (folder / "records.parquet").read_bytes(),
        (whole / "colors" / "records.parquet").read_bytes(),
    )
    assert equal[0] == equal[1]


@pytest.mark.parametrize("form", ["markdown", "latex", "csv"])
def test_tables_have_the_figures_of_the_summary(measured, capsys, form):
    assert show(EXPERIMENTS.of("robustness"), [measured], False, form) == 1  # its gate fails
    out = capsys.readouterr().out
    nr = measured.summary["stacks"]["deploy"]["NR"]["jpeg"]["value"]
    if form == "csv":
        rows = list(csv.DictReader(io.StringIO(out)))
        (row,) = [r for r in rows if (r["stack"], r["condition"]) == ("deploy", "jpeg")]
        assert float(row["NR"]) == pytest.approx(nr)
    else:
        assert f"{100 * nr:.2f}" in out and "deploy" in out
        assert len(out.splitlines()) == {"markdown": 4, "latex": 6}[form]


def test_the_screen_fits_80_columns(suite, card, data, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code = cli.main(
        ["robustness", "--suite", suite, "--train", "pillow_fp32", "--deploy", "opencv_fp32",
         "--model", str(card), "--data", str(data), "--out", str(tmp_path / "o")]
    )  # fmt: skip
    out = capsys.readouterr().out
    wide = [line for line in out.splitlines()[1:] if len(line) > 80 and str(tmp_path) not in line]
    assert code == 0 and out and not wide and "…" not in out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"conditions": {}}, "conditions: at least one is needed"),
        ({"conditions": {"a": {"x": []}}}, "x: a list of conditions is needed"),
        ({"conditions": {"a": {"x": ["jpeg:101"]}}}, ":7: x: jpeg:101: jpeg:QUALITY expected"),
        ({"conditions": {"a": {"x": ["fogg:1"]}}}, "fogg"),
        ({"conditions": {"a": {"x": ["jpeg:1"]}, "b": {"x": ["jpeg:2"]}}}, "is there twice"),
        ({"left_out_of_means": ["expnent"]}, "did you mean 'exponent'"),
        ({"where": "nowhere"}, "where"),
        ({"reference": {"name": "A", "source": "", "clean": 0.4, "errors": {"jpeg": 0.5}}},
         "no error of exponent"),
        ({"reference": {"name": "A", "source": "", "clean": 40.0, "errors": {}}}, "clean"),
    ],
)  # fmt: skip
def test_a_malformed_suite_says_where(tmp_path, change, message):
    path = tmp_path / "s.yaml"
    path.write_text(yaml.safe_dump({**SUITE, **change}, sort_keys=False))
    with pytest.raises(ProfileError) as error:
        document.load_suite(str(path))
    assert message in str(error.value)
    assert all(str(path) in line for line in error.value.problems)


def test_a_suite_whose_every_condition_is_left_out_of_means(card, data, tmp_path, capsys):
    """It has figures of conditions and no mean; it failed after the last sample."""
    rows = {"noise": {"gaussian_noise": ["gaussian_noise:1"], "shot_noise": ["shot_noise:1"]}}
    path = tmp_path / "suite.yaml"
    spec = {"schema": 1, "name": "without", "summary": "none in the means", "conditions": rows}
    spec["left_out_of_means"] = ["gaussian_noise", "shot_noise"]
    path.write_text(yaml.safe_dump(spec))
    given = ["--train", "pillow_fp32", "--deploy", "opencv_fp32", "--model", str(card)]

    code = cli.main(
        [
            "robustness",
            "--suite",
            str(path),
            *given,
            "--data",
            str(data),
            "--out",
            str(tmp_path / "o"),
        ]
    )

    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    assert "Not in the means: gaussian_noise, shot_noise." in out
    (report,) = (tmp_path / "o").rglob("report.html")
    assert "shot_noise" in report.read_text()


def test_an_unknown_suite_names_the_nearest():
    with pytest.raises(ProfileError, match="did you mean 'imagenet-c'"):
        document.load_suite("imagenetc")


def test_a_condition_of_its_own_is_refused(suite, card, data, tmp_path):
    with pytest.raises(TypeError, match="unknown option 'under'"):
        robustness(suite, **PAIR, models=[card], data=data, under="jpeg:5", out=tmp_path / "o")


def test_a_rule_names_a_figure_that_exists(suite, card, data, tmp_path):
    with pytest.raises(UserError, match="NCI"):
        robustness(suite, **PAIR, models=[card], data=data, out=tmp_path / "o",
                   fail_on=["stacks.deploy.NCI.fog.value > 20%"])  # fmt: skip


def test_published_errors_are_the_reference(suite, card, data, tmp_path):
    """CE is the mean error over severities by the published one, here 0.25."""
    path = tmp_path / "published.yaml"
    reference = {"name": "Net", "source": "a table", "clean": 0.2, "errors": {"jpeg": 0.25,
                 "exponent": 0.5}}  # fmt: skip
    path.write_text(yaml.safe_dump({**SUITE, "reference": reference}, sort_keys=False))
    (result,) = robustness(str(path), **PAIR, models=[card], data=data, out=tmp_path / "o")
    stack = result.summary["stacks"]["deploy"]
    assert result.summary["reference"] == "Net"
    expected = (1 - stack["NR"]["jpeg"]["value"]) / 0.25
    assert stack["CE"]["jpeg"]["value"] == pytest.approx(expected)


def test_rules_name_figures_of_stacks_and_conditions(measured):
    summary = json.loads((measured.folder / "summary.json").read_text())
    for outcome, (rule, path) in zip(measured.summary.gate.rules, RULES.items(), strict=True):
        found = summary
        for part in path:
            found = found[part]
        assert (outcome.rule, outcome.value, outcome.failed) == (rule, found, True)


def test_six_images_are_too_few_for_an_effect(measured):
    """All six could agree by chance once in 32 tosses of a coin; two rows make it 1 in 16."""
    for one in measured.summary["interaction"]["deploy"].values():
        assert one["p"] >= 2 / 2**6
    assert measured.summary["interaction"]["deploy"]["jpeg"]["p_holm"] >= 0.03125
