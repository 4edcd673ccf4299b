from contextlib import suppress

import datacards
import numpy as np
import pytest
from datacards import load
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shared_data import shared

from simulator.data.card import read_card
from simulator.data.labels import Labels
from simulator.errors import DataError


def xml(folder, name, *objects, size=(40, 30)):
    """Write an annotation; an object is (name, xmin, ymin, xmax, ymax, difficult or None)."""
    parts = [f"<size><width>{size[0]}</width><height>{size[1]}</height></size>"] if size else []
    for label, x1, y1, x2, y2, difficult in objects:
        flag = "" if difficult is None else f"<difficult>{difficult}</difficult>"
        parts.append(
            f"<object><name>{label}</name>{flag}<bndbox><ymax>{y2}</ymax><xmin>{x1}</xmin>"
            f"<ymin>{y1}</ymin><xmax>{x2}</xmax></bndbox></object>"
        )
    path = folder / "xml" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("<annotation>" + "".join(parts) + "</annotation>")
    return path


def voc(folder, **fields):
    (folder / "xml").mkdir(exist_ok=True)
    return datacards.card(folder, task="detection", format="voc", annotations="xml", **fields)


@pytest.fixture
def folder(tmp_path):
    return datacards.images(tmp_path, "a.jpg", "sub/b.jpg")


def test_corners_become_a_size_without_1(folder):
    """(2, 3) to (12, 8) is 10 wide and 5 high; VOC has no crowds, and its areas are the boxes'."""
    xml(folder, "a.xml", ("Dog", 2, 3, 12, 8, 1), ("cat", "1.5", 1, 4, 4, None))
    xml(folder, "sub/b.xml")
    a, b = load(voc(folder), "cat", "dog").items
    assert a.truth.xywh.tolist() == [[2, 3, 10, 5], [1.5, 1, 2.5, 3]]
    assert a.truth.classes.tolist() == [1, 0]
    assert a.truth.difficult.tolist() == [True, False]
    assert a.truth.area.tolist() == [50, 7.5]
    assert not a.truth.crowd.any()
    assert (b.name, len(b.truth)) == ("sub/b.jpg", 0)


def test_without_labels_the_card_names_the_classes(folder):
    """The order of `classes` is the order of the indices; without it nothing is guessed."""
    xml(folder, "a.xml", ("dog", 2, 3, 12, 8, 0), ("cat", 1, 1, 4, 4, 0))
    (folder / "names.txt").write_text("dog\ncat\n")
    assert load(voc(folder, classes="names.txt")).items[0].truth.classes.tolist() == [0, 1]
    with pytest.raises(DataError, match="no label file; write `classes`"):
        load(voc(folder))
    (folder / "names.txt").write_text("dog\nbird\n")
    with pytest.raises(DataError, match="not among the data card's classes: cat"):
        load(voc(folder, classes="names.txt"))


def test_a_part_of_an_object_is_no_object(folder):
    """VOC annotates heads and hands inside a person's object."""
    path = xml(folder, "a.xml", ("person", 2, 3, 12, 8, 0))
    part = "<part><name>head</name><bndbox><xmin>2</xmin></bndbox></part></object>"
    path.write_text(path.read_text().replace("</object>", part))
    assert load(voc(folder), "person").items[0].truth.xywh.tolist() == [[2, 3, 10, 5]]


def test_what_does_not_fit_together_is_left_out_and_counted(folder):
    """Images without XML, XML without image, boxes without size and outside."""
    xml(folder, "a.xml", ("cat", 5, 5, 5, 9, 0), ("cat", 50, 5, 60, 9, 0), ("cat", 1, 1, 2, 2, 0))
    xml(folder, "stray.xml", ("cat", 1, 1, 2, 2, 0))
    found = load(voc(folder), "cat")
    assert [(item.name, len(item.truth)) for item in found.items] == [("a.jpg", 1)]
    assert found.notes == (
        "left out 1 image without an XML file: sub/b.jpg",
        "ignored 1 annotation file without an image: stray.xml",
        "dropped 1 box of no or negative size: a.jpg",
        "dropped 1 box outside of the image: a.jpg",
    )


BOMB = """<?xml version="1.0"?>
<!DOCTYPE lolz [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;">]>
<annotation>&b;</annotation>"""


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (BOMB.encode(), "a.xml:2: has a <!DOCTYPE>"),
        (
            BOMB.replace('"1.0"', '"1.0" encoding="UTF-16"').encode("utf-16"),
            "a.xml:2: has a <!DOCTYPE>",
        ),
        (b"<annotation>\n<object>\n", "a.xml:3: not XML"),
        (b"", "a.xml:1: not XML"),
        (b"\x00\x01\x02", "a.xml:1: not XML"),
        (b'<?xml version="1.0" encoding="no-such"?><annotation/>', "a.xml:1: not XML"),
        (b"<annotation>&undefined;</annotation>", "a.xml:1: not XML"),
        (b"<html/>", "<annotation> expected, got <html>"),
        (b"<annotation><object/></annotation>", "object 1: no name"),
        (b"<annotation><object><name>cat</name></object></annotation>", "object 1: no bndbox"),
        (
            b"<annotation>" + b" " * 10_000_000 + b"</annotation>",
            "cannot be read: 10,000,025 bytes; at most 10,000,000",
        ),
    ],
)
def test_what_is_no_annotation_is_refused(folder, data, message):
    """With file and line; nothing is expanded, in any encoding."""
    (folder / "xml").mkdir()
    (folder / "xml" / "a.xml").write_bytes(data)
    with pytest.raises(DataError, match=message):
        load(voc(folder), "cat")


@pytest.mark.parametrize("corner", ["", "x", "nan", "inf", "1e300"])
def test_a_corner_that_is_no_number_is_refused(folder, corner):
    """The field is named, and what stands there."""
    xml(folder, "a.xml", ("cat", corner, 3, 12, 8, 0))
    with pytest.raises(DataError, match=f"a.xml: bndbox: xmin: a number of pixels.*'{corner}'"):
        load(voc(folder), "cat")


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.integers(0, 250), st.binary(max_size=8))
def test_a_damaged_file_is_read_or_refused(folder, at, garbage):
    """Bytes overwritten anywhere are never worth a traceback."""
    path = xml(folder, "a.xml", ("cat", 1, 2, 3, 4, 0))
    data = path.read_bytes()
    path.write_bytes(data[:at] + garbage + data[at + len(garbage) :])
    with suppress(DataError):
        assert len(load(voc(folder), "cat").items) == 1


@pytest.mark.parametrize(("split", "images", "boxes"), [("test", 72, 945), ("val", 87, None)])
def test_bccd_is_the_same_in_both_of_its_forms(tmp_path, split, images, boxes):
    """The XML with the split, and the COCO file that was made of it by another script."""
    root = shared("bccd")
    common = {"task": "detection", "images": str(root / "JPEGImages")}
    names = str(root / "ImageSets" / "Main" / f"{split}.txt")
    labels = Labels(("RBC", "WBC", "Platelets"))
    annotations = {"voc": root / "Annotations", "coco": root / f"bccd_{split}.json"}
    voc, coco = (
        read_card(
            datacards.card(tmp_path, format=form, annotations=str(path), split=names, **common)
        ).load(labels)
        for form, path in annotations.items()
    )
    assert [item.name for item in voc.items] == [item.name for item in coco.items]
    assert len(voc.items) == images
    for one, other in zip(voc.items, coco.items, strict=True):
        for field in ("xywh", "classes", "crowd", "area", "difficult"):
            assert np.array_equal(getattr(one.truth, field), getattr(other.truth, field)), one.name
    if boxes:
        classes = np.concatenate([item.truth.classes for item in voc.items])
        assert np.bincount(classes).tolist() == [805, 71, 69]
        assert len(classes) == boxes
        assert voc.notes == coco.notes == ()
