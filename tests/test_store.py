"""Runs on disk: whole or not at all."""

import json
import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made_results import start, step

from simulator.errors import RunError
from simulator.results.json_text import finite, write_json
from simulator.results.layout import MANIFEST, RECORDS
from simulator.results.parts import ROWS_PER_GROUP
from simulator.results.read import read_run
from simulator.results.store import RunWriter
from simulator.tasks.figures import Delta

COLUMNS = (
    pa.field("label", pa.int32()),
    pa.field("prediction", pa.int32()),
    pa.field("score", pa.float64()),
)
ROW = {
    "sample": "a.jpg", "side": "train", "condition": "jpeg:40", "trial": 2, "prediction": 1,
    "score": 0.5, "ns": [("infer", 7)],
}  # fmt: skip


def write(folder, rows=(ROW,), overwrite=False, summary=None):
    with RunWriter(folder, start(seed=3), COLUMNS, overwrite) as run:
        run.records.add(list(rows))
        run.finish(summary or step(train=0.5), {"seconds": 1})


def status(folder):
    return json.loads((folder / MANIFEST).read_text())["status"]


def test_what_was_written_is_read(tmp_path):
    write(tmp_path / "run")

    manifest, summary, records = read_run(tmp_path / "run")

    assert (manifest.status, manifest.seed, manifest.seconds) == ("complete", 3, 1)
    assert summary == step(train=0.5)
    (row,) = records.to_pylist()
    assert {key: row[key] for key in ROW} == ROW
    assert row["label"] is None and row["skipped"] is None
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == [
        "manifest.json", "records.parquet", "summary.json",
    ]  # fmt: skip


def test_many_rows_keep_their_order(tmp_path):
    count = 2 * ROWS_PER_GROUP + 5
    rows = [{**ROW, "sample": str(n)} for n in range(count)]

    with RunWriter(tmp_path / "run", start(), COLUMNS, False) as run:
        for row in rows:
            run.records.add([row])
        run.finish(step(), {})

    assert read_run(tmp_path / "run")[2]["sample"].to_pylist() == [str(n) for n in range(count)]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, SystemExit])
def test_an_interrupted_run_is_no_run(tmp_path, error):
    folder = tmp_path / "run"

    def interrupted():
        with RunWriter(folder, start(), COLUMNS, False) as run:
            run.records.add([ROW] * (ROWS_PER_GROUP + 1))
            raise error

    with pytest.raises(error):
        interrupted()

    assert status(folder) == "interrupted"
    assert not (folder / RECORDS).exists()
    assert not (folder / "summary.json").exists()
    with pytest.raises(RunError, match="the run is interrupted, not complete"):
        read_run(folder)


def test_a_run_that_is_going_on_is_no_run(tmp_path):
    with RunWriter(tmp_path, start(), COLUMNS, False) as run:
        with pytest.raises(RunError, match="the run is running, not complete"):
            read_run(tmp_path)
        run.finish(step(), {})


def test_a_run_is_not_overwritten_unless_told(tmp_path):
    write(tmp_path)

    with pytest.raises(RunError, match="is not empty; choose another --out, or add --overwrite"):
        write(tmp_path)
    write(tmp_path, [ROW, ROW], overwrite=True)

    assert read_run(tmp_path)[2].num_rows == 2


def test_other_files_in_the_folder_are_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")

    with pytest.raises(RunError, match="is not empty"):
        write(tmp_path)
    with pytest.raises(RunError, match="holds files that are not a run"):
        write(tmp_path, overwrite=True)

    assert (tmp_path / "thesis.txt").read_text() == "mine"


def test_an_interrupted_overwrite_leaves_no_old_figures(tmp_path):
    """The old records must not pass for those of the new profiles."""
    write(tmp_path)

    with pytest.raises(KeyboardInterrupt), RunWriter(tmp_path, start(), COLUMNS, overwrite=True):
        raise KeyboardInterrupt

    assert status(tmp_path) == "interrupted"
    assert not (tmp_path / RECORDS).exists()
    assert not (tmp_path / "summary.json").exists()


@pytest.mark.parametrize("name", ["file", "file/below", "file/a/b", "a" * 300])
def test_a_place_that_cannot_be_written(tmp_path, name):
    (tmp_path / "file").write_text("")

    with pytest.raises(RunError, match=r"cannot be written: .*; choose another --out"):
        write(tmp_path / name)


def test_what_is_not_a_number_is_null(tmp_path):
    write_json(
        tmp_path / "a.json", {"a": [math.nan, 1.5, (math.inf,)], "b": {"c": -math.inf, 2: "→"}}
    )

    text = (tmp_path / "a.json").read_text(encoding="utf-8")

    assert json.loads(text, parse_constant=pytest.fail) == {
        "a": [None, 1.5, [None]], "b": {"c": None, "2": "→"},
    }  # fmt: skip
    assert finite(Delta(value=math.nan, ci95=[math.nan, 0.5])) == {
        "value": None, "ci95": [None, 0.5], "p": None, "method": None,
    }  # fmt: skip
    assert finite(True) is True and finite(0.0) == 0.0


@pytest.mark.parametrize(
    "damage",
    [
        lambda f: (f / MANIFEST).unlink(),
        lambda f: (f / RECORDS).unlink(),
        lambda f: (f / "summary.json").unlink(),
        lambda f: (f / MANIFEST).write_text("{"),
        lambda f: (f / MANIFEST).write_text("[]"),
        lambda f: (f / MANIFEST).write_text("{}"),
        lambda f: (f / MANIFEST).write_bytes(b"\xff\xfe"),
        lambda f: (f / RECORDS).write_bytes((f / RECORDS).read_bytes()[:-20]),
        lambda f: (f / RECORDS).write_text("no parquet"),
    ],
)
def test_a_damaged_run_is_refused(tmp_path, damage):
    write(tmp_path)
    damage(tmp_path)

    with pytest.raises(RunError) as caught:
        read_run(tmp_path)
    assert str(tmp_path) in str(caught.value) and "\n" not in str(caught.value)


def test_records_can_be_read_without_us(tmp_path):
    write(tmp_path)

    assert pq.read_table(tmp_path / RECORDS).num_rows == 1
