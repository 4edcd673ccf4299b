"""``simulate tail``: what a late answer costs, by times that are known and times measured here."""

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import tiny_tasks
from shared_data import shared
from timed_runs import (
    AT_10,
    FOUR,
    figures,
    flat,
    log,
    logged,
    names,
    one_line,
    profile,
    timed,
    written,
)

from simulator import cli, tail
from simulator.command.options import Progress
from simulator.notices import Kind

PAIR = ("--train", "pillow_fp32", "--deploy", "pillow_fp32")
CARDS = Path(__file__).resolve().parents[1] / "cards"


pytestmark = pytest.mark.usefixtures("alone")


# Quality at a deadline


def test_a_late_answer_is_a_wrong_one(card, data, tmp_path):
    """Worked on paper; an answer at the deadline is in time, a nanosecond later it is not."""
    found = logged(tmp_path, card, data, deadlines_ms=[10, 200, 1])

    assert found["tail"]["deploy"]["quality"] == 1
    assert figures(found, "10ms") == pytest.approx(AT_10)
    assert figures(found, "200ms") == {"best": 1, "worst": 1, "mean": 1}
    assert figures(found, "1ms") == {"best": 0, "worst": 0, "mean": 0}
    late = {
        name: one and one["late"] for name, one in found["tail"]["deploy"]["thresholds"].items()
    }
    assert (late["10ms"], late["200ms"], late["1ms"]) == (pytest.approx(4 / 24), 0, 1)
    assert found["tail"]["deploy"]["tail_quality@10ms"] == pytest.approx(1 / 2)


def test_a_wrong_answer_stays_wrong_when_it_is_late(card, data, tmp_path):
    """Red and blue are taken for each other; of the late ones none was right."""
    found = logged(tmp_path, card, data, deadlines_ms=[10], overrides=["deploy.color.order=bgr"])

    assert found["tail"]["deploy"]["quality"] == pytest.approx(1 / 3)
    assert figures(found, "10ms") == pytest.approx({"best": 1 / 3, "worst": 1 / 3, "mean": 1 / 3})


def test_the_thresholds_of_the_tails_are_loadgens_percentiles(card, data, tmp_path):
    """72 times, 0.01 to 0.72 ms: sorted[int(72 * 0.9)] is the 65th; p95 wants 130, p99 662."""
    every = names(data)
    rounds = [
        {None: 0.0} | {name: (6 * number + at + 1) / 100 for at, name in enumerate(every)}
        for number in range(12)
    ]
    found = logged(tmp_path, card, data, rounds)
    thresholds = found["tail"]["deploy"]["thresholds"]

    assert thresholds["90"]["ms"] == 0.65
    assert thresholds["90"]["late"] == pytest.approx(7 / 72)
    assert figures(found, "90") == pytest.approx({"best": 1, "worst": 0, "mean": 65 / 72})
    assert found["tail"]["deploy"]["tail_quality@90"] == 0
    for name, more in (("95", 130 - 72), ("99", 662 - 72)):
        assert thresholds[name] is found["tail"]["deploy"][f"tail_quality@{name}"] is None
        assert f"needs {more} more" in found["missing"][f"tail.deploy.tail_quality@{name}"]


def test_measured_times_are_judged_as_a_reader_of_the_tables_would(card, data, tmp_path):
    """Every image is answered rightly, so that a round's quality is its share in time."""
    run = timed("tail", model=card, data=data, out=tmp_path / "run", deadlines_ms=[0.3, 0.5])
    rows = pq.read_table(run.folder / "latencies.parquet").to_pylist()

    for name, ms in (("0.3ms", 0.3), ("0.5ms", 0.5)):
        intime = [0] * 5
        for row in rows:
            intime[row["round"]] += sum(dict(row["ns"]).values()) <= ms * 1e6
        share = [count / 6 for count in intime]
        assert figures(run.summary, name) == pytest.approx(
            {"best": max(share), "worst": min(share), "mean": sum(share) / 5}
        )


def test_batches_are_instances_and_the_papers_tables_are_printed(simulate_tail, tmp_path, capsys):
    """Six images in batches of 4: two instances, the second of two images."""
    place = tmp_path / "run"
    words = ("--rounds", 4, "--format", "markdown", "--table", "inference-count")
    code, out, _ = simulate_tail("--batch", "1,4", "--scenario", "Offline", *words)

    rows = [line.strip("| ").split(" | ") for line in out.splitlines()]
    assert code == 0
    assert [row[1:6] for row in rows[2:]] == [
        ["deploy-batch1", "1", "6", "not in 4 rounds", "24"],
        ["deploy-batch4", "4", "2", "not in 4 rounds", "8"],
    ]
    batched = [row for row in pq.read_table(place / "latencies.parquet").to_pylist()
               if row["side"] == "deploy-batch4"]  # fmt: skip
    for number in range(4):
        took = [row["total_ns"] for row in batched if row["round"] == number]
        assert len(set(took[:4])) == 1 and len(set(took[4:])) == 1 and took[4] > took[0]
    for table in ("validation", "worst-cases", "deadlines", "input"):
        assert cli.main(["report", str(place), "--format", "csv", "--table", table]) == 0
        assert capsys.readouterr().out.startswith("model,stack,")
    assert cli.main(["report", str(place), "--table", "validatoin"]) == 2
    assert "did you mean 'validation'?" in capsys.readouterr().err


@pytest.mark.parametrize("task", ["detection", "segmentation"])
def test_every_task(task, tmp_path):
    """All in time, none in time, and one of the two scenes with a red square late in one round."""
    model = tiny_tasks.card(tmp_path / "model", task)
    card = tiny_tasks.data(tmp_path / "data", task)
    images = tmp_path / "data" / "images"
    rounds = [{None: 4.0}, {None: 4.0, "00a.jpg": 20.0}]
    table = log(tmp_path / "log.csv", images, rounds)

    found = tail(
        ["pillow_fp32"], model=model, data=card, times=[str(table)], deadlines_ms=[1, 10, 100],
        out=tmp_path / "run",
    ).summary  # fmt: skip

    assert found["tail"]["deploy"]["quality"] == 1
    assert figures(found, "100ms") == {"best": 1, "worst": 1, "mean": 1}
    assert figures(found, "1ms") == {"best": 0, "worst": 0, "mean": 0}
    # Scene a has a red and a blue square, and of each color there is one more elsewhere. AP with
    # half the squares found and none wrong: recall 0.5, 51 of COCO's 101 recall points.
    # IoU: 256 of 512 pixels.
    half = 51 / 101 if task == "detection" else 1 / 2
    assert figures(found, "10ms")["worst"] == pytest.approx((half + half + 1) / 3)
    assert figures(found, "10ms")["best"] == 1


@pytest.mark.parametrize(
    ("name", "images"), [("yolox_nano", "coco_boxes"), ("deeplabv3_257", "coco_masks")]
)
def test_a_real_network_in_time_has_the_quality_of_a_comparison(name, images, tmp_path):
    """Nothing takes ten minutes; everything takes a microsecond."""
    import simulator

    shared("models")
    inputs = {"model": CARDS / f"{name}.yaml", "data": CARDS / f"{images}.yaml", "limit": 4}
    found = tail(
        ["pillow_fp32"], **inputs, rounds=2, deadlines_ms=[0.001, 600_000], out=tmp_path / "run"
    ).summary
    pair = simulator.compare("pillow_fp32", "pillow_fp32", **inputs, out=tmp_path / "pair").summary

    quality = pair["train"]["metric"][found["metric"]]
    assert found["tail"]["deploy"]["quality"] == pytest.approx(quality)
    assert figures(found, "600000ms")["worst"] == pytest.approx(quality)
    assert figures(found, "0.001ms")["best"] == 0


def test_the_less_accurate_stack_may_be_the_better_one_at_a_deadline(card, data, tmp_path):
    """5 ms and a third right against 10 ms and all right: the first wins from 5 to below 10 ms."""
    tables = [
        f"{side}={log(tmp_path / f'{side}.csv', data, [{None: ms}] * 3)}"
        for side, ms in (("train", 10.0), ("deploy", 5.0))
    ]
    found = tail(
        train="pillow_fp32", deploy="pillow_fp32", overrides=["deploy.color.order=bgr"],
        model=card, data=data, times=tables, deadlines_ms=[4, 6, 9.5, 12], out=tmp_path / "run",
    ).summary  # fmt: skip

    worst = {
        side: [found["tail"][side][f"tail_quality@{ms}ms"] for ms in ("4", "6", "9.5", "12")]
        for side in ("train", "deploy")
    }
    assert worst == {"train": [0, 0, 0, 1], "deploy": pytest.approx([0, 1 / 3, 1 / 3, 1 / 3])}
    fast, right = found["better"]
    assert (fast["stack"], fast["from_ms"]) == ("deploy", 5) and 9.5 <= fast["to_ms"] < 10
    assert (right["stack"], right["from_ms"]) == ("train", 10)


def test_the_curve_rises_from_nothing_to_the_whole(card, data, tmp_path):
    found = logged(tmp_path, card, data)["tail"]["deploy"]
    curve = found["curve"]

    assert curve["ms"] == sorted(set(curve["ms"]))
    for key in ("worst", "mean", "best"):
        assert curve[key] == sorted(curve[key]) and curve[key][-1] == found["quality"] == 1
    rows = zip(curve["worst"], curve["mean"], curve["best"], strict=True)
    assert all(worst <= mean <= best for worst, mean, best in rows)


def test_halves_of_the_rounds(card, data, tmp_path):
    """Trained on none and one late, tested on three and none: 5/6 foretold, 1/2 came."""
    found = logged(tmp_path, card, data, deadlines_ms=[10])["tail"]["deploy"]["split"]
    one = found["thresholds"]["10ms"]

    assert found["rounds"] == 2
    assert (one["train"]["worst"], one["test"]["worst"]) == pytest.approx((5 / 6, 1 / 2))
    assert one["delta"]["worst"] == pytest.approx(1 / 2 - 5 / 6)
    assert 0 < found["rjsd"]["pooled"] <= 1


def test_deadlines_that_look_alike_are_two(card, data, tmp_path):
    found = logged(tmp_path, card, data, [{None: 12.500005}], deadlines_ms=[12.5, 12.50001])

    worst = [one["worst"] for one in found["tail"]["deploy"]["thresholds"].values() if one]
    assert sorted(worst) == [0, 1]


def test_a_deadline_given_twice_is_one(card, data, tmp_path):
    found = logged(tmp_path, card, data, deadlines_ms=[10, 10.0])

    assert [name for name in found["tail"]["deploy"]["thresholds"] if name.endswith("ms")] == [
        "10ms"
    ]


# How many rounds


class Rounds(Progress):
    """Counts what is said of rounds."""

    def __init__(self):
        self.said = []

    def say(self, what):
        self.said += [what] if what.startswith("round ") else []


def test_auto_takes_55_rounds_at_least(card, data, tmp_path):
    """30 rounds before the first fit, and 5 more for each fit of the window of 5."""
    told = Rounds()
    found = tail(
        ["pillow_fp32"], model=card, data=data, limit=2, max_rounds=80, out=tmp_path / "run",
        progress=told,
    ).summary  # fmt: skip
    rounds = found["stacks"]["deploy"]["rounds"]
    one = found["convergence"]["deploy"]

    assert 55 <= rounds <= 80 and len(told.said) == rounds
    assert one["inferences"] == 2 * rounds and one["mlperf"] == 270_336
    if one["done_after"] is None:
        assert rounds == 80 and one["settled"] < 2
    else:
        assert rounds == one["done_after"] and (rounds - 55) % 5 == 0 and one["settled"] == 2


def test_auto_stops_at_the_rounds_or_the_time_that_it_may_take(card, data, tmp_path):
    inputs = {"model": card, "data": data}
    few = tail(["pillow_fp32"], **inputs, max_rounds=3, out=tmp_path / "a").summary
    short = tail(["pillow_fp32"], **inputs, max_minutes=1e-9, out=tmp_path / "b").summary

    assert few["stacks"]["deploy"]["rounds"] == 3
    assert short["stacks"]["deploy"]["rounds"] == 1
    for found in (few, short):
        (notice,) = [one for one in found.warnings if one.kind is Kind.STOPPED_EARLY]
        assert "settled" in notice.text and "--max-rounds" in notice.text


def test_one_round_of_one_image(simulate_tail, tmp_path):
    code, out, err = simulate_tail("--rounds", "1", "--limit", "1", "--deadline-ms", "3.6e6")

    found = written(tmp_path / "run")
    assert (code, err) == (0, "")
    assert found["tail"]["deploy"]["split"] is None
    assert found["spread"]["deploy"]["range"] is None
    assert any("one round" in line for line in map(str, found["warnings"]))
    assert "nan" not in out.lower() and "None" not in out


def test_constant_times_have_a_forecast(card, data, tmp_path):
    """A density of equal times is singular; nothing is late at any later deadline."""
    found = logged(tmp_path, card, data, [{None: 5.0}] * 8, deadlines_ms=[4.9, 5.1])
    under = found["tail"]["deploy"]["thresholds"]

    assert under["5.1ms"]["forecast"]["ci95"] == [1, 1]
    assert under["4.9ms"]["forecast"]["ci95"] == [0, 0]
    rjsd = found["tail"]["deploy"]["split"]["rjsd"]
    assert (rjsd["pooled"], rjsd["median"], rjsd["test"]) == pytest.approx((0, 0, 0))


def test_outliers_of_a_nanosecond_and_ten_seconds(card, data, tmp_path):
    rounds = [{None: 5.0, "red/red0.jpg": 1e-6, "red/red1.jpg": 10_000.0}, {None: 5.0}] * 3
    found = logged(tmp_path, card, data, rounds, deadlines_ms=[6])

    assert figures(found, "6ms") == pytest.approx({"best": 1, "worst": 5 / 6, "mean": 11 / 12})
    total = found["latency_ms"]["deploy"]["total"]
    assert (total["min"], total["max"]) == (1e-6, 10_000)


# Gates


@pytest.mark.parametrize(
    ("rule", "code", "says"),
    [
        ("deploy.tail_quality@10ms < 50%", 0, "passed"),
        ("deploy.tail_quality@10ms < 51%", 1, "50"),
        ("deploy.tail_quality@200ms < 100%", 0, "passed"),
        ("deploy.tail_quality@99 < 70%", 1, "24 latencies cannot carry p99; it needs 638 more"),
        ("deploy.tail_quality@90 < 70%", 1, "24 latencies cannot carry p90; it needs 40 more"),
        ("deploy.latency.p99 > 20ms", 1, "24 latencies cannot carry p99; it needs 638 more"),
        ("deploy.latency.p50 > 20ms", 0, "passed"),
        ("deploy.latency.max > 98ms", 1, "99"),
        ("tail.deploy.quality < 99%", 0, "passed"),
    ],
)
def test_the_exit_code_is_the_gates(simulate_tail, data, tmp_path, rule, code, says):
    table = log(tmp_path / "log.csv", data, FOUR)
    deadlines = ("--deadline-ms", "10", "--deadline-ms", "200")
    got, out, err = simulate_tail("--times", table, *deadlines, "--fail-on", rule)

    assert (got, err) == (code, "")
    assert says in " ".join(out.split())
    assert written(tmp_path / "run")["gate"]["passed"] is (code == 0)


@pytest.mark.parametrize("rule", ["ratio.deploy.value > 2", "deploy.latency.infer.p50 > 1ms"])
def test_a_rule_on_what_a_log_does_not_have_costs_no_run(simulate_tail, data, tmp_path, rule):
    """No ratio of a measured to a recorded stack, no stages in a table of totals."""
    table = log(tmp_path / "log.csv", data, FOUR)
    given = ("--times", f"deploy={table}", "--rounds", "1", "--fail-on", rule)
    code, out, err = simulate_tail(*given, one=PAIR)

    name = "ratio" if rule.startswith("ratio") else "infer"
    if code == 2:
        assert name in err and not (tmp_path / "run").exists()
    else:
        assert code == 1 and f"gate ERROR {rule}" in out


@pytest.mark.parametrize("task", ["classification", "detection", "segmentation"])
def test_images_that_nobody_has_labelled_are_refused_before_anything_is_run(
    simulate_tail, card, tmp_path, task
):
    if task == "classification":
        model, images, metric = card, flat(tmp_path / "flat"), "top1"
    else:
        model = tiny_tasks.card(tmp_path / "squares", task)
        tiny_tasks.data(tmp_path / "annotated", task)
        images = tmp_path / "annotated" / "images"
        metric = {"detection": "mAP", "segmentation": "mIoU"}[task]

    message = one_line(simulate_tail(images=images, model=model))

    assert "no label" in message and metric in message
    assert not (tmp_path / "run").exists()


def test_one_image_without_a_label_is_refused_too(simulate_tail, data, tmp_path):
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    for image in data.rglob("*.jpg"):
        shutil.copy(image, mixed)
    rows = [f"{image.name},{image.parent.name}" for image in sorted(data.rglob("*.jpg"))[1:]]
    (mixed / "labels.csv").write_text("\n".join(["file,label", *rows]) + "\n")

    code, _, err = simulate_tail("--rounds", "1", images=mixed)

    assert code in (0, 2)
    if code == 0:  # images without a row are left out, and that is told
        found = written(tmp_path / "run")
        kinds = [one["kind"] for one in found["warnings"] if "left out" in one["text"]]
        assert found["samples"] == 5 and kinds == [Kind.DATA]
    else:
        assert "Traceback" not in err


def test_names_of_stacks_in_rules_and_logs(card, data, tmp_path):
    """As the summary shows them."""
    stacks = [str(profile(tmp_path, "v1.5")), "opencv_fp32"]
    table = log(tmp_path / "log.csv", data, FOUR)
    inputs = {"model": card, "data": data, "rounds": 1, "deadlines_ms": [10]}
    shown, _ = tail(stacks, **inputs, out=tmp_path / "first").summary["stacks"]

    found = tail(
        stacks, **inputs, out=tmp_path / "run", times=[f"{shown}={table}"],
        fail_on=[f"{shown}.tail_quality@10ms < 51%"],
    ).summary  # fmt: skip

    assert found["stacks"][shown]["rounds"] == 4
    assert found["gate"]["rules"][0]["value"] == pytest.approx(1 / 2)
