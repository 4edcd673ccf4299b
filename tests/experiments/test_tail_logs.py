"""``simulate tail`` of times that a device has logged."""

import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from timed_runs import AT_10, FOUR, board, figures, kept, log, logged, one_line

from simulator import tail
from simulator.command.options import Progress
from simulator.errors import RunError
from simulator.latency.reading import timed
from simulator.report.reading import read

pytestmark = pytest.mark.usefixtures("alone")


def parquet(path, table, data):
    pq.write_table(pyarrow.csv.read_csv(table), path)


def shuffled(path, table, data):
    head, *rows = table.read_text().splitlines()
    path.write_text("\n".join([head, *sorted(rows, key=lambda row: row[::-1])]) + "\n")


def without_rounds(path, table, data):
    rows = [line.split(",") for line in table.read_text().splitlines()]
    path.write_text("\n".join(f"{image},{ns}" for image, _, ns in rows) + "\n")


def other_images_too(path, table, data):
    path.write_text(table.read_text() + "red/unknown.jpg,0,1\n")


def in_stages(path, table, data):
    head, *rows = table.read_text().splitlines()
    split = (row.rpartition(",") for row in rows)
    lines = [f"{start},{int(ns) // 2},{int(ns) - int(ns) // 2}" for start, _, ns in split]
    path.write_text("\n".join([head.replace("total", "decode") + ",infer_ns", *lines]) + "\n")


FORMS = (parquet, shuffled, without_rounds, other_images_too, in_stages)


@pytest.mark.parametrize("make", FORMS, ids=lambda make: make.__name__)
def test_a_log_in_any_form_is_the_same(card, data, tmp_path, make):
    table = log(tmp_path / "first.csv", data, FOUR)
    other = tmp_path / ("log.parquet" if make is parquet else "log.csv")
    make(other, table, data)

    found = logged(tmp_path, card, data, times=other, deadlines_ms=[10])

    stack = found["stacks"]["deploy"]
    assert (stack["times"], stack["rounds"], stack["queries"]) == ("recorded", 4, 24)
    assert other.name in stack["source"]
    assert figures(found, "10ms") == pytest.approx(AT_10)
    assert ("infer" in found["latency_ms"]["deploy"]) is (make is in_stages)
    assert found["conditions"] is None and found["protocol"]["warm_up"] == 0


def test_the_log_of_one_of_two_stacks(card, data, tmp_path):
    table = log(tmp_path / "log.csv", data, FOUR)
    found = tail(
        train="pillow_fp32", deploy="opencv_fp32", model=card, data=data, rounds=2,
        times=[f"deploy={table}"], deadlines_ms=[10], out=tmp_path / "run",
    ).summary  # fmt: skip

    assert {side: one["times"] for side, one in found["stacks"].items()} == {
        "train": "measured", "deploy": "recorded",
    }  # fmt: skip
    assert [found["stacks"][side]["rounds"] for side in ("train", "deploy")] == [2, 4]
    assert figures(found, "10ms") == pytest.approx(AT_10)
    assert found["ratio"] == {} and found["protocol"]["interleaved"] == []
    rows = pq.read_table(tmp_path / "run" / "latencies.parquet").to_pylist()
    assert [row["side"] for row in rows] == ["train"] * 12 + ["deploy"] * 24
    assert [row["total_ns"] for row in rows[12:]] == [
        int(line.rpartition(",")[2]) for line in table.read_text().splitlines()[1:]
    ]
    drawn = timed(read(tmp_path / "run")).times
    assert {side: times.rounds for side, times in drawn.items()} == {"train": 2, "deploy": 4}


@pytest.mark.parametrize("own", [None, [1, 1, 1, 1, 1, 40.0]])
def test_a_log_of_a_recorded_stack_goes_before_its_own_table(card, data, tmp_path, own):
    """The board's answers, with or without latencies of their own, and its log."""
    stack = board(tmp_path, card, data, latency=own)
    found = logged(tmp_path, card, data, profiles=[str(stack)], deadlines_ms=[10])

    assert found["stacks"]["deploy"]["rounds"] == 4
    assert found["tail"]["deploy"]["quality"] == 1
    assert figures(found, "10ms") == pytest.approx(AT_10)
    assert not any("no latency" in line for line in map(str, found["warnings"]))


def test_a_recorded_stack_with_its_own_table(card, data, tmp_path):
    """One of six takes 40 ms."""
    stack = board(tmp_path, card, data, latency=[1, 1, 1, 1, 1, 40.0])
    found = tail(
        [str(stack)], model=card, data=data, deadlines_ms=[10], out=tmp_path / "run"
    ).summary

    assert found["stacks"]["deploy"]["times"] == "recorded"
    assert figures(found, "10ms") == pytest.approx({"best": 5 / 6, "worst": 5 / 6, "mean": 5 / 6})


def test_a_recorded_stack_without_a_table_asks_for_a_log(simulate_tail, card, data, tmp_path):
    stack = board(tmp_path, card, data)
    message = one_line(simulate_tail(one=("--profile", stack)))

    assert "no latency was recorded; give --times deploy=FILE" in message
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "no such file"),
        (b"", "log.csv"),
        (b"image,total_ns\n", "the table has no rows"),
        (b"file,total_ns\na,1\n", "no column image"),
        (b"image,total\na,1\n", "unknown column 'total'; known are"),
        (b"image,round\na,1\n", "total_ns"),
        (b"image,total_ns,infer_ns\na,1,1\n", "total_ns"),
        (b"image,total_ns,total_ns\na,1,1\n", "total_ns"),
        (b"\x00\xff", "log.csv"),
        (b'image,total_ns\n"a,1\n', "not a table"),
    ],
)
def test_a_log_that_cannot_be_used_is_one_line_and_nothing_is_run(
    simulate_tail, tmp_path, content, says
):
    path = tmp_path / "log.csv"
    if content is not None:
        path.write_bytes(content)

    message = one_line(simulate_tail("--times", path))

    assert str(path) in message and says in message
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("ns", "says"),
    [("-1", "not a latency"), ("4000000.5", "integer"), ("", "integer"), ("1e30", "integer")],
)
def test_a_log_of_what_is_no_latency(simulate_tail, data, tmp_path, ns, says):
    table = log(tmp_path / "log.csv", data, FOUR)
    table.write_text(table.read_text().replace(",4000000\n", f",{ns}\n", 1))

    message = one_line(simulate_tail("--times", table))

    assert str(table) in message and says in message


def test_a_log_without_one_image_names_it(simulate_tail, data, tmp_path):
    table = log(tmp_path / "log.csv", data, FOUR)
    lines = table.read_text().splitlines()
    table.write_text("\n".join(line for line in lines if "green1.jpg,2" not in line) + "\n")

    assert "green/green1.jpg (round 2)" in one_line(simulate_tail("--times", table))


PAIR = ("--train", "pillow_fp32", "--deploy", "pillow_fp32")


@pytest.mark.parametrize(
    ("one", "given", "says"),
    [
        (PAIR, ["{}"], "STACK=FILE expected, with STACK one of train, deploy"),
        (PAIR, ["other={}"], "STACK=FILE expected, with STACK one of train, deploy"),
        (PAIR, ["={}"], "STACK=FILE expected"),
        (PAIR, ["deploy="], "STACK=FILE expected"),
        (PAIR, ["deploy={}", "deploy={}"], "deploy already has a log"),
        (PAIR[:2], ["{}"], "give --profile, once or more, or both"),
    ],
)
def test_a_log_of_no_stack_of_the_run(simulate_tail, data, tmp_path, one, given, says):
    table = log(tmp_path / "log.csv", data, FOUR)
    options = [word for name in given for word in ("--times", name.format(table))]

    assert says in one_line(simulate_tail(*options, one=one))
    assert not (tmp_path / "run").exists()


def test_a_log_that_has_changed_is_not_resumed(card, data, tmp_path):
    """Half of the run is measured here; the other half's times come from a file."""

    class Stops(Progress):
        def advance(self, done, total):
            if done == 12:
                raise KeyboardInterrupt

    table = log(tmp_path / "log.csv", data, FOUR)
    inputs = {
        "train": "pillow_fp32", "deploy": "pillow_fp32", "model": card, "data": data, "rounds": 4,
        "times": [f"deploy={table}"], "out": tmp_path / "run",
    }  # fmt: skip
    with pytest.raises(KeyboardInterrupt):
        tail(**inputs, progress=Stops())
    before = kept(tmp_path / "run")
    log(table, data, FOUR[:2])

    with pytest.raises(RunError, match="times changed since it was started"):
        tail(**inputs, resume=True)
    assert kept(tmp_path / "run") == before
