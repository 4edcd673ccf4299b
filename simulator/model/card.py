"""Model cards: the description that belongs to a model's weights."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from simulator.contract.model_format import ONNX, ModelFormat, card_formats, format_of, refusal
from simulator.data.labels import Labels, load_labels
from simulator.errors import ModelError, ProfileError, unknown
from simulator.modalities.card import CardSpec, card_schema
from simulator.modalities.modality import MODALITIES, Feed, Modality
from simulator.model.draft import unfinished
from simulator.model.proposed import card_of
from simulator.profile import messages
from simulator.profile.axes import TODO
from simulator.profile.document import Document, Values, read
from simulator.tasks.settings import Network
from simulator.tasks.task import TASKS, Task

DEFAULT = "image"
"""The modality of a card whose ``input`` has no ``kind``."""
Checked = TypeVar("Checked", bound=BaseModel)


class Card:
    """A model card, with its files found.

    Attributes:
        spec: its checked content, in the schema of its modality; further files are full paths.
        written: the same, with paths as in the document.
        files: the further files that its ``input`` names, by their key.
        named: its model files by format, and by the type of the weights (``""`` where a card
            names one file).
        format: the format that it is checked in: ONNX; without an ONNX file, another that suffices.
        model: its file in that format, the first of several.
        modality: the kind of its samples.
        task: the meaning of its outputs.
        second: the same card with the files of its second network; None where it has one only.
        todo: what it still leaves to be said, see :func:`unfinished`.
        told: where it is from and what it assumes, where a model file was given in its place.
        is_sized: whether it is of a network in another size, see :meth:`sized`.

    Args:
        path: the YAML document, or a model file: see :func:`simulator.model.proposed.card_of`.
        draft: whether fields may still be marked :data:`TODO`.
        data: the samples; of a model file that names no classes, its class folders may.

    Raises:
        ModelError: the card cannot be read, is not valid, is not filled in, or names a missing
            file.
    """

    def __init__(self, path: Path, draft: bool = False, data: str | Path | None = None) -> None:
        self.told, self.is_sized = "", False
        if said := refusal(path):
            raise ModelError(f"{path}: {said}")
        if (given := format_of(path)) is not None:
            path, self.told = card_of(path, given, data)
        self.path = path
        try:
            document = read(path)
        except ProfileError as error:
            raise ModelError(str(error)) from error
        self.todo = unfinished(path.read_text(encoding="utf-8"))
        if self.todo and not draft:
            raise ModelError(not_filled_in(path, self.todo))
        self.written, self.modality, task, output = _checked(document)
        self.files: dict[str, Path] = {}
        self.spec: CardSpec = self.modality.located(self.written, self._further)
        self._take(vars(self.spec))
        labels = self.spec.labels
        self.labels: Labels | None = load_labels(self._file("labels", labels)) if labels else None
        if labels is None and task.needs_labels:
            raise ModelError(f"{path}: labels: {task.name} needs a file of class names")
        output = task.located(output, self._further)
        self.task: Task = task(output, Network(self.labels, self.spec.input, path.parent))
        self.second: Card | None = self._second()

    @property
    def feeds(self) -> tuple[Feed, ...]:
        """Return the inputs that the network must take."""
        return self._feeds or self.modality.feeds(self.spec)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return the outputs that are read, by name; none where the first one is meant."""
        return self.task.handed() if self.second else self.task.outputs()

    @property
    def carried(self) -> Mapping[str, str]:
        """Return the output that each input becomes later, where the task infers several times."""
        return self.modality.carried(self.spec) if self.task.goes_on and self.is_first else {}

    def sized(self, spec: CardSpec) -> Card:
        """Return the card with another content: of a network whose input has another size."""
        if spec is self.spec:
            return self
        other = copy(self)
        other.spec, other.is_sized = spec, True
        return other

    @property
    def is_first(self) -> bool:
        """Whether its network takes what the front end makes of a sample."""
        return not self._feeds

    @property
    def networks(self) -> tuple[Card, ...]:
        """Return the card, and that of its second network."""
        return (self, self.second) if self.second else (self,)

    def refuse_second(self, what: str) -> None:
        """Refuse a card with two networks.

        Args:
            what: can do with one only; the subject and the verb of the sentence.

        Raises:
            ModelError: it has two.
        """
        if self.second:
            raise ModelError(f"{what} a card with one network; {self.path} names a second one")

    def _take(self, written: Mapping[str, Any], where: str = "") -> None:
        """Find the model files that are named, and the format that they are checked in."""
        self._feeds: tuple[Feed, ...] = ()
        self.named = {one.name: self._named(one, written, where) for one in card_formats()}
        self.format = next(
            card_format
            for card_format in card_formats()
            if card_format.suffices and self.named[card_format.name]
        )
        self.model: Path = next(iter(self.named[self.format.name].values()))

    def _second(self) -> Card | None:
        wants, given = bool(self.task.handed()), self.spec.second
        if wants != (given is not None):
            said = "needs the files of a second network" if wants else "takes no second network"
            raise ModelError(
                f"{self.path}: second: {self.task.name} with this output {said}; "
                + ("add second: {model: FILE.onnx}" if wants else "leave it out")
            )
        if given is None:
            return None
        if not given.get("model"):
            raise ModelError(f"{self.path}: second: model: FILE.onnx is missing")
        if strange := set(given) - {one.key for one in card_formats()}:
            keys = [one.key for one in card_formats()]
            raise ModelError(f"{self.path}: second: {unknown('key', min(strange), keys)}")
        other = copy(self)
        other._take(given, "second.")
        contents = other.format.read(other.model)
        assert contents is not None  # an ONNX file is always read
        other._feeds = tuple(
            Feed(name, port.dtype, port.shape) for name, port in contents.inputs.items()
        )
        other.second = None
        return other

    @property
    def unit(self) -> str:
        """What flips are counted in: the task's word; one answer a sample is in its modality's."""
        return self.modality.unit if self.task.unit == "image" else self.task.unit

    def _further(self, key: str, name: str) -> Path:
        self.files[key] = self._file(key, name)
        return self.files[key]

    def file(self, format: str, weights: str = "fp32") -> Path | None:
        """Return its file in a format; None where it names none, or none of these weights."""
        named = self.named.get(format, {})
        return named.get("", named.get(weights))

    def _named(self, format: ModelFormat, given: Mapping[str, Any], where: str) -> dict[str, Path]:
        written, folder, key = given.get(format.key), format.is_folder, f"{where}{format.key}"
        if not written:
            return {}
        if isinstance(written, Mapping) != format.by_weights:
            raise ModelError(f"{self.path}: {key}: expected {format.written}, got {written!r}")
        if not format.by_weights:
            return {"": self._file(key, written, folder)}
        each = sorted(written.items())
        return {kind: self._file(f"{key}.{kind}", name, folder) for kind, name in each}

    def _file(self, key: str, name: str, folder: bool = False) -> Path:
        found, kind = self.path.parent / name, "folder" if folder else "file"
        # unlike those of Path, no error if a name is too long
        if not (os.path.isdir if folder else os.path.isfile)(found):
            raise ModelError(f"{self.path}: {key}: there is no {kind} {found}")
        return found


def load(path: str | Path) -> Card:
    """Load a model card.

    Args:
        path: the YAML document; or a model file, for which one is found or proposed.

    Raises:
        ModelError: the card cannot be read, is not valid, is not filled in, or names a missing
            file.

    Examples:
        >>> load("model.yaml").task.name    # beside the card: the model.onnx that it names
        'classification'
    """
    return Card(Path(path))


def of_onnx_alone(values: Values) -> Values:
    """Return a card's values without its files in other formats, which a change of one outdates."""
    others = {card_format.key for card_format in card_formats() if card_format.name != ONNX}
    return {key: value for key, value in values.items() if key not in others}


def not_filled_in(path: Path, todo: Mapping[int, str]) -> str:
    """Return the message that a card of a path is not filled in; see :func:`unfinished`."""
    fields = ", ".join(dict.fromkeys(what.partition(":")[0] for what in todo.values()))
    return (
        f"{path}: {len(todo)} field{'s are' if len(todo) > 1 else ' is'} still marked {TODO}: "
        f"{fields}; a wrong one makes every figure wrong. Correct them as in training and remove "
        f"the marks; simulate model check {path} lists them"
    )


def _checked(document: Document) -> tuple[CardSpec, Modality, type[Task], BaseModel]:
    """Validate a card and its ``output``, whose schema belongs to the task.

    Raises:
        ModelError: with one line for each problem.
    """
    problems: list[str] = []

    def valid(schema: type[Checked], values: object, *place: str) -> Checked | None:
        never = ["model"]  # in a profile: "as the card says"
        try:
            return messages.checked(
                schema, values, document.where, "card", place=place, never=never
            )
        except ProfileError as error:
            problems.extend(error.problems)
            return None

    def known(word: str, offered: Sequence[str], *place: str) -> bool:
        if word not in offered:
            at = f"{document.where(place)}: {'.'.join(place)}"
            problems.append(f"{at}: {unknown('value', word, offered)}")
        return word in offered

    given, name = document.values.get("input"), document.values.get("task")
    kind = given.get("kind") if isinstance(given, Mapping) else None
    if not isinstance(kind, str):
        kind = DEFAULT
    modality = MODALITIES[kind] if known(kind, MODALITIES.names, "input", "kind") else None
    spec = valid(card_schema(modality.Card), document.values) if modality else None
    task = TASKS[name] if isinstance(name, str) and known(name, TASKS.names, "task") else None
    output = document.values.get("output")
    made = valid(task.Output, output, "output") if task and isinstance(output, dict) else None
    if modality is None or spec is None or task is None or made is None:
        raise ModelError("\n".join(problems))
    assert isinstance(spec, CardSpec)
    return spec, modality, task, made
