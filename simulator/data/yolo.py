"""Annotations in YOLO's text: one file an image, one line an object.

Source:
    https://docs.ultralytics.com/datasets/detect/ ("Ultralytics YOLO format"): ``class x_center
    y_center width height``, fractions of the image's size; an image without objects has no file.
"""

from __future__ import annotations

from typing import NamedTuple

from simulator.data.address import Root
from simulator.data.annotated import (
    Annotated,
    AnnotatedSpec,
    AnnotationFiles,
    Images,
    Object,
    count_strays,
    make_boxes,
    map_classes,
    stem,
)
from simulator.data.folder import Dataset, Item, read
from simulator.data.format import DataCard
from simulator.data.labels import Labels, as_index, read_text
from simulator.errors import DataError, SampleError
from simulator.files import TEXT
from simulator.places import Where

_FAR = 2.0
"""Fractions are smaller than this; larger numbers must be pixels."""


class YoloSpec(AnnotatedSpec):
    """A card of YOLO files; ``classes`` names the indices in them."""

    classes: str


class YoloBoxes(Annotated):
    """Boxes in YOLO's text: a folder with one file an image."""

    task = "detection"
    format = "yolo"
    Spec = YoloSpec
    in_folder = True

    def _load(
        self, images: Images, annotations: Root, card: DataCard, labels: Labels | None
    ) -> Dataset:
        return load_boxes(images, annotations, card.names() or (), labels)


BOXES = YoloBoxes()


class _Line(NamedTuple):
    label: int
    x: float
    y: float
    width: float
    height: float


def load_boxes(
    images: Images, folder: Root, names: tuple[str, ...], labels: Labels | None
) -> Dataset:
    """Read a folder of YOLO files; the file of ``a/b.jpg`` is ``a/b.txt``.

    The fractions become pixels of the image as it is stored; its size is read from its header.

    Args:
        images: where the images are.
        folder: where the text files are, or its URL.
        names: the classes in the order of the files' indices.
        labels: the classes of the model; None: the files' indices are the model's.

    Raises:
        DataError: a line is malformed, as ``file:line: what``.
    """
    files = AnnotationFiles(folder)
    found = files.of({name: f"{stem(name)}.txt" for name in sorted(images.chosen)}, TEXT)
    parsed = {}
    for name in sorted(images.chosen):
        parsed[name] = _lines(found[name], len(names)) if name in found else []
        if not parsed[name]:
            images.tally.add("kept", "image", "without an object", name)
    if not any(parsed.values()):
        raise DataError(f"{folder}: no file has an object of an image of {images.root}")
    count_strays(images, files, ".txt")
    used = {row.label for rows in parsed.values() for row in rows}
    classes = map_classes((names[index] for index in sorted(used)), names, labels, str(folder))
    truths = {}
    for name, rows in parsed.items():
        height, width = _size(images, name)
        objects = [
            Object((x - w / 2) * width, (y - h / 2) * height, w * width, h * height, label)
            for label, x, y, w, h in ((classes[names[row.label]], *row[1:]) for row in rows)
        ]
        truths[name] = make_boxes(objects, height, width, name, images.tally)
    return images.dataset(folder, truths)


def _size(images: Images, name: str) -> tuple[int, int]:
    """(height, width); any size for a file that is not an image: the run leaves it out anyway."""
    try:
        header = read(Item(name, images.paths[name], None))
    except SampleError:
        return 1, 1
    return header.height, header.width


def _lines(file: Where, count: int) -> list[_Line]:
    """The objects of a file: each line that is not blank."""
    rows = []
    for number, line in enumerate(read_text(file).split("\n"), 1):
        if not (fields := line.split()):
            continue
        where = f"{file}:{number}"
        if len(fields) != 5:
            raise DataError(
                f"{where}: {len(fields)} fields; a box has 5: class, x and y of its center, width,"
                " height"
            )
        index = as_index(fields[0])
        if index is None or not 0 <= index < count:
            raise DataError(f"{where}: class {fields[0]!r}: an index 0 to {count - 1} expected")
        try:
            values = [float(field) for field in fields[1:]]
        except ValueError as error:
            raise DataError(f"{where}: {error}") from error
        if not all(abs(value) < _FAR for value in values):
            raise DataError(f"{where}: {line.strip()!r}: fractions of the image's size expected")
        rows.append(_Line(index, *values))
    return rows
