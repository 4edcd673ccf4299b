"""A run over many samples: killed twice and resumed it gives what one without a break gives."""

import copy
import gc
import resource
import subprocess
import sys
import tarfile
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import tiny
import yaml

from simulator import cli, compare
from simulator.command.options import Progress
from simulator.data.folder import Item
from simulator.errors import RunError
from simulator.experiments.record_store import RecordStore
from simulator.files import hash_file
from simulator.model.card import Card
from simulator.pipeline import executor
from simulator.pipeline.executor import Outcome, SampleResult
from simulator.pipeline.local import LocalExecutor
from simulator.pipeline.plan import Arm
from simulator.results import record_table
from simulator.results.record_table import RecordTable
from simulator.tasks.score import each

COUNT, FIRST, BLOCK = 1600, 12, 256
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
    monkeypatch.setattr(record_table, "PAUSE", 0)
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


def test_records_come_back_as_they_were_added(card, data, cache, tmp_path):
    """In any order, one by one, as records of a stack and as columns; skipped ones have none."""
    (data / "red" / "broken.jpg").write_bytes(b"no JPEG")
    pair = ["--train", "pillow_bilinear_fp32", "--deploy", "opencv_fp32", "--model", str(card)]
    assert cli.main([*pair, "--quick", "--data", str(data), "--out", str(tmp_path / "run")]) == 0
    task, arms = Card(card).task, [Arm(side) for side in SIDES]
    names, rows = [column.name for column in task.columns], read(tmp_path / "run").to_pylist()
    found, expected = RecordStore(task, RecordTable(task.columns, tmp_path)), {}
    for two in [*zip(rows[::2], rows[1::2], strict=True)] * 100:
        skipped = two[0]["skipped"]
        outcomes = [Outcome({name: row[name] for name in names}, row["digest"], dict(row["ns"]))
                    for row in two if not skipped]  # fmt: skip
        found.add(
            SampleResult(Item(two[0]["sample"], data, None), tuple(outcomes), skipped), arms, True
        )
        for arm, one in zip(SIDES, outcomes, strict=False):
            expected.setdefault(arm, []).append(one)

    ran = [row["sample"] for row in rows[::2] if row["skipped"] is None] * 100
    assert ([item.name for item in found.ran], len(found.skipped)) == (ran, 100)
    for arm, side in enumerate(SIDES):
        records, own = found.records(side), [one.record for one in expected[side]]
        assert list(records) == own and records[7] == own[7] and list(records[3:5]) == own[3:5]
        order = np.random.default_rng(arm).permutation(len(ran))[:300]
        assert list(records.chosen(order)) == [own[at] for at in order]
        assert list(each(records, "margin")) == [one["margin"] for one in own]
        assert records.ns()["infer"].tolist() == [one.ns["infer"] for one in expected[side]]


def added(task, table, stacks, samples):
    """A store to which samples were added that all stacks have answered."""
    found, record = RecordStore(task, table), {column.name: None for column in task.columns}
    outcome = Outcome(record, "0" * 32, {"infer": 1})
    for number in range(samples):
        done = SampleResult(Item(f"{number}.jpg", Path(), None), (outcome,) * stacks)
        found.add(done, [Arm(str(at)) for at in range(stacks)])
    return found


def test_a_full_disk_is_told_in_one_line_with_what_to_do(card, tmp_path, monkeypatch):
    """The kernel refuses to write past 1000 bytes of a file, as a full disk refuses any."""
    monkeypatch.setattr(record_table, "MOST", 2)
    task, before = Card(card).task, resource.getrlimit(resource.RLIMIT_FSIZE)
    table = RecordTable(task.columns, tmp_path)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(RunError) as refused:
            added(task, table, 2, 1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert str(refused.value) == (
        f"{tmp_path}: cannot be written: File too large; choose another --out"
    )


def test_many_stacks_do_not_wait_for_many_samples(card, tmp_path, monkeypatch):
    """With 40 stacks a chunk of 32 samples has 1,280 rows; 100 of them are 3 samples."""
    monkeypatch.setattr(record_table, "MOST", 100)
    task = Card(card).task

    found = added(task, RecordTable(task.columns, tmp_path), 40, 10)

    parts = [pq.read_metadata(part).num_rows for part in sorted(tmp_path.glob("parts/*.parquet"))]
    assert parts == [120, 120, 120]
    assert len(found.records("39")) == 10 and found.table.table().num_rows == 400
