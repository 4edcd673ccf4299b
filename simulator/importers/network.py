"""A network's model file as it describes itself, and what files say of its model card."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from simulator.importers.draft import Draft
from simulator.importers.values import plain

Shape = tuple[int | None, ...]
_EXPORTS = ("onnx",)
"""Folders of exports, whose configuration lies one folder up (Optimum, Transformers.js)."""


@dataclass(frozen=True, slots=True)
class NetworkFile:
    """A model file, before anybody says how images become its input.

    Attributes:
        path: where it is.
        inputs: the shape of each input; None for a free dimension.
        outputs: likewise, in the file's order.
        metadata: the texts that its exporter wrote into it, by key.
        weights: the type of its weights as a card names it, where cards name a file for each type.
    """

    path: Path
    inputs: Mapping[str, Shape]
    outputs: Mapping[str, Shape]
    metadata: Mapping[str, str]
    weights: str = "fp32"

    @property
    def image(self) -> tuple[str, int | None, int | None] | None:
        """Layout, height and width of its image; None where it takes none, or more than a mask."""
        shapes = list(self.inputs.values())
        if self.masked:
            shapes = [self.inputs[self.masked[0]]]
        if len(shapes) == 1 and len(shapes[0]) == 4:
            _, a, b, c = shapes[0]
            if a == 3:
                return "NCHW", b, c
            if c == 3:
                return "NHWC", a, b
        return None

    @property
    def masked(self) -> tuple[str, str] | None:
        """Names of the image and of the mask that says where it is; None where it is not so."""
        ranks = {len(shape): name for name, shape in self.inputs.items()}
        return (ranks[4], ranks[3]) if len(self.inputs) == 2 and ranks.keys() == {3, 4} else None

    def beside(self, names: Iterable[str]) -> Iterator[Path]:
        """Yield the files of these names beside it."""
        folder = self.path.resolve().parent
        folders = [folder, folder.parent] if folder.name in _EXPORTS else [folder]
        for place in (folder / name for folder in folders for name in names):
            if place.is_file():
                yield place


@dataclass(frozen=True, slots=True)
class Said:
    """A value of a card's field, and where it is written."""

    value: object
    origin: str


@dataclass(slots=True)
class CardFields:
    """What one source says of a network's model card.

    Attributes:
        source: the source in words.
        said: by dotted key, for example ``input.mean``.
        labels: the names of the classes, in the order of the scores; empty: it does not say.
        problems: what it says and no profile can express, or why it could not be read.
        is_guess: whether it only looks like it.
    """

    source: str
    said: dict[str, Said] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    problems: list[str] = field(default_factory=list)
    is_guess: bool = False

    def name(self, classes: Mapping[int, object]) -> None:
        """Set the labels by their numbers, each on one line; not if they are only numbered."""
        if str(classes.get(0)) in ("LABEL_0", "class0"):
            return
        self.labels = tuple(
            " ".join(plain(str(classes[key])).split()) or f"class {key}" for key in sorted(classes)
        )

    def say(self, origin: str, **values: object) -> None:
        """Add values by dotted key, in which ``__`` stands for the dot."""
        self.said |= {key.replace("__", "."): Said(one, origin) for key, one in values.items()}


def of_draft(draft: Draft, source: str) -> CardFields:
    """Return what an imported configuration says of the network itself, not of its stack."""
    made = CardFields(source, problems=list(draft.problems))
    fields = {
        "input.order": ("color", "order"),
        "output.unletterbox": ("postprocess", "unletterbox"),
    }
    names = ("kind", "rounding", "short_side", "long_side", "shortest", "longest", "multiple_of",
             "position", "value", "crop_before_resize")  # fmt: skip
    fields |= {f"geometry.{name}": ("geometry", name) for name in names}
    for key, place in fields.items():
        value, origin = draft.written(*place)
        if value not in (None, "model"):
            made.said[key] = Said(value, origin)
    if draft.size:
        (height, width), origin = draft.size
        made.say(origin, input__height=height, input__width=width)
    if draft.statistics:
        mean, std = draft.statistics
        is_unit = draft.written("normalize", "arithmetic")[0] == "unit_divide" or (
            set(mean) == {0} and set(std) == {255}
        )
        top = 255 if is_unit else 1
        origin = draft.written("normalize", "mean")[1]
        made.say(
            origin, input__top=1 if is_unit else 255, input__mean=[float(m / top) for m in mean]
        )
        made.say(draft.written("normalize", "std")[1], input__std=[float(s / top) for s in std])
    return made
