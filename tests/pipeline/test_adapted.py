"""A network that adapts, in a run: in order, once, whatever the rest of the run does."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tiny
from onnx import helper
from PIL import Image

import simulator
from backends.pytorch_adapter import TorchAdapter
from simulator import explain, faults, latency, registry, sweep
from simulator.contract import Stage
from simulator.errors import ModelError, ProfileError, UserError
from simulator.pipeline.adapted import contents
from simulator.pipeline.batches import alone, stamp
from simulator.profile.implementations import choose, implementation
from simulator.profile.load import load

TENT = {
    "backend": "onnx2torch", "method": "tent", "batch": 4, "steps": 1, "learning_rate": 0.05,
    "optimizer": "adam", "reset": "never", "order": "shuffled", "seed": 1,
}  # fmt: skip
LISTED = {**TENT, "order": "listed"}
RUNTIME = {
    "backend": "pytorch", "device": "cpu", "threads": 1, "graph_optimization_level": None,
    "mode": "eager", "memory_format": "contiguous", "exporter": {"backend": "onnx2torch"},
}  # fmt: skip


def runtime(adaptation=TENT, side="deploy", **more):
    """The override that lets a stack adapt."""
    return f"{side}.runtime={json.dumps({**RUNTIME, 'adaptation': adaptation, **more})}"


@pytest.fixture
def card(tmp_path):
    """A classifier that normalizes; each logit is the mean of what is above 0 in a channel."""
    nodes = [
        helper.make_node("BatchNormalization", ["x", "scale", "shift", "mean", "var"], ["n"]),
        helper.make_node("Relu", ["n"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["flat"]),
        helper.make_node("Gemm", ["flat", "w"], ["y"]),
    ]
    ones, zeros = np.ones(3, np.float32), np.zeros(3, np.float32)
    held = {"scale": ones, "shift": zeros, "mean": zeros, "var": ones}
    held["w"] = np.eye(3, dtype=np.float32)
    ports = {"x": ["batch", 3, 32, 32]}, {"y": ["batch", 3]}
    return tiny.card(tmp_path / "model", tiny.model(nodes, *ports, held))


@pytest.fixture
def data(tmp_path):
    """Eighteen images: five batches, the last with two."""
    return tiny.data(tmp_path / "data", each=6)


def run(card, data, out, adaptation=TENT, **options):
    own = {"overrides": [runtime(adaptation)], "model": card, "data": data, "out": out}
    return simulator.compare("pillow_fp32", "pillow_fp32", quick=True, **own, **options)


def scores(result, side="deploy"):
    """The score of every sample."""
    rows = result.records().to_pylist()
    return {row["sample"]: row["score"] for row in rows if row["side"] == side}


def manifest(result):
    return json.loads((result.folder / "manifest.json").read_text())


@pytest.fixture
def answered(monkeypatch):
    """The size of every batch that is answered; a number in `stop` of them is the last."""

    class Answered(list):
        stop = None

    found, answer = Answered(), TorchAdapter.answer

    def counted(self, batch):
        if len(found) == found.stop:
            raise KeyboardInterrupt
        found.append(len(batch))
        return answer(self, batch)

    monkeypatch.setattr(TorchAdapter, "answer", counted)
    return found


def test_the_answers_are_those_of_the_batches_in_the_order_of_the_manifest(
    card, data, cache, tmp_path
):
    result = run(card, data, tmp_path / "run", workers=3)

    names = list(manifest(result)["data"]["images"])
    order = manifest(result)["stacks"]["deploy"]["order"]
    assert sorted(order) == list(range(18))
    assert order == [int(at) for at in np.random.default_rng(1).permutation(18)]
    options = {name: value for name, value in TENT.items() if name != "backend"} | {"threads": 1}
    made = implementation(Stage.ADAPT, registry.backend("onnx2torch"), options).make()
    inputs = np.concatenate([pixels(data / names[at]) for at in order])
    made.open(Path(card).parent / "model.onnx", inputs[:4], "y")
    found = scores(result)
    for start in range(0, 18, 4):
        logits = made.answer(inputs[start : start + 4])["y"].astype(np.float64)
        shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
        for at, share in zip(order[start : start + 4], shares.max(1), strict=True):
            assert found[names[at]] == pytest.approx(share, abs=1e-6)


def pixels(path):
    """What `pillow_fp32` makes of an image for the card."""
    image = Image.open(path).convert("RGB").resize((32, 32), Image.Resampling.BICUBIC)
    array = (np.asarray(image, np.float32) - 127) / 64
    return array.transpose(2, 0, 1)[None]


def test_every_batch_is_answered_once_and_the_last_one_is_smaller(
    card, data, cache, tmp_path, answered
):
    one = run(card, data, tmp_path / "one", workers=1)
    many = run(card, data, tmp_path / "many", workers=4)

    assert answered == [4, 4, 4, 4, 2]
    assert scores(one) == scores(many)
    assert scores(one) != scores(one, "train")


def test_what_was_interrupted_goes_on_with_the_next_batch(
    card, data, cache, tmp_path, answered, monkeypatch
):
    answered.stop = 2
    with pytest.raises(KeyboardInterrupt):
        run(card, data, tmp_path / "stopped")
    answered.stop = None
    result = run(card, data, tmp_path / "again")
    monkeypatch.setenv("PIPELINE_SIMULATOR_CACHE", str(tmp_path / "other"))

    whole = run(card, data, tmp_path / "whole")

    assert answered == [4, 4, *[4, 4, 2], *[4, 4, 4, 4, 2]]
    assert scores(result) == scores(whole)
    assert list((cache / "adapting").iterdir()) == []


def test_a_kill_while_batches_are_moved_to_their_place_loses_none(
    card, data, cache, tmp_path, monkeypatch
):
    """The second of ten files (five records, five arrays) is the last that is moved."""
    replace, moved = os.replace, []

    def killed(source, target):
        if Path(target).parent.name.startswith(".making-"):
            moved.append(target)
            if len(moved) == at + 1:
                raise KeyboardInterrupt
        replace(source, target)

    for at in (1, 7):
        moved.clear()
        monkeypatch.setenv("PIPELINE_SIMULATOR_CACHE", str(tmp_path / f"cache{at}"))
        monkeypatch.setattr(os, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            run(card, data, tmp_path / f"stopped{at}")
        monkeypatch.setattr(os, "replace", replace)
        result = run(card, data, tmp_path / f"again{at}")
        monkeypatch.setenv("PIPELINE_SIMULATOR_CACHE", str(cache))

        assert scores(result) == scores(run(card, data, tmp_path / f"whole{at}"))


def test_more_batches_than_files_may_be_open(tmp_path):
    value = np.zeros((1, 3), np.float32)
    for number in range(80):
        record = {"samples": [str(number)], "inputs": [stamp(value)], "outputs": ["y"], "ns": 1}
        (tmp_path / f"{number:05}.json").write_text(json.dumps(record))
        np.save(tmp_path / f"{number:05}-0.npy", np.full((1, 2), number, np.float32))
    done = subprocess.run(
        [sys.executable, "-c", FEW, str(tmp_path)], capture_output=True, text=True, check=False
    )

    assert done.stdout == f"{sum(range(80)):.1f}\n", done.stderr


FEW = """
import resource, sys
from pathlib import Path
import numpy as np
from simulator.pipeline.batches import Answers
resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60))
answers, value = Answers(Path(sys.argv[1])), np.zeros((1, 3), np.float32)
print(sum(float(answers.of(str(number), value).outputs["y"][0, 0]) for number in range(80)))
"""


def test_what_fails_under_the_lock_is_not_said_of_the_lock(tmp_path):
    with pytest.raises(OSError, match="the device is gone"), alone(tmp_path / "work"):
        raise OSError("the device is gone")


def test_a_replaced_file_is_read_again(tmp_path):
    file = tmp_path / "a"
    file.write_bytes(b"one")
    before = contents([file])
    file.write_bytes(b"other")

    assert contents([file]) == [hashlib.sha256(b"other").hexdigest()] != before


def test_a_file_that_cannot_be_read_is_in_no_batch(card, data, cache, tmp_path, answered):
    plain = run(card, data, tmp_path / "plain", LISTED)
    (data / "green" / "a.jpg").write_bytes(b"\xff\xd8 no more")

    damaged = run(card, data, tmp_path / "damaged", LISTED)

    assert answered == 2 * [4, 4, 4, 4, 2]
    assert damaged.summary["skipped"] == 1
    assert scores(damaged) | {"green/a.jpg": None} == scores(plain) | {"green/a.jpg": None}


def test_the_seed_of_the_order_counts_and_so_does_a_condition(card, data, cache, tmp_path):
    first = run(card, data, tmp_path / "a")
    other = run(card, data, tmp_path / "b", {**TENT, "seed": 2})
    under = run(card, data, tmp_path / "c", under="brightness:3")

    assert scores(first) != scores(other)
    assert scores(first) != scores(under)
    assert len(list((cache / "adapted").iterdir())) == 3


def test_the_report_says_that_it_adapts_and_what_its_time_is(card, data, cache, tmp_path):
    summary = run(card, data, tmp_path / "run").summary

    (said,) = [one for one in summary["warnings"] if one.kind == "adapted"]
    assert said.about == ("deploy",)
    assert "tent, batches of 4, reset: never" in said.text


def test_explain_has_the_adaptation_in_the_axis_runtime(card, data, cache, tmp_path):
    changes = [runtime(), "deploy.color.order=bgr"]

    summary = explain(
        "pillow_fp32", "pillow_fp32", overrides=changes, model=card, data=data, out=tmp_path / "run"
    ).summary

    assert summary["axes"] == ["color", "runtime"]
    assert summary["null"] == []


def test_a_suite_with_and_without_leaves_out_what_cannot_adapt(card, data, cache, tmp_path):
    suite = tmp_path / "mine.yaml"
    cast = {
        "precision": {"storage": "fp16", "compute": "fp16", "cast": {"backend": "onnxconverter"}}
    }
    document = {
        "schema": 1, "name": "mine", "summary": "two axes", "train": "pillow_fp32",
        "columns": {"order": {"bgr": {"color.order": "bgr"}}, "fp16": {"half": cast}},
    }  # fmt: skip
    suite.write_text(json.dumps(document))
    own = {"models": [card], "data": data, "out": tmp_path / "runs"}

    (found,) = sweep(str(suite), overrides=[runtime(side="train")], **own)

    assert list(found.summary["columns"]) == ["order"]
    assert "compute" in found.summary["left_out"]["fp16/half"]


def test_a_model_whose_normalization_was_folded_is_refused_before_the_run(data, cache, tmp_path):
    bare = tiny.card(tmp_path / "bare")

    with pytest.raises(ModelError, match="no normalization in it has a scale"):
        run(bare, data, tmp_path / "run")

    assert not (tmp_path / "run").exists()


def test_jobs_that_need_a_network_which_stays_refuse_it(card, data, cache, tmp_path):
    own = {"overrides": [runtime()], "model": card, "data": data, "out": tmp_path / "run"}
    with pytest.raises(UserError, match=r"deploy: measuring latencies needs .* runtime.adaptation"):
        latency(train="pillow_fp32", deploy="pillow_fp32", queries=4, **own)
    with pytest.raises(UserError, match=r"deploy: a campaign of faults needs"):
        faults("weights-transient", train="pillow_fp32", deploy="pillow_fp32", **own)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"batch": 0}, "runtime.adaptation.batch: onnx2torch offers an integer from 1 up here"),
        ({"learning_rate": 0}, "learning_rate: onnx2torch offers a number above 0 here, got 0"),
        ({"learning_rate": "fast"}, "a number above 0 here, got fast"),
        ({"method": "tend"}, "method: onnx2torch offers tent here, got tend; did you mean 'tent'"),
        ({"reset": "always"}, "reset: onnx2torch offers never, batch here, got always"),
        ({"order": "sorted"}, "order: onnx2torch offers shuffled, listed here, got sorted"),
        ({"epochs": 3}, "epochs: onnx2torch has no such field; leave it out"),
        ({"backend": "pillow"}, "runtime.adaptation.backend: pillow does not adapt"),
        ({"optimizer": None}, "optimizer: required by onnx2torch: adam, sgd"),
    ],
)
def test_bad_values_are_a_line_each(change, said):
    wanted = {name: value for name, value in {**TENT, **change}.items() if value is not None}
    (problem,) = problems(runtime(wanted, side="").removeprefix("."))

    assert said in problem


def test_it_runs_in_pytorch_on_the_file_that_the_exporter_takes():
    plain = {"backend": "onnxruntime", "device": "cpu", "threads": 1}
    plain["graph_optimization_level"] = "all"

    (elsewhere,) = problems(f"runtime={json.dumps({**plain, 'adaptation': TENT})}")
    (bare,) = problems(runtime(side="", exporter=None).removeprefix("."))
    (compiled,) = problems(runtime(side="", mode="compile").removeprefix("."))

    assert "onnx2torch adapts networks in pytorch, not in onnxruntime" in elsewhere
    assert "runtime.exporter: {backend: onnx2torch}" in bare
    assert "onnx2torch offers eager here, got compile" in compiled


def problems(override):
    with pytest.raises(ProfileError) as caught:
        choose(load("pillow_fp32", [override]))
    assert all("\n" not in problem for problem in caught.value.problems)
    return caught.value.problems
