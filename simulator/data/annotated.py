"""What formats with a folder of images share: the images, the classes, checked boxes."""

from __future__ import annotations

import os
import posixpath
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, final

import numpy as np

from simulator.data import remote
from simulator.data.address import Root, safe
from simulator.data.folder import IMAGES, Dataset, Files, Item, list_files
from simulator.data.format import DataCard, DataFormat, DataSpec
from simulator.data.labels import Labels, read_text
from simulator.data.tally import NAMED, Tally, counted, some
from simulator.data.truth import Boxes
from simulator.errors import DataError
from simulator.places import Where

LIMIT = 1e9
"""Coordinates are smaller than this; a larger number is no pixel."""


class AnnotatedSpec(DataSpec):
    """A card of images in a folder, with annotations beside them; ``split`` lists some of them."""

    images: str
    annotations: str
    split: str | None = None


class Annotated(DataFormat):
    """A format of images in a folder, with annotations in a file or in a folder.

    Attributes:
        in_folder: whether the annotations are a folder of files; else they are one file.
    """

    Spec: ClassVar[type[AnnotatedSpec]] = AnnotatedSpec
    in_folder: ClassVar[bool]

    @final
    def load(self, card: DataCard, labels: Labels | None, files: Files) -> Dataset:
        """Find the images and the annotations, and read these.

        Raises:
            DataError: the images or the annotations cannot be used.
        """
        split = card.place("split") if getattr(card.spec, "split", None) else None
        images = find_images(card.root("images"), split, files)
        annotations = card.root("annotations")
        if isinstance(annotations, Path) and annotations.is_dir() != self.in_folder:
            wanted = "a folder" if self.in_folder else "a file"
            raise DataError(f"{card.path}: annotations: {annotations} is not {wanted}")
        return self._load(images, annotations, card, labels)

    @abstractmethod
    def _load(
        self, images: Images, annotations: Root, card: DataCard, labels: Labels | None
    ) -> Dataset:
        """Return the images that have annotations; see :meth:`Images.dataset`."""


@dataclass(frozen=True, slots=True)
class Images:
    """The image files of a data card.

    Attributes:
        root: the folder, or its URL.
        paths: where every image below it is, by its path from there with ``/``.
        chosen: the names that the card's split lists; all names where it has no split.
        tally: what is left out, for the notes.
    """

    root: Root
    paths: Mapping[str, Where]
    chosen: frozenset[str]
    tally: Tally = field(default_factory=Tally)

    def dataset(self, annotations: Root, truths: Mapping[str, Any]) -> Dataset:
        """Return the images that have a truth, sorted by name.

        Raises:
            DataError: there is none.
        """
        notes = self.tally.notes()
        if not truths:
            reasons = "; ".join(notes) or "the names are others in the folder or in the split"
            raise DataError(f"{annotations}: annotates no image of {self.root}: {reasons}")
        items = tuple(Item(name, self.paths[name], truths[name]) for name in sorted(truths))
        return Dataset(self.root, items, notes)


def find_images(root: Root, split: Where | None, files: Files = IMAGES) -> Images:
    """List the images of a folder, or those of them that a split names.

    Args:
        root: the folder, or its URL; folders below it are searched too.
        split: a list with one image a line, by its path below *root*, with or without its ending
            (the form of Pascal VOC's ``ImageSets/Main/*.txt``); None takes all.
        files: the files that are images.

    Raises:
        DataError: the folder or the list cannot be used, or the list names no image of the folder.
    """
    paths = list_files(root, files)
    if split is None:
        return Images(root, paths, frozenset(paths))
    stems: dict[str, list[str]] = {}
    for name in paths:
        stems.setdefault(stem(name), []).append(name)
    tally = Tally()
    lines: dict[str, int] = {}
    for number, line in enumerate(read_text(split).split("\n"), 1):
        if not (text := line.strip()):
            continue
        inside = safe(text, f"{split}:{number}")
        found = [inside] if inside in paths else stems.get(inside, [])
        if len(found) > 1:
            raise DataError(
                f"{split}:{number}: {text!r} may be {' or '.join(found)}; write the ending"
            )
        if not found:
            tally.add(
                "left out", "line", f"of {posixpath.basename(str(split))} without an image", text
            )
        elif found[0] in lines:
            raise DataError(f"{split}:{number}: {text!r} is also in line {lines[found[0]]}")
        else:
            lines[found[0]] = number
    if not lines:
        reasons = "; ".join(tally.notes()) or "it is empty"
        raise DataError(f"{split}: names no image of {root}: {reasons}")
    return Images(root, paths, frozenset(lines), tally)


def stem(name: str) -> str:
    """Return a path without its ending."""
    return posixpath.splitext(name)[0]


class AnnotationFiles:
    """The files of a folder of annotations, or of a URL, which is listed once.

    Args:
        root: the folder or the URL.

    Raises:
        DataError: the URL cannot be listed.
    """

    def __init__(self, root: Root) -> None:
        self._root = root
        self._listed = remote.listed(root) if isinstance(root, str) else None

    def of(self, names: Mapping[str, str], most: int) -> dict[str, Where]:
        """Return where the files of images are, by image; those behind a URL are in memory.

        Args:
            names: of the files below the folder, by image.
            most: bytes of one of them.
        """
        found = {image: place for image, name in names.items() if (place := self.find(name))}
        return dict(zip(found, remote.ahead(list(found.values()), most), strict=True))

    def find(self, name: str) -> Where | None:
        """Return where a file is, by its name below the folder; None: it is not there."""
        if self._listed is not None:
            return self._listed.get(name)
        assert isinstance(self._root, Path)
        path = self._root / name
        return path if path.is_file() else None

    def ending(self, ending: str) -> list[str]:
        """Return the names of the files that end in something, sorted; hidden ones not."""
        if self._listed is not None:
            every = list(self._listed)
        else:
            every = [
                Path(place, name).relative_to(self._root).as_posix()
                for place, _, names in os.walk(self._root)
                for name in names
            ]
        return sorted(
            name
            for name in every
            if name.endswith(ending) and not posixpath.basename(name).startswith(".")
        )


def count_strays(
    images: Images, found: AnnotationFiles, ending: str, image_ending: str | None = None
) -> None:
    """Count the annotation files in a folder and below it that belong to no image."""
    stems = {
        stem(name) if image_ending is None else name.removesuffix(image_ending)
        for name in images.paths
    }
    for name in found.ending(ending):
        if name.removesuffix(ending) not in stems:
            images.tally.add("ignored", "annotation file", "without an image", name)


def map_classes(
    used: Iterable[str], names: Sequence[str] | None, labels: Labels | None, where: str
) -> dict[str, int]:
    """Return the model's index of every class that annotations use.

    Args:
        used: names of classes.
        names: the classes in the order of the data; None where the data have no order. Without
            *labels* the position in it is the index.
        labels: the classes of the model; then classes are matched by name, ignoring case.
        where: the file, for messages.

    Raises:
        DataError: the model does not have a class, or its index cannot be known.
    """
    distinct = list(dict.fromkeys(used))
    if labels is None:
        if names is None:
            raise DataError(
                f"{where}: the model card has no label file; write `classes` in the data card"
            )
        strange = [name for name in distinct if name not in names]
        if strange:
            raise DataError(f"{where}: not among the data card's classes: {some(strange)}")
        return {name: names.index(name) for name in distinct}
    strange = [name for name in distinct if not labels.knows(name)]
    if strange:
        names = strange if len(strange) > NAMED else [labels.why_not(name) for name in strange]
        raise DataError(
            f"{where}: the model does not have {len(strange)} of {counted(len(distinct), 'class')}"
            f" of the data: {some(names)}"
        )
    return {name: labels.resolve(name) for name in distinct}


def is_number(value: object) -> bool:
    """Whether a value of a document can be a coordinate: a finite number, not a boolean."""
    return type(value) in (int, float) and -LIMIT < value < LIMIT  # type: ignore[operator]


class Object(NamedTuple):
    """One annotated object: pixels of the image as it is stored, and an index into the labels."""

    x: float
    y: float
    width: float
    height: float
    label: int
    crowd: bool = False
    area: float | None = None
    """Square pixels; None where it is the area of the box."""
    difficult: bool = False


def make_boxes(
    objects: Sequence[Object], height: float, width: float, name: str, tally: Tally
) -> Boxes:
    """Return the truth of an image; boxes without area or outside of it are dropped and counted.

    A box that is partly outside stays as it is, as in pycocotools.

    Args:
        objects: in the order of the file.
        height: rows of the image; infinite where they are not known.
        width: columns of the image; likewise.
        name: the image's name, for the notes.
        tally: where dropped boxes are counted.
    """
    xywh = np.array([one[:4] for one in objects], np.float64).reshape(-1, 4)
    x, y, w, h = xywh.T
    flat = (w <= 0) | (h <= 0)
    outside = ~flat & ((x >= width) | (y >= height) | (x + w <= 0) | (y + h <= 0))
    tally.add("dropped", "box", "of no or negative size", name, int(flat.sum()))
    tally.add("dropped", "box", "outside of the image", name, int(outside.sum()))
    kept = ~(flat | outside)
    area = [one.width * one.height if one.area is None else one.area for one in objects]
    return Boxes(
        xywh[kept],
        np.array([one.label for one in objects], np.int64)[kept],
        np.array([one.crowd for one in objects], np.bool_)[kept],
        np.array(area, np.float64)[kept],
        np.array([one.difficult for one in objects], np.bool_)[kept],
        (int(height), int(width)) if isfinite(height) and isfinite(width) else None,
    )
