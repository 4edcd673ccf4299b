"""Samples in tar archives and Parquet files: what webdataset and pyarrow write is read back."""

from __future__ import annotations

import json
import os
import pickle
import tarfile
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datacards import card_of, content, refused
from datacards import tar as packed
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.data import tar
from simulator.data.archive import archive
from simulator.data.folder import IMAGES
from simulator.data.labels import Labels
from simulator.data.shards import find_shards
from simulator.data.source import SOURCES, source_of
from simulator.errors import DataError
from simulator.places import read
from simulator.tasks.classification.task import Classification
from simulator.tasks.detection.task import Detection
from simulator.tasks.settings import Network

LABELS = Labels(("red", "green", "blue"))
TASK = Classification(None, Network(LABELS))
WORDS = st.text("abcXYZ012_-é ", min_size=1, max_size=120).filter(lambda text: text.strip() == text)
SAMPLES = st.dictionaries(WORDS, st.tuples(st.binary(max_size=2000), st.integers(0, 2)), min_size=1)


def table(path, rows, features=None, **options):
    found = pa.Table.from_pylist(rows)
    if features:
        told = json.dumps({"info": {"features": features}})
        found = found.replace_schema_metadata({"huggingface": told})
    pq.write_table(found, path, **options)
    return path


def row(data, label=0, path="a.jpg"):
    return {"image": {"bytes": data, "path": path}, "label": label}


def load(root, task=TASK):
    return task.load(root, IMAGES)


@settings(max_examples=25, deadline=None)
@given(samples=SAMPLES)
def test_what_webdataset_writes_is_read_back(samples):
    webdataset = pytest.importorskip("webdataset")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "a.tar")
        with webdataset.TarWriter(str(place)) as writer:
            for key, (data, label) in samples.items():
                writer.write({"__key__": key, "jpg": data, "cls": label})
        wanted = [(f"a.tar/{key}.jpg", *value) for key, value in sorted(samples.items())]
        assert sorted(content(load(place))) == sorted(wanted)


@settings(max_examples=25, deadline=None)
@given(
    samples=st.lists(st.tuples(st.binary(max_size=2000), st.integers(0, 2)), min_size=1),
    size=st.integers(1, 5),
    compression=st.sampled_from(["snappy", "none", "zstd"]),
)
def test_what_pyarrow_writes_is_read_back(samples, size, compression):
    with tempfile.TemporaryDirectory() as folder:
        rows = [row(data, label) for data, label in samples]
        place = table(Path(folder, "a.parquet"), rows, row_group_size=size, compression=compression)
        wanted = [(f"a.parquet/{at:08}.jpg", *one) for at, one in enumerate(samples)]
        assert content(load(place)) == wanted


def test_places_in_shards_travel(tmp_path):
    """A place is small, and reads the same bytes in the process that it is sent to."""
    packed(tmp_path / "a.tar", ("x.jpg", b"1" * 700))
    table(tmp_path / "a.parquet", [row(b"2" * 700)])
    for name, byte in (("a.tar", b"1"), ("a.parquet", b"2")):
        (item,) = load(tmp_path / name).items
        sent = pickle.dumps(item.path)
        assert len(sent) < 400
        assert read(pickle.loads(sent), 700) == byte * 700
        with pytest.raises(OSError, match="700 bytes; at most 699"):
            read(item.path, 699)


def test_shards_of_a_range_a_pattern_and_a_folder_are_the_same(tmp_path):
    for at in range(3):
        packed(tmp_path / f"val-{at:02}.tar", (f"{at}.jpg", b"x"), (f"{at}.cls", b"%d" % at))
    wanted = [(f"val-{at:02}.tar/{at}.jpg", b"x", at) for at in range(3)]
    for root in ("val-{00..02}.tar", "val-*.tar", "."):
        assert content(load(tmp_path / root)) == wanted
    with pytest.raises(DataError, match=r"val-03.tar: cannot be read: No such file"):
        load(tmp_path / "val-{00..03}.tar")


def test_a_folder_is_one_of_shards_only_without_doubt(tmp_path):
    packed(tmp_path / "a.tar", ("x.jpg", b"x"))
    (tmp_path / "README.md").write_text("")
    assert source_of(tmp_path, IMAGES) is SOURCES["webdataset"]
    (tmp_path / "b.jpg").write_bytes(b"")
    assert source_of(tmp_path, IMAGES) is SOURCES["folder"]
    (tmp_path / "b.jpg").unlink()
    (tmp_path / "red").mkdir()
    assert source_of(tmp_path, IMAGES) is SOURCES["folder"]


def test_shards_of_a_task_that_has_no_classes_are_not_annotated(tmp_path):
    packed(tmp_path / "a.tar", ("x.jpg", b"x"), ("x.cls", b"1"))
    table(tmp_path / "a.parquet", [row(b"x", 1)])
    for name in ("a.tar", "a.parquet"):
        found = load(tmp_path / name, Detection(None, Network(LABELS)))
        assert [item.truth for item in found.items] == [None]


def test_what_is_no_plain_file_is_left_out_and_counted(tmp_path):
    link, pipe = tarfile.TarInfo("y.jpg"), tarfile.TarInfo("z.jpg")
    link.type, link.linkname, pipe.type = tarfile.SYMTYPE, "/etc/passwd", tarfile.FIFOTYPE
    packed(tmp_path / "a.tar", ("x.jpg", b"x"), link, pipe, ("only.cls", b"1"), (".DS_Store", b""))
    for _ in range(2):  # the second time from the index
        found = load(tmp_path / "a.tar")
        assert content(found) == [("a.tar/x.jpg", b"x", None)]
        assert found.notes == (
            "left out 2 members other than plain files: a.tar",
            "left out 1 member without a name before its first dot: a.tar",
            "left out 1 group of files without a sample: a.tar/only",
        )


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ([("../x.jpg", b"x")], "leads out of the folder"),
        ([("/etc/x.jpg", b"x")], "leads out of the folder"),
        ([("x.jpg", b"x"), ("x.jpg", b"y")], "two members are called 'x.jpg'"),
        ([("x.jpg", b"x"), ("x.png", b"y")], "x has jpg and png: which is the image"),
        ([("x.jpg", b"x"), ("x.cls", b"9")], "class index 9 is outside 0 to 2"),
        ([("x.jpg", b"x"), ("x.cls", b"\xff")], "x.cls: is no label"),
        ([("x.cls", b"1")], "has no sample"),
        ([], "has no sample"),
    ],
)
def test_hostile_archives_are_refused_in_one_line(tmp_path, members, why):
    packed(tmp_path / "a.tar", *members)
    with refused(rf"a\.tar.*{why}"):
        load(tmp_path / "a.tar")


@pytest.mark.parametrize("length", [0, 100, 512, 1000, 1024, 2048, 2600])
def test_an_archive_that_is_cut_off_is_refused(tmp_path, length):
    packed(tmp_path / "a.tar", ("x.jpg", b"x"), ("y.jpg", b"y" * 600))
    os.truncate(tmp_path / "a.tar", length)
    with pytest.raises(DataError, match=r"a\.tar.*(cut off|damaged)"):
        load(tmp_path / "a.tar")


def test_garbage_behind_a_member_is_no_end(tmp_path):
    packed(tmp_path / "a.tar", ("x.jpg", b"x"))
    data = bytearray((tmp_path / "a.tar").read_bytes())
    data[1024:1536] = b"g" * 512
    (tmp_path / "a.tar").write_bytes(data)
    with pytest.raises(DataError, match="no header at byte 1,024"):
        load(tmp_path / "a.tar")


def test_headers_that_would_fill_the_memory_are_refused(tmp_path):
    """A long name of 3 MB is no name; a size of 8 GB is behind the end of the file."""
    packed(tmp_path / "a.tar", (f"{'n' * 3_000_000}.jpg", b"x"), format=tarfile.GNU_FORMAT)
    with pytest.raises(DataError, match="a header of 3,000,"):
        load(tmp_path / "a.tar")
    packed(tmp_path / "b.tar", ("x.jpg", b"x"))
    data = bytearray((tmp_path / "b.tar").read_bytes())
    data[124:136] = b"77777777777\0"
    data[148:156] = b"%06o\0 " % (sum(data[:148]) + 8 * 32 + sum(data[156:512]))
    (tmp_path / "b.tar").write_bytes(data)
    with pytest.raises(DataError, match="is cut off: the archive ends before it"):
        load(tmp_path / "b.tar")


def test_packed_archives_are_refused(tmp_path):
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz"):
        pass
    with pytest.raises(DataError, match=r"a\.tar\.gz: is packed, .*; unpack it to \.tar"):
        load(tmp_path / "a.tar.gz")


def test_a_shard_that_changed_is_indexed_anew_and_not_read_by_old_places(tmp_path):
    packed(tmp_path / "a.tar", ("x.jpg", b"x"))
    (old,) = load(tmp_path / "a.tar").items
    packed(tmp_path / "a.tar", ("w.jpg", b"longer"), ("x.jpg", b"z"))
    with pytest.raises(OSError, match=r"a\.tar changed since it was indexed"):
        read(old.path, 99)
    assert [one[:2] for one in content(load(tmp_path / "a.tar"))] == [
        ("a.tar/w.jpg", b"longer"), ("a.tar/x.jpg", b"z"),
    ]  # fmt: skip


def test_labels_are_in_a_json_member_where_a_card_says_so(tmp_path):
    packed(tmp_path / "a.tar", ("x.jpg", b"x"), ("x.json", b'{"class": "Green"}'))
    fields = {"files": "a.tar", "label": "json.class"}
    card_of(tmp_path, "classification", "webdataset", **fields)
    assert [item.truth for item in load(tmp_path).items] == [1]
    packed(tmp_path / "a.tar", ("x.jpg", b"x"), ("x.json", b"{}"))
    with pytest.raises(DataError, match=r"a\.tar: x\.json: is no label: there is no key 'class'"):
        load(tmp_path)


CLASSES = {"label": {"_type": "ClassLabel", "names": ["blue", "red"]}}


def test_classes_of_a_parquet_file_agree_by_name(tmp_path):
    """The file's classes are in another order than the model's; -1 is no label."""
    rows = [row(b"a", 0), row(b"b", 1), row(b"c", -1)]
    table(tmp_path / "a.parquet", rows, CLASSES)
    found = load(tmp_path / "a.parquet")
    assert [item.truth for item in found.items] == [2, 0, None]
    assert found.notes == ("1 of 3 samples have no label",)


def test_classes_that_the_model_does_not_have_are_refused_unless_indices_agree(tmp_path):
    table(
        tmp_path / "a.parquet",
        [row(b"a", 0)],
        {"label": {"_type": "ClassLabel", "names": ["tench"]}},
    )
    with pytest.raises(DataError, match=r"unknown class 'tench'.*`by: index`"):
        load(tmp_path / "a.parquet")
    card_of(tmp_path, "classification", "parquet", files="a.parquet", by="index")
    assert [item.truth for item in load(tmp_path).items] == [0]


@pytest.mark.parametrize(
    ("rows", "fields", "why"),
    [
        ([{"text": "a"}], {}, "0 columns with the bytes of files"),
        ([{"a": b"x", "b": b"y"}], {}, "2 columns with the bytes of files"),
        ([row(b"x")], {"sample": "nothing"}, "nothing is no column with the bytes of files"),
        ([row(b"x")], {"label": "nothing"}, "label: no column nothing; it has image, label"),
        ([row(b"x", 1.5)], {}, "a class expected, got '1.5'"),
    ],
)
def test_parquet_files_without_what_is_asked_for_are_refused(tmp_path, rows, fields, why):
    table(tmp_path / "a.parquet", rows)
    card_of(tmp_path, "classification", "parquet", files="a.parquet", **fields)
    with refused(why):
        load(tmp_path)


def test_a_row_without_bytes_costs_itself(tmp_path):
    table(tmp_path / "a.parquet", [row(b"a"), row(None)])
    found = load(tmp_path / "a.parquet").items
    assert read(found[0].path, 9) == b"a"
    with pytest.raises(OSError, match="the row has no bytes"):
        read(found[1].path, 9)


def test_a_parquet_file_that_is_cut_off_is_refused(tmp_path):
    table(tmp_path / "a.parquet", [row(b"a")])
    os.truncate(tmp_path / "a.parquet", 200)
    with pytest.raises(DataError, match=r"a\.parquet: cannot be read"):
        load(tmp_path / "a.parquet")


def test_an_index_is_made_once(tmp_path, monkeypatch):
    packed(tmp_path / "a.tar", ("x.jpg", b"x"))
    first = content(load(tmp_path / "a.tar"))
    monkeypatch.setattr(tar, "members", None)
    assert content(load(tmp_path / "a.tar")) == first


def test_two_shards_of_one_name_are_refused(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        packed(tmp_path / folder / "x.tar", ("x.jpg", b"x"))
    with pytest.raises(DataError, match="has the same name"):
        find_shards(tmp_path / "*" / "x.tar", ".tar")
    assert archive(tmp_path / "a" / "x.tar").name == "x.tar"


def test_the_card_of_a_url_is_refused():
    with pytest.raises(DataError, match=r"copy the data card here"):
        load("https://host/data.yaml")


def test_shards_behind_urls(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    files = fsspec.filesystem("memory")
    packed(tmp_path / "a.tar", ("x.jpg", b"x"), ("x.cls", b"1"))
    table(tmp_path / "a.parquet", [row(b"y", 2)])
    try:
        for name in ("a.tar", "a.parquet"):
            files.pipe(f"/far/{name[2:]}/{name}", (tmp_path / name).read_bytes())
        assert content(load("memory://far/tar/a.tar")) == [("a.tar/x.jpg", b"x", 1)]
        assert content(load("memory://far/parquet")) == [("a.parquet/00000000.jpg", b"y", 2)]
    finally:
        files.store.clear()


def test_cards_name_shards_beside_them(tmp_path):
    packed(tmp_path / "a.tar", ("x.jpg", b"x"), ("x.cls", b"2"))
    fields = {"files": "a.tar", "label": "cls"}
    card = card_of(tmp_path, "classification", "webdataset", **fields)
    assert content(card.load(LABELS)) == [("a.tar/x.jpg", b"x", 2)]
