"""Annotations in YOLO's text: one file an image, one line an object.

Source:
    https://docs.ultralytics.com/datasets/detect/ ("Ultralytics YOLO format"): ``class x_center
    y_center width height``, fractions of the image's size; an image without objects has no file.
"""

from __future__ import annotations

from collections.abc import Sequence

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
            parsed[name] = _fractions(found[name], names) if name in found else []
            if not parsed[name]:
                samples.tally.add("kept", "image", "without an object", name)
        if not any(parsed.values()):
            raise DataError(f"{annotations}: no file has an object of an image of {samples.root}")
        used = {one.label for objects in parsed.values() for one in objects}
        classes = map_classes(
            (one for one in names if one in used), names, labels, str(annotations)
        )
        truths = {}
        for name, objects in parsed.items():
            height, width = _size(samples, name)
            pixels = [
                Object(one.x * width, one.y * height, one.width * width, one.height * height,
                       one.label)
                for one in objects
            ]  # fmt: skip
            truths[name] = make_boxes(pixels, classes, height, width, name, samples.tally)
        return truths


BOXES = YoloBoxes()


def _size(samples: Samples, name: str) -> tuple[int, int]:
    """(height, width); any size for a file that is not an image: the run leaves it out anyway."""
    try:
        header = read(Item(name, samples.paths[name], None))
    except SampleError:
        return 1, 1
    return header.height, header.width


def _fractions(file: Where, names: Sequence[str]) -> list[Object]:
    """The objects of a file, in fractions of the image: each line that is not blank."""
    objects = []
    for number, line in numbered_lines(file):
        fields, where = line.split(), f"{file}:{number}"
        if len(fields) != 5:
            five = "class, x and y of its center, width, height"
            raise DataError(f"{where}: {len(fields)} fields; a box has 5: {five}")
        index = as_index(fields[0])
        if index is None or not 0 <= index < len(names):
            last = len(names) - 1
            raise DataError(f"{where}: class {fields[0]!r}: an index 0 to {last} expected")
        try:
            values = [float(field) for field in fields[1:]]
        except ValueError as error:
            raise DataError(f"{where}: {error}") from error
        if not all(abs(value) < _FAR for value in values):
            raise DataError(f"{where}: {line.strip()!r}: fractions of the image's size expected")
        x, y, width, height = values
        objects.append(Object(x - width / 2, y - height / 2, width, height, names[index]))
    return objects
