"""Latencies from a device's log: what is taken, and what every mistake in it is told."""

import hashlib
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv, parquet

from simulator.data.folder import Item
from simulator.errors import DataError
from simulator.latency.recorded import load_times

A, B, C = items = [Item(name, Path(name), None) for name in ("red/a.jpg", "b.jpg", "c.jpg")]


def written(folder, table, suffix=".csv"):
    """Write a table, or a CSV file's text."""
    path = Path(folder) / f"log{suffix}"
    if isinstance(table, str):
        path.write_text(table)
    elif suffix == ".csv":
        csv.write_csv(pa.table(table), path)
    else:
        parquet.write_table(pa.table(table), path)
    return path


@pytest.fixture(params=[".csv", ".parquet"])
def load(request, tmp_path):
    """Write a table in either form and read it; the path is kept for messages."""

    def load(table, of=items):
        return load_times(written(tmp_path, table, request.param), of)

    return load


ROUNDS = {
    "image": ["b.jpg", "c.jpg", "red/a.jpg", "c.jpg", "red/a.jpg", "b.jpg"],
    "round": [7, 7, 7, 9, 9, 9],
    "total_ns": [20, 30, 10, 33, 11, 22],
}


def test_rows_with_a_round(load):
    """Only the order of their numbers counts, and a negative one is a number."""
    times = load(ROUNDS)
    turned = {**ROUNDS, "round": [9, 9, 9, -1, -1, -1]}

    assert times.total.tolist() == [[10, 20, 30], [11, 22, 33]]
    assert load(turned).total.tolist() == [[11, 22, 33], [10, 20, 30]]
    assert times.total.dtype == np.int64
    assert (times.rounds, times.failed, dict(times.stages), times.measured) == (2, 0, {}, False)


def test_without_a_round_the_nth_row_of_an_image_is_its_nth_round(load):
    times = load({"image": ROUNDS["image"], "total_ns": ROUNDS["total_ns"]})

    assert times.total.tolist() == [[10, 20, 30], [11, 22, 33]]


def test_stages_are_summed_up(load):
    table = {
        "image": ["red/a.jpg", "b.jpg", "c.jpg"], "infer_ns": [100, 200, 300],
        "decode_ns": [1, 2, 3], "postprocess_ns": [0, 10, 20],
    }  # fmt: skip
    times = load(table)

    assert times.total.tolist() == [[101, 212, 323]]
    assert {name: values.tolist() for name, values in times.stages.items()} == {
        "decode": [[1, 2, 3]], "infer": [[100, 200, 300]], "postprocess": [[0, 10, 20]],
    }  # fmt: skip
    assert list(times.stages) == ["decode", "infer", "postprocess"]


@pytest.mark.parametrize("numbered", [True, False])
def test_other_images_are_passed_over_with_all_that_is_wrong_about_them(load, numbered):
    """Their rounds are no rounds, their times no times, and they may be there twice."""
    table = {
        "image": ["x.jpg", "red/a.jpg", "x.jpg", "b.jpg", "c.jpg", "y.jpg"],
        "total_ns": [-5, 10, None, 20, 30, 10**17],
    } | ({"round": [3, 4, 3, 4, 4, None]} if numbered else {})

    assert load(table).total.tolist() == [[10, 20, 30]]


@pytest.mark.parametrize("kind", [pa.uint8(), pa.int16(), pa.uint64(), pa.int64()])
def test_any_integers_will_do(tmp_path, kind):
    table = {
        "image": pa.array(["red/a.jpg", "b.jpg", "c.jpg"]).dictionary_encode(),
        "round": pa.array([1, 1, 1], kind),
        "total_ns": pa.array([1, 2, 3], kind),
    }

    assert load_times(written(tmp_path, table, ".parquet"), items).total.tolist() == [[1, 2, 3]]


def test_the_source_names_the_file_and_its_content(tmp_path):
    path = written(tmp_path, ROUNDS)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()

    assert load_times(path, items).source == f"log.csv (sha256 {digest[:12]})"


def three(**columns):
    return {"image": ["red/a.jpg", "b.jpg", "c.jpg"], **columns}


KNOWN = (
    "sample, image, round, total_ns, decode_ns, read_ns, tokenize_ns, sensor_ns, develop_ns, "
    "resample_ns, color_ns, stft_ns, mel_ns, resize_ns, geometry_ns, log_ns, feeds_ns, "
    "normalize_ns, front_end_ns, infer_ns, between_ns, follow_ns, vocode_ns, postprocess_ns"
)
REFUSED = {
    "no image": ({"name": ["a"], "total_ns": [1]},
                 "no column image or sample; it has name, total_ns"),
    "no row": ({"image": pa.array([], pa.string()), "total_ns": pa.array([], pa.int64())},
               "the table has no rows"),
    "unknown": (three(total_ns=[1, 2, 3], watts=[1, 2, 3]),
                f"unknown column 'watts'; known are {KNOWN}"),
    "another unit": (three(total_ms=[1, 2, 3]), f"unknown column 'total_ms'; known are {KNOWN}"),
    "no time": (three(round=[1, 1, 1]),
                "needs either total_ns or columns of stages, such as infer_ns"),
    "total and stage": (three(total_ns=[1, 2, 3], infer_ns=[1, 2, 3]),
                        "needs either total_ns or columns of stages, such as infer_ns"),
    "missing": ({"image": ["red/a.jpg", "c.jpg"], "total_ns": [1, 2]},
                "1 of 3 latencies are missing: b.jpg (round 0); each of 3 samples must be in "
                "every round"),
    "missing in a round": (
        {"image": ["red/a.jpg", "b.jpg", "c.jpg", "c.jpg"], "round": [5, 5, 5, 8],
         "total_ns": [1, 2, 3, 4]},
        "2 of 6 latencies are missing: red/a.jpg (round 8), b.jpg (round 8); each of 3 samples "
        "must be in every round"),
    "missing once": (
        {"image": ["red/a.jpg", "b.jpg", "c.jpg", "c.jpg"], "total_ns": [1, 2, 3, 4]},
        "2 of 6 latencies are missing: red/a.jpg (round 1), b.jpg (round 1); each of 3 samples "
        "must be in every round"),
    "none of them": ({"image": ["x.jpg"], "total_ns": [1]},
                     "3 of 3 latencies are missing: red/a.jpg (round 0), b.jpg (round 0), c.jpg "
                     "(round 0); each of 3 samples must be in every round"),
    "none of them in a round": (
        {"image": ["x.jpg"], "round": [6], "total_ns": [1]},
        "3 of 3 latencies are missing: red/a.jpg (round 0), b.jpg (round 0), c.jpg (round 0); "
        "each of 3 samples must be in every round"),
    "twice": ({"image": ["red/a.jpg", "b.jpg", "b.jpg", "c.jpg"], "round": [4, 4, 4, 4],
               "total_ns": [1, 2, 3, 4]},
              "'b.jpg' appears twice in round 4"),
    "negative": (three(total_ns=[1, -2, 3]), "row 2: total_ns: -2 is not a latency in nanoseconds"),
    "absurd": (three(infer_ns=[1, 2, 10**15 + 1]),
               "row 3: infer_ns: 1000000000000001 is not a latency in nanoseconds"),
    "float": (three(total_ns=[1.5, 2.0, 3.0]), "total_ns: integers expected, got double"),
    "words": (three(total_ns=["fast", "1", "2"]), "total_ns: integers expected, got string"),
    "null": (three(total_ns=[1, None, 3]), "row 2: total_ns: an integer expected, got nothing"),
    "null stage": (three(infer_ns=[1, 2, 3], decode_ns=[1, 2, None]),
                   "row 3: decode_ns: an integer expected, got nothing"),
    "nothing at all": (three(total_ns=pa.array([None] * 3, pa.null())),
                       "total_ns: integers expected, got null"),
    "null round": (three(round=[1, None, 1], total_ns=[1, 2, 3]),
                   "row 2: round: an integer expected, got nothing"),
    "half a round": (three(round=[1.0, 1.5, 1.0], total_ns=[1, 2, 3]),
                     "round: integers expected, got double"),
    "named round": (three(round=["x", "y", "z"], total_ns=[1, 2, 3]),
                    "round: integers expected, got string"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_said_in_one_line(load, tmp_path, case):
    table, says = REFUSED[case]

    with pytest.raises(DataError) as refused:
        load(table)

    told = str(refused.value)
    assert told in (f"{tmp_path}/log.csv: {says}", f"{tmp_path}/log.parquet: {says}")


def test_of_many_missing_images_five_are_named(load):
    many = [Item(f"{number}.jpg", Path(), None) for number in range(9)]

    with pytest.raises(DataError) as refused:
        load({"image": ["8.jpg"], "total_ns": [1]}, many)

    assert "8 of 9 latencies are missing" in str(refused.value)
    assert "3.jpg (round 0), 4.jpg (round 0) and 3 more; each of 9 samples" in str(refused.value)


def test_numbers_beyond_64_bits_are_refused(tmp_path):
    table = three(total_ns=pa.array([1, 2, 2**64 - 1], pa.uint64()))

    with pytest.raises(DataError, match=r"log\.parquet: total_ns: .*18446744073709551615"):
        load_times(written(tmp_path, table, ".parquet"), items)


@pytest.mark.parametrize(
    ("text", "suffix", "says"),
    [
        ("", ".csv", "not a table: Empty CSV file"),
        ("", ".parquet", "not a table: "),
        ("image,total_ns\n", ".csv", "the table has no rows"),
        ("image,total_ns\na.jpg\n", ".csv", "not a table: "),
        ("image,total_ns\na,1\n", ".parquet", "not a table: "),
        ("image,total_ns,total_ns\na,1,2\n", ".csv", "there are two columns 'total_ns'; keep one"),
        ("image,image,total_ns\na,b,2\n", ".csv", "there are two columns 'image'; keep one"),
        ("image;total_ns\na;1\n", ".csv", "no column image or sample; it has image;total_ns"),
    ],
)
def test_files_that_are_no_table(tmp_path, text, suffix, says):
    path = written(tmp_path, text, suffix)

    with pytest.raises(DataError) as refused:
        load_times(path, items)

    assert str(refused.value).startswith(f"{path}: {says}") and "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["gone.csv", "gone.parquet", ""])
def test_a_file_that_is_not_there(tmp_path, name):
    with pytest.raises(DataError, match=f"{tmp_path / name}: no such file"):
        load_times(tmp_path / name, items)


@given(st.integers(1, 4), st.integers(1, 5), st.randoms(use_true_random=False), st.booleans())
@settings(max_examples=40, deadline=None)
def test_the_order_of_rows_does_not_matter(rounds, samples, random, stages):
    """Where they name their rounds."""
    values = [[random.randrange(10**15) for _ in range(samples)] for _ in range(rounds)]
    rows = [(f"{at}.jpg", number, values[number][at]) for number in range(rounds)
            for at in range(samples)]  # fmt: skip
    random.shuffle(rows)
    image, number, ns = (list(column) for column in zip(*rows, strict=True))
    table = {"image": image, "round": number, ("infer_ns" if stages else "total_ns"): ns}
    of = [Item(f"{at}.jpg", Path(), None) for at in range(samples)]

    with tempfile.TemporaryDirectory() as folder:
        times = load_times(written(folder, table, random.choice([".csv", ".parquet"])), of)

    assert times.total.tolist() == values
    assert list(times.stages) == (["infer"] if stages else [])
