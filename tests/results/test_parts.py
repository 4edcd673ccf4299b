"""Parts of an unfinished run: one that is gone is noticed, the last ones are made again."""

import pyarrow as pa
import pytest
import tiny

from simulator import cli, compare
from simulator.command.options import Progress
from simulator.errors import RunError
from simulator.results import store
from simulator.results.parts import Parts
from simulator.results.store import CHUNK, schema

COLUMNS = schema([pa.field("prediction", pa.int32())])


def sample(name):
    return [{"sample": name, "side": side, "trial": 0, "prediction": 1} for side in "ab"]


def written(folder):
    parts, before = Parts(folder, "run", COLUMNS), 0
    (folder / "parts").mkdir()
    for size in (3, 2, 4):
        names = [f"{before}.{at}" for at in range(size)]
        parts.write([sample(name) for name in names], before)
        before += size
    return parts


def test_parts_are_read_in_order(tmp_path):
    found = written(tmp_path).read()["sample"].to_pylist()

    assert found[::2] == ["0.0", "0.1", "0.2", "3.0", "3.1", "5.0", "5.1", "5.2", "5.3"]
    assert found[::2] == found[1::2]


@pytest.mark.parametrize(
    ("gone", "next_one"), [("000000000", "000000003"), ("000000003", "000000005")]
)
def test_a_part_that_is_gone_is_noticed(tmp_path, gone, next_one):
    parts = written(tmp_path)
    (tmp_path / "parts" / f"run-{gone}.parquet").unlink()

    with pytest.raises(RunError) as caught:
        parts.read()

    assert str(caught.value) == (
        f"{tmp_path}/parts/run-{next_one}.parquet: run-{gone}.parquet is missing before it; "
        "delete it and the parts after it to measure them again"
    )


def test_without_the_last_part_the_others_are_read(tmp_path):
    parts = written(tmp_path)
    (tmp_path / "parts" / "run-000000005.parquet").unlink()

    assert parts.read().num_rows == 2 * 5


def test_parts_without_a_column_of_this_version_are_refused(tmp_path):
    """Nulls in its place would be taken for answers that were not recorded."""
    written(tmp_path)
    more = COLUMNS.append(pa.field("best", pa.list_(pa.int32())))
    with pytest.raises(RunError, match=r"run-0+\.parquet: records of another version; start a new"):
        Parts(tmp_path, "run", more).read()


def test_parts_of_a_named_run_are_not_those_of_one_without_a_name(tmp_path):
    written(tmp_path)

    assert Parts(tmp_path, None, COLUMNS).read().num_rows == 0


class Stops(Progress):
    def advance(self, done, total):
        if done == 2 * CHUNK + 1:
            raise KeyboardInterrupt


@pytest.mark.parametrize("command", ["resume", "verify"])
def test_a_run_whose_middle_part_is_gone_stops_with_a_line(
    command, card, cache, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(store, "PAUSE", 0)
    folder, data = tmp_path / "run", tiny.data(tmp_path / "data", each=CHUNK)
    with pytest.raises(KeyboardInterrupt):
        compare("pillow_fp32", "opencv_fp32", model=card, data=data, out=folder, progress=Stops())
    _, middle, last = sorted((folder / "parts").glob("*.parquet"))
    middle.unlink()

    assert cli.main([command, str(folder)]) == 2

    (line,) = capsys.readouterr().err.strip().splitlines()
    if command == "resume":
        assert f"{last}: {middle.name} is missing before it" in line
