"""Bundles whose few bytes unpack to many objects: refused before the objects are made."""

import io
import json
import tracemalloc
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from simulator.audit import answers, bundle
from simulator.audit.archive import Archive
from simulator.errors import RunError
from simulator.results.json_text import MOST_VALUES, parse_json
from simulator.results.read import read_manifest


def peak(call):
    """Bytes that Python allocated at most during a call that is refused."""
    tracemalloc.start()
    with pytest.raises((RunError, ValueError), match=r"values|bytes; "):
        call()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


EMPTY = b"[" + b"[]," * MOST_VALUES + b"[]]"


def test_many_empty_lists_are_counted_and_not_made(tmp_path):
    (tmp_path / "manifest.json").write_bytes(EMPTY)

    assert peak(lambda: parse_json(EMPTY)) < 2**20
    assert peak(lambda: bundle.parse_object(EMPTY, "x")) < 2**20
    assert peak(lambda: read_manifest(tmp_path)) < 3 * len(EMPTY)


def test_a_list_of_digests_that_unpacks_to_much(tmp_path):
    place = tmp_path / "bundle.zip"
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("digests.json", b'{"a": ' + EMPTY * 2 + b"}")

    with pytest.raises(RunError, match="bytes"), Archive(place) as packed:
        bundle.check(packed)


def test_what_our_own_runs_write_is_read():
    written = {"images": {f"n{number:07}/x.jpg": "0" * 64 for number in range(100_000)}}

    assert parse_json(json.dumps(written)) == written


def test_one_text_that_is_packed_a_thousand_times(monkeypatch):
    """Parquet keeps it once; the limit is lowered, so that the test needs little memory itself."""
    monkeypatch.setattr(answers, "MOST_ANSWERS", 2**22)
    names = [str(number) for number in range(5000)]
    columns = {
        "sample": names * 2,
        "side": ["train"] * 5000 + ["deploy"] * 5000,
        "digest": ["x" * 10**4] * 10**4,
    }
    table = pa.table(columns | {"skipped": pa.nulls(10**4, pa.string())})
    out = io.BytesIO()
    pq.write_table(table, out)
    assert len(out.getvalue()) < 2**20

    with pytest.raises(RunError, match="records of more than 4,194,304 bytes"):
        answers.read_answers(out.getvalue(), {"data": {"images": dict.fromkeys(names)}}, "pairs/x")


def test_a_pipe_is_no_bundle(tmp_path):
    import os

    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(RunError, match="not a regular file"):
        Archive(tmp_path / "pipe")
