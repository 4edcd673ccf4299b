"""Data cards: where annotated images are, and what their annotations mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError

from simulator.data import coco, masks, outlines, voc, yolo
from simulator.data.annotated import find_images
from simulator.data.folder import Dataset, load_unlabelled
from simulator.data.labels import Labels, as_index, load_labels
from simulator.errors import DataError, ProfileError, unknown
from simulator.profile import messages
from simulator.profile.document import Document, read
from simulator.profile.section import Section

FILE = "data.yaml"
"""What a card is called in a folder that is given for it."""
ENDINGS = frozenset({".yaml", ".yml"})

Value = Annotated[int, Field(ge=0, le=65535)]


class DataSpec(Section):
    """What every card says; paths are relative to it."""

    schema_: Literal[1] = Field(alias="schema")
    name: str
    summary: str = ""
    task: str
    format: str
    images: str
    annotations: str
    split: str | None = None


class CocoBoxes(DataSpec):
    """Detection, COCO's JSON: a file."""


class VocBoxes(DataSpec):
    """Detection, Pascal VOC's XML: a folder; ``classes`` is for models without labels."""

    classes: str | None = None


class YoloBoxes(DataSpec):
    """Detection, YOLO's text: a folder; ``classes`` names the indices in it."""

    classes: str


class CocoMasks(DataSpec):
    """Segmentation, COCO's JSON: a file; ``background`` is the class where there is no object."""

    background: str | None


def _train_ids(given: object) -> object:
    """A named table, or keys of a document that are integers."""
    if isinstance(given, str):
        if given != "cityscapes":
            raise ValueError(unknown("table", given, ["cityscapes"]))
        return masks.CITYSCAPES
    if not isinstance(given, dict):
        raise ValueError("cityscapes, or a mapping of mask values to classes expected")
    keys = {key: as_index(str(key)) for key in given}
    strange = [key for key, index in keys.items() if index is None]
    if strange:
        raise ValueError(f"{strange[0]!r} is no mask value; write an integer")
    return {keys[key]: value for key, value in given.items()}


class IndexMasks(DataSpec):
    """Segmentation, PNG files of class indices: a folder."""

    classes: str | None = None
    ignore: Value | None = None
    train_ids: Annotated[
        dict[Value, Annotated[int, Field(ge=0, le=masks.IGNORE)]] | None,
        BeforeValidator(lambda given: None if given is None else _train_ids(given)),
    ] = None
    image_suffix: str | None = None
    mask_suffix: str = ".png"


FORMATS: Mapping[str, Mapping[str, type[DataSpec]]] = {
    "detection": {"coco": CocoBoxes, "voc": VocBoxes, "yolo": YoloBoxes},
    "segmentation": {"coco": CocoMasks, "index_masks": IndexMasks},
}


@dataclass(frozen=True, slots=True)
class DataCard:
    """A card that was checked.

    Attributes:
        path: the YAML document.
        spec: its content.
    """

    path: Path
    spec: DataSpec

    @property
    def task(self) -> str:
        """The task that its annotations are for: ``detection`` or ``segmentation``."""
        return self.spec.task

    def file(self, key: str) -> Path:
        """Return the path that a key names.

        Raises:
            DataError: nothing is there.
        """
        found = self.path.parent / str(getattr(self.spec, key))
        if not found.exists():
            raise DataError(f"{self.path}: {key}: there is no {found}")
        return found

    def names(self) -> tuple[str, ...] | None:
        """Return the classes of the card's own list, where it has one."""
        listed = getattr(self.spec, "classes", None)
        return load_labels(self.file("classes")).names if listed else None


def find_card(path: Path) -> Path | None:
    """Return the card that a path stands for: the file itself, or ``data.yaml`` in the folder."""
    if path.suffix.lower() in ENDINGS:
        return path
    return path / FILE if (path / FILE).is_file() else None


def load_annotated(path: Path, task: str, labels: Labels | None) -> Dataset:
    """Open a data card, or a folder of images that nobody has annotated.

    Args:
        path: a card, a folder that holds ``data.yaml``, or a folder of images.
        task: of the model.
        labels: of the model.

    Raises:
        DataError: it cannot be used, or is for another task.
    """
    found = find_card(path)
    if found is None:
        return load_unlabelled(path)
    card = read_card(found)
    if card.task != task:
        raise DataError(f"{found}: task: {card.task}, and the model is for {task}")
    return load_card(card, labels)


def read_card(path: Path) -> DataCard:
    """Read a data card; neither images nor annotations are opened.

    Args:
        path: the YAML document.

    Raises:
        DataError: each problem as ``file:line: key: what``.
    """
    try:
        document = read(path)
    except ProfileError as error:
        raise DataError(str(error)) from error
    model = _choose(document, "format", _choose(document, "task", FORMATS))
    try:
        return DataCard(path, model.model_validate(document.values))
    except ValidationError as error:
        lines = messages.problems(error, model, document.where, "card")
        raise DataError("\n".join(lines)) from error


def load_card(card: DataCard, labels: Labels | None) -> Dataset:
    """Open the annotated images of a card.

    Args:
        card: from :func:`read_card`.
        labels: the classes of the model; None where its card has no label file.

    Returns:
        The images that have annotations. The truth of each is a ``truth.Boxes`` for detection, a
        ``masks.MaskTruth`` for segmentation.

    Raises:
        DataError: the images or the annotations cannot be used.
    """
    spec = card.spec
    images = find_images(card.file("images"), card.file("split") if spec.split else None)
    annotations, names = card.file("annotations"), card.names()
    folder = not isinstance(spec, (CocoBoxes, CocoMasks))
    if annotations.is_dir() != folder:
        wanted = "a folder" if folder else "a JSON file"
        raise DataError(f"{card.path}: annotations: {annotations} is not {wanted}")
    match spec:
        case CocoMasks():
            return outlines.load_masks(images, annotations, spec.background, labels)
        case IndexMasks():
            where = str(card.path)
            values = masks.make_values(spec.train_ids, spec.ignore, names, labels, where)
            suffixes = spec.image_suffix, spec.mask_suffix
            return masks.load_masks(images, annotations, values, *suffixes)
        case YoloBoxes():
            return yolo.load_boxes(images, annotations, names or (), labels)
        case VocBoxes():
            return voc.load_boxes(images, annotations, names, labels)
        case _:
            return coco.load_boxes(images, annotations, labels)


def _choose(document: Document, key: str, offered: Mapping[str, Any]) -> Any:
    """What a word of the document stands for."""
    got = document.values.get(key)
    if isinstance(got, str) and got in offered:
        return offered[got]
    problem = "required, and not written" if got is None else unknown("value", got, offered)
    raise DataError(f"{document.where((key,))}: {key}: {problem}")
