"""Where samples are: files, bytes in memory, URLs; each is read, hashed and sent away alike."""

from __future__ import annotations

import hashlib
import pickle

import fsspec
import pytest
from web_server import serving

from simulator import places
from simulator.contract.image_formats import suffixes
from simulator.data import remote
from simulator.data.folder import Item, load_folder, may_equal
from simulator.data.labels import Labels
from simulator.digests import Digests, sha256
from simulator.errors import DataError, SampleError
from simulator.places import InMemory

RED_GREEN = Labels(("red", "green"))


@pytest.fixture
def in_memory():
    files = fsspec.filesystem("memory")
    yield files
    files.store.clear()


def test_a_file_and_bytes_in_memory_are_read_and_hashed_alike(tmp_path):
    """Both give the bytes; the digest is that of NIST's example abc."""
    (tmp_path / "abc.txt").write_bytes(b"abc")
    sent = pickle.loads(pickle.dumps(InMemory.of(tmp_path / "abc.txt", 3)))
    for place in (tmp_path / "abc.txt", sent):
        assert places.read(place, 3) == b"abc"
        assert place.suffix == ".txt"
        assert sha256(place).startswith("ba7816bf8f01cfea")
        assert places.size_of(place) == 3
        with pytest.raises(SampleError, match="3 bytes; at most 2"):
            places.read_sample(place, 2)


def test_digests_are_by_place(tmp_path):
    (tmp_path / "a").write_bytes(b"a")
    both = [tmp_path / "a", InMemory("b", b"b"), tmp_path / "gone"]
    digests = Digests(both, 2)
    wanted = [hashlib.sha256(b"a").hexdigest(), hashlib.sha256(b"b").hexdigest(), None]
    assert [digests[one] for one in both] == wanted
    digests.close()


def test_samples_of_one_size_may_be_equal(tmp_path):
    """Of a place that does not say its size anything may be equal."""
    items = [Item("a", InMemory("a", b"1"), 0), Item("b", InMemory("b", b"12"), 0)]
    unsaid = Item("c", remote.Url("memory://c"), 0)
    assert may_equal([InMemory("x", b"z")], [*items, unsaid]) == [items[0], unsaid]
    assert may_equal([unsaid.path], items) == items
    assert may_equal([], items) == []


def test_a_folder_behind_a_url_has_labels(in_memory):
    for name in ("red/1.jpg", "green/2.PNG", "red/.hidden.jpg", "red/notes.md"):
        in_memory.pipe(f"/val/{name}", name.encode())
    found = load_folder("memory://val", RED_GREEN)
    assert [(item.name, item.truth) for item in found.items] == [
        ("green/2.PNG", 1),
        ("red/1.jpg", 0),
    ]
    assert found.notes == (
        f"ignored 1 file other than {', '.join(suffixes())}", "ignored 1 hidden file",
    )  # fmt: skip
    sent = pickle.loads(pickle.dumps(found.items[1].path))
    assert (places.read(sent, 99), sent.suffix, places.size_of(sent)) == (b"red/1.jpg", ".jpg", 9)


def test_a_table_behind_a_url_gives_labels(in_memory):
    in_memory.pipe(
        {"/flat/a.jpg": b"a", "/flat/b.jpg": b"b", "/flat/labels.csv": b"file,label\na.jpg,1\n"}
    )
    found = load_folder("memory://flat", RED_GREEN)
    assert [(item.name, item.truth) for item in found.items] == [("a.jpg", 1)]


def test_http_folders_are_listed(tmp_path):
    """The listing of a web server says no sizes; no more than is allowed is taken in."""
    pytest.importorskip("aiohttp")
    (tmp_path / "red").mkdir()
    (tmp_path / "red" / "a b.jpg").write_bytes(bytes(3_000_000))
    with serving(tmp_path) as web:
        (item,) = load_folder(web.url, RED_GREEN).items
        assert (item.name, item.truth) == ("red/a b.jpg", 0)
        assert len(places.read(item.path, 2**30)) == 3_000_000
        with pytest.raises(SampleError, match="at most 1,000 are read"):
            places.read_sample(item.path, 1000)
        gone = remote.Url(f"{web.url}/red/gone.jpg")
        with pytest.raises(SampleError, match="cannot be read: "):
            places.read_sample(gone, 1000)


def test_urls_that_cannot_be_listed_are_refused(in_memory):
    with pytest.raises(DataError, match=r"^memory://none: "):
        load_folder("memory://none", RED_GREEN)
    with pytest.raises(DataError, match=r"^odd://host/a: .*odd"):
        load_folder("odd://host/a", RED_GREEN)


@pytest.mark.parametrize(
    ("text", "truths"),
    [
        ("a.jpg 1\r\nb.jpg 0\r\n", [1, 0]),
        ("a.jpg\nb.jpg\n", [None, None]),
        ("a\nb\n", [None, None]),
    ],
)
def test_val_txt_of_a_flat_folder(tmp_path, text, truths):
    """Caffe's val.txt gives labels; one that only lists names is no table."""
    for name in ("a.jpg", "b.jpg"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "val.txt").write_text(text, newline="")
    assert [item.truth for item in load_folder(tmp_path, RED_GREEN).items] == truths
