"""Searches over stacks of which one fails on samples that the others answer."""

import json

import pytest
import yaml
from failing import DECODE, PAIR, TURBO, mixed

import simulator
from simulator import cli, repair, robustness
from simulator.experiments.failures import tallied
from simulator.experiments.sweep.experiment import Sweep
from simulator.results.summaries import parse

SUITE = {
    "schema": 1, "name": "mine", "summary": "a decoder and a resize", "train": "pillow_fp32",
    "columns": {
        "decoder": {"turbo": {"decode": DECODE}},
        "resize": {"box": {"resize": "pil-box"}},
    },
}  # fmt: skip
CAMERA = {
    "schema": 1, "name": "link", "summary": "a link", "conditions": {"link": {"jpeg": ["jpeg:60"]}},
}  # fmt: skip
PIXELS = {
    "schema": 1, "name": "pixels", "summary": "decoders", "train": "pillow_fp32",
    "deploy": "pillow_fp32", "axes": {},
}  # fmt: skip
NINE = "fails on 9 of 15 images (decode: TurboJpeg reads jpeg, not png)."


def written(place, document):
    place.write_text(yaml.safe_dump(document, sort_keys=False))
    return str(place)


@pytest.fixture
def images(tmp_path):
    return mixed(tmp_path / "images", pngs=9, jpegs=6)


def counts(summary):
    return {name: one.count for name, one in summary.failed.items()}


def test_an_option_of_a_sweep_has_its_own_count(card, images, tmp_path, capsys):
    suite = written(tmp_path / "suite.yaml", SUITE)
    given = ("--model", str(card), "--data", str(images), "--out", str(tmp_path / "run"))
    assert cli.main(["sweep", "--suite", suite, *given]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"decoder/turbo {NINE}")
    summary = json.loads(next((tmp_path / "run").rglob("summary.json")).read_text())
    failed = {name: one["count"] for name, one in summary["failed"].items()}
    assert failed == {"train": 0, "decoder/turbo": 9, "resize/box": 0}
    assert (summary["samples"], summary["skipped"]) == (6, 0)
    table = Sweep().printed([parse(json.dumps(summary).encode(), "")], "markdown", "options")
    (row,) = (line for line in table.splitlines() if line.startswith("| decoder"))
    assert row.endswith("| 9 |")


def test_an_option_that_fails_passes_no_gate(card, tmp_path):
    """Both change no answer; one of them cannot answer a fifth."""
    images = mixed(tmp_path / "many", pngs=12, jpegs=48)
    suite = written(tmp_path / "suite.yaml", SUITE)
    (result,) = simulator.sweep(
        suite, models=[card], data=images, out=tmp_path / "run", until_decided="gate",
        fail_on=["flip_rate > 40%"],
    )  # fmt: skip
    assert result.summary.early.answer == ["resize/box"]
    failed = [one.rule for one in result.summary.gate.rules if one.failed]
    assert failed[-1] == "decoder/turbo: failed.deploy > 0%"


@pytest.mark.parametrize("question", [None, "worst-flips"])
def test_a_training_stack_that_fails_alone_skips_no_sample(card, images, tmp_path, question):
    """Of fifteen it cannot do nine, which the option can: early or not, none was skipped."""
    pillow = dict.fromkeys(DECODE) | {"backend": "pillow", "exif": "ignore"}
    columns = {"decoder": {"pillow": {"decode": pillow}}}
    (result,) = simulator.sweep(
        written(tmp_path / "suite.yaml", SUITE | {"columns": columns}), models=[card], data=images,
        overrides=[TURBO.replace("deploy", "train")], out=tmp_path / "run", until_decided=question,
    )  # fmt: skip
    assert counts(result.summary) == {"train": 9, "decoder/pillow": 0}
    assert (result.summary.samples, result.summary.skipped) == (6, 0)


def test_a_worst_case_tells_who_fails(card, images, tmp_path):
    suite = written(tmp_path / "suite.yaml", SUITE)
    found = simulator.worst(suite, model=card, data=images, out=tmp_path / "run").summary
    assert counts(found)["decoder/turbo"] == 9
    assert found.verdict.lost[0] == f"decoder/turbo {NINE}"


def test_an_explanation_tells_who_fails(card, images, tmp_path):
    found = simulator.explain(
        "pillow_fp32", "pillow_fp32", overrides=[TURBO, "deploy.resize=pil-box"], model=card,
        data=images, out=tmp_path / "run",
    ).summary  # fmt: skip
    assert found.samples == 6
    assert counts(found)["deploy"] == 9 and counts(found)["train"] == 0
    assert "deploy " + NINE in found.verdict.lost


@pytest.mark.parametrize("share", [None, "60%"])
def test_robustness_fails_where_the_deployment_does(card, images, tmp_path, share):
    """It fails without the condition only: under it every file is a JPEG."""
    (result,) = robustness(
        written(tmp_path / "link.yaml", CAMERA), train="pillow_fp32", deploy="pillow_fp32",
        overrides=[TURBO], models=[card], data=images, out=tmp_path / "run",
        fail_on=["deploy.clean > 200%"], allow_failed=share,
    )  # fmt: skip
    assert counts(result.summary) == {"train": 0, "deploy": 9}
    assert (result.summary.samples, result.summary.skipped) == (6, 0)
    rule = result.summary.gate.rules[-1]
    assert (rule.rule, rule.failed) == (f"failed.deploy > {share or '0%'}", share is None)


def test_a_latency_fails_where_the_deployment_does(simulate, images):
    rule = ("--fail-on", "deploy.latency.p50 > 60s")
    code, out, _ = simulate("latency", *PAIR, *rule, "--limit", "15", images=images)
    assert code == 1
    assert f"deploy {NINE}" in out and "FAILED failed.deploy > 0%" in out


def test_a_repair_that_fails_is_none(card, tmp_path):
    """BGR is repaired by the order; a decoder that reads no PNG costs less and repairs nothing."""
    images = mixed(tmp_path / "many", pngs=20, jpegs=40)
    axes = {
        "decoder": {"turbo": {"set": {"decode": DECODE}, "cost": {"ms": -5}}},
        "order": {"rgb": {"set": {"color.order": "model"}, "cost": {"hours": 3}}},
    }
    result = repair(
        gate=["flip_rate < 50%"], repairs=written(tmp_path / "axes.yaml", PIXELS | {"axes": axes}),
        overrides=["deploy.color.order=bgr"], model=card, data=images, out=tmp_path / "run",
    )  # fmt: skip
    turbo = [one for one in result.summary.finalists if "decoder/turbo" in one.changes]
    assert turbo and all(not one.confirmed.passes for one in turbo)
    assert result.summary.chosen == "order/rgb" and result.passed


def test_a_deployment_that_fails_is_repaired_by_its_decoder(card, tmp_path):
    images = mixed(tmp_path / "many", pngs=20, jpegs=40)
    pillow = {"set": {"decode": {"backend": "pillow", "exif": "ignore"}}, "cost": {"ms": 1}}
    document = written(tmp_path / "axes.yaml", PIXELS | {"axes": {"decoder": {"pillow": pillow}}})
    result = repair(
        gate=["flip_rate < 50%"], repairs=document, overrides=[TURBO], model=card, data=images,
        out=tmp_path / "run",
    )  # fmt: skip
    assert result.summary.before.failed["deploy"].count and not result.summary.before.passes
    assert result.summary.chosen == "decoder/pillow" and result.passed


def test_what_every_stack_answers_counts_for_all():
    assert tallied([], ("a", "b"), "a", {"a": 5, "b": 4})["failed"]["b"]["of"] == 4
