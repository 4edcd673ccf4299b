"""Artifacts: one concrete model file per (graph x format x precision), cached by content."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import onnx

from simulator import cache, machine, registry
from simulator.contract import Array, Runtime, Stage
from simulator.errors import ModelError, SimulatorError, one_line
from simulator.model.card import Card, tensor_shape
from simulator.model.graph.change import difference
from simulator.model.graph.edit import inferred, pin
from simulator.model.graph.rewrite import REWRITES, rewrite
from simulator.model.onnxfile import OnnxFile, load
from simulator.profile.graph import Graph
from simulator.profile.implementations import Choice, Choices
from simulator.profile.load import Profile

SUFFIX = {"onnx": "onnx", "torch_export": "pt2", "tflite": "tflite", "rknn": "rknn.zip"}
RECIPE = 4
"""Raise it when a rewrite, or arithmetic of ours that calibration goes through, changes."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """A model file that a runtime opens.

    Attributes:
        path: the file; a folder where the runtime has a compiled form of its own.
        key: the digest of everything that it was made from.
        format: ``onnx``, ``torch_export``, ``tflite`` or ``compiled``.
        notes: what the rewrites did.
    """

    path: Path
    key: str
    format: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Feeds:
    """Calibration inputs, described before they are made.

    Attributes:
        identity: what they are made from: image digests and preprocessing.
        tensors: makes them, one sample at a time.
    """

    identity: Any
    tensors: Callable[[], Iterator[Mapping[str, Array]]]


def build(
    card: Card, source: OnnxFile, profile: Profile, choices: Choices, feeds: Feeds | None
) -> Artifact:
    """Make the file that a profile's runtime opens, or find it in the cache.

    The way of a model: the card's file, graph rewrites (ONNX), export to another format, cast
    or quantization, and the runtime's own compiled form.

    Args:
        card: the model card.
        source: the card's checked ONNX file.
        profile: says which rewrites and which precision.
        choices: the implementations behind the profile.
        feeds: calibration inputs; needed for INT8.

    Raises:
        ModelError: a rewrite does not fit the model, or the card has no file for the runtime.
    """
    made = _rewritten(card, start(card, source, profile, choices), profile)
    if made.format == "onnx" and choices[Stage.RUNTIME].offer.make.fixed_shapes:
        made = _fixed(card, made)
    exporter = choices.get(Stage.EXPORT)
    if exporter:
        made = _step(
            card, made, exporter, exporter.offer.make.gives, lambda e, s, t: e.export(s, t)
        )
    cast = choices.get(Stage.CAST)
    if cast:
        made = _step(card, made, cast, made.format, lambda c, s, t: c.cast(s, t))
    quantizer = choices.get(Stage.QUANTIZE)
    if quantizer:
        if feeds is None:
            raise ModelError("INT8 needs calibration inputs")
        tensors = feeds.tensors
        gives = quantizer.offer.make.gives or made.format
        made = _step(
            card, made, quantizer, gives,
            lambda q, s, t: q.quantize(s, t, tensors()), feeds.identity,
        )  # fmt: skip
    return _compiled(card, made, choices[Stage.RUNTIME])


def start(card: Card, source: OnnxFile, profile: Profile, choices: Choices) -> Artifact:
    """Return the card's own file, in the format that the first maker takes.

    Raises:
        ModelError: the card names none.
    """
    wanted = _takes(choices)
    backend = profile.spec.runtime.backend
    where = profile.where(("runtime", "backend"))
    if wanted == "onnx":
        return Artifact(source.path, source.digest, "onnx")
    if wanted == "torch_export":
        file = card.torch_export
        missing = "a torch.export program, and {} names none; add torch_export: FILE.pt2"
    else:
        storage = profile.spec.precision.storage
        quantizer = choices.get(Stage.QUANTIZE)
        given = "fp32" if quantizer or Stage.CAST in choices else storage
        file = card.tflite.get(given)
        missing = (
            f"a .tflite file, and {{}} names none of {given}; add tflite: {{{{{given}: "
            "FILE.tflite}}, or name a runtime.exporter"
        )
    if file is None:
        raise ModelError(f"{where}: runtime {backend} takes {missing.format(card.path)}")
    return Artifact(file, hashlib.sha256(file.read_bytes()).hexdigest(), wanted)


def _takes(choices: Choices) -> str:
    if Stage.EXPORT in choices:
        return str(choices[Stage.EXPORT].offer.make.takes)
    return str(getattr(choices[Stage.RUNTIME].offer.make, "takes", "onnx"))


def _rewritten(card: Card, given: Artifact, profile: Profile) -> Artifact:
    asked = profile.spec.graph
    differs = asked.model_dump(exclude_defaults=True)
    if not differs:
        return given
    if given.format != "onnx":
        axis = next(iter(differs))
        raise ModelError(
            f"{profile.where(('graph', axis))}: graph.{axis}: rewrites change the ONNX file, "
            "which this runtime does not read; use keep"
        )
    model = _pinned(card, given.path)
    changes = rewrite(model, asked)
    notes = tuple(f"{change.axis}: {change}" for change in changes)
    if not any(change.rewritten for change in changes):
        return replace(given, notes=notes)
    key = digest([given.key, "graph", differs, list(tensor_shape(card.spec.input)), makers()])
    path = _cached(card, key, "model.onnx", lambda target: onnx.save(model, str(target)))
    return Artifact(path, key, "onnx", notes)


Make = Callable[[Any, Path, Path], None]


def _step(
    card: Card, given: Artifact, choice: Choice, format: str, make: Make, more: Any = None
) -> Artifact:
    """Let a maker turn one file into another, once."""
    key = digest([given.key, choice.identity(), more, makers()])
    with _about(card, choice):
        path = _cached(
            card,
            key,
            f"model.{SUFFIX[format]}",
            lambda target: make(choice.make(), given.path, target),
        )
    return Artifact(path, key, format, given.notes)


def _compiled(card: Card, given: Artifact, choice: Choice) -> Artifact:
    runtime: type[Runtime] = choice.offer.make
    options = runtime.compiled_by
    if options is None:
        return given
    identity = choice.identity()
    identity["options"] = {k: v for k, v in identity["options"].items() if k in options}
    backend, offer = choice.backend, choice.offer
    with _about(card, choice):
        place = registry.compile_identity(backend, offer)
        processor = machine.processor()
        key = digest([given.key, "compile", identity, place, processor, makers()])
        folder = cache.entry(
            f"compiled/{_words(card)}-{key[:24]}",
            lambda draft: registry.compile(backend, offer, given.path, draft, choice.options),
        )
    return Artifact(folder, key, "compiled", given.notes)


def _fixed(card: Card, given: Artifact) -> Artifact:
    """The model with every free dimension of its input given the card's size, batch 1."""
    model = load(given.path)
    shape = tensor_shape(card.spec.input)
    free = pin(model, shape)
    if not free:
        return given
    key = digest([given.key, "fixed", list(shape), makers()])
    path = _cached(card, key, "model.onnx", lambda target: onnx.save(inferred(model), str(target)))
    words = f"{free} free dimensions of the input were fixed, to {'x'.join(map(str, shape))}"
    return Artifact(path, key, "onnx", (*given.notes, words))


def _pinned(card: Card, path: Path) -> onnx.ModelProto:
    """A model at the size that the card feeds it; rewrites ask what they change at that size."""
    model = load(path)
    pin(model, tensor_shape(card.spec.input))
    return model


def graph_difference(
    card: Card, source: OnnxFile, axis: str, train: Graph, deploy: Graph
) -> tuple[int, str]:
    """Compare what a graph axis is in two stacks.

    Args:
        card: the model card.
        source: the card's checked ONNX file.
        axis: ``pooling``, ``upsample`` or another of the graph's.
        train: what the training stack asks for.
        deploy: what the deployment stack asks for.

    Returns:
        How many nodes of the axis compute something else, and the same in words: also that
        the model has no such node.

    Raises:
        ModelError: a rewrite does not fit the model.
    """
    sides = (getattr(side, axis) for side in (train, deploy))
    return difference(*(REWRITES[axis](_pinned(card, source.path), side) for side in sides))


def digest(value: Any) -> str:
    """Return the SHA-256 of a JSON value, written canonically."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def makers() -> dict[str, Any]:
    """What every artifact depends on besides its own recipe: our arithmetic, and ONNX."""
    names = ("onnx", "pipeline-simulator")
    return {name: importlib.metadata.version(name) for name in names} | {"recipe": RECIPE}


@contextmanager
def _about(card: Card, choice: Choice) -> Iterator[None]:
    """Whatever a library raises while it makes an artifact is about this model."""
    try:
        yield
    except SimulatorError:
        raise
    except Exception as error:
        reason = one_line(error)
        raise ModelError(
            f"{choice.backend.name} cannot {choice.stage} {card.model}: {reason}"
        ) from error


def _cached(card: Card, key: str, name: str, make: Callable[[Path], None]) -> Path:
    entry = cache.entry(f"artifacts/{_words(card)}-{key[:24]}", lambda draft: make(draft / name))
    return entry / name


def _words(card: Card) -> str:
    return re.sub(r"[^\w.-]+", "_", card.spec.name)[:80]
