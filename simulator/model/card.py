"""Model cards: the description that belongs to a model's weights."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from simulator.data.labels import Labels, load_labels
from simulator.errors import ModelError, ProfileError, unknown
from simulator.modalities.card import CardSpec
from simulator.modalities.modality import MODALITIES, Feed, Modality
from simulator.profile import messages
from simulator.profile.document import Document, read
from simulator.tasks.task import TASKS, Network, Task

DEFAULT = "image"
"""The modality of a card whose ``input`` has no ``kind``."""
TODO = "TODO"
"""What ``simulate model new`` marks a field with that the file does not say."""
Checked = TypeVar("Checked", bound=BaseModel)


class Card:
    """A model card, with its files found.

    Attributes:
        spec: its checked content, in the schema of its modality; further files are full paths.
        written: the same, with paths as in the document.
        files: the further files that its ``input`` names, by their key.
        model: its ONNX file; without one, the first of its ``.tflite`` files, or its folder.
        modality: the kind of its samples.
        task: the meaning of its outputs.
        todo: what it still leaves to be said, see :func:`unfinished`.

    Args:
        path: the YAML document.
        draft: whether fields may still be marked :data:`TODO`.

    Raises:
        ModelError: the card cannot be read, is not valid, is not filled in, or names a missing
            file.
    """

    def __init__(self, path: Path, draft: bool = False) -> None:
        self.path = path
        if path.suffix == ".onnx":
            raise ModelError(
                f"{path}: an ONNX file does not say how samples become its input; "
                f"write a model card for it (docs/model-cards.md) and give the card instead"
            )
        try:
            document = read(path)
        except ProfileError as error:
            raise ModelError(str(error)) from error
        self.todo = unfinished(path.read_text(encoding="utf-8"))
        if self.todo and not draft:
            raise ModelError(_not_filled_in(path, self.todo))
        self.written, self.modality, task, output = _checked(document)
        self.files: dict[str, Path] = {}
        self.spec: CardSpec = self.modality.located(self.written, self._further)
        export = self.spec.torch_export
        self.torch_export = self._file("torch_export", export) if export else None
        gguf = self.spec.gguf
        self.gguf = self._file("gguf", gguf) if gguf else None
        self.tflite = {s: self._file(f"tflite.{s}", f) for s, f in self.spec.tflite.items()}
        folder = self.spec.ctranslate2
        self.ctranslate2 = self._folder("ctranslate2", folder) if folder else None
        given = self.spec.model
        files = [*([self._file("model", given)] if given else []), *self.tflite.values()]
        files += [self.ctranslate2] if self.ctranslate2 else []
        self.model: Path = files[0]
        labels = self.spec.labels
        self.labels: Labels | None = load_labels(self._file("labels", labels)) if labels else None
        if labels is None and task.needs_labels:
            raise ModelError(f"{path}: labels: {task.name} needs a file of class names")
        self.task: Task = task(output, Network(self.labels, self.spec.input, path.parent))

    @property
    def feeds(self) -> tuple[Feed, ...]:
        """Return the inputs that the network must take."""
        return self.modality.feeds(self.spec)

    @property
    def unit(self) -> str:
        """What flips are counted in: the task's word; one answer a sample is in its modality's."""
        return self.modality.unit if self.task.unit == "image" else self.task.unit

    def _further(self, key: str, name: str) -> Path:
        self.files[key] = self._file(key, name)
        return self.files[key]

    def _file(self, key: str, name: str) -> Path:
        file = self.path.parent / name
        if not os.path.isfile(file):  # unlike Path.is_file, no error if a name is too long
            raise ModelError(f"{self.path}: {key}: there is no file {file}")
        return file

    def _folder(self, key: str, name: str) -> Path:
        folder = self.path.parent / name
        if not os.path.isdir(folder):
            raise ModelError(f"{self.path}: {key}: there is no folder {folder}")
        return folder


def load(path: str | Path) -> Card:
    """Load a model card.

    Args:
        path: the YAML document.

    Raises:
        ModelError: the card cannot be read, is not valid, is not filled in, or names a missing
            file.

    Examples:
        >>> load("model.yaml").task.name    # beside the card: the model.onnx that it names
        'classification'
    """
    return Card(Path(path))


def unfinished(text: str) -> dict[int, str]:
    """Return what a card still leaves to be said, by the number of its line, from 1."""
    return {
        number: f"{line.partition(':')[0].strip()}: {line.partition(f'{TODO}: ')[2].strip(chr(39))}"
        for number, line in enumerate(text.splitlines(), start=1)
        if f"{TODO}: " in line
    }


def _not_filled_in(path: Path, todo: Mapping[int, str]) -> str:
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

    def valid(schema: type[Checked], values: Any, *place: str) -> Checked | None:
        try:
            return schema.model_validate(values)
        except ValidationError as error:
            never = ["model"]  # in a profile: "as the card says"
            where = document.where
            problems.extend(
                messages.problems(error, schema, where, "card", place=place, never=never)
            )
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
    spec = valid(modality.Card, document.values) if modality else None
    task = TASKS[name] if isinstance(name, str) and known(name, TASKS.names, "task") else None
    output = document.values.get("output")
    made = valid(task.Output, output, "output") if task and isinstance(output, dict) else None
    if modality is None or spec is None or task is None or made is None:
        raise ModelError("\n".join(problems))
    assert isinstance(spec, CardSpec)
    return spec, modality, task, made
