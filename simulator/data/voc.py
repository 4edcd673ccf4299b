"""Annotations in Pascal VOC's XML: one file an image.

Source:
    M. Everingham, J. Winn, "The PASCAL Visual Object Classes Challenge 2012 Development Kit",
    section 5.1 "Annotation" (objects, bndbox, difficult).
"""

from __future__ import annotations

import math
from xml.etree.ElementTree import Element

from simulator.data.annotated import (
    LIMIT,
    Annotated,
    AnnotatedSpec,
    Object,
    files_beside,
    make_boxes,
    map_classes,
)
from simulator.data.format import DataCard
from simulator.data.label_kind import Samples
from simulator.data.labels import Labels
from simulator.data.truth import Boxes
from simulator.errors import DataError, reading
from simulator.markup import NotXmlError, parse
from simulator.places import Where, read

MAX_BYTES = 10_000_000
"""Larger XML files are refused; a thousand objects need 0.4 MB."""
_CORNERS = ("xmin", "ymin", "xmax", "ymax")


class VocSpec(AnnotatedSpec):
    """A card of VOC files; ``classes`` lists them for models without a label file."""

    classes: str | None = None


class VocBoxes(Annotated):
    """Boxes in Pascal VOC's XML: a folder with one file an image, of ``a/b.jpg`` ``a/b.xml``.

    x and y are ``xmin`` and ``ymin``, width and height ``xmax - xmin`` and ``ymax - ymin``.
    """

    Spec = VocSpec
    in_folder = True

    def truths(self, samples: Samples, card: DataCard, labels: Labels | None) -> dict[str, Boxes]:
        """Return the truths of the images that have annotations."""
        annotations = self.annotations(card)
        missing = "without an XML file"
        places = files_beside(samples, annotations, ".xml", missing=missing, most=MAX_BYTES)
        parsed = {name: _read(file) for name, file in places.items()}
        used = (str(one.label) for objects, _, _ in parsed.values() for one in objects)
        classes = map_classes(used, card.names(), labels, str(annotations))
        return {
            name: make_boxes(objects, classes, height, width, name, samples.tally)
            for name, (objects, height, width) in parsed.items()
        }


BOXES = VocBoxes()


def _read(file: Where) -> tuple[list[Object], float, float]:
    """Objects of one file, and height and width."""
    root = _parse(file)
    size = root.find("size")
    sides = [math.inf if size is None else _number(file, size, key) for key in ("height", "width")]
    objects = []
    for index, element in enumerate(root.findall("object")):
        box, name = element.find("bndbox"), (element.findtext("name") or "").strip()
        if box is None or not name:
            raise DataError(f"{file}: object {index + 1}: no {'bndbox' if name else 'name'}")
        difficult = (element.findtext("difficult") or "0").strip()
        if difficult not in ("0", "1"):
            raise DataError(f"{file}: object {index + 1}: difficult: 0 or 1, got {difficult!r}")
        x1, y1, x2, y2 = (_number(file, box, key) for key in _CORNERS)
        objects.append(Object(x1, y1, x2 - x1, y2 - y1, name, difficult=difficult == "1"))
    return objects, sides[0] or math.inf, sides[1] or math.inf


def _number(file: Where, parent: Element, key: str) -> float:
    text = parent.findtext(key)
    try:
        value = float(text or "")
    except ValueError:
        value = math.nan
    if not abs(value) < LIMIT:
        raise DataError(f"{file}: {parent.tag}: {key}: a number of pixels expected, got {text!r}")
    return value


def _parse(file: Where) -> Element:
    with reading(file):
        data = read(file, MAX_BYTES)
    try:
        root = parse(data)
    except NotXmlError as error:
        raise DataError(f"{file}:{error.line}: {error}") from error
    if root.tag != "annotation":
        raise DataError(f"{file}: <annotation> expected, got <{root.tag}>")
    return root
