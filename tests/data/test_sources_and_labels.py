"""Any source with any labels: annotations name samples as the source calls them."""

import pickle
import zipfile

import datacards
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datacards import refused
from web_server import rclone, serving

from simulator.data.address import root_of
from simulator.data.folder import IMAGES
from simulator.data.labels import Labels
from simulator.errors import DataError
from simulator.places import read
from simulator.tasks.classification.task import Classification
from simulator.tasks.detection.task import Detection
from simulator.tasks.settings import Network


@pytest.fixture
def folder(tmp_path):
    """``a.tar`` with 3.jpg and 5.jpg, and the same in ``a.parquet``."""
    datacards.tar(tmp_path / "a.tar", ("3.jpg", b"3"), ("5.jpg", b"5"))
    rows = [{"image": {"bytes": one, "path": "x.jpg"}} for one in (b"3", b"5")]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    return tmp_path


def loaded(folder, *labels, **fields):
    card = datacards.card_of(folder, "classification", **fields)
    return datacards.content(card.load(Labels(labels) if labels else None))


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
    card = datacards.card_of(folder, "transcription", "table", files="a.tar", table="t.csv")
    found = card.load(None, IMAGES, lambda text, where: text)
    assert [item.truth for item in found.items] == ["Hear hear."]


def test_a_text_is_no_truth_of_boxes(folder):
    (folder / "t.csv").write_text("file,label\na.tar/3.jpg,dog\n")
    datacards.card_of(folder, "detection", "table", files="a.tar", table="t.csv")

    with pytest.raises(DataError, match=r"t\.csv:2: a text is no truth for detection"):
        Detection(None, Network()).load(folder, IMAGES)
    found = Detection(None, Network()).load(folder / "a.tar", IMAGES)
    assert [item.truth for item in found.items] == [None, None]


@pytest.fixture
def packed(tmp_path):
    path = tmp_path / "val.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("dog/a b.jpg", "cat/#1.jpg", "cat/.hidden.jpg", "notes.md"):
            archive.writestr(name, name)
    return path


def test_a_zip_archive_is_the_folder_that_was_packed(packed):
    task = Classification(None, Network(Labels(("cat", "dog"))))
    found = task.load(packed, IMAGES)

    assert datacards.content(found) == [
        ("cat/#1.jpg", b"cat/#1.jpg", 0), ("dog/a b.jpg", b"dog/a b.jpg", 1),
    ]  # fmt: skip
    assert found.items[0].path.suffix == ".jpg"
    assert read(pickle.loads(pickle.dumps(found.items[1].path)), 99) == b"dog/a b.jpg"
    assert "ignored 1 hidden file" in found.notes
    with zipfile.ZipFile(packed, "w") as archive:  # an archive that is written anew is opened anew
        archive.writestr("dog/a b.jpg", b"changed")
    assert [read(item.path, 99) for item in task.load(packed, IMAGES).items] == [b"changed"]
    inside = task.load(root_of(f"zip://dog::{packed}"), IMAGES)
    assert [(item.name, read(item.path, 99)) for item in inside.items] == [("a b.jpg", b"changed")]


def test_a_zip_archive_behind_a_url(packed):
    task = Detection(None, Network())
    with serving(packed.parent) as web, pytest.raises(DataError, match="range requests"):
        task.load(root_of(f"{web.url}/val.zip"), IMAGES)
    with rclone("http", packed.parent) as (url, _):
        found = task.load(root_of(f"{url}/val.zip"), IMAGES)
        assert [read(item.path, 99) for item in found.items] == [b"cat/#1.jpg", b"dog/a b.jpg"]


@pytest.mark.parametrize(
    ("content", "why"), [(b"no archive", "is no|not a zip"), (b"", "is no|not a zip")]
)
def test_what_is_no_zip_archive_is_one_line(tmp_path, content, why):
    (tmp_path / "a.zip").write_bytes(content)
    with refused(why):
        Detection(None, Network()).load(tmp_path / "a.zip", IMAGES)


def test_a_zip_archive_that_would_fill_the_memory_or_leads_out_of_itself(tmp_path):
    """A bomb of 30 MB in 30 KB is read to its bound; a name that leads out is refused."""
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.jpg", bytes(30_000_000))
    (item,) = Detection(None, Network()).load(tmp_path / "a.zip", IMAGES).items
    with pytest.raises(OSError, match="at most 1,000 are read"):
        read(item.path, 1000)
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        archive.writestr("../b.jpg", b"b")
    with pytest.raises(DataError, match="leads out of the folder"):
        Detection(None, Network()).load(tmp_path / "b.zip", IMAGES)
