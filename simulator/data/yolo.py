"""Annotations in YOLO's text: one file an image, one line an object.

Source:
    https://docs.ultralytics.com/datasets/detect/ ("Ultralytics YOLO format"): ``class x_center
    y_center width height``, fractions of the image's size; an image without objects has no file.
"""

from __future__ import annotations

from typing import NamedTuple

from simulator.data.annotated import (
    Annotated,
    AnnotatedSpec,
    Object,
    files_beside,
    make_boxes,
    map_classes,
)
from simulator.data.folder import Item, read
from simulator.data.format import DataCard
from simulator.data.label_kind import Samples
from simulator.data.labels import Labels, as_index, numbered_lines
from simulator.data.truth import Boxes
from simulator.errors import DataError, SampleError
from simulator.files import TEXT
from simulator.places import Where

_FAR = 2.0
"""Fractions are smaller than this; larger numbers must be pixels."""


class YoloSpec(AnnotatedSpec):
    """A card of YOLO files; ``classes`` names the indices in them."""

    classes: str


class _Line(NamedTuple):
    label: int
    x: float
    y: float
    width: float
    height: float


class YoloBoxes(Annotated):
    """Boxes in YOLO's text: a folder with one file an image, of ``a/b.jpg`` ``a/b.txt``.

    The fractions become pixels of the image as it is stored; its size is read from its header.
    """

    Spec = YoloSpec
    in_folder = True

    def truths(self, samples: Samples, card: DataCard, labels: Labels | None) -> dict[str, Boxes]:
        """Return the truths of the images that have annotations."""
        annotations = self.annotations(card)
        names = card.names() or ()
        found = files_beside(samples, annotations, ".txt", most=TEXT)
        parsed = {}
        for name in sorted(samples.chosen):
            parsed[name] = _lines(found[name], len(names)) if name in found else []
            if not parsed[name]:
                samples.tally.add("kept", "image", "without an object", name)
        if not any(parsed.values()):
            raise DataError(f"{annotations}: no file has an object of an image of {samples.root}")
        used = sorted({row.label for rows in parsed.values() for row in rows})
        classes = map_classes((names[at] for at in used), names, labels, str(annotations))
        truths = {}
        for name, rows in parsed.items():
            height, width = _size(samples, name)
            objects = [
                Object((x - w / 2) * width, (y - h / 2) * height, w * width, h * height, label)
                for label, x, y, w, h in ((classes[names[row.label]], *row[1:]) for row in rows)
            ]
            truths[name] = make_boxes(objects, height, width, name, samples.tally)
        return truths


BOXES = YoloBoxes()


def _size(samples: Samples, name: str) -> tuple[int, int]:
    """(height, width); any size for a file that is not an image: the run leaves it out anyway."""
    try:
        header = read(Item(name, samples.paths[name], None))
    except SampleError:
        return 1, 1
    return header.height, header.width


def _lines(file: Where, count: int) -> list[_Line]:
    """The objects of a file: each line that is not blank."""
    rows = []
    for number, line in numbered_lines(file):
        fields, where = line.split(), f"{file}:{number}"
        if len(fields) != 5:
            five = "class, x and y of its center, width, height"
            raise DataError(f"{where}: {len(fields)} fields; a box has 5: {five}")
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
