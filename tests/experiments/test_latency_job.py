"""``simulate latency`` from its inputs to its run folder, and what both timed jobs have."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import tiny
import tiny_tasks
from PIL import Image
from shared_data import shared
from timed_runs import IMAGES, JOBS, ROUNDS, board, flat, names, one_line, profile, timed, written

import simulator
from simulator import latency

CARDS = Path(__file__).resolve().parents[1] / "cards"
BOTH = pytest.mark.parametrize("command", JOBS)
STAGES = ("decode", "resize", "geometry", "normalize", "infer", "postprocess")
"""Of pillow_fp32: Pillow gives RGB, so that there is no color stage."""


pytestmark = pytest.mark.usefixtures("alone")


ONE = ("latency", "--profile", "pillow_fp32", "--queries", "30")


# What is measured


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    return {"model": tiny.card(folder / "model"), "data": tiny.data(folder / "data")}


@pytest.fixture(scope="module")
def run(inputs, tmp_path_factory):
    """A finished run of one profile: six images, five times each."""
    return timed("latency", **inputs, out=tmp_path_factory.mktemp("run") / "run")


def test_one_profile_is_the_one_to_be_deployed(run):
    found = run.summary

    assert found["command"] == "latency" and found["scenario"] == "SingleStream"
    assert (found["samples"], found["skipped"]) == (IMAGES, 0)
    stack = found["stacks"]["deploy"]
    assert (stack["profile"], stack["times"]) == ("pillow_fp32", "measured")
    assert (stack["rounds"], stack["queries"], stack["failed"]) == (ROUNDS, 30, 0)
    assert stack["effective"]["threads"] == 1
    assert set(found["latency_ms"]["deploy"]) == {"total", *STAGES}
    assert found["ratio"] == {} and found["protocol"]["warm_up"] >= 1
    assert found["machine"]["cpu"] and found["machine"]["usable_cores"]
    assert len(found["spread"]["deploy"]["medians_ms"]) == ROUNDS


def test_the_figures_are_those_of_the_table_of_all_rounds(card, data, tmp_path):
    """72 times carry a p90, sorted[int(72 * 0.9)], and no p95; LoadGen wants 64 and 130."""
    run = latency(["pillow_fp32"], model=card, data=data, queries=72, limit=6, out=tmp_path / "run")
    rows = pq.read_table(run.folder / "latencies.parquet").to_pylist()
    times = [dict(row["ns"]) for row in rows]
    total = sorted(sum(one.values()) for one in times)
    found = run.summary["latency_ms"]["deploy"]["total"]

    assert len(rows) == 72
    assert sorted({row["round"] for row in rows}) == list(range(12))
    assert all(tuple(one) == STAGES for one in times)
    assert all(row["failed"] is None for row in rows)
    assert found["p50"] == pytest.approx(total[36] / 1e6)
    assert found["p90"] == pytest.approx(total[64] / 1e6)
    assert (found["min"], found["max"]) == pytest.approx((total[0] / 1e6, total[-1] / 1e6))
    assert found["mean"] == pytest.approx(np.mean(total) / 1e6)
    assert found["p95"] is None and run.summary["percentiles"]["deploy"]["p95"]["needs"] == 130 - 72
    infer = sorted(one["infer"] for one in times)
    assert run.summary["latency_ms"]["deploy"]["infer"]["p50"] == pytest.approx(infer[36] / 1e6)


@pytest.mark.parametrize(("name", "needs"), [("p90", 64), ("p99", 662), ("p99.9", 6636)])
def test_what_the_samples_cannot_carry_is_left_out_and_says_what_it_needs(run, name, needs):
    """MLPerf's early stopping; there are 30."""
    found, more = run.summary, needs - 30

    assert found["latency_ms"]["deploy"]["total"][name] is None
    assert found["percentiles"]["deploy"][name] == {
        "ms": None, "ci95": None, "early_stopping_ms": None, "needs": more,
    }  # fmt: skip
    assert f"needs {more:,} more" in found["missing"][f"latency_ms.deploy.total.{name}"]


def test_the_samples_are_told(run, inputs):
    data = inputs["data"]
    rows = pq.read_table(run.folder / "samples.parquet").to_pylist()

    assert [row["sample"] for row in rows] == names(data)
    for row in rows:
        assert (row["width"], row["height"]) == Image.open(data / row["sample"]).size
        assert row["bytes"] == (data / row["sample"]).stat().st_size


def test_answers_are_those_of_a_comparison(run, inputs, tmp_path):
    """The untimed pass keeps the records that every job keeps, but for the times."""
    pair = simulator.compare("pillow_fp32", "pillow_fp32", **inputs, out=tmp_path / "pair")
    mine, theirs, times = (
        pq.read_table(place).to_pylist()
        for place in (
            run.folder / "records.parquet", pair.folder / "records.parquet",
            run.folder / "latencies.parquet",
        )
    )  # fmt: skip
    bits = {row["sample"]: row["digest"] for row in theirs}

    assert {row["sample"]: row["digest"] for row in mine} == bits
    assert all(row["digest"] == bits[row["sample"]] for row in times)


def test_several_profiles_have_their_own_names_and_take_turns(card, data, tmp_path):
    stacks = ["pillow_fp32", "opencv_fp32", "pillow_fp32"]
    found = timed("latency", stacks, model=card, data=data, out=tmp_path / "run").summary

    named = ["pillow_fp32", "opencv_fp32", "pillow_fp32-2"]
    assert list(found["stacks"]) == named == found["protocol"]["interleaved"]
    assert {side: one["to"] for side, one in found["ratio"].items()} == dict.fromkeys(
        named[1:], "pillow_fp32"
    )
    for one in found["ratio"].values():
        assert one["ci95"][0] <= one["value"] <= one["ci95"][1] and one["rounds"] == ROUNDS


def test_a_pair_has_a_ratio(card, data, tmp_path):
    found = latency(
        train="pillow_fp32", deploy="opencv_fp32", model=card, data=data, queries=30, limit=6,
        out=tmp_path / "run",
    ).summary  # fmt: skip

    assert list(found["stacks"]) == ["train", "deploy"]
    assert found["stacks"]["deploy"]["profile"] == "opencv_fp32"
    assert list(found["ratio"]) == ["deploy"] and found["ratio"]["deploy"]["to"] == "train"


def test_no_stack_is_lost_to_anothers_name(card, data, tmp_path):
    """The second of two called a would be a-2, and that is taken."""
    given = [profile(tmp_path, "a-2"), profile(tmp_path, "a"), profile(tmp_path, "a")]
    found = timed("latency", map(str, given), model=card, data=data, out=tmp_path / "run").summary

    assert len(found["stacks"]) == 3


@pytest.mark.parametrize("name", ["v1.5", "my board", "8bit", "x=ü"])
def test_a_stack_is_set_and_ruled_by_the_name_that_is_shown(card, data, tmp_path, name):
    stacks = [str(profile(tmp_path, name)), "opencv_fp32"]
    inputs = {"model": card, "data": data}
    shown, _ = timed("latency", stacks, **inputs, out=tmp_path / "first").summary["stacks"]

    found = timed(
        "latency", stacks, **inputs, out=tmp_path / "run",
        overrides=[f"{shown}.resize.interpolation=nearest"], fail_on=[f"{shown}.latency.p50 > 0ms"],
    ).summary  # fmt: skip

    assert found["stacks"][shown]["overrides"] == ["resize.interpolation=nearest"]
    assert found["stacks"]["opencv_fp32"]["overrides"] == []
    assert not found["gate"]["passed"] and found["gate"]["rules"][0]["value"] > 0


def test_the_same_profile_twice_with_one_of_them_changed(card, data, tmp_path):
    found = timed(
        "latency", ["pillow_fp32"] * 2, model=card, data=data, out=tmp_path / "run",
        overrides=["pillow_fp32-2.runtime.threads=2"],
    ).summary  # fmt: skip

    threads = {side: one["effective"]["threads"] for side, one in found["stacks"].items()}
    assert threads == {"pillow_fp32": 1, "pillow_fp32-2": 2}


def test_so_few_images_are_drawn_that_each_is_seen_in_five_rounds(card, data, tmp_path):
    """Of 10 queries 2 images; those that were asked for are taken as they are."""
    inputs = {"model": card, "data": data, "queries": 10}
    drawn = latency(["pillow_fp32"], **inputs, out=tmp_path / "a").summary
    asked = latency(["pillow_fp32"], **inputs, limit=4, out=tmp_path / "b").summary

    assert (drawn["samples"], drawn["stacks"]["deploy"]["rounds"]) == (2, 5)
    assert (asked["samples"], asked["stacks"]["deploy"]["rounds"]) == (4, 5)


def test_one_query_of_one_image(simulate, tmp_path):
    code, out, err = simulate("latency", "--profile", "pillow_fp32", "--queries", "1")

    found = written(tmp_path / "run")
    assert (code, err) == (0, "")
    assert found["samples"] == 1 and found["latency_ms"]["deploy"]["total"]["mean"] > 0
    assert found["inputs"]["deploy"]["size"] is None
    assert "nan" not in out.lower()


def test_images_that_nobody_has_labelled_are_timed(card, tmp_path):
    images = flat(tmp_path / "flat")
    found = timed("latency", model=card, data=images, out=tmp_path / "run").summary

    assert found["samples"] == 2


@pytest.mark.parametrize("task", ["detection", "segmentation"])
def test_every_task(task, tmp_path):
    found = timed(
        "latency", ["pillow_fp32", "opencv_fp32"], out=tmp_path / "run",
        model=tiny_tasks.card(tmp_path / "model", task), data=tiny_tasks.data(tmp_path / "d", task),
    ).summary  # fmt: skip

    assert (found["task"], found["samples"], found["stacks"]["opencv_fp32"]["failed"]) == (
        task, 4, 0,
    )  # fmt: skip
    assert found["latency_ms"]["opencv_fp32"]["postprocess"]["mean"] > 0


@pytest.mark.parametrize("name", ["yolox_nano", "deeplabv3_257"])
def test_a_real_network(name, tmp_path):
    """Two real photographs; half a billion products take any thread more than 0.1 ms."""
    shared("models")
    found = latency(
        ["pillow_fp32"], model=CARDS / f"{name}.yaml", data=shared("coco") / "images", queries=10,
        out=tmp_path / "run",
    ).summary  # fmt: skip

    assert found["samples"] == 2
    assert found["latency_ms"]["deploy"]["infer"]["min"] > 0.1


# Recorded stacks


def test_a_recorded_stack_has_the_latencies_of_its_table(card, data, tmp_path):
    """3, 4, … 8 ms: the mean is 5.5."""
    profile = board(tmp_path, card, data, latency=[3, 4, 5, 6, 7, 8])
    found = timed("latency", [str(profile)], model=card, data=data, out=tmp_path / "run").summary

    stack = found["stacks"]["deploy"]
    assert (stack["times"], stack["rounds"], stack["queries"]) == ("recorded", 1, 6)
    total = found["latency_ms"]["deploy"]["total"]
    assert (total["min"], total["mean"], total["max"]) == (3, 5.5, 8)
    assert found["protocol"]["warm_up"] == 0 and found["conditions"] is None


def test_a_recorded_stack_beside_a_measured_one_has_no_ratio(card, data, tmp_path):
    profile = board(tmp_path, card, data, latency=[3, 4, 5, 6, 7, 8])
    found = timed(
        "latency", [str(profile), "pillow_fp32"], model=card, data=data, out=tmp_path / "run"
    ).summary

    assert {side: one["times"] for side, one in found["stacks"].items()} == {
        "board": "recorded", "pillow_fp32": "measured",
    }  # fmt: skip
    assert found["ratio"] == {} and found["protocol"]["interleaved"] == []
    assert found["latency_ms"]["board"]["total"]["mean"] == 5.5


def test_all_that_was_recorded_is_used(card, data, tmp_path):
    """Fewer images are drawn where many rounds are to be measured; here there are none."""
    profile = board(tmp_path, card, data, latency=[3, 4, 5, 6, 7, 8])
    found = latency([str(profile)], model=card, data=data, queries=10, out=tmp_path / "run").summary

    assert found["stacks"]["deploy"]["queries"] == 6


# Gates


@pytest.mark.parametrize(
    ("rule", "code", "says"),
    [
        ("deploy.latency.p50 > 10s", 0, "passed"),
        ("deploy.latency.p50 > 0.001us", 1, "FAILED"),
        ("deploy.latency.infer.p50 > 10s", 0, "passed"),
        ("deploy.latency.infer.p90 > 10s", 1, "needs 34 more"),
        ("deploy.latency.p99 > 10s", 1, "30 latencies cannot carry p99; it needs 632 more"),
        ("percentiles.deploy.p99.ms > 1ms", 1, "needs 632 more"),
        ("samples < 6", 0, "passed"),
        ("skipped > 0", 0, "passed"),
        ("spread.deploy.range < 0%", 0, "passed"),
    ],
)
def test_the_exit_code_is_the_gates(simulate, tmp_path, rule, code, says):
    got, out, err = simulate(*ONE, "--limit", "6", "--fail-on", rule)

    assert (got, err) == (code, "")
    assert says in " ".join(out.split())
    assert written(tmp_path / "run")["gate"]["passed"] is (code == 0)


def test_a_ratio_is_judged(simulate):
    pair = ("latency", "--train", "pillow_fp32", "--deploy", "pillow_fp32", "--queries", "10")

    assert simulate(*pair, "--fail-on", "ratio.deploy.value > 100")[0] == 0


@pytest.mark.parametrize("stage", ["color", "decode"])
def test_a_rule_on_a_stage_that_a_stack_does_not_have_fails_and_says_so(simulate, tmp_path, stage):
    """What the run has measured is not lost to a rule: it is known beforehand, or it fails."""
    code, out, err = simulate(
        *ONE, "--limit", "6", "--fail-on", f"deploy.latency.{stage}.p50 > 10s"
    )

    if stage == "decode":
        assert code == 0
    elif code == 2:
        assert "color" in err and not (tmp_path / "run").exists()
    else:
        assert code == 1 and "color" in out


OWN = {"latency": ("--queries", "10"), "tail": ("--rounds", "2")}


@BOTH
def test_json_is_all_there_is_also_where_the_gate_fails(simulate, tmp_path, command):
    rule = ("--fail-on", "deploy.latency.p99 > 1ms")
    code, out, err = simulate(command, "--profile", "pillow_fp32", *OWN[command], "--json", *rule)

    assert (code, err) == (1, "")
    assert json.loads(out) == written(tmp_path / "run")
    assert json.loads(out)["gate"]["passed"] is False


@BOTH
def test_a_run_is_not_overwritten_unless_told(simulate, tmp_path, command):
    given = (command, "--profile", "pillow_fp32", *OWN[command])
    assert simulate(*given)[0] == 0
    before = (tmp_path / "run" / "latencies.parquet").read_bytes()

    assert "choose another --out, or add --overwrite" in one_line(simulate(*given))
    assert (tmp_path / "run" / "latencies.parquet").read_bytes() == before
    assert simulate(*given, "--overwrite")[0] == 0
    assert (tmp_path / "run" / "latencies.parquet").read_bytes() != before


@BOTH
def test_an_unreadable_image_is_skipped_counted_and_named(simulate, data, tmp_path, command):
    (data / "red" / "red0.jpg").write_bytes(b"I am not an image")
    own = ["--queries", "30", "--limit", "6"] if command == "latency" else OWN[command]

    code, out, _ = simulate(command, "--profile", "pillow_fp32", *own)

    found = written(tmp_path / "run")
    assert (code, found["samples"], found["skipped"]) == (0, 5, 1)
    assert "skipped red/red0.jpg: read: no image of a known format" in out
    rows = pq.read_table(tmp_path / "run" / "latencies.parquet").to_pylist()
    assert "red/red0.jpg" not in {row["sample"] for row in rows}
