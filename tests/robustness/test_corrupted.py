"""Corrupted data sets on disk are what stacks get under the condition."""

import json
from pathlib import Path

import pytest
import tiny
import yaml
from shared_data import shared

import simulator
from simulator import cli


@pytest.fixture
def photographs(tmp_path):
    return tiny.data(tmp_path / "photographs", each=2)


def digests(model, data, **more):
    result = simulator.compare(
        "pillow_fp32", "opencv_fp32", model=model, data=data, quick=True, **more
    )
    found = {}
    for row in result.records().to_pylist():
        found[row["sample"].rpartition(".")[0], row["side"]] = row["digest"], row["label"]
    return found


def test_classes_of_a_card_without_a_folder_of_images_are_in_a_table(card, photographs, tmp_path):
    """Such a card (a table, shards) says where the images were, not where the new ones are."""
    (tmp_path / "val.txt").write_text("red/red0.jpg red\nblue/blue1.jpg blue\n")
    (tmp_path / "data.yaml").write_text(
        "schema: 1\nname: t\ntask: classification\nformat: table\n"
        "files: photographs\ntable: val.txt\n"
    )
    command = ["corrupt", "--under", "jpeg:5", "--data", str(tmp_path / "data.yaml")]
    assert cli.main([*command, "--model", str(card), "--out", str(tmp_path / "out")]) == 0

    written = tmp_path / "out/jpeg/5"
    assert (written / "labels.csv").read_text() == "file,index\nblue/blue1.jpg,2\nred/red0.jpg,0\n"
    assert not (written / "data.yaml").exists()


def test_images_that_would_be_one_file_are_refused(card, photographs, tmp_path, capsys):
    """A condition on the frame writes PNG, so that one would be lost."""
    place = photographs / "red" / "red0.jpg"
    place.with_suffix(".png").write_bytes(place.read_bytes())
    command = ["corrupt", "--under", "brightness:1", "--data", str(photographs)]

    assert cli.main([*command, "--model", str(card), "--out", str(tmp_path / "out")]) == 2

    told = "red/red0.jpg and red/red0.png may be written to one file, as endings change; rename one"
    assert told in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_corrupted_folder_is_what_stacks_get_under_the_condition(
    card, photographs, cache, tmp_path, capsys
):
    out = tmp_path / "out"
    code = cli.main(
        ["corrupt", "--under", "jpeg:5", "--data", str(photographs), "--model", str(card),
         "--out", str(out)]
    )  # fmt: skip
    assert code == 0 and "jpeg:5: 6 images" in capsys.readouterr().out
    expected = digests(card, photographs, under="jpeg:5")
    assert digests(card, out / "jpeg" / "5") == expected
    assert digests(card, photographs, under=f"released:{out / 'jpeg' / '5'}") == expected
    assert digests(card, photographs) != expected


def test_a_released_image_has_another_ending_and_may_be_missing(card, photographs, cache, tmp_path):
    """Five of six files, as PNG; the sixth sample is skipped and counted."""
    for place in sorted(photographs.rglob("*.jpg"))[1:]:
        png = tmp_path / "released" / place.relative_to(photographs).with_suffix(".png")
        png.parent.mkdir(parents=True, exist_ok=True)
        from PIL import Image

        Image.open(place).save(png)
    under = f"released:{tmp_path / 'released'}"
    result = simulator.compare(
        "pillow_fp32", "opencv_fp32", model=card, data=photographs, under=under, quick=True
    )
    assert (result.summary.samples, result.summary.skipped) == (5, 1)
    (skipped,) = result.summary.skipped_samples
    assert "has no blue/blue0.jpg" in skipped.why


def test_a_data_card_is_written_with_the_new_images(card, photographs, tmp_path):
    """COCO names its files by their ends; what was left out is in neither list."""
    images = [
        {"id": n, "file_name": str(p.relative_to(photographs)), "width": 48, "height": 40}
        for n, p in enumerate(sorted(photographs.rglob("*.jpg")))
    ]
    boxes = [
        {"id": n, "image_id": n, "category_id": 1, "bbox": [1, 2, 3, 4], "area": 12, "iscrowd": 0}
        for n in range(6)
    ]
    content = {"images": images, "annotations": boxes, "categories": [{"id": 1, "name": "person"}]}
    (tmp_path / "boxes.json").write_text(json.dumps(content))
    spec = {
        "schema": 1, "name": "mine", "task": "detection", "format": "coco",
        "images": "photographs", "annotations": "boxes.json",
    }  # fmt: skip
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(spec))
    from simulator.data.card import read_card

    model = detector()
    code = cli.main(
        ["corrupt", "--under", "jpeg:5", "--data", str(tmp_path / "mine.yaml"), "--model",
         str(model), "--out", str(tmp_path / "out"), "--limit", "4"]
    )  # fmt: skip

    folder = tmp_path / "out" / "jpeg" / "5"
    assert code == 0
    kept = json.loads((folder / "annotations.json").read_text())
    assert len(kept["images"]) == len(kept["annotations"]) == 4
    assert len(read_card(folder / "data.yaml").load(None).items) == 4


def detector():
    shared("models")
    return Path(__file__).parents[1] / "cards" / "yolox_nano.yaml"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--under", "flip:3"], "acts on the weights"),
        (["--under", "released:nowhere"], "there is no such folder"),
        ([], "give --under, once or more, or --suite"),
        (["--under", "jpeg:5", "--suite", "corruptions"], "or --suite"),
        (["--under", "jpeg:5"], "is not empty; choose another --out"),
    ],
)
def test_what_cannot_be_written_is_one_line(tmp_path, capsys, arguments, message):
    (tmp_path / "mine").touch()
    assert cli.main(["corrupt", *arguments, "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
