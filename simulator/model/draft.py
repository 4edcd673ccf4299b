"""A proposed model card: what the files in and beside a network say, and what is assumed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from simulator.contract.model import shape_words
from simulator.contract.model_format import ModelFormat
from simulator.errors import ModelError, unknown
from simulator.importers.network import NetworkFile, Shape
from simulator.profile.axes import TODO
from simulator.profile.modeline import MODEL_CARD, modeline
from simulator.profile.text import Line, flow, render

PIXELS = ("input.order", "input.top", "input.mean", "input.std")
CROPS = ("short_side_crop", "squash_crop")
"""Kinds of geometry that need ``short_side``."""
_SECTIONS = ("input", "geometry", "output")


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a proposed card.

    Attributes:
        key: its dotted place.
        value: what is written.
        note: where it is from.
        todo: what a user has to answer; empty: nothing, or what another field's says.
        said: whether a source says it; else it is the usual value, or none.
        usable: whether a run may assume the value where nobody is asked.
        is_off: whether it is only shown, as a comment.
    """

    key: str
    value: object
    note: str = ""
    todo: str = ""
    said: bool = True
    usable: bool = True
    is_off: bool = False


@dataclass(frozen=True, slots=True)
class Proposal:
    """A card before it is written.

    Attributes:
        network: the model file.
        format: its format.
        fields: the fields behind ``model``, in their order.
        labels: the names of the classes; empty: no file says them.
        sources: what was read besides the shapes, in words.
        problems: what was found there, and could not be used.
    """

    network: NetworkFile
    format: ModelFormat
    fields: tuple[Field, ...]
    labels: tuple[str, ...]
    sources: tuple[str, ...]
    problems: tuple[str, ...]

    @property
    def todo(self) -> list[Field]:
        """The fields that a user has to answer."""
        return [field for field in self.fields if field.todo]

    @property
    def assumed(self) -> list[Field]:
        """The fields that have the usual value, because no file says them."""
        return [field for field in self.fields if not field.said]

    @property
    def missing(self) -> list[Field]:
        """The fields without which nothing can run."""
        return [field for field in self.fields if not field.usable]

    def setting(self, values: Mapping[str, object], note: str) -> Proposal:
        """Return the same with values for some fields, by dotted key; None leaves a field out.

        Raises:
            ModelError: a card has no such field.
        """
        asks = next((field.todo for field in self.fields if field.key in PIXELS and field.todo), "")
        made = {field.key: field for field in self.fields}
        made |= {key: Field(key, value, note) for key, value in values.items()}
        if "geometry.kind" in values and values["geometry.kind"] not in CROPS:
            made = {k: one for k, one in made.items() if k != "geometry.short_side" or one.said}
        left = next((key for key in PIXELS if not made[key].said), "")
        if left:
            made[left] = replace(made[left], todo=asks)
        fields = (field for field in made.values() if field.value is not None)
        labels = () if "labels" in values else self.labels
        ordered = tuple(sorted(fields, key=lambda field: place_of(field.key)))
        return replace(self, fields=ordered, labels=labels)

    def classed_by(self, data: Path) -> Proposal:
        """Return the same with the names of class folders, numbered as torchvision's ImageFolder.

        Only where no file names the classes, and there are as many folders as scores.
        """
        folders = (
            sorted(one.name for one in data.iterdir() if one.is_dir()) if data.is_dir() else []
        )
        shape = next(iter(self.network.outputs.values()), ())
        if self.labels or len(shape) != 2 or len(folders) != shape[1] or folders[0].isdecimal():
            return self
        source = f"the classes are the folders of {data.name}, in alphabetical order"
        made = tuple(field for field in self.fields if field.key != "labels")
        return replace(self, labels=tuple(folders), fields=made, sources=(*self.sources, source))

    def asking(self, key: str, todo: str) -> Proposal:
        """Return the same with a question about a field."""
        fields = (replace(one, todo=todo) if one.key == key else one for one in self.fields)
        return replace(self, fields=tuple(fields))

    @property
    def label_text(self) -> str:
        """The file of the classes; empty: no file says them."""
        return "".join(f"{label}\n" for label in self.labels)

    def text(self, card: Path, model: str, labels: str, marked: bool = True) -> str:
        """Return the document.

        Args:
            card: where it will be.
            model: how it names the model file.
            labels: how it names the file with the classes.
            marked: whether fields that a user has to answer are marked with :data:`TODO`.
        """
        network = self.network
        takes, gives = words(network.inputs), words(network.outputs)
        head = [f"{_line(network.path.name)} takes {takes}; gives {gives}."]
        head += [f"Read: {source}." for source in self.sources]
        head += [f"Not used: {_line(problem)}" for problem in self.problems]
        if marked and self.todo:
            head.append(f"{TODO} marks what no file says: correct it, and remove the mark.")
        if marked:
            head.append(
                f"All fields: docs/model-cards.md. Then: simulate model check {_line(str(card))}"
            )
        lines = [Line(0, "", note=note) for note in (modeline(MODEL_CARD, card), *head)]
        lines += [Line(0, "schema", "1"), Line(0, "name", flow(network.path.stem))]
        file = {network.weights: model} if self.format.by_weights else model
        task = next(field for field in self.fields if field.key == "task")
        lines += [_written(0, "task", task, marked), Line(0, self.format.key, flow(file))]
        for section in _SECTIONS:
            lines.append(Line(0, section))
            for field in self.fields:
                if field.key.startswith(f"{section}."):
                    lines += _nested(field, marked)
        if self.labels:
            lines.append(Line(0, "labels", flow(labels)))
        for field in self.fields:
            if field.key == "labels":
                lines.append(_written(0, "labels", field, marked, off=0 if field.is_off else None))
        return render(lines)


def unfinished(text: str) -> dict[int, str]:
    """Return what a card still leaves to be said, by the number of its line, from 1."""
    return {
        number: f"{line.partition(':')[0].strip()}: {line.partition(f'{TODO}: ')[2].strip(chr(39))}"
        for number, line in enumerate(text.splitlines(), start=1)
        if f"{TODO}: " in line
    }


def words(values: Mapping[str, Shape]) -> str:
    """Return names and shapes on one line, whatever is in the names."""
    return ", ".join(f"{_line(name)} {shape_words(shape)}" for name, shape in values.items())


def place_of(key: str) -> int:
    """Return the place of a field in a card: the task, the sections, the labels.

    Raises:
        ModelError: a card proposes no such field.
    """
    section, places = key.partition(".")[0], ("task", *_SECTIONS, "labels")
    if section not in places:
        raise ModelError(f"{key}: {unknown('field of a model card', section, places)}")
    return places.index(section)


def _written(depth: int, key: str, field: Field, marked: bool, off: int | None = None) -> Line:
    note = f"{TODO}: {field.todo}" if marked and field.todo else field.note
    return Line(depth, key, flow(field.value), note, off)


def _nested(field: Field, marked: bool) -> Iterator[Line]:
    """One line; of a head one for each of its fields."""
    key, value = field.key.partition(".")[2], field.value
    if key == "head" and isinstance(value, dict) and value:
        yield Line(1, key, "", field.note)
        yield from (Line(2, name, flow(one)) for name, one in value.items())
    else:
        yield _written(1, key, field, marked)


def _line(text: str) -> str:
    return " ".join(text.split())
