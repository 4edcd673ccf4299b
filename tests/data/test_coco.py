import json
from contextlib import suppress

import datacards
import numpy as np
import pytest
from datacards import box, coco, load
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shared_data import shared

from simulator.data.card import read_card
from simulator.data.labels import load_labels
from simulator.errors import DataError

TWO = {7: ("a.jpg", 40, 30), 9: ("sub/b.jpg", 40, 30)}


@pytest.fixture
def folder(tmp_path):
    return datacards.images(tmp_path, "a.jpg", "sub/b.jpg")


def test_boxes_areas_and_crowds_are_those_of_the_file(folder):
    """Decimals stay, a missing area is w * h, a missing iscrowd is 0; items are sorted by name."""
    annotations = [
        box(1, 9, 2, 1.25, 2.5, 10.0, 4.0),
        box(2, 7, 1, 3, 4, 5, 6, area=17.5, iscrowd=1),
        box(3, 9, 1, 0.1, 0.2, 0.5, 0.5, area=0.125, iscrowd=0),
    ]
    a, b = load(coco(folder, TWO, annotations), "cat", "dog").items
    assert (a.name, b.name) == ("a.jpg", "sub/b.jpg")
    assert a.truth.xywh.tolist() == [[3, 4, 5, 6]]
    assert (a.truth.area.tolist(), a.truth.crowd.tolist()) == ([17.5], [True])
    assert b.truth.xywh.tolist() == [[1.25, 2.5, 10.0, 4.0], [0.1, 0.2, 0.5, 0.5]]
    assert (b.truth.area.tolist(), b.truth.classes.tolist()) == ([40.0, 0.125], [1, 0])
    assert b.truth.crowd.tolist() == b.truth.difficult.tolist() == [False, False]
    assert b.path.read_bytes()


def test_classes_are_the_models_by_name_and_without_labels_by_ascending_id(folder):
    """Ids with holes, in another order and another case than the labels; 3 and 90 are 0 and 1."""
    boxes = [box(1, 7, 90, 1, 1, 2, 2), box(2, 7, 3, 1, 1, 2, 2)]
    card = coco(folder, TWO, boxes, [(90, "Cat"), (3, "DOG")])
    assert load(card, "dog", "bird", "cat").items[0].truth.classes.tolist() == [2, 0]
    assert load(card).items[0].truth.classes.tolist() == [1, 0]


def test_a_class_that_the_model_does_not_have_is_named(folder):
    """With the nearest of the model's; one that no annotation uses does not matter."""
    card = coco(folder, TWO, [box(1, 7, 1, 1, 1, 2, 2)], [(1, "catt"), (2, "unused")])
    with pytest.raises(
        DataError, match=r"coco.json: the model does not have 1 of 1 class .*'catt'.*'cat'"
    ):
        load(card, "cat", "dog")


def test_boxes_that_cannot_be_found_are_dropped_and_counted(folder):
    """No size, negative size, wholly outside; what is partly outside stays as it is."""
    annotations = [
        box(1, 7, 1, 5, 5, 0, 4),
        box(2, 7, 1, 5, 5, 4, -1),
        box(3, 7, 1, 40, 5, 4, 4),
        box(4, 9, 1, -4, 5, 4, 4),
        box(5, 7, 1, -2.5, 28, 4, 4),
    ]
    found = load(coco(folder, TWO, annotations), "cat", "dog")
    assert found.items[0].truth.xywh.tolist() == [[-2.5, 28, 4, 4]]
    assert len(found.items[1].truth) == 0
    assert found.notes == (
        "dropped 2 boxes of no or negative size: a.jpg",
        "dropped 2 boxes outside of the image: a.jpg, sub/b.jpg",
    )


def test_what_does_not_fit_together_is_left_out_and_counted(folder):
    """Missing files, unlisted images, images without objects, stray and repeated annotations."""
    datacards.images(folder, "unlisted.jpg")
    listed = TWO | {1: ("gone.jpg", 9, 9)}
    annotations = [box(1, 7, 1, 1, 1, 2, 2), box(1, 7, 1, 1, 1, 3, 3), box(2, 55, 1, 1, 1, 2, 2)]
    found = load(coco(folder, listed, annotations), "cat", "dog")
    assert [(item.name, len(item.truth)) for item in found.items] == [
        ("a.jpg", 2),
        ("sub/b.jpg", 0),
    ]
    assert found.notes == (
        "left out 1 image that the annotations do not list: unlisted.jpg",
        "left out 1 annotated image not in the folder: gone.jpg",
        "kept 1 annotation with the id of another: id 1",
        "left out 1 annotation of no listed image: image_id 55",
        "kept 1 image without an object: sub/b.jpg",
    )


def test_annotations_of_another_folder_are_refused(folder):
    """No image is there: the first five are named."""
    listed = {n: (f"{n}.jpg", 9, 9) for n in range(7)}
    with pytest.raises(DataError, match=r"7 annotated images .*: 0.jpg, 1.jpg, .*4.jpg, …"):
        load(coco(folder, listed, []), "cat")


@pytest.mark.parametrize(
    "bbox",
    [[1, 2, 3], [1, 2, 3, 4, 5], [1, 2, "3", 4], [1, 2, float("nan"), 4], [1, 2, 1e300, 4],
     [1, 2, True, 4], [1, 2, 10**400, 4], None, "1234", [[1, 2], [3, 4]]],
)  # fmt: skip
def test_a_box_of_anything_but_four_numbers_is_refused(folder, bbox):
    """The annotation is named."""
    bad = {"id": 31, "image_id": 7, "category_id": 1, "bbox": bbox}
    with pytest.raises(DataError, match=r"coco.json: annotation 31: bbox: x, y, width, height"):
        load(coco(folder, TWO, [bad]), "cat")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"area": -1}, "annotation 1: area"),
        ({"area": "big"}, "annotation 1: area"),
        ({"iscrowd": 2}, "annotation 1: iscrowd"),
        ({"category_id": 5}, "annotation 1: no category has the id 5"),
        ({"category_id": [1]}, "annotation 1: no category"),
    ],
)
def test_a_malformed_annotation_is_refused(folder, change, message):
    """The annotation and the field are named."""
    with pytest.raises(DataError, match=message):
        load(coco(folder, TWO, [box(1, 7, 1, 1, 1, 2, 2) | change]), "cat")


@pytest.mark.parametrize(
    ("listed", "message"),
    [
        ({1: ("a.jpg", 4, 4), 2: ("./a.jpg", 4, 4)}, "file_name, 'a.jpg'"),
        ({1: ("../../etc/passwd", 4, 4)}, "leads out of the folder"),
        ({1: ("sub/../../x.jpg", 4, 4)}, "leads out of the folder"),
        ({1: ("/etc/passwd.png", 4, 4)}, "leads out of the folder"),
        ({1: ("a.jpg", 0, 4)}, "height and width"),
        ({1: (None, 4, 4)}, "a file_name"),
    ],
)
def test_a_malformed_image_is_refused(folder, listed, message):
    """Where it stands in the list, and what is wrong."""
    with pytest.raises(DataError, match=rf"coco.json: images\[.\]: .*{message}"):
        load(coco(folder, listed, []), "cat")


def test_two_images_of_one_id_are_refused(folder):
    """Whose annotations would they be?"""
    card = coco(folder, TWO, [])
    text = (folder / "coco.json").read_text().replace('"id": 9', '"id": 7')
    (folder / "coco.json").write_text(text)
    with pytest.raises(DataError, match="another image has this id, 7"):
        load(card, "cat")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"images": [\n{"id": 1,\n"file_', "coco.json:3: not JSON, or cut off"),
        ("", "coco.json:1: not JSON"),
        ("[1, 2]", "an object with images"),
        ('{"images": {}}', "images: a list expected"),
        ('{"images": [3]}', r"images\[0\]: an object expected"),
        ("[" * 100_000, "JSON that cannot be read"),
        ('{"images": [' + "1" * 5000 + "]}", "JSON that cannot be read"),
    ],
)
def test_what_is_no_coco_file_is_refused(folder, text, message):
    """A cut-off file with its line."""
    card = coco(folder, TWO, [])
    (folder / "coco.json").write_text(text)
    with pytest.raises(DataError, match=message):
        load(card, "cat")


def test_a_split_chooses_images(folder):
    """By path with or without the ending; what it leaves is no note."""
    (folder / "test.txt").write_text("sub/b\n")
    found = load(coco(folder, TWO, [box(1, 7, 1, 1, 1, 2, 2)], split="test.txt"), "cat")
    assert [item.name for item in found.items] == ["sub/b.jpg"]
    assert found.notes == ("kept 1 image without an object: sub/b.jpg",)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.sampled_from(["images", "annotations", "categories"]),
    st.sampled_from(["id", "image_id", "category_id", "bbox", "area", "iscrowd", "file_name",
                     "name", "width", "height"]),
    anything,
)  # fmt: skip
def test_any_value_anywhere_is_read_or_refused(folder, table, key, value):
    """No value of any field is worth a traceback."""
    card = coco(folder, TWO, [box(1, 7, 1, 1, 1, 2, 2)])
    document = json.loads((folder / "coco.json").read_text())
    document[table][0][key] = value
    (folder / "coco.json").write_text(json.dumps(document))
    with suppress(DataError):
        found = load(card, "cat", "dog")
        assert all(np.isfinite(item.truth.xywh).all() for item in found.items)


def test_the_shared_coco_images_are_read_as_they_are(tmp_path):
    """1,279 boxes on 177 images, two without any; area and crowd as the file has them."""
    root = shared("coco")
    card = datacards.card(
        tmp_path,
        task="detection",
        format="coco",
        images=str(root / "images"),
        annotations=str(root / "instances.json"),
    )
    found = read_card(card).load(None)
    document = json.loads((root / "instances.json").read_text())
    assert len(found.items) == 177
    assert sum(len(item.truth) for item in found.items) == len(document["annotations"]) == 1279
    areas = np.sort(np.concatenate([item.truth.area for item in found.items]))
    assert areas.tolist() == sorted(one["area"] for one in document["annotations"])
    assert sum(item.truth.crowd.sum() for item in found.items) == 5
    assert found.notes == ("kept 2 images without an object: 000000226111.jpg, 000000058636.jpg",)


def test_classes_that_a_smaller_model_lacks_are_counted_and_named(tmp_path):
    """VOC's labels lack most of COCO's categories: the first five are named."""
    root = shared("coco")
    fields = {"task": "detection", "format": "coco", "images": str(root / "images")}
    card = datacards.card(tmp_path, annotations=str(root / "instances.json"), **fields)
    labels = load_labels(root / "voc21_classes.txt")
    with pytest.raises(DataError, match=r"does not have [0-9]+ of [0-9]+ classes of the data: "):
        read_card(card).load(labels)
