"""A proposed model card: what the files in and beside a network say, and what is assumed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from simulator.contract.model import shape_words
from simulator.contract.model_format import ModelFormat, format_of
from simulator.errors import ModelError, ProfileError
from simulator.importers import tflite
from simulator.importers.importer import IMPORTERS
from simulator.importers.network import CardFields, NetworkFile, Shape
from simulator.profile.axes import TODO
from simulator.profile.modeline import MODEL_CARD, modeline
from simulator.profile.text import Line, flow, render

IMAGENET = {"input.mean": [0.485, 0.456, 0.406], "input.std": [0.229, 0.224, 0.225]}
NORMALIZES = ("Sub", "Div", "Mul", "Add", "BatchNormalization")
"""What a graph begins with where normalization is inside it."""
PIXELS = ("input.order", "input.top", "input.mean", "input.std")
_SECTIONS = ("input", "geometry", "output")
_NOT_MINE = ("task", "labels")


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
    """

    key: str
    value: object
    note: str = ""
    todo: str = ""
    said: bool = True
    usable: bool = True


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
        """Return the same with values for some fields, by dotted key."""
        known = {field.key for field in self.fields}
        fields = [
            Field(field.key, values[field.key], note) if field.key in values else field
            for field in self.fields
        ]
        fields += [Field(key, value, note) for key, value in values.items() if key not in known]
        answered = all(field.said for field in fields if field.key in PIXELS)
        if answered:
            fields = [replace(f, todo="") if f.key in PIXELS else f for f in fields]
        fields.sort(key=lambda field: _place(field.key))
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
        file = {"fp32": model} if self.format.by_weights else model
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
                lines.append(_written(0, "labels", field, marked, off=None if field.todo else 0))
        return render(lines)


def propose(model: Path) -> Proposal:
    """Propose the card of a network that takes images.

    Raises:
        ModelError: it cannot be read, or has no input that a color image could be.
    """
    network, format, ends = _network(model)
    if network.image is None:
        raise ModelError(
            f"{model}: takes {words(network.inputs) or 'nothing'}; a card can be proposed for one "
            "image, (1, 3, height, width) or (1, height, width, 3); for others see "
            "docs/model-cards.md"
        )
    found = [one for importer in IMPORTERS if (one := importer.of_network(network)) is not None]
    found.sort(key=lambda one: one.is_guess)
    labels = next((one.labels for one in found if one.labels), ())
    fields = _fields(network, ends, found, bool(labels))
    return Proposal(
        network, format, tuple(sorted(fields, key=lambda field: _place(field.key))), labels,
        tuple(one.source for one in found if one.said or one.labels),
        tuple(problem for one in found for problem in one.problems),
    )  # fmt: skip


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


def _network(model: Path) -> tuple[NetworkFile, ModelFormat, tuple[str, str]]:
    """Return a model file as it describes itself, with its first and its last operator."""
    format = format_of(model)
    if format is None or not (format.suffices and format.key):
        about = format.about if format else "no model file that is known"
        raise ModelError(f"{model}: {about}; a card can be proposed for an ONNX or a .tflite file")
    if format.name == "tflite":
        try:
            return tflite.network_file(model), format, ("", "")
        except ProfileError as error:
            raise ModelError("\n".join(error.problems)) from error
    contents = format.read(model)
    if contents is None:
        raise ModelError(f"{model}: {format.about} does not say what it takes; write a card for it")
    inputs = {name: port.shape for name, port in contents.inputs.items()}
    nodes = contents.graph.node if contents.graph else ()
    first, last = next(iter(inputs), ""), next(iter(contents.outputs), "")
    begins = next((node.op_type for node in nodes if first in node.input), "")
    ends = next((node.op_type for node in nodes if last in node.output), "")
    return NetworkFile(model, inputs, contents.outputs, contents.metadata), format, (begins, ends)


def _fields(
    network: NetworkFile, ends: tuple[str, str], found: Sequence[CardFields], labelled: bool
) -> list[Field]:
    """Return all fields; what no source says has its usual value, and a question."""
    assert network.image
    layout, height, width = network.image
    said = _merged(found)
    seen, why = _task(network.outputs)
    guess = next((one for one in found if one.is_guess and "task" in one.said), None)
    asks = f"{guess.source}: is all below as in its training?" if guess else ""
    fields = [said["task"]] if "task" in said else [Field("task", seen, why, said=False)]
    fields = [replace(field, todo=asks) for field in fields]
    task = str(fields[0].value)
    for key, side in (("height", height), ("width", width)):
        at = f"input.{key}"
        free = Field(
            at, 224, todo="free in the file; the size of the training", said=False, usable=False
        )
        fields.append(said.get(at, free) if side is None else Field(at, side))
    fields.append(Field("input.layout", layout))
    fields += _pixels(said, ends[0])
    if not any(key.startswith("geometry.") for key in said):
        fields += _geometry(task, height)
    kind = "probabilities" if ends[1] == "Softmax" else "logits"
    about = f"the graph ends with {ends[1]}" if ends[1] else "the usual one"
    fields += _output(network, task, Field("output.kind", kind, about), height, said)
    known = {field.key for field in fields}
    fields += [field for key, field in said.items() if key not in known and key not in _NOT_MINE]
    if not labelled and task != "classification":
        asks = "a file with a class a line, in the order of the scores"
        fields.append(Field("labels", "classes.txt", todo=asks, said=False, usable=False))
    elif not labelled:
        fields.append(Field("labels", "classes.txt", "optional: a file with a class a line"))
    return fields


def _merged(found: Sequence[CardFields]) -> dict[str, Field]:
    """What is said of each field; geometry and numbers of a channel are of one source each."""
    said: dict[str, Field] = {}
    taken: set[str] = set()
    for one in found:
        groups = {_group(key) for key in one.said} - taken
        said |= {
            key: Field(key, says.value, says.origin, said=not one.is_guess)
            for key, says in one.said.items()
            if _group(key) in groups
        }
        taken |= groups
    return said


def _group(key: str) -> str:
    is_scale = key in ("input.top", "input.mean", "input.std")
    return "scale" if is_scale else "geometry" if key.startswith("geometry.") else key


def _task(outputs: Mapping[str, Shape]) -> tuple[str, str]:
    """Return what the shapes of the outputs are typical of, and the words for it."""
    shapes = list(outputs.values())
    if len(shapes) == 1 and len(shapes[0]) == 2:
        return "classification", "one row of scores looks like it"
    if len(shapes) == 1 and len(shapes[0]) == 4:
        return "segmentation", "one map of scores looks like it"
    return "detection", "these outputs look like it"


def _pixels(said: Mapping[str, Field], begins: str) -> Iterator[Field]:
    """How pixels become numbers: one question for all that no source says."""
    usual: dict[str, object] = {"input.order": "rgb", "input.top": 1, **IMAGENET}
    told = "these are ImageNet's, as torchvision and timm train; others: 0…1, -1…1, bgr 0…255"
    if begins in NORMALIZES:
        usual |= {"input.top": 255, "input.mean": [0.0] * 3, "input.std": [1.0] * 3}
        told = f"the graph begins with {begins}, so it may normalize by itself"
    left = [key.removeprefix("input.") for key in PIXELS if key not in said]
    asks = f"{', '.join(left)} as in training; {told}"
    for key in PIXELS:
        is_first = bool(left) and key == f"input.{left[0]}"
        yield said.get(key) or Field(key, usual[key], todo=asks if is_first else "", said=False)


def _geometry(task: str, height: int | None) -> Iterator[Field]:
    asks = "as in evaluation: short_side_crop (needs short_side), squash, or letterbox"
    kinds = {"classification": "short_side_crop", "detection": "letterbox"}
    yield Field("geometry.kind", kinds.get(task, "squash"), todo=asks, said=False)
    if task == "classification":
        side = round((height or 224) * 256 / 224)
        yield Field("geometry.short_side", side, "before the crop", said=False)


def _output(
    network: NetworkFile, task: str, kind: Field, height: int | None, said: Mapping[str, Field]
) -> Iterator[Field]:
    name, shape = next(iter(network.outputs.items()), ("", ()))
    if task == "classification" and "output.kind" not in said:
        yield kind
        if shape[-1:] == (1001,):
            yield Field("output.background", 1, "of 1001 scores, the first is of no class")
    elif task == "segmentation":
        layout = network.image[0] if network.image else "NCHW"
        rows = shape[2] if layout == "NCHW" else shape[1]
        stride = round((height or 224) / rows) if rows else 1
        resize = {"of": "labels", "mode": "nearest", "coordinate_transformation_mode": "half_pixel"}
        yield Field("output.scores", name)
        yield kind
        yield Field("output.layout", layout)
        asks = "argmax before or after the mask gets the image's size, and how (mask_resize)"
        yield Field("output.argmax", "after", todo=asks, said=False)
        yield Field("output.output_stride", stride, "network pixels from one score to the next")
        yield Field("output.mask_resize", resize, said=False)
    elif task == "detection" and "output.head" not in said:
        asks = f"how {words(network.outputs)} become boxes; see docs/model-cards.md#heads"
        yield Field("output.head", {}, todo=asks, said=False, usable=False)


def _place(key: str) -> int:
    section = key.partition(".")[0]
    return _SECTIONS.index(section) if section in _SECTIONS else -1


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
