"""Audits: several pairs in one plan, each as if it had been run alone."""

import json
import re
import shutil
import xml.etree.ElementTree as ET
import zipfile

import pyarrow.parquet as pq
import pytest
import tiny
from audits import BGR, RULE, document, read

import simulator
from simulator import audit, cli
from simulator.command.options import Progress
from simulator.errors import ProfileError, RunError, UserError
from simulator.experiments.job import Job


class Told(Progress):
    """Counts samples and stages; is interrupted at one of either."""

    def __init__(self, stop=None, at=None):
        self.samples, self.stop, self.at = 0, stop, at

    def say(self, what):
        if self.at and what.startswith(self.at):
            raise KeyboardInterrupt

    def advance(self, done, total):
        self.samples += 1
        if self.samples == self.stop:
            raise KeyboardInterrupt


def untimed(folder):
    table = pq.read_table(folder / "records.parquet")
    return table.drop_columns("ns")


def test_a_pair_is_what_simulate_alone_would_have_left(card, data, cache, tmp_path):
    """Rounded stacks besides it change neither records nor figures."""
    path = document(tmp_path, card, data)

    result = audit(path, out=tmp_path / "out")

    alone = simulator.compare(
        "pillow_fp32", "pillow_fp32", model=card, data=data, out=tmp_path / "alone",
        quick=True, overrides=['deploy.color.order="bgr"'], fail_on=["flip_rate > 50%"],
    )  # fmt: skip
    folder = result.folder / "pairs" / "tiny" / "bgr"
    assert untimed(folder).equals(untimed(alone.folder))
    passing = {"seconds", "workers", "latency_ms"}
    own, other = read(folder / "summary.json"), read(alone.folder / "summary.json")
    assert {k: v for k, v in own.items() if k not in passing} == {
        k: v for k, v in other.items() if k not in passing
    }
    own, other = read(folder / "manifest.json"), read(alone.folder / "manifest.json")
    passing = {"created", "run", "seconds", "time"}
    assert {k: v for k, v in own.items() if k not in passing} == {
        k: v for k, v in other.items() if k not in passing
    }


def test_the_gate_is_that_of_all_rules(finished):
    """Red and blue change places: four of six images get another answer."""
    summary = read(finished.folder / "summary.json")

    assert [
        (one["deploy"], one["failed"], one["value"], one["because"])
        for one in summary["gate"]["rules"]
    ] == [
        ("same", False, 0.0, RULE["because"]),
        ("bgr", True, pytest.approx(4 / 6), RULE["because"]),
    ]
    assert [pair["passed"] for pair in summary["pairs"]] == [True, False]
    assert not summary["gate"]["passed"]


def test_what_an_audit_leaves_belongs_together(finished):
    names = {p.name for p in finished.folder.iterdir() if p.is_file()}
    assert {"audit.yaml", "audit.md", "junit.xml", "summary.json", "bundle.zip"} <= names
    pages = [p.parent.name for p in sorted(finished.folder.rglob("report.html"))]
    assert pages == ["bgr", "same", "out"]
    with zipfile.ZipFile(finished.bundle) as packed:
        assert json.loads(packed.read("manifest.json"))["status"] == "complete"
        for name in ("audit.yaml", "summary.json", "pairs/tiny/bgr/records.parquet"):
            assert packed.read(name) == (finished.folder / name).read_bytes()
        assert not [n for n in packed.namelist() if n.endswith((".onnx", ".jpg", ".png"))]
    root = ET.parse(finished.folder / "junit.xml").getroot()
    assert [suite.get("name") for suite in root] == ["tiny.same", "tiny.bgr"]


@pytest.mark.parametrize(("limit", "code"), [("70%", cli.PASS), ("ms", cli.USER_ERROR)])
def test_the_exit_code_is_the_gate(card, data, cache, tmp_path, capsys, limit, code):
    rules = [{**RULE, "fail_on": f"flip_rate > {limit}"}]
    path = document(tmp_path, card, data, rules=rules)

    assert cli.main(["audit", str(path), "--out", str(tmp_path / "out")]) == code
    assert (tmp_path / "out" / "report.html").exists() is (code == cli.PASS)


def test_the_page_of_an_audit_leads_to_those_of_its_pairs(card, data, cache, tmp_path, capsys):
    """The hostile name is shown, and runs nowhere."""
    rules = [{**RULE, "because": "</script><b>no more"}]
    out = audit(document(tmp_path, card, data, rules=rules), out=tmp_path / "out").folder

    assert cli.main(["report", str(out)]) == cli.PASS

    page = (out / "report.html").read_text(encoding="utf-8")
    pairs = json.loads((out / "summary.json").read_text())["pairs"]
    assert re.findall(r'<a href="(pairs/[^"]*)">pair</a>', page) == [
        f"{pair['folder']}/report.html" for pair in pairs
    ]
    assert "&lt;/script&gt;&lt;b&gt;no more" in page and "<b>no more" not in page
    assert f"<p>{len(pairs) - 1} of {len(pairs)} rules hold.</p>" in page
    assert cli.main(["resume", str(out), "--json"]) == cli.GATE_FAILED
    assert json.loads(capsys.readouterr().out.partition("\n")[2])["command"] == "audit"


def test_shared_steps_are_computed_once(card, data, cache, tmp_path):
    """Three stacks that differ after decoding decode once."""
    told = Told()
    told.planned = lambda plan: setattr(told, "plan", plan)
    nearest = {"profile": "pillow_fp32", "set": {"resize": "opencv-nearest"}}
    deploy = {"same": "pillow_fp32", "bgr": BGR, "nearest": nearest}

    audit(document(tmp_path, card, data, deploy=deploy), out=tmp_path / "out", progress=told)

    stages = [node.recipe.stage for node in told.plan.nodes]
    assert len(told.plan.paths) == 6
    assert (stages.count("decode"), stages.count("resize")) == (1, 2)


def test_models_have_their_own_images_and_rules(card, data, cache, tmp_path):
    other = tiny.card(tmp_path / "other", name="other")
    few = tiny.data(tmp_path / "few", each=1)
    models = {"a": {"card": str(card)}, "b": {"card": str(other), "data": str(few)}}
    rules = [RULE, {"fail_on": "samples < 4", "because": "too few", "models": ["b"]}]

    result = audit(document(tmp_path, card, data, models=models, rules=rules), out=tmp_path / "out")

    assert [(pair["model"], pair["samples"]) for pair in result.summary["pairs"]] == [
        ("a", 6), ("a", 6), ("b", 3), ("b", 3),
    ]  # fmt: skip
    failed = [
        r for r in result.summary["gate"]["rules"] if r["failed"] and r["rule"] != RULE["fail_on"]
    ]
    assert [(one["model"], one["rule"]) for one in failed] == [("b", "samples < 4")] * 2


def test_rounds_are_gone_through_where_they_are_asked_for(card, data, cache, tmp_path):
    """A deadline of 1000 s is met, one of a nanosecond is not."""
    tail = {
        "deploy": ["same"],
        "rounds": 2,
        "deadlines_ms": [1_000_000, 0.000001],
        "rules": [
            {"fail_on": "deploy.tail_quality@1000000ms < 100%", "because": "in time"},
            {"fail_on": "deploy.tail_quality@1e-06ms < 1%", "because": "too late"},
        ],
    }

    result = audit(document(tmp_path, card, data, rules=[], tail=tail), out=tmp_path / "out")

    assert [(r["of"], r["deploy"], r["failed"]) for r in result.summary["gate"]["rules"]] == [
        ("tail", "same", False), ("tail", "same", True),
    ]  # fmt: skip
    assert [p.name for p in (result.folder / "tail" / "tiny").iterdir()] == ["same"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"rules": [{**RULE, "fail_on": "delta.mAP < 0%"}]}, "rules.0.fail_on: the rule"),
        ({"rules": [{**RULE, "fail_on": "flip_rate > 1"}]}, "rules.0.fail_on: .* write 1% or 100%"),
        ({"tail": {"rules": [{**RULE, "fail_on": "flip_rate > 0%"}]}}, "tail.rules.0.fail_on: "),
    ],
)
def test_a_rule_on_what_there_will_not_be_is_refused_before_anything_is_run(
    card, data, cache, tmp_path, fields, said
):
    path = document(tmp_path, card, data, **fields)

    with pytest.raises(ProfileError, match=said):
        audit(path, out=tmp_path / "out")

    assert not (tmp_path / "out").exists()


def test_what_the_document_says_is_no_option(card, data, cache, tmp_path):
    with pytest.raises(TypeError, match="unknown option 'limit'"):
        audit(document(tmp_path, card, data), out=tmp_path / "out", limit=3)


def test_an_audit_replaces_a_run_only_if_it_is_told_to(card, data, cache, tmp_path):
    path = document(tmp_path, card, data)
    audit(path, out=tmp_path / "out")
    with pytest.raises(RunError, match="overwrite"):
        audit(path, out=tmp_path / "out")
    document(tmp_path, card, data, deploy={"only": "pillow_fp32"})

    audit(path, out=tmp_path / "out", overwrite=True)

    assert [p.name for p in (tmp_path / "out" / "pairs" / "tiny").iterdir()] == ["only"]
    with pytest.raises(UserError, match="holds the document"):
        audit(tmp_path / "out" / "audit.yaml", out=tmp_path / "out", overwrite=True)
    assert read(tmp_path / "out" / "manifest.json")["status"] == "complete"


def test_mistakes_that_only_show_when_something_is_opened_have_their_places(
    card, data, cache, tmp_path
):
    deploy = {
        "one": {"profile": "pillow_fp32", "set": {"resize.interpolation": "wobble"}},
        "two": {"profile": "pillow_fp32", "set": {"resize": "opencv-wobble", "decode.x": 1}},
    }
    models = {"a": {"card": "gone.yaml"}, "b": {"card": str(card), "data": "~nobody/gone"}}
    path = document(tmp_path, card, tmp_path / "no", deploy=deploy, models=models)
    lines = path.read_text().splitlines()

    with pytest.raises(ProfileError) as caught:
        audit(path, out=tmp_path / "out")

    def line(start):
        return next(at for at, text in enumerate(lines, 1) if text.strip().startswith(start))

    for said in (
        f"{path}:{line('resize.interpolation')}: deploy.one.set.resize.interpolation: pillow "
        "offers bilinear, bicubic, box, hamming, lanczos here, got wobble",
        f"{path}:{line('resize: ')}: deploy.two.set.resize: unknown resize 'opencv-wobble'",
        f"{path}:{line('card: gone')}: models.a.card: there is no file {tmp_path / 'gone.yaml'}",
        f"{path}:{line('data: ' + str(tmp_path))}: data: there is no file or folder",
        f"{path}:{line('data: ~')}: models.b.data: there is no file or folder",
    ):
        assert sum(problem.startswith(said) for problem in caught.value.problems) == 1, said
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The document of an audit of 60 images and rounds, and the folder of its run."""
    folder = tmp_path_factory.mktemp("whole")
    card, data = tiny.card(folder / "model"), tiny.data(folder / "data", each=20)
    path = document(folder, card, data, tail={"rounds": 2, "deploy": ["bgr"]})
    return path, audit(path, out=folder / "out").folder


@pytest.mark.parametrize("stop", [{"stop": 40}, {"at": "bgr: figures"}, {"at": "warming up"}])
def test_an_interrupted_audit_goes_on(whole, cache, tmp_path, capsys, stop):
    """Among the samples, between two pairs, and before the rounds."""
    path, run = whole
    with pytest.raises(KeyboardInterrupt):
        audit(path, out=tmp_path / "out", progress=Told(**stop))
    out = tmp_path / "out"
    same = out / "pairs" / "tiny" / "same"
    before = (same / "summary.json").read_bytes() if "at" in stop else None
    manifest = read(out / "manifest.json")
    assert manifest["status"] == "interrupted"
    if "at" not in stop:  # as kill -9 leaves it
        (out / "manifest.json").write_text(json.dumps({**manifest, "status": "running"}))

    assert cli.main(["resume", str(out), "--json"]) == cli.GATE_FAILED

    assert json.loads(capsys.readouterr().out) == read(out / "summary.json")
    assert before in (None, (same / "summary.json").read_bytes())
    for deploy in ("same", "bgr"):
        place = out / "pairs" / "tiny" / deploy
        assert untimed(place).equals(untimed(run / "pairs" / "tiny" / deploy))
    assert (out / "bundle.zip").is_file()
    assert read(out / "manifest.json")["status"] == "complete"


@pytest.mark.parametrize("rules", [[], None])
def test_an_audit_that_judges_nothing_is_asked_for_by_name(card, data, cache, tmp_path, rules):
    path = document(tmp_path, card, data, rules=rules, deploy={"same": "pillow_fp32"})
    with pytest.raises(ProfileError, match=r"rules: at least one expected, .*rules: none"):
        audit(path, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()

    path = document(tmp_path, card, data, rules="none", deploy={"same": "pillow_fp32"})
    result = audit(path, out=tmp_path / "out")
    assert result.passed is None and result.summary.verdict.decision is None
    assert result.summary.verdict.lost[0] == "Nothing was judged: the document has no rules."


def test_an_audit_whose_document_changed_is_not_resumed(card, data, cache, tmp_path):
    path = document(tmp_path, card, data)
    with pytest.raises(KeyboardInterrupt):
        audit(path, out=tmp_path / "out", progress=Told(stop=2))
    document(tmp_path, card, data, rules="none")
    before = (tmp_path / "out" / "manifest.json").read_bytes()

    for _ in range(2):
        with pytest.raises(RunError, match="document changed since it was started"):
            audit(path, out=tmp_path / "out", resume=True)
        assert (tmp_path / "out" / "manifest.json").read_bytes() == before


@pytest.mark.parametrize("begun", [False, True])
def test_pairs_are_not_kept_beside_others_on_other_images(card, data, cache, tmp_path, begun):
    """An image is removed after the first model; the pairs of the second have begun or not."""
    models = {name: {"card": str(card)} for name in ("a", "b")}
    path = document(tmp_path, card, data, models=models)
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        audit(path, out=out, progress=Told(stop=7))
    if not begun:
        shutil.rmtree(out / "pairs" / "b")
    (data / "red" / "red0.jpg").unlink()
    before = (out / "manifest.json").read_bytes()

    with pytest.raises(RunError, match=r"pairs/a/same: cannot be kept: data changed since"):
        audit(path, out=out, resume=True)

    assert (out / "manifest.json").read_bytes() == before


def test_rounds_are_not_kept_beside_pairs_on_other_images(card, data, cache, tmp_path):
    path = document(tmp_path, card, data, tail={"rounds": 2})
    out = audit(path, out=tmp_path / "out").folder
    kept = read(out / "manifest.json")
    audit(path, out=out, resume=True)
    shutil.rmtree(out / "pairs")
    (data / "red" / "red0.jpg").unlink()

    with pytest.raises(RunError, match=r"tail/tiny/same: cannot be kept: data changed since"):
        audit(path, out=out, resume=True)

    assert read(out / "manifest.json")["status"] == "complete"
    assert read(out / "manifest.json")["created"] == kept["created"]


def test_what_a_finished_pair_left_out_the_others_answer(card, data, cache, tmp_path):
    """Killed after the first pair: of the second, not one record had reached the disk."""
    (data / "red" / "one.jpg").write_bytes(tiny.encoded(tiny.picture((220, 30, 40), (1, 1))))
    drops = {"profile": "nv12_fp32", "set": {"color.odd_size": "drop"}}
    path = document(tmp_path, card, data, deploy={"camera": drops, "same": "pillow_fp32"})
    whole = audit(path, out=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        audit(path, out=tmp_path / "out", progress=Told(at="same: figures"))
    shutil.rmtree(tmp_path / "out" / "pairs" / "tiny" / "same" / "parts")

    result = audit(path, out=tmp_path / "out", resume=True)

    assert [p["samples"] for p in result.summary["pairs"]] == [6, 7]
    same = "pairs/tiny/same"
    assert untimed(result.folder / same).equals(untimed(whole.folder / same))


def test_seconds_of_pairs_are_their_own(card, data, cache, tmp_path, monkeypatch):
    """By a clock that moves a second a sample, and 1 and 2 s in the figures of the two pairs."""
    now = [100]
    monkeypatch.setattr(Job, "seconds", lambda job: now[0])
    told = Told()
    steps = {"same: figures and pictures": 1, "bgr: figures and pictures": 2}
    told.say = lambda what: now.__setitem__(0, now[0] + steps.get(what, 0))
    told.advance = lambda done, total: now.__setitem__(0, now[0] + 1)

    out = audit(document(tmp_path, card, data), out=tmp_path / "out", progress=told).folder

    root = ET.parse(out / "junit.xml").getroot()
    assert [suite.get("time") for suite in root] == ["4.000", "5.000"]
