"""Summaries and manifests: what is written is what the models and the published schemas say."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import tiny_tasks
from against_schema import problems
from made_results import manifest, notice, report, step

import simulator
from simulator import cli
from simulator.analysis.figures import figures
from simulator.errors import RunError
from simulator.experiments.summary import vocabulary
from simulator.model.card import Card
from simulator.notices import Kind
from simulator.results.json_text import finite, write_json
from simulator.results.manifest import RunManifest
from simulator.results.pair import PairSummary, pair_summary
from simulator.results.read import read_run
from simulator.results.shared import SCHEMA
from simulator.results.suites import StepSummary
from simulator.results.summaries import commands, parse

ROOT = Path(__file__).parent.parent.parent
SCHEMAS = ROOT / "docs" / "schemas"


def schema(name):
    return json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))


def content(path):
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture
def pair(card, data, cache, tmp_path):
    """A finished run of a pair, whose two stacks differ in one axis."""
    return simulator.compare(
        "pillow_fp32", "pillow_fp32", model=card, data=data, out=tmp_path / "run",
        overrides=["deploy.color.order=bgr"], fail_on=["flip_rate > 1%"],
    )  # fmt: skip


def test_the_published_schemas_are_current():
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "result_schemas.py"), "--check"],
        capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip

    assert (done.returncode, done.stderr) == (0, "")


def test_there_is_a_schema_of_every_summary_and_manifest():
    names = {path.stem for path in SCHEMAS.glob("*.json")}

    others = {"manifest", "manifest-audit", "checkpoints"}
    assert names == others | {f"summary-{name}" for name in commands()}
    for name in names:
        assert list(problems(7, schema(name), schema(name))) == [": 7 is no object"]


def test_a_run_on_disk_is_as_its_schema_says(pair):
    for name, wanted in (("summary", schema("summary-run")), ("manifest", schema("manifest"))):
        assert list(problems(content(pair.folder / f"{name}.json"), wanted, wanted)) == []


def test_a_run_is_read_back_as_it_was(pair):
    described, summary, _ = read_run(pair.folder)

    assert isinstance(summary, PairSummary) and isinstance(described, RunManifest)
    assert finite(summary) == finite(pair.summary)
    assert summary.flips["right_to_wrong"] == pair.summary.flips.right_to_wrong == 4
    assert described.request.arguments["fail_on"] == ["flip_rate > 1%"]


def test_a_summary_reads_as_its_json(pair):
    written = content(pair.folder / "summary.json")

    assert pair.summary["flips"]["count"] == written["flips"]["count"] == 4
    assert pair.summary["controls"]["self"] == written["controls"]["self"]
    assert list(pair.summary) == list(written)
    assert "pictures" in pair.summary and pair.summary.get("nothing") is None
    with pytest.raises(KeyError):
        pair.summary["nothing"]


def test_json_alone_is_printed(pair, card, data, capsys, tmp_path):
    arguments = ["--train", "pillow_fp32", "--deploy", "pillow_fp32", "--model", str(card)]

    code = cli.main([*arguments, "--data", str(data), "--out", str(tmp_path / "r"), "--json"])

    found = json.loads(capsys.readouterr().out)
    assert code == 0
    assert list(problems(found, schema("summary-run"), schema("summary-run"))) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": 1}, "older version (schema 1, this one reads 2); use that version"),
        ({"schema": SCHEMA + 1}, "newer version (schema 3, this one reads 2)"),
        ({"schema": None}, "schema: Input should be 2"),
        ({"command": "guess"}, "command: 'guess' is no experiment that is installed here"),
        ({"command": ["run"]}, "command: ['run'] is no experiment that is installed here"),
        ({"values": {"a": "0.5"}}, "values.a: Input should be a valid number"),
        ({"values": {"a": "b", "c": "d"}}, "(and 1 more)"),
        ({"extra": 1}, "extra: Extra inputs are not permitted"),
    ],
)
def test_what_is_no_summary_of_this_version_is_refused_in_one_line(change, said):
    text = json.dumps(finite(step(train=0.5)) | change)

    with pytest.raises(RunError) as caught:
        parse(text, "runs/x/summary.json")

    assert str(caught.value).startswith("runs/x/summary.json: ")
    assert said in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "7", "[" * 100_000])
def test_what_is_no_json_object_is_refused(text):
    with pytest.raises(RunError, match="not"):
        parse(text, "here")


@pytest.mark.parametrize("key", StepSummary.model_fields)
def test_every_key_of_a_summary_must_be_there(key):
    whole = finite(step(train=0.5))
    key = StepSummary.model_fields[key].alias or key
    text = json.dumps({name: value for name, value in whole.items() if name != key})

    with pytest.raises(RunError, match=key):
        parse(text, "here")


def test_a_run_of_an_older_version_says_what_to_do(tmp_path):
    write_json(tmp_path / "manifest.json", manifest())
    write_json(tmp_path / "summary.json", {"schema": 1, "flips": {"count": 3}})

    with pytest.raises(RunError, match="start a new run"):
        read_run(tmp_path)


def test_a_notice_keeps_its_kind(tmp_path):
    found = report({
        "command": "explain", "model": "m", "task": "classification", "metric": "top1",
        "unit": "image", "samples": 1, "skipped": 0, "train": {"profile": "a", "overrides": []},
        "deploy": {"profile": "b", "overrides": []}, "axes": [], "null": [], "blame": {},
        "stacks": 1, "unique_steps": 1, "warnings": [notice("slow", "busy_machine", "deploy")],
    })  # fmt: skip

    (told,) = parse(json.dumps(found), "here").warnings

    assert told.kind is Kind.BUSY_MACHINE and told.about == ("deploy",)
    assert str(told) == "deploy: slow"


def numbers(value, path=""):
    """The paths of all numbers but those in lists of any length."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from numbers(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and len(value) == 2 and path.endswith(("ci95", "ci95_wilson")):
        yield from (f"{path}.{at}" for at in range(2))
    elif isinstance(value, int | float) and not isinstance(value, bool) and path != "schema":
        yield from [path] * (".effective." not in path)  # settings, which no rule is about


@pytest.mark.parametrize("task", ["classification", "detection", "segmentation"])
def test_every_number_of_a_run_can_be_named_by_a_rule_before_it(task, card, data, cache, tmp_path):
    """The names that a task promises are those that its comparison gives."""
    if task != "classification":
        card, data = tiny_tasks.card(tmp_path / "m", task), tiny_tasks.data(tmp_path / "d", task)
    found = simulator.compare(
        "pillow_fp32", "pillow_fp32", model=card, data=data, out=tmp_path / "run",
        overrides=["deploy.color.order=bgr"],
    )  # fmt: skip
    own = Card(card)

    known = {one.path for one in figures(pair_summary(own.task.Flips), vocabulary(own))}

    assert set(numbers(content(found.folder / "summary.json"))) <= known
