"""Bytes that changed on the disk: a cache entry is made again, a part of a run is refused."""

import json
import os
import signal

import pyarrow as pa
import pyarrow.parquet
import pytest
import tiny
from warm import ended

from simulator import cache as store
from simulator import cli
from simulator.results.parts import read_part, write_part
from simulator.results.read import read_table

INT8 = ("--train", "pillow_fp32", "--deploy", "ort_int8")


def flip(place, at=None):
    """Change one bit of a file, in the middle by default."""
    content = bytearray(place.read_bytes())
    content[len(content) // 2 if at is None else at] ^= 1
    place.write_bytes(content)


def model_of(folder):
    (folder / "model.onnx").write_bytes(b"weights")
    (folder / "more").mkdir(exist_ok=True)
    (folder / "more" / "table").write_bytes(b"scales")


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda place: flip(place / "model.onnx"), "model.onnx has changed"),
        (lambda place: flip(place / "more" / "table"), "more/table has changed"),
        (lambda place: os.truncate(place / "model.onnx", 0), "model.onnx has changed"),
        (lambda place: (place / "model.onnx").unlink(), "No such file"),
        (lambda place: (place / store.DIGESTS).unlink(), "No such file"),
        (lambda place: os.truncate(place / store.DIGESTS, 3), "no list of checksums"),
        (lambda place: (place / store.DIGESTS).write_text("[[]]"), "no list of checksums"),
    ],
)
def test_a_damaged_entry_is_made_again_with_a_note(cache, caplog, damage, why):
    place = store.entry("artifacts/a", model_of)
    damage(place)

    again = store.entry("artifacts/a", model_of)

    assert again == place
    assert (place / "model.onnx").read_bytes() == b"weights"
    assert (place / "more" / "table").read_bytes() == b"scales"
    (note,) = caplog.messages
    assert "is made again" in note and why in note
    assert [one.name for one in place.parent.iterdir()] == ["a"]
    assert store.entry("artifacts/a", pytest.fail) == place


def test_a_run_with_a_flipped_bit_in_its_artifact_gives_the_same_answers(
    cache, card, data, tmp_path, capsys
):
    command = [*INT8, "--model", str(card), "--data", str(data), "--out"]
    assert cli.main([*command, str(tmp_path / "one")]) == 0
    artifacts = sorted((cache / "artifacts").glob("*/model.onnx"))
    assert artifacts
    for place in artifacts:
        flip(place)
    capsys.readouterr()

    assert cli.main([*command, str(tmp_path / "two")]) == 0

    assert capsys.readouterr().err.count("is made again") == len(artifacts)
    one, two = (read_table(tmp_path / name / "records.parquet") for name in ("one", "two"))
    assert one.column("digest") == two.column("digest")


TABLE = pa.table({"sample": ["a", "b"], "ns": [1, 2]})


def test_every_single_flipped_bit_of_a_part_is_noticed(tmp_path):
    place = tmp_path / "000000000.parquet"
    write_part(TABLE, place)
    whole = place.read_bytes()
    assert pa.parquet.read_table(pa.BufferReader(read_part(place))) == TABLE
    for at in range(len(whole)):
        flip(place, at)
        with pytest.raises(ValueError, match="its bytes are not those that were written"):
            read_part(place)
        place.write_bytes(whole)


@pytest.mark.parametrize(
    ("what", "damage"),
    [
        ("000000000.parquet", flip),
        ("000000000.parquet.sha256", lambda place: flip(place, 0)),
        ("000000000.parquet.sha256", lambda place: place.unlink()),
    ],
)
def test_a_run_does_not_go_on_after_a_damaged_part(card, cache, tmp_path, capsys, what, damage):
    data, folder = tiny.data(tmp_path / "data", each=30), tmp_path / "run"
    arguments = ["--train", "pillow_fp32", "--deploy", "opencv_fp32", "--model", card]
    done = ended(
        signal.SIGKILL, folder, "parts/*.parquet", 1, *arguments, "--data", data, "--out", folder
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    first = min((folder / "parts").glob("*.parquet"))
    damage(first.with_name(first.name.replace("000000000.parquet", what)))

    assert cli.main(["resume", str(folder)]) == 2

    note, said = capsys.readouterr().err.splitlines()
    assert note.startswith("note ") and "process" in note, "the lock of the killed one"
    assert f"parts/{first.name}: damaged" in said


def test_a_flipped_bit_in_the_records_of_a_finished_run_is_refused(
    cache, card, data, tmp_path, capsys
):
    folder = tmp_path / "run"
    command = ["--train", "pillow_fp32", "--deploy", "opencv_fp32", "--model", str(card)]
    assert cli.main([*command, "--data", str(data), "--out", str(folder)]) == 0
    capsys.readouterr()
    records = folder / "records.parquet"
    column = pa.parquet.read_metadata(records).row_group(0).column(0)
    flip(records, column.dictionary_page_offset + 40)  # in the names of the samples

    assert cli.main(["report", str(folder)]) == 2

    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "damaged" in said
    assert json.loads((folder / "manifest.json").read_text())["status"] == "complete"
