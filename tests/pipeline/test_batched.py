"""A network that answers several samples at once, in a run."""

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tiny
from onnx import helper

import simulator
from simulator import explain, faults, latency
from simulator.errors import ModelError, ProfileError, SampleError, UserError
from simulator.pipeline import batched
from simulator.pipeline.batched import _Batch, _Batches
from simulator.pipeline.batches import Given, Kept
from simulator.profile.load import load


@pytest.fixture
def data(tmp_path):
    """Eighteen images."""
    return tiny.data(tmp_path / "data", each=6)


def run(card, data, out, *changes, **options):
    own = {"model": card, "data": data, "out": out, "overrides": list(changes)}
    return simulator.compare("pillow_fp32", "pillow_fp32", quick=True, **own, **options)


def column(result, name, side="deploy"):
    """What a stack's records have of every sample."""
    rows = result.records().to_pylist()
    return {row["sample"]: row[name] for row in rows if row["side"] == side}


def both(result, name="digest"):
    return column(result, name), column(result, name, "train")


@pytest.mark.parametrize("batch", ["batch=4", "batch.dynamic=4", "batch=64"])
def test_each_sample_gets_its_own_answer(card, data, cache, tmp_path, batch):
    result = run(card, data, tmp_path / "run", f"deploy.runtime.{batch}", workers=3)

    deploy, train = both(result)
    assert deploy == train and len(train) == 18


def test_batches_follow_the_order_of_the_run_and_the_last_is_filled_up(
    card, data, cache, tmp_path, fed
):
    result = run(card, data, tmp_path / "run", "deploy.runtime.batch=4", workers=1)

    names = list(json.loads((result.folder / "manifest.json").read_text())["data"]["images"])
    mine = fed[-5:]
    assert [len(one) for one in mine] == [4, 4, 4, 4, 4]
    assert all((row == mine[-1][1]).all() for row in mine[-1][2:])
    assert not (mine[-1][0] == mine[-1][1]).all()
    reds = [name for name in names[:4] if name.startswith("red")]
    assert [bool(row[0].mean() > 1) for row in mine[0]] == [name in reds for name in names[:4]]


def test_a_file_that_cannot_be_read_moves_no_other_sample(card, data, cache, tmp_path, fed):
    """A dynamic batch has what is left."""
    (data / "green" / "green0.jpg").write_bytes(b"\xff\xd8 no more")

    result = run(card, data, tmp_path / "run", "deploy.runtime.batch.dynamic=4", workers=1)

    assert result.summary["skipped"] == 1
    assert sorted(len(one) for one in fed[-5:]) == [2, 3, 4, 4, 4]
    deploy, train = both(result)
    assert deploy == train


def test_the_axis_is_batch_and_explain_has_it(card, data, cache, tmp_path):
    changes = ["deploy.runtime.batch=4", "deploy.color.order=bgr"]

    summary = explain(
        "pillow_fp32", "pillow_fp32", overrides=changes, model=card, data=data, out=tmp_path / "run"
    ).summary

    assert summary["axes"] == ["color", "batch"]
    assert summary["null"] == ["batch"]


def test_the_report_says_what_its_time_is(card, data, cache, tmp_path):
    summary = run(card, data, tmp_path / "run", "deploy.runtime.batch=4").summary

    (said,) = [one for one in summary["warnings"] if one.kind == "batched"]
    assert said.about == ("deploy",)
    assert "batches of 4" in said.text
    assert "filled up" in said.text


def test_jobs_that_need_single_samples_refuse_batches(card, data, cache, tmp_path):
    changes = ["deploy.runtime.batch=4"]
    own = {"overrides": changes, "model": card, "data": data, "out": tmp_path / "run"}
    with pytest.raises(UserError, match=r"deploy: SingleStream sends one sample at a time"):
        latency(train="pillow_fp32", deploy="pillow_fp32", queries=4, **own)
    with pytest.raises(UserError, match=r"deploy: a campaign of faults needs one sample at a time"):
        faults("weights-transient", train="pillow_fp32", deploy="pillow_fp32", **own)


@pytest.mark.parametrize(
    ("profile", "change", "said"),
    [
        ("pillow_fp32", "runtime.batch=0", "runtime.batch"),
        ("pillow_fp32", "runtime.batch.dynamic=1", "runtime.batch"),
        ("ncnn_fp32", "runtime.batch=4", "ncnn does not take several samples at once here; these"),
        ("mnn_fp32", "runtime.batch.dynamic=4", "mnn does not take a dynamic batch here; these"),
    ],
)
def test_a_batch_that_cannot_be_is_refused_in_one_line(profile, change, said):
    with pytest.raises(ProfileError) as error:
        simulator.profile.implementations.choose(load(profile, (change,)))

    assert said in str(error.value)
    assert "\n" not in str(error.value).replace("\n  ", " ")


def test_a_model_whose_samples_meet_is_refused_before_the_run(data, cache, tmp_path):
    node = helper.make_node("Softmax", ["x"], ["z"], name="together", axis=0)
    after = helper.make_node("GlobalAveragePool", ["z"], ["p"])
    flat = helper.make_node("Flatten", ["p"], ["y"])
    card = tiny.card(tmp_path / "model", tiny.model([node, after, flat]))

    with pytest.raises(
        ModelError, match=r"runtime\.batch: .* Softmax .together. works along axis 0"
    ):
        run(card, data, tmp_path / "run", "deploy.runtime.batch=4")

    assert not (tmp_path / "run").exists()


def kept(batch):
    """Answers that are the inputs."""
    return [Kept({"y": one.value}, 1) for one in batch]


def prepared(at):
    return Given(str(at), np.full((1, 2), at, np.float32), at + 1)


def together(count, take):
    """Call a function with each of some numbers, in a thread for each."""
    with ThreadPoolExecutor(count) as threads:
        return [threads.submit(take, at) for at in range(count)]


def test_threads_that_share_a_batch_run_it_once():
    ran = []

    def answer(batch):
        ran.append(len(batch))
        return kept(batch)

    batches = _Batches(lambda number: _Batch(range(8), prepared, answer), 8)

    found = together(8, batches.of)

    assert [one.result()[0].outputs["y"][0, 0] for one in found] == list(range(8))
    assert ran == [8]


def test_an_answer_that_is_taken_again_is_computed_again():
    ran = []
    batches = _Batches(
        lambda number: _Batch(range(2), prepared, lambda batch: ran.append(1) or kept(batch)), 2
    )

    for _ in range(3):
        batches.of(0)

    assert ran == [1, 1, 1]


def test_answers_that_nobody_takes_are_forgotten(monkeypatch):
    monkeypatch.setattr(batched, "KEPT", 40)  # bytes; a batch of two has 16
    batches = _Batches(lambda n: _Batch(range(2 * n, 2 * n + 2), prepared, kept), 2)

    for number in range(10):
        batches.of(2 * number)

    assert len(batches._known) == 2


@pytest.mark.parametrize("kind", [ModelError, SampleError])
def test_an_error_of_one_thread_is_that_of_all(kind):
    def fails(batch):
        raise kind("no")

    batches = _Batches(lambda number: _Batch(range(4), prepared, fails), 4)

    errors = [one.exception() for one in together(4, batches.of)]

    assert [(type(error), str(error)) for error in errors] == [(kind, "no")] * 4


def test_offline_measures_each_batch(card, data, cache, tmp_path, fed):
    pytest.importorskip("mlperf_loadgen")

    summary = latency(
        ["pillow_fp32"], scenario="Offline", batch=[1, 4], queries=10, workers=1,
        model=card, data=data, out=tmp_path / "run",
    ).summary  # fmt: skip

    assert {side: one.batch for side, one in summary.served.items()} == {
        "deploy-batch1": 1,
        "deploy-batch4": 4,
    }
    assert all(one.valid and not one.failed for one in summary.served.values())
    assert {len(one) for one in fed} == {4}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"batch": [4]}, "--batch is for Offline"),
        ({"batch": [4, 4], "scenario": "Offline"}, "different numbers from 1 up expected"),
        ({"batch": [0], "scenario": "Offline"}, "different numbers from 1 up expected"),
    ],
)
def test_batches_of_a_load_are_checked(card, data, cache, tmp_path, options, said):
    with pytest.raises(UserError, match=said):
        latency(["pillow_fp32"], model=card, data=data, out=tmp_path / "run", **options)


@pytest.mark.parametrize(
    ("stack", "batch"),
    [
        ({"backend": "openvino"}, 4),
        ({"backend": "openvino"}, {"dynamic": 4}),
        ({"backend": "onnx_reference"}, {"dynamic": 4}),
    ],
)
def test_other_runtimes_answer_batches(card, data, cache, tmp_path, stack, batch):
    section = {"device": "cpu", "threads": 1, "graph_optimization_level": None, **stack}
    section["batch"] = batch

    result = run(card, data, tmp_path / "run", f"deploy.runtime={json.dumps(section)}")

    deploy, train = both(result, "score")
    assert deploy == pytest.approx(train, abs=1e-5)
