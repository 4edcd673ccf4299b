"""Labels in files beside images: the parts of images that are chosen, classes, checked boxes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from simulator.data import remote
from simulator.data.address import Root
from simulator.data.format import DataCard, DataSpec
from simulator.data.label_kind import LabelKind, Samples, stem
from simulator.data.labels import Labels
from simulator.data.listing import list_below
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


class Annotated(LabelKind):
    """Labels of images in a file or in a folder.

    Attributes:
        in_folder: whether the annotations are a folder of files; else they are one file.
    """

    Spec: ClassVar[type[AnnotatedSpec]] = AnnotatedSpec
    files = "images"
    none = "annotations: annotates no image of"
    in_folder: ClassVar[bool]

    def annotations(self, card: DataCard) -> Root:
        """Return where the annotations of a card are.

        Raises:
            DataError: they are a file instead of a folder, or the other way round.
        """
        found = card.root("annotations")
        if isinstance(found, Path) and found.is_dir() != self.in_folder:
            wanted = "a folder" if self.in_folder else "a file"
            raise DataError(f"{card.path}: annotations: {found} is not {wanted}")
        return found


def files_beside(
    samples: Samples,
    annotations: Root,
    ending: str,
    *,
    image_ending: str | None = None,
    missing: str = "",
    most: int | None = None,
) -> dict[str, Where]:
    """Return where the annotation file of each chosen image is; those of no image are counted.

    Args:
        samples: the images.
        annotations: the folder, or its URL, with names and folders as the images'.
        ending: the end of a file's name.
        image_ending: the end of an image's name, for which *ending* stands there; images without
            it are left out. None: whatever follows the last dot.
        missing: what is said of images without a file; empty: nothing.
        most: bytes of a file; those behind a URL are fetched. None: none is read.
    """
    found, places, end = list_below(annotations).paths, dict[str, Where](), image_ending
    starts = {name: stem(name) if end is None else name.removesuffix(end) for name in samples.paths}
    for image in sorted(samples.chosen):
        if end is not None and not image.endswith(end):
            samples.tally.add("left out", "image", f"whose name does not end in {end}", image)
        elif place := found.get(f"{starts[image]}{ending}"):
            places[image] = place
        elif missing:
            samples.tally.add("left out", "image", missing, image)
    for name in sorted(found.keys() - {f"{start}{ending}" for start in starts.values()}):
        if name.endswith(ending):
            samples.tally.add("ignored", "annotation file", "without an image", name)
    if most is None:
        return places
    return dict(zip(places, remote.ahead(list(places.values()), most), strict=True))


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
            why = "the model card has no label file; write `classes` in the data card"
            raise DataError(f"{where}: {why}")
        strange = [name for name in distinct if name not in names]
        if strange:
            raise DataError(f"{where}: not among the data card's classes: {some(strange)}")
        return {name: names.index(name) for name in distinct}
    strange = [name for name in distinct if not labels.knows(name)]
    if strange:
        names = strange if len(strange) > NAMED else [labels.why_not(name) for name in strange]
        count = f"{len(strange)} of {counted(len(distinct), 'class')}"
        raise DataError(f"{where}: the model does not have {count} of the data: {some(names)}")
    return {name: labels.resolve(name) for name in distinct}


def is_number(value: object) -> bool:
    """Whether a value of a document can be a coordinate: a finite number, not a boolean."""
    return type(value) in (int, float) and -LIMIT < value < LIMIT  # type: ignore[operator]


class Object(NamedTuple):
    """One annotated object: pixels of the image as it is stored, and its class in the file."""

    x: float
    y: float
    width: float
    height: float
    label: str | int
    crowd: bool = False
    area: float | None = None
    """Square pixels; None where it is the area of the box."""
    difficult: bool = False
    track: int | None = None
    """Which object of the video it is; None where that is not known."""


def track_number(value: object) -> int | None:
    """Return a whole number from 0 on; None for others: -1 says that it is not known."""
    if not isinstance(value, (int, float)) or not 0 <= value < 2**53:
        return None
    return int(value) if value == int(value) else None


def make_boxes(
    objects: Sequence[Object],
    classes: Mapping[Any, int],
    height: float,
    width: float,
    name: str,
    tally: Tally,
) -> Boxes:
    """Return the truth of an image; boxes without area or outside of it are dropped and counted.

    A box that is partly outside stays as it is, as in pycocotools.

    Args:
        objects: in the order of the file.
        classes: the model's index of each class of the file.
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
    known = all(one.crowd or one.track is not None for one in objects)
    tracks = [-1 if one.crowd or one.track is None else one.track for one in objects]
    area = [one.width * one.height if one.area is None else one.area for one in objects]
    return Boxes(
        xywh[kept],
        np.array([classes[one.label] for one in objects], np.int64)[kept],
        np.array([one.crowd for one in objects], np.bool_)[kept],
        np.array(area, np.float64)[kept],
        np.array([one.difficult for one in objects], np.bool_)[kept],
        (int(height), int(width)) if isfinite(height) and isfinite(width) else None,
        np.array(tracks, np.int64)[kept] if known else None,
    )
