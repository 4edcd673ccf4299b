"""A stack that fails where others answer: counted, told first, and failing every gate."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
import tiny
from failing import PAIR, TURBO, mixed
from onnx import helper
from scipy.stats import binomtest

import simulator
from simulator import cli
from simulator.analysis.gate import read
from simulator.audit.two_runs import compare_runs
from simulator.errors import UserError
from simulator.experiments.failures import Tried, tallied
from simulator.experiments.search.questions import PassingPair
from simulator.experiments.search.stopping import LEAST
from simulator.pipeline.executor import Outcome, SampleResult
from simulator.tasks.settings import Network
from simulator.tasks.task import TASKS

DIM = "deploy.normalize.mean=[0.0, 0.0, 0.0]"


def dark(folder):
    """A classifier whose outputs are NaN where the first channel's mean is above 2."""
    nodes = [
        helper.make_node("GlobalAveragePool", ["x"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["flat"]),
        helper.make_node("Gather", ["flat", "first"], ["red"], axis=1),
        helper.make_node("Sub", ["two", "red"], ["left"]),
        helper.make_node("Sqrt", ["left"], ["root"]),
        helper.make_node("Sub", ["root", "root"], ["nothing"]),
        helper.make_node("Add", ["flat", "nothing"], ["y"]),
    ]
    constants = {"first": np.array([0]), "two": np.array([2.0], np.float32)}
    return tiny.card(folder, tiny.model(nodes, constants=constants))


def compare(card, images, out, *rules, overrides=(TURBO,), **more):
    return simulator.compare(
        "pillow_fp32", "pillow_fp32", overrides=overrides, model=card, data=images, out=out,
        fail_on=rules, quick=True, **more,
    )  # fmt: skip


def test_a_deployment_that_fails_on_nearly_everything_fails_the_gate(simulate, tmp_path):
    images = mixed(tmp_path / "mixed", pngs=36, jpegs=4)
    code, out, _ = simulate(
        *PAIR, "--fail-on", "flip_rate > 1%", "--fail-on", "delta.top1 < -0.5%",
        images=images,
    )  # fmt: skip
    first = out.splitlines()[0]
    assert code == 1
    assert first.startswith("NOT OK: deploy fails on 36 of 40 images (decode: TurboJpeg reads")
    assert "gate passed flip_rate > 1%: got 0 %" in out
    assert "gate FAILED failed.deploy > 0%: got 90 %" in out
    assert "fails deploy on 36 images: decode: TurboJpeg" in out and "the first: red/000.png" in out

    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["samples"] == 4 and summary["skipped"] == 0
    assert summary["failed"]["deploy"] | {"ci95": None} == {
        "count": 36, "of": 40, "rate": 0.9, "ci95": None, "reference": False,
    }  # fmt: skip
    exact = binomtest(36, 40).proportion_ci(method="exact")
    assert summary["failed"]["deploy"]["ci95"] == pytest.approx([exact.low, exact.high])
    assert summary["failed"]["train"]["count"] == 0 and summary["failed"]["train"]["reference"]
    page = (tmp_path / "run" / "report.html").read_text()
    assert "deploy fails on 36 of 40 images" in page and "failed.deploy &gt; 0%: failed" in page


def test_records_tell_which_side_failed(card, tmp_path):
    images = mixed(tmp_path / "mixed", pngs=1, jpegs=2)
    (images / "red" / "empty.jpeg").write_bytes(b"")
    result = compare(card, images, tmp_path / "run")
    rows = pq.read_table(tmp_path / "run" / "records.parquet").to_pylist()
    told = {(row["sample"], row["side"]): row["failed"] for row in rows}
    assert told["red/000.png", "train"] is False and told["red/000.png", "deploy"] is True
    assert told["red/empty.jpeg", "train"] is told["red/empty.jpeg", "deploy"] is True
    assert told["red/001.jpeg", "train"] is told["red/001.jpeg", "deploy"] is None
    assert (result.summary.samples, result.summary.skipped) == (2, 1)
    assert "1 of 4 images were skipped: no stack can answer them." in result.summary.verdict.lost


def test_a_network_that_gives_nan_for_some_fails_alone(data, tmp_path):
    result = compare(
        dark(tmp_path / "dark"), data, tmp_path / "run", "flip_rate > 50%", overrides=[DIM]
    )
    failed = result.summary.failed
    assert (failed["deploy"].count, failed["deploy"].of, failed["train"].count) == (2, 6, 0)
    assert "NaN" in result.summary.failures[0].why
    assert not result.passed


def test_the_gate_command_judges_it_again(simulate, tmp_path, capsys):
    simulate(*PAIR, images=mixed(tmp_path / "mixed", pngs=2, jpegs=6))
    run, rule = str(tmp_path / "run"), ("--fail-on", "flip_rate > 1%")
    assert cli.main(["gate", run, *rule]) == 1
    assert cli.main(["gate", run, *rule, "--allow-failed", "24%"]) == 1
    assert cli.main(["gate", run, *rule, "--allow-failed", "25%"]) == 0
    assert cli.main(["gate", run, "--fail-on", "failed.deploy > 30%"]) == 1  # both hold
    capsys.readouterr()
    cli.main(["gate", "--list", run])
    assert "failed.deploy                                25 %" in capsys.readouterr().out


@pytest.mark.parametrize("share", ["0.1", "-1%", "101%", "20ms", "few"])
def test_what_is_no_share_is_refused(share):
    with pytest.raises(UserError, match=r"--allow-failed .*: a share expected"):
        read(["flip_rate > 1%"], share)


def test_a_gate_without_rules_is_none():
    assert read([], "1%") == []


def test_resumed_runs_have_the_same_records(card, tmp_path, monkeypatch):
    from simulator.results import record_table

    images = mixed(tmp_path / "mixed", pngs=3, jpegs=4)
    whole = compare(card, images, tmp_path / "whole")
    monkeypatch.setattr(record_table, "CHUNK", 1)
    monkeypatch.setattr(record_table, "PAUSE", 0)
    seen = []

    def stop(table, place, write=record_table.write_part):
        if len(seen) == 5:
            raise KeyboardInterrupt
        seen.append(write(table, place))

    with monkeypatch.context() as patch:
        patch.setattr(record_table, "write_part", stop)
        with pytest.raises(KeyboardInterrupt):
            compare(card, images, tmp_path / "cut", workers=1)
    again = compare(card, images, tmp_path / "cut", resume=True)
    assert again.records().drop(["ns"]).equals(whole.records().drop(["ns"]))
    assert again.summary.failed == whole.summary.failed
    assert again.summary.failures == whole.summary.failures


def test_until_decided_is_decided_by_failing_samples(card, tmp_path):
    images = mixed(tmp_path / "mixed", pngs=30, jpegs=30)
    result = compare(card, images, tmp_path / "run", "flip_rate > 40%", until_decided=True)
    found = result.summary.verdict
    assert not result.passed and found.decision == "not ok"
    assert found.lost[0].startswith("deploy fails on 1")
    assert result.summary.decided.samples == LEAST < result.summary.decided.of
    assert result.summary.gate.rules[-1].rule == "failed.deploy > 0%"


def pair(failed=False):
    record = Outcome({"changed": False, "top1": True, "top5": True}, "", {})
    return (
        SampleResult(None, (), "x", failed={1: "x"})
        if failed
        else SampleResult(None, (record, record))
    )


def test_borne_failures_are_tested_by_the_same_bound():
    """50 of 1,000: below 20 % for certain, above 1 % for certain, and not decided for 5 %."""
    rules = {share: read(["flip_rate > 40%"], share) for share in ("0%", "1%", "5%", "20%")}
    found = {}
    for share, own in rules.items():
        policy = PassingPair(own, TASKS["classification"](None, Network()))
        for number in range(1000):
            policy.tell(pair(failed=number % 20 == 0), ("train", "deploy"))
        found[share] = (policy.done, policy.gate.failing)
    assert found["0%"] == (True, ["failed.deploy > 0%"])
    assert found["1%"] == (True, ["failed.deploy > 1%"])
    assert found["5%"] == (False, [])
    assert found["20%"] == (True, [])


def test_shares_are_of_what_somebody_answered():
    samples = [Tried(str(at), ("train", "a", "b"), {}) for at in range(6)]
    samples.append(Tried("x", ("train", "a", "b"), {"train": "no"}))
    samples.append(Tried("y", ("train", "a", "b"), {"a": "y: odd"}))
    samples.append(Tried("z", ("train", "a", "b"), {"train": "no", "a": "odd"}))
    found = tallied(samples, ("train", "a", "b"), "train")
    counts = {name: (one["count"], one["of"]) for name, one in found["failed"].items()}
    assert counts == {"train": (2, 9), "a": (1, 8), "b": (0, 9)}
    assert found["failures"] == [
        {"stack": "train", "why": "no", "count": 2, "samples": ["x", "z"]},
        {"stack": "a", "why": "odd", "count": 1, "samples": ["y"]},
    ]


def test_a_run_that_stops_early_says_what_it_did_not_see(card, tmp_path):
    """None of 30: SciPy's exact interval ends at 11.57 %."""
    images = mixed(tmp_path / "mixed", pngs=0, jpegs=40)
    result = compare(card, images, tmp_path / "run", "flip_rate > 40%", until_decided=True)
    upper = binomtest(0, 30).proportion_ci(method="exact").high
    assert result.passed and result.summary.decided.samples == LEAST
    words = f"The deployment failed on none of them; up to {upper:.2%} is not excluded."
    assert words in result.summary.verdict.lost


def test_runs_are_compared_by_who_fails(card, tmp_path, capsys):
    images = mixed(tmp_path / "mixed", pngs=3, jpegs=5)
    old = compare(card, images, tmp_path / "old", overrides=[])
    new = compare(card, images, tmp_path / "new")
    found = compare_runs(old.folder, new.folder).stacks
    assert (found["deploy"].fails, found["deploy"].answers) == (3, 0)
    assert (found["train"].fails, found["train"].answers) == (0, 0)
    assert compare_runs(new.folder, old.folder).stacks["deploy"].answers == 3
    assert cli.main(["compare-runs", str(old.folder), str(new.folder)]) == 0
    assert capsys.readouterr().out.startswith("deploy fails on 3 more samples than before.")
