"""What has no end, or is larger than any memory: refused before a byte is read."""

import os

import pytest
import tiny
from warm import command

from simulator.contract.encoded import read_image
from simulator.data.folder import load_folder
from simulator.digests import sha256
from simulator.errors import DataError, SampleError
from simulator.files import LARGE, hash_file, read_file

pytestmark = pytest.mark.prove


@pytest.fixture
def fifo(tmp_path):
    """A link to a pipe that nobody writes to."""
    os.mkfifo(tmp_path / "pipe")
    link = tmp_path / "link.jpg"
    link.symlink_to("pipe")
    return link


def huge(place):
    """A file of 60 GB that takes no room."""
    with place.open("wb") as file:
        file.truncate(60 * 10**9)
    return place


def test_a_pipe_is_refused_and_not_waited_for(fifo):
    for path in (fifo, "/dev/zero", "/dev/tty"):
        with pytest.raises(OSError, match=r"pipe or a device|No such device"):
            read_file(path, LARGE)
    with pytest.raises(SampleError, match="not a regular file"):
        read_image("link.jpg", fifo)
    assert sha256(fifo) is None


def test_a_file_of_60_gb_is_refused(tmp_path):
    place = huge(tmp_path / "huge.jpg")

    for read in (lambda: read_file(place, 2**30), lambda: hash_file(place)):
        with pytest.raises(OSError, match="60,000,000,000 bytes; at most"):
            read()
    with pytest.raises(SampleError, match="60,000,000,000 bytes"):
        read_image("huge.jpg", place)


def test_a_file_is_read_and_hashed_as_it_is(tmp_path):
    (tmp_path / "abc").write_bytes(b"abc")

    assert read_file(tmp_path / "abc", 3) == b"abc"
    # FIPS 180-4, example of SHA-256
    assert hash_file(tmp_path / "abc").startswith("ba7816bf8f01cfea")
    with pytest.raises(OSError, match="3 bytes; at most 2"):
        read_file(tmp_path / "abc", 2)


@pytest.mark.parametrize("name", ["model.onnx", "labels.txt", "card.yaml", "image"])
@pytest.mark.parametrize("kind", ["pipe", "zero", "huge"])
def test_the_command_ends(tmp_path, card, data, name, kind):
    """In a process of its own: a hang must not be that of the tests."""
    place = data / "red" / "red0.jpg" if name == "image" else card.parent / name
    place.unlink()
    if kind == "pipe":
        os.mkfifo(tmp_path / "pipe")
        place.symlink_to(tmp_path / "pipe")
    elif kind == "zero":
        place.symlink_to("/dev/zero")
    else:
        huge(place)
    done = command(
        "--train", "pillow_fp32", "--deploy", "pillow_fp32", "--model", card, "--data", data,
        "--out", tmp_path / "run",
    )  # fmt: skip

    if name == "image":  # skipped and listed, as any that cannot be read
        assert done.returncode == 0, done.stderr
        assert "red/red0.jpg" in done.stdout
    else:
        assert done.returncode == 2, done.stderr
        assert done.stderr.count("\n") == 1


def test_folders_that_link_to_each_other_are_walked_once(tmp_path):
    """Twelve folders that each link to all others have 12! paths."""
    folders = [tmp_path / "data" / f"{number:02}" for number in range(12)]
    for number, folder in enumerate(folders):
        folder.mkdir(parents=True)
        (folder / "x.jpg").write_bytes(tiny.encoded(tiny.picture((9, 9, 9))))
        for other in range(12):
            if other != number:
                (folder / f"to{other:02}").symlink_to(f"../{other:02}")

    found = load_folder(tmp_path / "data", None)

    assert [item.name for item in found.items] == [f"{number:02}/x.jpg" for number in range(12)]
    assert "ignored 132 links to a folder that is there already" in found.notes


def test_linked_folders_outside_are_walked_once(tmp_path):
    for name in "abc":
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.jpg").write_bytes(b"")
        for other in "abc":
            (tmp_path / name / f"to_{other}").symlink_to(tmp_path / other)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "0").symlink_to(tmp_path / "a")

    names = [item.name for item in load_folder(tmp_path / "data", None).items]

    assert names == ["0/a.jpg", "0/to_b/b.jpg", "0/to_c/c.jpg"]


def test_two_files_of_one_written_name_are_not_taken_for_one(tmp_path):
    """A byte that is not UTF-8 is written as an escape, which may be another file's name."""
    for name in (b"caf\xe9.jpg", b"caf\\xe9.jpg"):
        try:
            (tmp_path / os.fsdecode(name)).write_bytes(b"")
        except (OSError, UnicodeError):
            pytest.skip("this file system takes UTF-8 names only")

    with pytest.raises(DataError, match="two files would be called"):
        load_folder(tmp_path, None)
