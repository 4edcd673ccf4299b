"""Classes in tables that are elsewhere, and in ImageNet's development kit."""

import zlib
from contextlib import suppress

import numpy as np
import pytest
from datacards import card_of, refused
from scipy.io import savemat
from web_server import serving

from simulator import places
from simulator.data.folder import IMAGES
from simulator.data.labels import Labels
from simulator.data.matlab import table
from simulator.errors import DataError
from simulator.tasks.classification.task import Classification
from simulator.tasks.settings import Network

RED_GREEN = Labels(("red", "green"))
COLORS = Classification(None, Network(RED_GREEN))
DOGS = Labels(
    ("English setter", "Siberian husky", "kit fox"), ("n02100735", "n02110185", "n02119789")
)
"""In the order of networks' classes: by WordNet id."""
CLSLOC = "n02119789 1 kit_fox\nn02100735 2 English_setter\nn02110185 3 Siberian_husky\n"
"""The first lines of the devkit's map_clsloc.txt: ids in their own order."""


def flat(folder, *names):
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_bytes(name.encode())
    return folder


def truths(found):
    return {item.name: item.truth for item in found.items}


def test_a_table_beside_the_folder(tmp_path):
    """Where Caffe's scripts put val.txt."""
    flat(tmp_path / "val", "a.jpg", "b.jpg", "c.jpg")
    (tmp_path / "val.txt").write_text("b.jpg 0\na.jpg 1\n")
    card = card_of(tmp_path, "classification", "table", files="val", table="val.txt")
    found = card.load(RED_GREEN)

    assert truths(found) == {"a.jpg": 1, "b.jpg": 0}
    assert found.notes == ("left out 1 image without a row in val.txt",)
    (tmp_path / "val.txt").write_text("gone.jpg 0\n")
    with pytest.raises(DataError, match=r"val\.txt: 1 row without a file: 'gone\.jpg' \(line 1\)"):
        card.load(RED_GREEN)


@pytest.mark.parametrize(("name", "head", "mark"), [
    ("val.txt", "", "\t"), ("labels.csv", "file,label\n", ","),
])  # fmt: skip
def test_a_table_is_all_that_a_web_server_must_have(tmp_path, name, head, mark):
    """It lists nothing: the table says which samples there are; one that is gone costs itself."""
    rows = f"a b#1.jpg{mark}green\nred/gone.jpg{mark}0\n"
    (flat(tmp_path, "a b#1.jpg") / name).write_text(head + rows)
    with serving(tmp_path) as web:
        found = COLORS.load(f"{web.url}/{name}", IMAGES)

        assert truths(found) == {"a b#1.jpg": 1, "red/gone.jpg": 0}
        assert places.read_sample(found.items[0].path, 99) == b"a b#1.jpg"
        with pytest.raises(OSError, match="nothing is there"):
            places.read(found.items[1].path, 99)
    assert not [path for path in web.asked if path.endswith("/")]


def test_a_table_given_itself(tmp_path):
    (flat(tmp_path, "a.jpg", "b.jpg") / "mine.csv").write_text("file,label\nb.jpg,1\n")

    assert truths(COLORS.load(tmp_path / "mine.csv", IMAGES)) == {"b.jpg": 1}


def test_names_of_a_table_behind_a_url_stay_below_it(tmp_path):
    (tmp_path / "labels.txt").write_text("../secret.jpg 1\n")
    with serving(tmp_path) as web, pytest.raises(DataError, match=r"labels.txt:1: .* leads out"):
        COLORS.load(f"{web.url}/labels.txt", IMAGES)


def devkit(folder, ids, name="map_clsloc.txt", synsets=CLSLOC):
    (folder / "truth.txt").write_text("".join(f"{one}\n" for one in ids))
    if name.endswith("txt"):
        (folder / name).write_text(synsets)
    return card_of(folder, "classification", "ilsvrc", files="val", truth="truth.txt", synsets=name)


def matlab(path):
    """The devkit's meta.mat: some of its fields, and a node that no image has."""
    rows = [(1, "n02119789", 0), (2, "n02100735", 0), (3, "n02110185", 0), (1001, "n02083346", 3)]
    fields = [(name, object) for name in ("ILSVRC2012_ID", "WNID", "num_children")]
    savemat(path, {"synsets": np.array(rows, fields)}, do_compression=True)


THREE = tuple(f"ILSVRC2012_val_{number:08}.JPEG" for number in (1, 2, 3))


@pytest.mark.parametrize("name", ["map_clsloc.txt", "meta.mat"])
def test_the_devkits_ids_are_in_an_order_of_their_own(tmp_path, name):
    """ILSVRC2012_ID 1 is the kit fox, which is the last of the three by WordNet id."""
    flat(tmp_path / "val", *THREE[:2])
    matlab(tmp_path / "meta.mat")

    assert truths(devkit(tmp_path, [3, 1, 2], name).load(DOGS)) == {THREE[0]: 1, THREE[1]: 2}


def test_the_devkit_and_its_images_behind_a_url(tmp_path):
    flat(tmp_path / "val", *THREE)
    matlab(tmp_path / "meta.mat")
    devkit(tmp_path, [3, 1, 2])
    with serving(tmp_path) as web:
        where = {"files": "val", "truth": "truth.txt", "synsets": "meta.mat"}
        urls = {key: f"{web.url}/{value}" for key, value in where.items()}
        found = card_of(tmp_path, "classification", "ilsvrc", **urls).load(DOGS)

        assert truths(found) == dict(zip(THREE, (1, 2, 0), strict=True))
        assert places.read(found.items[2].path, 99) == THREE[2].encode()


SORTED = "n02100735 English setter\nn02110185 Siberian husky\n"
"""Kaggle's LOC_synset_mapping.txt: without ids, in another order."""


@pytest.mark.parametrize(
    ("ids", "synsets", "labels", "why"),
    [
        ([1, 9, 1], CLSLOC, DOGS, r"truth.txt:2: '9' is no ILSVRC2012_ID"),
        ([1, "x", 1], CLSLOC, DOGS, r"truth.txt:2: 'x' is no ILSVRC2012_ID"),
        ([1], CLSLOC, DOGS, r"val: .*_00000001.JPEG to 00000001 expected.*has the number 3"),
        ([1, 2, 3], SORTED, DOGS, r"map_clsloc.txt:1: a WordNet id and its ILSVRC2012_ID expected"),
        ([1, 2, 3], CLSLOC + "n02110185 1 x", DOGS, r"ILSVRC2012_ID 1 is n02119789 and n02110185"),
        ([1, 2, 3], CLSLOC, RED_GREEN, "the model's label file has none; write it as wnid<TAB>"),
        ([1, 2, 3], CLSLOC, None, "the model's label file has none"),
    ],
)
def test_a_devkit_that_is_none_is_refused(tmp_path, ids, synsets, labels, why):
    flat(tmp_path / "val", *THREE)
    with refused(why):
        devkit(tmp_path, ids, synsets=synsets).load(labels)


def bomb(order):
    """A variable of 100 MB of zeros, packed."""
    packed = zlib.compress(bytes(100_000_000))
    mark = b"\x00\x01IM" if order == "little" else b"\x01\x00MI"
    head = b"MATLAB 5.0 MAT-file".ljust(124) + mark
    return head + (15).to_bytes(4, order) + len(packed).to_bytes(4, order) + packed


@pytest.mark.parametrize("what", ["hello", "little", "big"])
def test_a_meta_mat_from_a_stranger(tmp_path, what):
    flat(tmp_path / "val", *THREE)
    (tmp_path / "meta.mat").write_bytes(b"hello" if what == "hello" else bomb(what))
    why = "not the devkit's" if what == "hello" else "more than 16,777,216 bytes"
    with refused(rf"meta\.mat: .*{why}"):
        devkit(tmp_path, [1, 2, 3], "meta.mat").load(DOGS)


@pytest.mark.parametrize("packed", [False, True])
def test_no_changed_byte_of_a_meta_mat_ends_the_process(tmp_path, packed):
    """SciPy's reader dies of some of these; here each is read, or refused in a line."""
    rows = [(1, "n02119789", 0), (2, "n02100735", 0)]
    fields = [(name, object) for name in ("ILSVRC2012_ID", "WNID", "num_children")]
    place = tmp_path / "meta.mat"
    savemat(place, {"synsets": np.array(rows, fields)}, do_compression=packed)
    whole, read = place.read_bytes(), 0
    for at in range(124, len(whole)):
        for value in (0, 1, 127, 255):
            changed = whole[:at] + bytes([value]) + whole[at + 1 :]
            with suppress(ValueError):
                table(changed, "synsets", ("ILSVRC2012_ID", "WNID"), 2**20)
                read += 1
    with pytest.raises(ValueError, match="damaged"):
        table(whole[:-20], "synsets", ("WNID",), 2**20)

    assert read
    found = table(whole, "synsets", ("ILSVRC2012_ID", "WNID"), 2**20)
    assert found == [(1, "n02119789"), (2, "n02100735")]
