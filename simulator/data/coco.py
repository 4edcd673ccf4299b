"""Annotations in COCO's JSON: the document, and the boxes in it.

Source:
    https://cocodataset.org/#format-data ("Data format", 1. Object Detection).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from reprlib import repr as short
from typing import Any, NamedTuple, NoReturn

from simulator.data import remote
from simulator.data.address import Root, safe
from simulator.data.annotated import (
    Annotated,
    Object,
    is_number,
    make_boxes,
    map_classes,
    track_number,
)
from simulator.data.format import DataCard
from simulator.data.label_kind import Samples
from simulator.data.labels import Labels, read_text
from simulator.data.tally import Tally
from simulator.data.truth import Boxes
from simulator.errors import DataError

Entry = Mapping[str, Any]
"""An object of one of the lists in the document."""


class Picture(NamedTuple):
    """An entry of ``images``; sizes are infinite where they are not written."""

    name: str
    height: float
    width: float


@dataclass(frozen=True, slots=True)
class Coco:
    """A document whose ids were checked.

    Attributes:
        path: the file, or its URL.
        pictures: the images by id.
        categories: names by id, in ascending id.
        annotations: the annotations of each image that is there, by image id; the list may be
            empty.
    """

    path: Root
    pictures: Mapping[int | str, Picture]
    categories: Mapping[int, str]
    annotations: Mapping[int | str, list[Entry]]

    def classes(self, labels: Labels | None, first: int = 0) -> dict[int, int]:
        """Return the model's index of every category that an annotation uses.

        Without labels a category's index is its place among the ascending ids, from *first*.

        Raises:
            DataError: the model does not have one of them.
        """
        used = {one["category_id"] for group in self.annotations.values() for one in group}
        if labels is None:
            return {number: index for index, number in enumerate(self.categories, first)}
        names = {number: name for number, name in self.categories.items() if number in used}
        index = map_classes(names.values(), None, labels, str(self.path))
        return {number: index[name] for number, name in names.items()}

    def annotated(self, tally: Tally) -> Iterator[tuple[Picture, list[Entry]]]:
        """Yield the images that are there with their annotations; those without are counted."""
        for key, group in self.annotations.items():
            if not group:
                tally.add("kept", "image", "without an object", self.pictures[key].name)
            yield self.pictures[key], group

    def refuse(self, annotation: Entry, why: str) -> NoReturn:
        """Refuse an annotation."""
        raise DataError(f"{self.path}: annotation {annotation.get('id', 'without id')}: {why}")


class CocoBoxes(Annotated):
    """Boxes in COCO's JSON: one file.

    Boxes are kept as they are written; ``area`` is the annotation's, else that of the box;
    ``iscrowd`` is 0 where it is not written.
    """

    in_folder = False

    def truths(self, samples: Samples, card: DataCard, labels: Labels | None) -> dict[str, Boxes]:
        """Return the truths of the images that have annotations."""
        coco = read_coco(samples, self.annotations(card))
        classes = coco.classes(labels)
        truths = {}
        for picture, group in coco.annotated(samples.tally):
            truths[picture.name] = boxes_of(coco, picture, group, classes, samples.tally)
        return truths


BOXES = CocoBoxes()


def boxes_of(
    coco: Coco, picture: Picture, group: list[Entry], classes: Mapping[int, int], tally: Tally
) -> Boxes:
    """Return the truth of an image from its annotations."""
    objects = [_object(coco, one) for one in group]
    return make_boxes(objects, classes, picture.height, picture.width, picture.name, tally)


def _object(coco: Coco, annotation: Entry) -> Object:
    box, area = annotation.get("bbox"), annotation.get("area")
    if not (isinstance(box, list) and len(box) == 4 and all(map(is_number, box))):
        coco.refuse(annotation, f"bbox: x, y, width, height expected, got {short(box)}")
    if area is not None and not (is_number(area) and area >= 0):
        coco.refuse(annotation, f"area: square pixels expected, got {short(area)}")
    x, y, width, height = box
    category = annotation["category_id"]
    difficult = annotation.get("difficult") == 1  # not COCO's: simulate render writes it
    track = annotation.get("instance_id", annotation.get("track_id"))  # of COCO-VID, and of TAO
    return Object(
        x, y, width, height, category, is_crowd(coco, annotation), area, difficult,
        track_number(track),
    )  # fmt: skip


def is_crowd(coco: Coco, annotation: Entry) -> bool:
    """Return an annotation's ``iscrowd``.

    Raises:
        DataError: it is not 0 or 1.
    """
    crowd = annotation.get("iscrowd", 0)
    if crowd not in (0, 1):
        coco.refuse(annotation, f"iscrowd: 0 or 1 expected, got {short(crowd)}")
    return bool(crowd)


def read_coco(samples: Samples, path: Root) -> Coco:
    """Read a COCO file and keep the annotations of images that are there; others are counted.

    Raises:
        DataError: it is not JSON, or an image, a category or an annotation is malformed.
    """
    return checked_coco(samples, path, read_document(path))


def read_document(path: Root) -> Entry:
    """Read a COCO file as it is.

    Raises:
        DataError: it is not JSON, or no object.
    """
    try:
        root = json.loads(read_text(remote.place(path)))
    except json.JSONDecodeError as error:
        raise DataError(f"{path}:{error.lineno}: not JSON, or cut off: {error.msg}") from error
    except (ValueError, RecursionError) as error:  # too many digits, or brackets
        raise DataError(f"{path}: JSON that cannot be read: {error}") from error
    if not isinstance(root, dict):
        raise DataError(f"{path}: an object with images, annotations and categories expected")
    return root


def checked_coco(samples: Samples, path: Root, root: Entry) -> Coco:
    """Check a document; see :func:`read_coco`."""
    listed = _pictures(path, entries_of(path, root, "images"))
    present = _present(samples, listed)
    categories = _categories(path, entries_of(path, root, "categories"))
    coco = Coco(path, listed, categories, {key: [] for key in present})
    seen: set[Any] = set()
    for entry in entries_of(path, root, "annotations"):
        key, number = entry.get("image_id"), entry.get("category_id")
        if not isinstance(number, int) or number not in categories:
            coco.refuse(entry, f"no category has the id {short(number)}")
        if not isinstance(key, (int, str)) or key not in listed:
            stray = f"image_id {short(key)}"
            samples.tally.add("left out", "annotation", "of no listed image", stray)
        elif key in coco.annotations:
            coco.annotations[key].append(entry)
        if isinstance(identity := entry.get("id"), (int, str)):
            if identity in seen:
                samples.tally.add("kept", "annotation", "with the id of another", f"id {identity}")
            seen.add(identity)
    return coco


def entries_of(path: Root, root: Entry, key: str) -> list[Entry]:
    """Return the objects of one of a document's lists.

    Raises:
        DataError: it is no list of objects.
    """
    found = root.get(key)
    if not isinstance(found, list):
        raise DataError(f"{path}: {key}: a list expected, got {short(found)}")
    for index, one in enumerate(found):
        if not isinstance(one, dict):
            raise DataError(f"{path}: {key}[{index}]: an object expected, got {short(one)}")
    return found


def _pictures(path: Root, entries: list[Entry]) -> dict[int | str, Picture]:
    found: dict[int | str, Picture] = {}
    names: set[str] = set()
    for index, entry in enumerate(entries):
        where, key, name = f"{path}: images[{index}]", entry.get("id"), entry.get("file_name")
        if not isinstance(key, (int, str)) or not isinstance(name, str):
            raise DataError(f"{where}: an id and a file_name expected, got {short(entry)}")
        name = safe(name, where)
        for what, value, known in (("id", key, found), ("file_name", name, names)):
            if value in known:
                raise DataError(f"{where}: another image has this {what}, {short(value)}")
        sides = [entry.get(side, math.inf) for side in ("height", "width")]
        if not all(side == math.inf or (is_number(side) and side > 0) for side in sides):
            raise DataError(f"{where}: height and width in pixels expected, got {short(sides)}")
        names.add(name)
        found[key] = Picture(name, *sides)
    return found


def _present(samples: Samples, listed: Mapping[int | str, Picture]) -> list[int | str]:
    """The ids of images that are there and chosen; others are counted."""
    known = {picture.name for picture in listed.values()}
    for name in sorted(samples.chosen - known):
        samples.tally.add("left out", "image", "that the annotations do not list", name)
    for name in sorted(known - samples.paths.keys()):
        samples.tally.add("left out", "annotated image", "not in the folder", name)
    return [key for key, picture in listed.items() if picture.name in samples.chosen]


def _categories(path: Root, entries: list[Entry]) -> dict[int, str]:
    found: dict[int, str] = {}
    for index, entry in enumerate(entries):
        number, name = entry.get("id"), entry.get("name")
        if not isinstance(number, int) or not isinstance(name, str):
            raise DataError(f"{path}: categories[{index}]: an id and a name expected")
        if number in found:
            raise DataError(f"{path}: categories[{index}]: another category has this id, {number}")
        found[number] = name
    return dict(sorted(found.items()))
