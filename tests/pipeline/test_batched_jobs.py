"""Batches in the commands that choose samples, their order or their stacks themselves."""

import json
import shutil
import signal
from collections import Counter

import numpy as np
import pytest
import tiny
import tiny_tasks
import warm
import yaml
from warm import ended

import simulator
from backends.ort.runtime import OrtRuntime
from simulator import latency, repair, robustness, sweep
from simulator.errors import UserError
from simulator.pipeline import batched
from simulator.testing import text_specimen

BATCH = "deploy.runtime.batch=4"


@pytest.fixture
def prepared(monkeypatch):
    """The samples that were prepared for batches, in order."""
    found, context_of = [], batched.context_of

    def noted(modality, item):
        found.append(item.name)
        return context_of(modality, item)

    monkeypatch.setattr(batched, "context_of", noted)
    return found


def order(folder):
    return list(json.loads((folder / "manifest.json").read_text())["data"]["images"])


def test_a_pair_that_ends_early_has_batches_in_its_random_order(
    card, ninety, cache, tmp_path, prepared
):
    """BGR is decided after 30 images, which are in eight batches of 4."""
    result = simulator.compare(
        "pillow_fp32", "pillow_fp32", overrides=[BATCH, "deploy.color.order=bgr"], model=card,
        data=ninety, out=tmp_path / "run", quick=True, workers=1, until_decided=True,
        fail_on=["flip_rate > 10%"],
    )  # fmt: skip

    assert result.summary["decided"].samples == 30
    each = list(dict.fromkeys(prepared))
    assert each == order(result.folder)[: len(each)]
    assert 30 <= len(each) < len(order(result.folder))  # a thread is given several at once


def test_a_race_has_batches_in_its_random_order(card, ninety, cache, tmp_path, prepared):
    columns = {"order": {"bgr": {"color.order": "bgr", "runtime.batch": 4}}}
    path = tmp_path / "mine.yaml"
    written = {"schema": 1, "name": "mine", "summary": "one", "train": "pillow_fp32"}
    path.write_text(yaml.safe_dump({**written, "columns": columns}))

    (result,) = sweep(
        str(path), models=[card], data=ninety, out=tmp_path / "run", workers=1,
        until_decided="gate", fail_on=["flip_rate > 10%"],
    )  # fmt: skip

    assert result.summary.early.samples == 30
    assert prepared == order(result.folder)[: len(prepared)]
    assert len(prepared) == 32


def test_a_repair_has_batches_of_the_samples_of_each_of_its_passes(
    card, ninety, cache, tmp_path, prepared
):
    document = {
        "schema": 1, "name": "mine", "summary": "order", "train": "pillow_fp32",
        "deploy": "pillow_fp32",
        "axes": {"order": {"rgb": {"set": {"color.order": "model"}, "cost": {"hours": 3}}}},
    }  # fmt: skip
    path = tmp_path / "repairs.yaml"
    path.write_text(yaml.safe_dump(document))

    summary = repair(
        gate=["flip_rate < 2%"], repairs=str(path), model=card, data=ninety, workers=1,
        overrides=[BATCH, "deploy.color.order=bgr"], out=tmp_path / "run",
    ).summary  # fmt: skip

    assert summary.chosen == "order/rgb"
    each = Counter(prepared)
    assert len(each) == 90
    assert max(each.values()) <= 4


def test_robustness_has_batches_under_every_condition(card, cache, tmp_path, fed):
    suite = {"schema": 1, "name": "mine", "summary": "one", "conditions": {"d": {"j": ["jpeg:5"]}}}
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(suite))
    pair = {"train": "pillow_fp32", "deploy": "pillow_fp32"}

    (result,) = robustness(
        str(path), **pair, models=[card], data=tiny.data(tmp_path / "data", each=6),
        overrides=[BATCH], out=tmp_path / "run",
    )  # fmt: skip

    train, deploy = (of(result, side, "condition", "sample", "digest") for side in pair)
    assert train == deploy
    assert len({condition for condition, _, _ in deploy}) == 2
    assert len(fed) >= 10


def of(result, side, *names):
    """Some columns of a stack's records."""
    rows = result.records().to_pylist()
    return [tuple(row[name] for name in names) for row in rows if row["side"] == side]


def test_a_detector_finds_the_same_boxes_in_batches(cache, tmp_path, fed):
    result = simulator.compare(
        "pillow_fp32", "pillow_fp32", overrides=[BATCH], model=tiny_tasks.card(tmp_path / "model"),
        data=tiny_tasks.data(tmp_path / "data"), out=tmp_path / "run", quick=True,
    )  # fmt: skip

    train, deploy = (of(result, side, "sample", "digest") for side in ("train", "deploy"))
    assert train == deploy
    assert len(fed) >= len(train) / 4


def test_a_run_that_is_killed_within_a_batch_goes_on_with_equal_records(
    card, ninety, cache, tmp_path
):
    command = [
        "--train", "pillow_fp32", "--deploy", "pillow_fp32", "--set", "deploy.runtime.batch=7",
        "--model", card, "--data", ninety, "--quick", "--workers", "1", "--out",
    ]  # fmt: skip
    whole, folder = tmp_path / "whole", tmp_path / "run"
    assert warm.command(*command, whole).returncode == 0
    ended(signal.SIGKILL, folder, "parts/*.parquet", 1, *command, folder)
    assert json.loads((folder / "manifest.json").read_text())["status"] == "running"

    done = warm.command("resume", folder)

    assert done.returncode == 0, done.stderr
    assert records(folder) == records(whole)


def records(folder):
    """All of them without their times."""
    import pyarrow.parquet as pq

    table = pq.read_table(folder / "records.parquet")
    return table.drop_columns([name for name in table.column_names if name == "ns"]).to_pylist()


def test_texts_are_refused_in_a_line(cache, tmp_path):
    texts = tmp_path / "texts"
    texts.mkdir()
    made = text_specimen.write(tmp_path)
    for file in made.files:
        shutil.move(file, texts / file.name)
    with pytest.raises(UserError, match=r"runtime\.batch: texts have different lengths") as error:
        simulator.compare(
            "text_fp32", "text_fp32", overrides=[BATCH], model=made.card, data=texts,
            out=tmp_path / "run",
        )  # fmt: skip
    assert "\n" not in str(error.value)


def test_a_network_that_fails_under_load_is_told(card, cache, tmp_path, monkeypatch):
    pytest.importorskip("mlperf_loadgen")
    run, calls = OrtRuntime._run, []

    def fails(self, feeds):
        calls.extend(len(value) for value in feeds.values())
        if sum(count > 1 for count in calls) > 12 and calls[-1] > 1:
            raise RuntimeError("no more memory")
        return run(self, feeds)

    monkeypatch.setattr(OrtRuntime, "_run", fails)

    summary = latency(
        ["pillow_fp32"], scenario="Offline", batch=[4], queries=100, workers=1,
        model=card, data=tiny.data(tmp_path / "data"), out=tmp_path / "run",
    ).summary  # fmt: skip

    (served,) = summary.served.values()
    assert served.failed > 0
    assert "no more memory" in served.first_failed
    assert np.isfinite(served.qps)
