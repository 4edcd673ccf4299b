"""Model cards: what travels with the weights."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError, model_validator

from simulator.data.labels import Labels, load_labels
from simulator.errors import ModelError, ProfileError
from simulator.modalities.image.geometry import Geometry
from simulator.modalities.image.sections import image_spec
from simulator.modalities.modality import MODALITIES, Modality
from simulator.profile import messages
from simulator.profile.document import Document, read
from simulator.profile.load import Profile
from simulator.profile.section import Deviations, Means, Section
from simulator.tasks import NAMES, named
from simulator.tasks.task import Network, Task

Pixels = Annotated[int, Field(ge=1, le=16384)]


class Input(Section):
    """The tensor that the network takes.

    ``mean`` and ``std`` apply to pixels scaled to 0…``top``.
    """

    height: Pixels
    width: Pixels
    layout: Literal["NCHW", "NHWC"]
    order: Literal["rgb", "bgr"]
    top: Literal[1, 255]
    mean: Means
    std: Deviations


class CardGeometry(Section):
    """How the network's training cut images to size; see :class:`Geometry`."""

    kind: Literal["short_side_crop", "squash", "letterbox"]
    rounding: Literal["torchvision", "dali", "floor"] = "torchvision"
    short_side: Pixels | None = None
    position: Literal["center", "top_left"] = "center"
    value: Annotated[int, Field(ge=0, le=255)] = 0

    @model_validator(mode="after")
    def _short_side(self) -> CardGeometry:
        if (self.kind == "short_side_crop") != (self.short_side is not None):
            raise ValueError("kind short_side_crop and a short_side go together")
        return self


class CardSpec(Section):
    """The document beside an ``.onnx`` file.

    ``torch_export`` is the same model as a ``torch.export`` program; ``tflite`` names the same
    model's ``.tflite`` files by the storage of their weights, for example ``{fp32: m.tflite}``.
    ``output`` says what the outputs mean, in the words of the task.
    """

    schema_: Literal[1] = Field(alias="schema")
    name: str
    summary: str = ""
    task: Literal["classification", "detection", "segmentation"]
    model: str
    torch_export: str | None = None
    tflite: dict[str, str] = Field(default_factory=dict)
    input: Input
    geometry: CardGeometry
    output: dict[str, Any]
    labels: str | None = None


Checked = TypeVar("Checked", bound=BaseModel)


def tensor_shape(spec: Input) -> tuple[int, ...]:
    """Return the shape of one sample's input tensor."""
    size = (3, spec.height, spec.width) if spec.layout == "NCHW" else (spec.height, spec.width, 3)
    return (1, *size)


class Card:
    """A model card, with its files found.

    Attributes:
        task: what its outputs mean.

    Args:
        path: the YAML document.

    Raises:
        ModelError: the card cannot be read, or names a file that is not there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.suffix == ".onnx":
            raise ModelError(
                f"{path}: an ONNX file does not say how images become its input; "
                f"write a model card beside it (docs/model-cards.md) and give that"
            )
        try:
            document = read(path)
        except ProfileError as error:
            raise ModelError(str(error)) from error
        self.spec, task, output = _checked(document)
        self.model = self._file("model", self.spec.model)
        export = self.spec.torch_export
        self.torch_export = self._file("torch_export", export) if export else None
        self.tflite = {s: self._file(f"tflite.{s}", f) for s, f in self.spec.tflite.items()}
        labels = self.spec.labels
        self.labels: Labels | None = load_labels(self._file("labels", labels)) if labels else None
        if labels is None and task.needs_labels:
            raise ModelError(f"{path}: labels: a card for {task.name} names its classes' file")
        size = self.spec.input.height, self.spec.input.width
        self.task: Task = task(output, Network(*size, self.labels))

    def _file(self, key: str, name: str) -> Path:
        file = self.path.parent / name
        if not os.path.isfile(file):  # unlike Path.is_file, no error where a name is too long
            raise ModelError(f"{self.path}: {key}: there is no file {file}")
        return file

    @property
    def modality(self) -> Modality:
        """What a sample of this model is."""
        return MODALITIES["image"]

    def geometry(self, profile: Profile) -> Geometry:
        """Fill a profile's geometry with the card's sizes."""
        own, asked = self.spec.geometry, image_spec(profile).geometry
        chosen: Any = own if asked.kind == "model" else asked
        rounding = asked.rounding
        if rounding in (None, "model"):
            rounding = own.rounding
        return Geometry(
            kind=chosen.kind,
            height=self.spec.input.height,
            width=self.spec.input.width,
            rounding=rounding,
            short_side=chosen.short_side or 0,
            position=chosen.position or "center",
            value=chosen.value or 0,
        )


def _checked(document: Document) -> tuple[CardSpec, type[Task], BaseModel]:
    """Validate a card and its ``output``, whose schema is the task's; every problem at once.

    Raises:
        ModelError: with a line for each.
    """
    problems: list[str] = []

    def valid(kind: type[Checked], values: Any, *place: str) -> Checked | None:
        try:
            return kind.model_validate(values)
        except ValidationError as error:
            never = ["model"]  # a profile's word for what is said here
            where = document.where
            problems.extend(messages.problems(error, kind, where, "card", place=place, never=never))
            return None

    spec = valid(CardSpec, document.values)
    task = document.values.get("task")
    known = named(task) if task in NAMES else None
    output = document.values.get("output")
    made = valid(known.Output, output, "output") if known and isinstance(output, dict) else None
    if spec is None or known is None or made is None:
        raise ModelError("\n".join(problems))
    return spec, known, made
