import json

import datacards
import numpy as np
import pytest
from datacards import load, png
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image
from pycocotools import mask as pycoco
from shared_data import shared

from simulator.data.card import read_card
from simulator.data.labels import load_labels
from simulator.data.masks import CITYSCAPES, IGNORE, MaskTruth
from simulator.data.outlines import Outline, OutlineMask
from simulator.errors import DataError, SampleError


@pytest.fixture
def folder(tmp_path):
    return datacards.images(tmp_path, "a.jpg", "sub/b.jpg", size=(3, 2))


def index_masks(folder, **fields):
    fields = {"task": "segmentation", "format": "index_masks", "annotations": "masks"} | fields
    return datacards.card(folder, **fields)


def truth(card, *labels):
    return load(card, *labels).items[0].truth


@pytest.mark.parametrize("palette", [None, [255, 0, 0, 0, 255, 0] + [1] * 762])
def test_a_mask_gives_indices_and_never_colors(folder, palette):
    """Gray samples, or the indices of a palette whose colors are something else."""
    png(folder / "masks" / "a.png", np.array([[0, 1, 2], [2, 255, 0]], np.uint8), palette)
    mask = truth(index_masks(folder, ignore=255), "x", "y", "z").read((2, 3))
    assert mask.dtype == np.uint8
    assert mask.tolist() == [[0, 1, 2], [2, IGNORE, 0]]


def test_classes_of_the_card_are_the_models_by_name(folder):
    """Value 0 is the first name of the card's list, and that is class 2 of the model."""
    png(folder / "masks" / "a.png", np.array([[0, 1, 9]], np.uint8))
    (folder / "names.txt").write_text("Sky\nroad\n")
    card = index_masks(folder, ignore=9, classes="names.txt")
    assert truth(card, "road", "tree", "sky").read().tolist() == [[2, 0, IGNORE]]
    assert truth(card).read().tolist() == [[0, 1, IGNORE]]
    with pytest.raises(DataError, match=r"not have 1 of [0-9]+ class(es)? of the data: .*'Sky'"):
        load(card, "road", "tree")


def test_cityscapes_ids_become_train_ids(tmp_path):
    """A few rows of the table in cityscapesScripts, in Cityscapes' own folders and names."""
    name = "frankfurt/frankfurt_000000_000294"
    datacards.images(tmp_path, f"{name}_leftImg8bit.png", "readme.png", size=(6, 1))
    ids = np.array([[7, 8, 0, 33, 29, 26]], np.uint8)  # road, sidewalk, unlabeled, bicycle, …
    png(tmp_path / "masks" / f"{name}_gtFine_labelIds.png", ids)
    png(tmp_path / "masks" / f"{name}_gtFine_color.png", ids)
    card = index_masks(
        tmp_path,
        train_ids="cityscapes",
        image_suffix="_leftImg8bit.png",
        mask_suffix="_gtFine_labelIds.png",
    )
    found = load(card)
    assert found.items[0].truth.read().tolist() == [[0, 1, 255, 18, 255, 13]]
    assert found.notes == (
        "left out 1 image whose name does not end in _leftImg8bit.png: readme.png",
    )
    assert sorted(set(CITYSCAPES.values())) == [*range(19), 255]


def test_values_are_mapped_as_the_card_says(folder):
    """From 16-bit masks, too; 255 in the mapping is not judged."""
    png(folder / "masks" / "a.png", np.array([[1000, 7, 300]], np.uint16))
    card = index_masks(folder, train_ids={1000: 1, 7: 0, 300: 255})
    assert truth(card, "x", "y").read().tolist() == [[1, 0, IGNORE]]
    with pytest.raises(DataError, match="train_ids: 1000: 1 is not below 1 classes"):
        load(card, "x")


@pytest.mark.parametrize("ignore", [None, 254])
def test_a_value_that_is_no_class_is_named(folder, ignore):
    """Even 255: what is not judged is written in the card."""
    png(folder / "masks" / "a.png", np.array([[0, 2, 255]], np.uint8))
    with pytest.raises(
        SampleError, match=r"a.png: values that are neither a class nor ignored: 2, 255"
    ):
        truth(index_masks(folder, ignore=ignore), "x", "y").read()


def test_a_mask_of_another_size_is_refused_when_it_is_judged(folder):
    """Both sizes are said, width by height."""
    png(folder / "masks" / "a.png", np.zeros((4, 5), np.uint8))
    with pytest.raises(SampleError, match="the mask has 5x4 pixels, the image 3x2"):
        truth(index_masks(folder), "x").read((2, 3))


def test_a_mask_that_cannot_be_read_is_this_images_trouble(folder):
    """No PNG, an RGB picture, no file any more."""
    path = png(folder / "masks" / "a.png", np.zeros((2, 3), np.uint8))
    mask = truth(index_masks(folder), "x")
    assert isinstance(mask, MaskTruth)
    path.write_bytes(b"no image")
    with pytest.raises(SampleError, match=r"a\.png"):
        mask.read()
    Image.new("RGB", (3, 2)).save(path)
    with pytest.raises(SampleError, match="RGB"):
        mask.read()
    path.unlink()
    with pytest.raises(SampleError, match="No such file"):
        mask.read()
    assert mask.digest() is None


def test_the_digest_is_of_the_file_and_of_what_it_means(folder):
    """The same file under another mapping is another truth."""
    path = png(folder / "masks" / "a.png", np.zeros((2, 3), np.uint8))
    first = truth(index_masks(folder), "x").digest()
    assert truth(index_masks(folder), "x").digest() == first
    assert truth(index_masks(folder, ignore=9), "x").digest() != first
    png(path, np.ones((2, 3), np.uint8))
    assert truth(index_masks(folder), "x").digest() != first


def test_what_does_not_fit_together_is_left_out_and_counted(folder):
    """Images without a mask, masks without an image."""
    png(folder / "masks" / "a.png", np.zeros((2, 3), np.uint8))
    png(folder / "masks" / "c.png", np.zeros((2, 3), np.uint8))
    found = load(index_masks(folder), "x")
    assert [item.name for item in found.items] == ["a.jpg"]
    assert found.notes == (
        "left out 1 image without a mask: sub/b.jpg",
        "ignored 1 annotation file without an image: c.png",
    )


def test_more_classes_than_a_mask_can_tell_are_refused(folder):
    """255 means ignored, so 255 classes are the most."""
    png(folder / "masks" / "a.png", np.zeros((2, 3), np.uint8))
    with pytest.raises(DataError, match="at most 255 classes, got 256"):
        load(index_masks(folder), *(f"c{n}" for n in range(256)))


def rectangle(x1, y1, x2, y2):
    return [[x1, y1, x2, y1, x2, y2, x1, y2]]


SIX = {1: ("six.jpg", 6, 6)}


def outlines(folder, annotations, background="background"):
    datacards.images(folder, "six.jpg", size=(6, 6))
    fields = {"task": "segmentation", "background": background}
    return datacards.coco(folder, SIX, annotations, **fields)


def outline(number, category, segmentation, **fields):
    return {
        "id": number,
        "image_id": 1,
        "category_id": category,
        "segmentation": segmentation,
    } | fields


def test_small_objects_lie_on_large_ones_whatever_their_order(folder):
    """Rectangles with whole corners cover whole pixels; the crowd is below, and not judged."""
    small = outline(1, 2, rectangle(2, 2, 3, 3))
    large = outline(2, 1, rectangle(1, 1, 5, 4))
    crowd = outline(3, 1, {"size": [6, 6], "counts": [0, 12, 24]}, iscrowd=1)  # two columns
    expected = np.array(
        [
            [255, 255, 0, 0, 0, 0],
            [255, 1, 1, 1, 1, 0],
            [255, 1, 2, 1, 1, 0],
            [255, 1, 1, 1, 1, 0],
            [255, 255, 0, 0, 0, 0],
            [255, 255, 0, 0, 0, 0],
        ]
    )
    for order in ([small, large, crowd], [crowd, large, small]):
        mask = truth(outlines(folder, order), "background", "cat", "dog").read((6, 6))
        assert mask.dtype == np.uint8
        assert np.array_equal(mask, expected)


def test_where_no_object_is_the_card_says_what_it_is(folder):
    """A class of the model, the class before the categories without labels, or nothing judged."""
    one = [outline(1, 2, rectangle(0, 0, 6, 3))]
    assert (
        truth(outlines(folder, one), "dog", "Background").read()[:, 0].tolist() == [0] * 3 + [1] * 3
    )
    assert truth(outlines(folder, one)).read()[:, 0].tolist() == [2] * 3 + [0] * 3
    assert truth(outlines(folder, one, "cat")).read()[:, 0].tolist() == [1] * 3 + [0] * 3
    assert truth(outlines(folder, one, None)).read()[:, 0].tolist() == [1] * 3 + [255] * 3
    with pytest.raises(DataError, match="background: the model does not have 1 of 1 class"):
        load(outlines(folder, one, "sea"), "cat", "dog")


@given(
    arrays(np.uint8, st.tuples(st.integers(1, 40), st.integers(1, 40)), elements=st.integers(0, 1))
)
def test_compressed_run_lengths_are_those_of_pycocotools(mask):
    """Its encoder, our decoder."""
    runs = pycoco.encode(np.asfortranarray(mask))
    segmentation = {"size": list(mask.shape), "counts": runs["counts"].decode()}
    found = OutlineMask(*mask.shape, 0, (Outline(1, segmentation),)).read()
    assert np.array_equal(found, mask)


@pytest.mark.parametrize(
    ("segmentation", "message"),
    [
        ({"size": [6, 6], "counts": [3, 2]}, "do not add up to 36 pixels"),
        ({"size": [6, 6], "counts": [3, -2, 35]}, "do not add up"),
        ({"size": [6, 6], "counts": [3, 2.0, 31]}, "do not add up"),
        ({"size": [6, 6], "counts": ""}, "do not add up"),
        ({"size": [6, 6]}, "do not add up"),
        ({"size": [6, 6], "counts": "é"}, "in compressed run lengths"),
        ({"size": [6, 6], "counts": "o" * 100}, "in compressed run lengths"),
        ({"size": [6, 7], "counts": [42]}, r"of size \[6, 7\], the image \[6, 6\]"),
        ([[1, 1, 2, 2]], "at least three pairs"),
        ([[1, 1, 2, 2, 3]], "at least three pairs"),
        ([1, 1, 2, 2, 3, 3], "at least three pairs"),
        ([[1, 1, 2, 2, 3, float("nan")]], "far outside of the image"),
        ([[1, 1, 2, 2, 3, 1e9]], "far outside of the image"),
        ([[1, 1, 2, 2, 3, "x"]], "a polygon is a list"),
        ("polygon", "a polygon is a list"),
    ],
)
def test_an_outline_that_cannot_be_drawn_is_this_images_trouble(folder, segmentation, message):
    """pycocotools would draw garbage, or nothing, or run out of memory."""
    mask = truth(outlines(folder, [outline(1, 1, segmentation)]), "background", "cat")
    with pytest.raises(SampleError, match=message):
        mask.read()


def test_images_with_objects_that_have_no_outline_are_left_out(folder):
    """A mask without them would call them background."""
    datacards.images(folder, "seven.jpg")
    card = outlines(folder, [outline(1, 1, rectangle(0, 0, 1, 1)), outline(2, 1, None)])
    document = json.loads((folder / "coco.json").read_text())
    document["images"].append({"id": 2, "file_name": "seven.jpg", "width": 6, "height": 6})
    (folder / "coco.json").write_text(json.dumps(document))
    found = load(card, "background", "cat")
    assert [item.name for item in found.items] == ["seven.jpg"]
    assert "left out 1 image with an object that has no outline: six.jpg" in found.notes


def test_the_digest_of_outlines_is_of_all_that_they_are():
    """Another class is another truth."""
    one, other = (OutlineMask(6, 6, 0, (Outline(n, rectangle(0, 0, 1, 1)),)) for n in (1, 2))
    assert one.digest() == OutlineMask(6, 6, 0, one.outlines).digest() != other.digest()


def test_the_shared_voc_masks_are_read_as_pillow_reads_them(tmp_path):
    """149 masks of the 177 images; classes 0 to 20, and 255."""
    root = shared("coco")
    card = index_masks(
        tmp_path,
        images=str(root / "images"),
        annotations=str(root / "voc21_masks"),
        classes=str(root / "voc21_classes.txt"),
        ignore=255,
    )
    found = read_card(card).load(load_labels(root / "voc21_classes.txt"))
    assert len(found.items) == 149
    assert found.notes[0].startswith("left out 28 images without a mask")
    for item in found.items[::10]:
        with Image.open(root / "voc21_masks" / item.path.with_suffix(".png").name) as image:
            expected = np.asarray(image)
        with Image.open(item.path) as image:
            size = image.size[::-1]
        assert np.array_equal(item.truth.read(size), expected)


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_the_shared_coco_outlines_are_drawn_as_pycocotools_draws_them(tmp_path):
    """Every pixel of every object is of its class, or of a smaller object's, or of a crowd."""
    from pycocotools.coco import COCO

    root = shared("coco")
    document = json.loads((root / "instances.json").read_text())
    bare = {a["image_id"] for a in document["annotations"] if not a.get("segmentation")}
    document["images"] = [one for one in document["images"] if one["id"] not in bare]
    document["annotations"] = [a for a in document["annotations"] if a["image_id"] not in bare]
    (tmp_path / "coco.json").write_text(json.dumps(document))
    fields = {"task": "segmentation", "format": "coco", "background": "background"}
    images = str(root / "images")
    card = datacards.card(tmp_path, images=images, annotations="coco.json", **fields)
    truths = {item.name: item.truth for item in read_card(card).load(None).items}
    coco = COCO(tmp_path / "coco.json")
    order = sorted(one["id"] for one in document["categories"])
    assert len(truths) == len(document["images"]) == 50
    for image in document["images"]:
        annotations = coco.imgToAnns[image["id"]]
        drawn = [(coco.annToMask(a) == 1, a) for a in annotations]
        mask = truths[image["file_name"]].read((image["height"], image["width"]))
        covered = np.zeros(mask.shape, bool)
        for inside, a in sorted(drawn, key=lambda pair: pair[0].sum()):
            if not a["iscrowd"]:
                assert (mask[inside & ~covered] == 1 + order.index(a["category_id"])).all()
                covered |= inside
        crowds = np.any(
            [inside for inside, a in drawn if a["iscrowd"]] or [covered & False], axis=0
        )
        assert (mask[crowds & ~covered] == IGNORE).all()
        assert (mask[~crowds & ~covered] == 0).all()
