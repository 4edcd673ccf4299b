"""Parts of an unfinished run: one that is gone is noticed, the last ones are made again."""

import numpy as np
import pyarrow as pa
import pytest
import tiny

from simulator import cli, compare
from simulator.command.options import Progress
from simulator.errors import RunError
from simulator.results import record_table
from simulator.results.record_table import CHUNK, RecordTable

COLUMNS = [pa.field("prediction", pa.int32())]


def written(folder):
    """Samples 0.0 to 0.2, 3.0 and 3.1, 5.0 to 5.3 in three parts, as a process left them."""
    table, before = RecordTable(COLUMNS, folder, "run"), 0
    for size in (3, 2, 4):
        for at in range(size):
            row = {"sample": f"{before}.{at}", "trial": 0, "prediction": 1}
            table.add([row | {"side": side} for side in "ab"])
        table.flush()
        before += size
    return RecordTable(COLUMNS, folder, "run")


def test_parts_are_read_in_order(tmp_path):
    samples = [*written(tmp_path).earlier()]

    expected = ["0.0", "0.1", "0.2", "3.0", "3.1", "5.0", "5.1", "5.2", "5.3"]
    assert [[row["sample"] for row in rows] for rows in samples] == [[one, one] for one in expected]
    assert all([row["side"] for row in rows] == ["a", "b"] for rows in samples)


@pytest.mark.parametrize(
    ("gone", "next_one"), [("000000000", "000000003"), ("000000003", "000000005")]
)
def test_a_part_that_is_gone_is_noticed(tmp_path, gone, next_one):
    table = written(tmp_path)
    (tmp_path / "parts" / f"run-{gone}.parquet").unlink()

    with pytest.raises(RunError) as caught:
        list(table.earlier())

    assert str(caught.value) == (
        f"{tmp_path}/parts/run-{next_one}.parquet: run-{gone}.parquet is missing before it; "
        "delete it and the parts after it to measure them again"
    )


def test_without_the_last_part_the_others_are_read(tmp_path):
    table = written(tmp_path)
    (tmp_path / "parts" / "run-000000005.parquet").unlink()

    assert len([*table.earlier()]) == 5


@pytest.mark.parametrize("joined", [False, True])
def test_records_without_a_column_of_this_version_are_refused(tmp_path, joined):
    """Nulls in its place would be taken for answers that were not recorded."""
    table, file = written(tmp_path), "records" if joined else "run-0+"
    if joined:
        table.join()
    more = [*COLUMNS, pa.field("best", pa.list_(pa.int32()))]
    with pytest.raises(
        RunError, match=rf"{file}\.parquet: records of another version; start a new"
    ):
        list(RecordTable(more, tmp_path, "run").earlier())


def test_parts_of_a_named_run_are_not_those_of_one_without_a_name(tmp_path):
    written(tmp_path)

    assert [*RecordTable(COLUMNS, tmp_path).earlier()] == []


def on_disk(folder):
    return RecordTable(COLUMNS, folder, "run")


def of_an_earlier_attempt(folder):
    """A process added one sample and ended."""
    table = on_disk(folder)
    table.add([{"sample": "0", "side": side, "trial": 0, "prediction": at}
               for at, side in enumerate("ab")])  # fmt: skip
    table.flush()
    found = on_disk(folder)
    assert len([*found.earlier()]) == 1
    return found


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("made", [lambda _: RecordTable(COLUMNS), on_disk, of_an_earlier_attempt])
def test_columns_are_read_in_any_order(tmp_path, monkeypatch, made, joined):
    """From memory, parts, and groups of 6 rows: row 2 n + i has the prediction 2 n + i."""
    monkeypatch.setattr(record_table, "ROWS_PER_GROUP", 6)
    monkeypatch.setattr(record_table, "MOST", 8)
    table = made(tmp_path)
    for sample in range(table.written, 11):
        table.add([{"sample": str(sample), "side": side, "trial": 0, "prediction": 2 * sample + at}
                   for at, side in enumerate("ab")])  # fmt: skip
    if joined:
        table.join()

    rows = [3, 4, 21, 20, 20, 0, 7, 8, 9]
    assert table.column("prediction", np.array(rows)).to_pylist() == rows
    (first, *_) = table.columns(["side", "prediction"], np.array([12, 13]))
    assert first.to_pylist()[0] == {"side": "a", "prediction": 12}
    assert table.table()["prediction"].to_pylist() == [*range(22)]
    assert table.column("prediction", np.array([], np.int64)).to_pylist() == []


class Stops(Progress):
    def advance(self, done, total):
        if done == 2 * CHUNK + 1:
            raise KeyboardInterrupt


@pytest.mark.parametrize("command", ["resume", "verify"])
def test_a_run_whose_middle_part_is_gone_stops_with_a_line(
    command, card, cache, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(record_table, "PAUSE", 0)
    folder, data = tmp_path / "run", tiny.data(tmp_path / "data", each=CHUNK)
    with pytest.raises(KeyboardInterrupt):
        compare("pillow_fp32", "opencv_fp32", model=card, data=data, out=folder, progress=Stops())
    _, middle, last = sorted((folder / "parts").glob("*.parquet"))
    middle.unlink()

    assert cli.main([command, str(folder)]) == 2

    (line,) = capsys.readouterr().err.strip().splitlines()
    if command == "resume":
        assert f"{last}: {middle.name} is missing before it" in line
