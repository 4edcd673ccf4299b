"""A run over many samples: killed twice and resumed it gives what one without a break gives."""

import copy
import gc
import resource
import subprocess
import sys
import tarfile
import tracemalloc
import weakref

import numpy as np
import pyarrow.parquet as pq
import pytest
import tiny
import yaml

from simulator import cli, compare
from simulator.command.options import Progress
from simulator.data.folder import Item
from simulator.errors import RunError
from simulator.experiments import record_store
from simulator.experiments.record_store import BLOCK, RecordStore
from simulator.experiments.running import done_of
from simulator.files import hash_file
from simulator.model.card import Card
from simulator.pipeline import executor
from simulator.pipeline.executor import LocalExecutor, Outcome, SampleResult
from simulator.results import store
from simulator.tasks.score import each

COUNT, FIRST = 3200, 12
SIDES = ("train", "deploy")


@pytest.fixture
def images(tmp_path):
    return tiny.data(tmp_path / "few", each=8)


@pytest.mark.prove
def test_many_links_killed_twice_give_the_records_of_one_run(card, images, cache, tmp_path):
    """The tool of docs/scale.md, on a small scale: exit code 0 says that no record differs."""
    command = [sys.executable, "tools/large_run.py", "--images", str(images), "--model", str(card)]
    done = subprocess.run(
        [*command, "--count", str(COUNT), "--out", str(tmp_path / "out"), "--every", "0.02"],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"| images | {COUNT:,} |" in done.stdout
    assert "| records that differ | none |" in done.stdout


def test_shards_give_the_answers_of_the_files_in_them(card, images, cache, tmp_path):
    """A run over a tar archive has the digests of outputs of one over the folder."""
    with tarfile.open(tmp_path / "a.tar", "w") as file:
        for place in sorted(images.glob("*/*")):
            file.add(place, f"{place.parent.name}-{place.name}")
    pair = ["--train", "pillow_bilinear_fp32", "--deploy", "opencv_fp32", "--model", str(card)]
    found = {}
    for name, data in (("files", images), ("tar", tmp_path / "a.tar")):
        out = tmp_path / name
        assert cli.main([*pair, "--quick", "--data", str(data), "--out", str(out)]) == 0
        found[name] = sorted(read(out)["digest"].to_pylist())
        manifest = yaml.safe_load((out / "manifest.json").read_text())
        assert manifest["data"]["root"] == str(data.resolve())
    assert found["files"] == found["tar"]
    sample, digest = next(iter(manifest["data"]["images"].items()))
    folder, _, name = sample.removeprefix("a.tar/").partition("-")
    assert digest == hash_file(images / folder / name)


def read(out):
    return pq.read_table(out / "records.parquet")


class Looping(LocalExecutor):
    """Runs the first samples; the answers of all others are copies of the last of these."""

    def run(self, plan, items, watch=None):
        first = list(super().run(plan, items[:FIRST], watch))
        yield from first
        last = first[-1]
        for item in items[FIRST:]:
            outcomes = [
                Outcome(copy.deepcopy(dict(one.record)), str(item.name), dict(one.ns))
                for one in last.outcomes
            ]
            yield SampleResult(item, tuple(outcomes), None, copy.deepcopy(last.seen))


class Weighing(Progress):
    """Weighs what Python holds after one block of samples and after three."""

    def __init__(self):
        self.bytes = []

    def advance(self, done, total):
        if done in (BLOCK, 3 * BLOCK):
            gc.collect()
            self.bytes.append(tracemalloc.get_traced_memory()[0])


def test_a_sample_that_is_through_costs_next_to_no_memory(card, cache, tmp_path, monkeypatch):
    """It cost 1,754 bytes with --quick, and a further record for each axis without it."""
    monkeypatch.setitem(executor.EXECUTORS._loaded, "local", Looping)
    monkeypatch.setattr(record_store, "IN_MEMORY", 1)
    monkeypatch.setattr(store, "PAUSE", 0)
    (tmp_path / "one.jpg").write_bytes(tiny.encoded(tiny.picture(tiny.COLORS["red"])))
    (tmp_path / "data" / "red").mkdir(parents=True)
    for number in range(3 * BLOCK):
        (tmp_path / "data" / "red" / f"{number:05}.jpg").symlink_to(tmp_path / "one.jpg")
    stacks = "pillow_bilinear_fp32", "opencv_fp32"
    out, weighing = tmp_path / "out", Weighing()

    tracemalloc.start()
    try:
        compare(*stacks, model=card, data=tmp_path / "data", out=out, workers=1, progress=weighing)
    finally:
        tracemalloc.stop()

    before, after = weighing.bytes
    assert after - before < 100 * 2 * BLOCK
    assert read(out).num_rows == 6 * BLOCK


def test_results_come_back_as_they_were_kept(card, data, cache, tmp_path):
    """In any order, one by one, as records of a stack and as columns; skipped ones have none."""
    (data / "red" / "broken.jpg").write_bytes(b"no JPEG")
    pair = ["--train", "pillow_bilinear_fp32", "--deploy", "opencv_fp32", "--model", str(card)]
    assert cli.main([*pair, "--quick", "--data", str(data), "--out", str(tmp_path / "run")]) == 0
    rows = read(tmp_path / "run").to_pylist()
    task = Card(card).task
    few = [
        done_of(task, Item(two[0]["sample"], data, None), two)
        for two in zip(rows[::2], rows[1::2], strict=True)
    ]
    found = RecordStore(task, tmp_path)
    for one in few * 100:
        found.append(one, SIDES)

    assert list(found) == few * 100 and found[-1] == few[-1] and found[3:5] == few[3:5]
    ran = [one for one in few if one.skipped is None] * 100
    assert (found.ran, len(found.skipped)) == ([one.item for one in ran], 100)
    for arm, side in enumerate(SIDES):
        records = found.records(side)
        expected = [one.outcomes[arm].record for one in ran]
        assert list(records) == expected and records[7] == expected[7]
        order = np.random.default_rng(arm).permutation(len(ran))[:300]
        assert list(records.chosen(order)) == [expected[at] for at in order]
        assert list(each(records, "margin")) == [one["margin"] for one in expected]
        assert records.ns()["infer"].tolist() == [one.outcomes[arm].ns["infer"] for one in ran]


@pytest.fixture
def empty(card, data, tmp_path, monkeypatch):
    """A function that makes the result of a sample, and one that keeps them in a file at once."""
    monkeypatch.setattr(record_store, "IN_MEMORY", 1)
    task = Card(card).task
    record = {column.name: None for column in task.columns}

    def done(stacks):
        return SampleResult(
            Item("a.jpg", data, None), (Outcome(record, "0" * 32, {"infer": 1}),) * stacks
        )

    return done, lambda: RecordStore(task, tmp_path)


@pytest.fixture
def full():
    """The kernel refuses to write past 1000 bytes of a file, as a full disk refuses any."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_told_in_one_line_with_what_to_do(empty, full, tmp_path, monkeypatch):
    """And in no second one when the file is closed, which has the block in memory."""
    done, make = empty
    found, more = make(), []
    monkeypatch.setattr(sys, "unraisablehook", more.append)
    monkeypatch.setattr(record_store, "BLOCK", 2)
    found.append(done(2), SIDES)

    with pytest.raises(RunError) as refused:
        found.append(done(2), SIDES)

    assert str(refused.value) == (
        f"{tmp_path}: the records cannot be kept there: File too large; make room, then: "
        "simulate resume RUN"
    )
    del found, refused
    gc.collect()
    assert more == []


def test_the_file_is_gone_with_the_results(empty):
    """A process that runs many jobs, or a race of many steps, does not wait for its collector."""
    done, make = empty
    found = make()
    for _ in range(BLOCK):
        found.append(done(1), ("0",))
    assert found[7] == done(1) and found.records("0")[7]
    gone = weakref.ref(found)
    gc.disable()
    try:
        del found
        assert gone() is None
    finally:
        gc.enable()


def test_many_stacks_do_not_wait_for_many_samples(empty, monkeypatch):
    """With 40 stacks a block of samples has 10,240 outcomes; 100 of them are 3 samples."""
    monkeypatch.setattr(record_store, "ROWS", 100)
    done, make = empty
    found, waiting = make(), []
    for _ in range(10):
        found.append(done(40), tuple(map(str, range(40))))
        waiting.append(len(found._waiting))

    assert waiting == [40, 80, 0, 40, 80, 0, 40, 80, 0, 40]
    assert list(found) == [done(40)] * 10
