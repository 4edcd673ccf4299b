import re

import datacards
import pytest
from datacards import load

from simulator.data.card import find_card, read_card
from simulator.errors import DataError

COCO = {"task": "detection", "format": "coco", "annotations": "coco.json"}
YOLO = {"task": "detection", "format": "yolo", "annotations": "labels", "classes": "c.txt"}
MASKS = {"task": "segmentation", "format": "index_masks", "annotations": "masks"}


def test_a_card_is_a_yaml_file_or_lies_in_the_folder(tmp_path):
    """Any other folder is a folder of images."""
    assert find_card(tmp_path) is None
    card = datacards.card(tmp_path, **COCO)
    assert find_card(tmp_path) == find_card(card) == tmp_path / "data.yaml"
    assert find_card(tmp_path / "other.yml") == tmp_path / "other.yml"


@pytest.mark.parametrize(("fields", "task"), [(YOLO, "detection"), (MASKS, "segmentation")])
def test_a_card_says_which_task_it_is_for(tmp_path, fields, task):
    """Nothing else is opened for that."""
    assert read_card(datacards.card(tmp_path, **fields)).task == task


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "data.yaml:1: task: required, and not written"),
        (COCO | {"task": "detecton"}, "unknown value 'detecton'; did you mean 'detection'?"),
        (COCO | {"task": ["detection"]}, "task: unknown value"),
        ({"task": "detection"}, "data.yaml:1: format: required, and not written"),
        (COCO | {"format": "cocoa"}, "data.yaml:5: format: unknown value 'cocoa'; did you mean"),
        (COCO | {"format": "index_masks"}, "'index_masks' (offered: coco, coco_vid, kitti"),
        (COCO | {"anotations": "x"}, "data.yaml:7: anotations: unknown key 'anotations'; did"),
        (COCO | {"classes": "c.txt"}, "data.yaml:7: classes: unknown key 'classes'"),
        (COCO | {"ignore": 255}, "ignore: unknown key 'ignore'"),
        (COCO | {"images": 3}, "data.yaml:3: images: text expected, got 3"),
        (COCO | {"schema": 2}, "data.yaml:1: schema: unknown value '2'"),
        (YOLO | {"classes": None}, "classes: text expected, got nothing"),
        (COCO | {"task": "segmentation"}, "background: required, and not written"),
        (MASKS | {"ignore": 70000}, "data.yaml:7: ignore: input should be less than or equal"),
        (MASKS | {"ignore": "void"}, "data.yaml:7: ignore: a whole number expected, got 'void'"),
        (MASKS | {"train_ids": "cityscape"}, "unknown table 'cityscape'; did you mean"),
        (MASKS | {"train_ids": {"road": 0}}, "train_ids: 'road' is no mask value"),
        (MASKS | {"train_ids": [0, 1]}, "train_ids: cityscapes, or a mapping of mask values"),
        (MASKS | {"train_ids": {1: 256}}, "train_ids.1: input should be less than or equal to 255"),
        (MASKS | {"train_ids": {"-1": 0}}, "train_ids"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_card_is_said_with_its_line(tmp_path, fields, message):
    """Each format has its own keys, and no others."""
    with pytest.raises(DataError, match=re.escape(message)):
        read_card(datacards.card(tmp_path, **fields))


def test_all_problems_come_at_once(tmp_path):
    """One line each."""
    with pytest.raises(DataError) as caught:
        read_card(datacards.card(tmp_path, **COCO | {"x": 1, "name": 3}))
    assert len(str(caught.value).splitlines()) == 2


def test_a_card_that_is_not_there_is_said_to_be_so(tmp_path):
    """As an error of the data."""
    with pytest.raises(DataError, match=r"none.yaml: cannot be read"):
        read_card(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (COCO | {"images": "gone"}, "data.yaml: images: there is no "),
        (COCO | {"annotations": "gone.json"}, "data.yaml: annotations: there is no "),
        (COCO | {"annotations": "images"}, "images is not a file"),
        (COCO | {"split": "gone.txt"}, "data.yaml: split: there is no "),
        (YOLO | {"annotations": "images"}, "data.yaml: classes: there is no "),
        (MASKS | {"annotations": "data.yaml"}, "data.yaml is not a folder"),
    ],
)
def test_a_path_that_leads_nowhere_is_named(tmp_path, fields, message):
    """With the key that names it."""
    datacards.images(tmp_path, "a.jpg")
    with pytest.raises(DataError, match=re.escape(message)):
        load(datacards.card(tmp_path, **fields), "cat")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("a\na\n", "s.txt:2: 'a' is also in line 1"),
        ("a\na.jpg\n", "s.txt:2: 'a.jpg' is also in line 1"),
        ("../a\n", "s.txt:1: '../a' leads out of the folder"),
        ("twins\n", "s.txt:1: 'twins' may be twins.jpg or twins.png; write the ending"),
        ("x\n", "names no image of "),
        ("\n", "names no image of "),
    ],
)
def test_a_split_that_cannot_be_followed_is_refused(tmp_path, lines, message):
    """With file and line."""
    datacards.images(tmp_path, "a.jpg", "twins.jpg", "twins.png")
    (tmp_path / "s.txt").write_text(lines)
    listed = {1: ("a.jpg", 40, 30)}
    with pytest.raises(DataError, match=re.escape(message)):
        load(datacards.coco(tmp_path, listed, [], split="s.txt"), "cat")


def test_lines_of_a_split_without_an_image_are_counted(tmp_path):
    """The others are used; all of more than five are counted, and five are named."""
    datacards.images(tmp_path, "a.jpg")
    (tmp_path / "s.txt").write_text("a.jpg\n" + "\n".join(f"gone{n}" for n in range(7)))
    found = load(datacards.coco(tmp_path, {1: ("a.jpg", 40, 30)}, [], split="s.txt"), "cat")
    assert found.notes[0] == (
        "left out 7 lines of s.txt without an image: gone0, gone1, gone2, gone3, gone4, …"
    )
