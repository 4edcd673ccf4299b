import io
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from simulator.contract.image_formats import suffixes
from simulator.data.folder import Dataset, Item, load_folder, read, subset
from simulator.data.labels import Labels
from simulator.errors import DataError, SampleError

LABELS = Labels(
    ("tench", "great white shark", "crane", "crane"), ("n00", "n01", "n02012849", "n03126707")
)


def jpeg():
    file = io.BytesIO()
    Image.new("RGB", (3, 2), (10, 20, 30)).save(file, "JPEG")
    return file.getvalue()


JPEG = jpeg()


def fill(root, *names):
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(JPEG)
    return root


def seen(dataset):
    return [(item.name, item.truth) for item in dataset.items]


def refusal(root, labels=LABELS):
    with pytest.raises(DataError) as caught:
        load_folder(root, labels)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_class_folders_by_wnid_index_and_name(tmp_path):
    fill(tmp_path, "n03126707/b.JPEG", "2/c.png", "Great_White-Shark/deep/d.Jpg", "tench/a.jpeg")

    got = load_folder(tmp_path, LABELS)

    assert got.labelled
    assert seen(got) == [
        ("2/c.png", 2),
        ("Great_White-Shark/deep/d.Jpg", 1),
        ("n03126707/b.JPEG", 3),
        ("tench/a.jpeg", 0),
    ]
    assert got.items[0].path == tmp_path / "2/c.png"


def test_class_folders_without_a_label_file_are_indices(tmp_path):
    fill(tmp_path, "0/a.jpg", "12/b.jpg")
    assert seen(load_folder(tmp_path, None)) == [("0/a.jpg", 0), ("12/b.jpg", 12)]

    fill(tmp_path, "tench/c.jpg")
    assert "1 of 3 class folders: tench; the model card has no label file" in refusal(
        tmp_path, None
    )


def test_class_folders_that_match_nothing_are_named_with_what_was_meant(tmp_path):
    fill(tmp_path, "tensh/a.jpg", *(f"x{n}/a.jpg" for n in range(6)), "tench/a.jpg")
    said = refusal(tmp_path)

    assert "7 of 8 class folders: unknown class 'tensh'; did you mean 'tench'?" in said
    assert "'x3'" in said
    assert "'x4'" not in said
    assert "), …; write" in said


def test_where_no_folder_is_a_class_the_images_may_lie_one_folder_down(tmp_path):
    said = refusal(fill(tmp_path, "images/a.jpg"))

    assert "no class of the model for 1 of 1 class folder" in said
    assert said.endswith("or give the folder that holds the images itself")


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ("labels.csv", "file,label\nb.jpg,tench\n./sub/a.jpg,n03126707\n"),
        ("labels.csv", "\ufeffextra, Index ,Filename\r\n?,0,b.jpg\r\n?,3,sub/a.jpg\r\n"),
        ("labels.csv", 'image,class\n"b.jpg","tench"\n\n"sub/a.jpg",3\n'),
        ("labels.csv", "path,wnid\nsub/a.jpg,n03126707\nb.jpg,n00\n"),
        ("labels.txt", "b.jpg 0\nsub/a.jpg   3\n\n"),
        ("labels.txt", "b.jpg\ttench\nsub/a.jpg\tn03126707"),
    ],
)
def test_tables(tmp_path, table, text):
    fill(tmp_path, "b.jpg", "sub/a.jpg")
    (tmp_path / table).write_bytes(text.encode())

    got = load_folder(tmp_path, LABELS)

    assert seen(got) == [("b.jpg", 0), ("sub/a.jpg", 3)]
    assert got.notes == ()


def test_a_tab_lets_names_and_classes_hold_spaces(tmp_path):
    fill(tmp_path, "my image.jpg")
    table = tmp_path / "labels.txt"

    table.write_text("my image.jpg\tgreat white shark\n")
    assert seen(load_folder(tmp_path, LABELS)) == [("my image.jpg", 1)]
    table.write_text("my image.jpg 1\n")
    assert seen(load_folder(tmp_path, LABELS)) == [("my image.jpg", 1)]


def test_images_without_a_row_are_left_out_and_counted(tmp_path):
    fill(tmp_path, "a.jpg", "b.jpg", "c.jpg")
    (tmp_path / "labels.csv").write_text("file,index\nb.jpg,7\n")

    got = load_folder(tmp_path, None)

    assert seen(got) == [("b.jpg", 7)]
    assert got.notes == ("left out 2 images without a row in labels.csv",)


@pytest.mark.parametrize(
    ("table", "data", "says"),
    [
        ("labels.csv", b"file,label\na.jpg,0\nb.jpg,9\n", ":3: class index 9 is outside 0 to 3"),
        ("labels.csv", b"file,label\na.jpg,tensh\n", ":2: unknown class 'tensh'; did you mean"),
        (
            "labels.csv",
            b"file,label\na.jpg,0\na.jpg,0\n",
            ":3: 'a.jpg' already has a row in line 2",
        ),
        ("labels.txt", b"a.jpg 0\n./a.jpg 1\n", ":2: 'a.jpg' already has a row in line 1"),
        ("labels.csv", b"file,label\na.jpg,0,x\n", ":2: 3 columns, the header has 2"),
        ("labels.csv", b"a.jpg,0\n", ":1: no file column in the header 'a.jpg,0'"),
        ("labels.csv", b"file;label\na.jpg;0\n", ":1: no file column"),
        ("labels.csv", b"file,what\na.jpg,0\n", ":1: no label column"),
        ("labels.csv", b"file,label,wnid\na.jpg,0,n00\n", "several label columns (label, wnid)"),
        ("labels.csv", b"", ":1: no file column in the header ''"),
        ("labels.csv", b"file,label\n", "labels.csv: has no row"),
        ("labels.txt", b"\n", "labels.txt: has no row"),
        ("labels.txt", b"a.jpg\n", ":1: expected 'file label', got 'a.jpg'"),
        ("labels.csv", b"file,label\na.jpg,\xff\n", ":2: not UTF-8"),
        ("labels.csv", b'file,label\n"a.jpg,0\n', "not comma-separated text"),
    ],
)
def test_bad_tables(tmp_path, table, data, says):
    fill(tmp_path, "a.jpg", "b.jpg")
    (tmp_path / table).write_bytes(data)

    said = refusal(tmp_path)

    assert str(tmp_path / table) in said
    assert says in said


def test_rows_without_a_file_are_listed(tmp_path):
    fill(tmp_path, "a.jpg")
    rows = [f"m{number}.jpg,0\n" for number in range(7)]
    (tmp_path / "labels.csv").write_text("file,label\na.jpg,0\n" + "".join(rows))
    said = refusal(tmp_path)

    assert "7 rows without a file: 'm0.jpg' (line 3)" in said
    assert "'m4.jpg' (line 7), …" in said


def test_a_table_without_a_label_file_needs_indices(tmp_path):
    fill(tmp_path, "a.jpg")
    for label in ("tench", "-1"):
        (tmp_path / "labels.csv").write_text(f"file,label\na.jpg,{label}\n")
        assert "labels.csv:2: class" in refusal(tmp_path, None)


def test_two_tables_are_one_too_many(tmp_path):
    fill(tmp_path, "a.jpg", "labels.csv", "labels.txt")
    assert "has both labels.csv and labels.txt; keep one" in refusal(tmp_path)


def test_a_flat_folder_has_no_labels(tmp_path):
    got = load_folder(fill(tmp_path, "b.PNG", "a.jpg"), LABELS)

    assert not got.labelled
    assert seen(got) == [("a.jpg", None), ("b.PNG", None)]


def test_hidden_and_other_files_are_counted(tmp_path):
    fill(tmp_path, "a.jpg", ".b.jpg", ".git/c.jpg", "notes.md", "d.psd", "empty/readme.txt")

    got = load_folder(tmp_path, None)

    assert seen(got) == [("a.jpg", None)]
    assert got.notes == (
        f"ignored 3 files other than {', '.join(suffixes())}",
        "ignored 2 hidden files",
    )


def test_links_are_followed_but_not_in_circles(tmp_path):
    root, outside = tmp_path / "root", fill(tmp_path / "outside", "x.jpg")
    root.mkdir()
    (root / "tench").symlink_to(outside, target_is_directory=True)
    (outside / "again").symlink_to(root, target_is_directory=True)
    (outside / "self.jpg").symlink_to("self.jpg")
    (outside / "dangling.jpg").symlink_to("gone.jpg")

    got = load_folder(root, LABELS)

    assert seen(got) == [("tench/dangling.jpg", 0), ("tench/self.jpg", 0), ("tench/x.jpg", 0)]
    assert read(got.items[2]).width == 3
    for item in got.items[:2]:
        with pytest.raises(SampleError, match="cannot be read"):
            read(item)


def test_a_pipe_is_not_an_image(tmp_path):
    os.mkfifo(fill(tmp_path, "a.jpg") / "pipe.jpg")

    assert seen(load_folder(tmp_path, None)) == [("a.jpg", None)]


def test_a_name_that_is_not_utf8_can_still_be_reported(tmp_path):
    name = os.fsdecode(b"caf\xe9.jpg")
    try:
        fill(tmp_path, name)
    except (OSError, UnicodeError):
        pytest.skip("this file system takes UTF-8 names only")
    (item,) = load_folder(tmp_path, None).items

    assert item.name == "caf\\xe9.jpg"
    assert read(item).width == 3


def test_the_path_of_one_image_is_that_image(tmp_path):
    fill(tmp_path, "a.jpg", "b.jpg")

    assert seen(load_folder(tmp_path / "b.jpg", None)) == [("b.jpg", None)]


def test_folders_that_cannot_be_used(tmp_path):
    (tmp_path / "empty").mkdir()
    fill(tmp_path, "mixed/a.jpg", "mixed/tench/b.jpg")

    assert "there is no such folder" in refusal(tmp_path / "none")
    assert "is a file; give the folder" in refusal(Path(__file__))
    assert "has no image" in refusal(tmp_path / "empty")
    assert "1 image directly in it and others in folders (tench)" in refusal(tmp_path / "mixed")


def test_a_folder_that_may_not_be_read(tmp_path, monkeypatch):
    """Root may read everything, so the refusal comes from a stand-in."""

    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "scandir", refuse)
    assert refusal(tmp_path) == f"{tmp_path}: cannot be read: Permission denied"


def test_read_gives_the_header_or_skips_the_sample(tmp_path):
    fill(tmp_path, "a.jpg")
    (tmp_path / "b.jpg").write_bytes(b"not an image")
    good, bad = load_folder(tmp_path, None).items

    assert (read(good).name, read(good).format, read(good).height) == ("a.jpg", "jpeg", 2)
    with pytest.raises(SampleError, match="no image of a known format"):
        read(bad)


def numbered(count):
    items = tuple(Item(f"{n:03}.jpg", Path(f"{n:03}.jpg"), n) for n in range(count))
    return Dataset(Path(), items, ("a note",))


@given(st.integers(1, 60), st.integers(1, 80), st.integers(0, 2**32))
def test_a_subset_is_reproducible_in_order_and_of_its_size(count, limit, seed):
    whole = numbered(count)
    part = subset(whole, limit, seed)

    assert part == subset(whole, limit, seed)
    assert len(part.items) == min(limit, count)
    assert list(part.items) == [item for item in whole.items if item in set(part.items)]
    assert part.notes == whole.notes


def test_another_seed_takes_another_subset():
    whole = numbered(100)

    assert subset(whole, 10, 0) != subset(whole, 10, 1)
    assert subset(whole, None, 0) == subset(whole, 100, 5) == whole


def test_bad_limits():
    with pytest.raises(DataError, match="limit must be at least 1, got 0"):
        subset(numbered(3), 0, 0)
    with pytest.raises(DataError, match="seed must be at least 0, got -1"):
        subset(numbered(3), 1, -1)
