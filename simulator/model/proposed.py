"""The card of a model file that is given in place of one: that beside it, or a proposed one."""

from __future__ import annotations

import os
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from simulator import cache
from simulator.contract.description import Description
from simulator.contract.model_format import ModelFormat, format_of, refusal
from simulator.errors import ModelError, ProfileError
from simulator.importers import tflite, yolox
from simulator.importers.importer import IMPORTERS
from simulator.importers.network import CardFields, NetworkFile
from simulator.model.draft import Field, Proposal, place_of, words
from simulator.model.usual import fields_of
from simulator.profile.axes import flat
from simulator.profile.document import read
from simulator.profile.text import flow

CARD, LABELS = "card.yaml", "classes.txt"
PART = "card.part.yaml"
"""A file beside a model that was in memory, with the fields that its user knows."""
_BYTES = 16
"""A mean or std of at least this is on the scale 0-255, and not on 0-1."""


def card_of(model: Path, format: ModelFormat, data: str | Path | None = None) -> tuple[Path, str]:
    """Return the card of a model file, and a sentence that says where it is from.

    A proposed card is kept in the user's cache, by its content.

    Args:
        model: the file.
        format: its format.
        data: the samples, whose class folders name the classes where no file does.

    Raises:
        ModelError: it has no card, and something is not known without which nothing can run.
    """
    if not os.path.exists(model):  # unlike that of Path, no error if a name is too long
        raise ModelError(f"{model}: there is no such file")
    beside = model.with_suffix(".yaml")
    if _is_card_of(beside, model, format):
        return beside, f"the model card is {beside.name}, beside {model.name}"
    if not format.key:
        raise ModelError(
            f"{model}: {format.about} is made of a network: give that as --model, and this as "
            f"--deploy-artifact"
        )
    if not format.suffices:
        raise ModelError(
            f"{model}: {format.about} does not say how samples become its input; "
            f"write a model card for it (docs/model-cards.md) and give the card instead"
        )
    proposal = propose(model) if data is None else propose(model).classed_by(Path(data))
    if _in_memory(model):
        known = flat(read(model.with_name(PART)).values)
        proposal = proposal.setting(known, "as its user says")
    return kept(proposal), _told(model, proposal)


def kept(proposal: Proposal) -> Path:
    """Return a proposed card as a file of the user's cache, without marks.

    Raises:
        ModelError: something is not known without which nothing can run.
    """
    model = proposal.network.path
    if proposal.missing:
        asked = "; ".join(f"{field.key}: {field.todo}" for field in proposal.missing)
        said = f"{model}: no model card, and the file does not say {asked}."
        said += "".join(f" Not used: {problem}." for problem in proposal.problems)
        if _in_memory(model):
            raise ModelError(f"{said} Say it: card={{...}} with these")
        flags = " ".join(f"--set {field.key}=VALUE" for field in proposal.missing)
        raise ModelError(f"{said} Write the card with simulate model new {model} {flags}")
    text = proposal.text(cache.folder() / CARD, str(model.resolve()), LABELS, marked=False)

    def make(folder: Path) -> None:
        (folder / CARD).write_text(text, encoding="utf-8")
        if proposal.labels:
            (folder / LABELS).write_text(proposal.label_text, encoding="utf-8")

    digest = sha256(f"{text}{proposal.label_text}".encode()).hexdigest()[:32]
    return cache.entry(f"card/{digest}", make) / CARD


def _told(model: Path, proposal: Proposal) -> str:
    """Say what is known and what is assumed, and how to say it oneself."""
    read = f", read from {' and '.join(proposal.sources)}" if proposal.sources else ""
    assumed = ", ".join(f"{field.key} {flow(field.value)}" for field in proposal.assumed)
    said = f"no model card is given{read}"
    if assumed:
        said += f"; no file says, and is assumed: {assumed}"
    if _in_memory(model):
        return f"{said}; to change it: card={{...}} with what it is"
    if assumed:
        return f"{said}; to try others on labelled data: simulate model new {model} --data PATH"
    return f"{said}; to change it: simulate model new {model}"


def _in_memory(model: Path) -> bool:
    """Whether a program in Python has given the network, and not its file."""
    return model.with_name(PART).is_file()


def _is_card_of(card: Path, model: Path, format: ModelFormat) -> bool:
    """Whether a YAML file is a model card that names a model file."""
    try:
        named = read(card).values.get(format.key) if format.key and card.is_file() else None
    except ProfileError:
        return False
    files = named.values() if isinstance(named, dict) else [named]
    return any(isinstance(file, str) and card.parent / file == model for file in files)


def propose(model: Path) -> Proposal:
    """Propose the card of a network that takes images.

    Raises:
        ModelError: it cannot be read, or has no input that a color image could be.
    """
    format = _format(model)
    described = format.describe(model)
    network, ends = _network(model, format, described)
    if network.image is None:
        raise ModelError(
            f"{model}: takes {words(network.inputs) or 'nothing'}; a card can be proposed for one "
            "image, (1, 3, height, width) or (1, height, width, 3); for others see "
            "docs/model-cards.md"
        )
    found = [_embedded(described)]
    for importer in IMPORTERS:
        try:
            found += [one] if (one := importer.of_network(network)) is not None else []
        except ProfileError as error:
            found.append(CardFields("", problems=list(error.problems)))
    found += [one] if (one := yolox.of_network(network)) is not None else []
    found.sort(key=lambda one: one.is_guess)
    labels = next((one.labels for one in found if one.labels), ())
    fields = fields_of(network, ends, found, bool(labels))
    sources = [one.source for one in found if one.said or one.labels]
    if not labels and (count := _maps(network, fields)):
        labels = tuple(f"class {number}" for number in range(count))
        fields = [field for field in fields if field.key != "labels"]
        sources.append("no file names the classes, which are numbered")
    return Proposal(
        network, format, tuple(sorted(fields, key=lambda field: place_of(field.key))), labels,
        tuple(sources), tuple(problem for one in found for problem in one.problems),
    )  # fmt: skip


def _maps(network: NetworkFile, fields: Iterable[Field]) -> int:
    """How many maps of scores a segmenter gives; 0: the shape does not say, or it is none."""
    shape = next(iter(network.outputs.values()), ())
    if len(shape) != 4 or not any(field.value == "segmentation" for field in fields):
        return 0
    return shape[1 if network.image and network.image[0] == "NCHW" else 3] or 0


def _embedded(described: Description) -> CardFields:
    """What a graph that takes bytes, or normalizes by itself, leaves to be done: nothing."""
    made, own = CardFields("the first steps of the graph, which normalize"), described.preprocessing
    nothing: dict[str, object] = {"input__mean": [0.0] * 3, "input__std": [1.0] * 3}
    if any(one.dtype == "uint8" and not one.scale for one in described.inputs):
        made.source = "the type of the input, which is that of pixels"
        made.say("the file takes uint8", input__dtype="uint8", input__top=255, **nothing)
    elif own is not None and not own.refused:
        is_bytes = max(*own.mean, *own.std) >= _BYTES
        if is_bytes or (any(own.mean) and max(*own.mean, *own.std) < 1):
            steps = "the graph: " + ", ".join(own.steps)
            made.say(steps, input__top=255 if is_bytes else 1, **nothing)
    return made


def _format(model: Path) -> ModelFormat:
    """Return the format of a model file of which a card can be proposed."""
    if not os.path.exists(model):
        raise ModelError(f"{model}: there is no such file")
    if said := refusal(model):
        raise ModelError(f"{model}: {said}")
    format = format_of(model)
    if format is None or not (format.suffices and format.key):
        about = format.about if format else "no model file that is known"
        raise ModelError(f"{model}: {about}; a card can be proposed for an ONNX or a .tflite file")
    return format


def _network(
    model: Path, format: ModelFormat, described: Description
) -> tuple[NetworkFile, tuple[str, str]]:
    """Return a model file as it describes itself, with its first and its last operator."""
    if format.name == "tflite":
        try:
            return tflite.network_file(model), ("", "")
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
    return NetworkFile(model, inputs, contents.outputs, described.metadata), (begins, ends)
