"""Any source with any labels: annotations name samples as the source calls them."""

import io
import json
import tarfile

import datacards
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from simulator.data.card import read_card
from simulator.data.folder import IMAGES
from simulator.errors import DataError
from simulator.places import read
from simulator.tasks.detection.task import Detection
from simulator.tasks.task import Network


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """``a.tar`` with 3.jpg and 5.jpg, and the same in ``a.parquet``."""
    monkeypatch.setenv("PIPELINE_SIMULATOR_CACHE", str(tmp_path / "cache"))
    with tarfile.open(tmp_path / "a.tar", "w") as file:
        for name in ("3.jpg", "5.jpg"):
            info = tarfile.TarInfo(name)
            info.size = 1
            file.addfile(info, io.BytesIO(name[:1].encode()))
    rows = [{"image": {"bytes": one, "path": "x.jpg"}} for one in (b"3", b"5")]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    return tmp_path


def loaded(folder, *labels, **fields):
    path = datacards.card(folder, task="classification", **fields)
    path.write_text(path.read_text().replace("images: images\n", ""))
    found = datacards.load(path, *labels)
    return [(item.name, read(item.path, 9), item.truth) for item in found.items]


def test_boxes_of_images_in_a_tar_archive(folder):
    listed = {1: ("a.tar/3.jpg", 40, 30), 2: ("a.tar/gone.jpg", 40, 30)}
    path = datacards.coco(folder, listed, [datacards.box(1, 1, 2, 3, 4, 5, 6)], images="a.tar")
    found = datacards.load(path, "cat", "dog")

    (item,) = found.items
    assert (item.name, item.truth.xywh.tolist()) == ("a.tar/3.jpg", [[3, 4, 5, 6]])
    assert read(item.path, 9) == b"3"
    assert any("not in the folder: a.tar/gone.jpg" in note for note in found.notes)


def test_labels_in_the_names_of_members_of_a_pattern_of_archives(folder):
    assert loaded(folder, format="names", files="*.tar", label=r"a\.tar/(\d)\.jpg") == [
        ("a.tar/3.jpg", b"3", 3), ("a.tar/5.jpg", b"5", 5),
    ]  # fmt: skip


def test_a_table_of_rows_of_a_parquet_file(folder):
    (folder / "t.csv").write_text("file,label\na.parquet/00000001.jpg,dog\n")

    assert loaded(folder, "cat", "dog", format="table", files="a.parquet", table="t.csv") == [
        ("a.parquet/00000001.jpg", b"5", 1)
    ]


def test_what_is_said_may_be_in_a_table(folder):
    """The task says what a text means."""
    (folder / "t.csv").write_text("file,label\na.tar/3.jpg,Hear hear.\n")
    (folder / "data.yaml").write_text(
        json.dumps({"schema": 1, "name": "a", "task": "transcription", "format": "table",
                    "files": "a.tar", "table": "t.csv"})
    )  # fmt: skip
    found = read_card(folder / "data.yaml").load(None, IMAGES, lambda text, where: text)
    assert [item.truth for item in found.items] == ["Hear hear."]


def test_a_text_is_no_truth_of_boxes(folder):
    (folder / "t.csv").write_text("file,label\na.tar/3.jpg,dog\n")
    fields = {"task": "detection", "format": "table", "files": "a.tar", "table": "t.csv"}
    (folder / "data.yaml").write_text(json.dumps({"schema": 1, "name": "a", **fields}))

    with pytest.raises(DataError, match=r"t\.csv:2: a text is no truth for detection"):
        Detection(None, Network()).load(folder, IMAGES)
    found = Detection(None, Network()).load(folder / "a.tar", IMAGES)
    assert [item.truth for item in found.items] == [None, None]
