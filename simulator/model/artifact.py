"""Artifacts: one concrete model file per (graph x format x precision), cached by content.

The phases of the way from the card's file are told in :mod:`simulator.contract.passes`.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import onnx
from pydantic import BaseModel, ValidationError

from simulator import cache, machine, registry
from simulator.contract import Array, Runtime, Stage
from simulator.contract.passes import PASSES, AfterPass, Request
from simulator.errors import ModelError, SimulatorError, one_line
from simulator.model.card import Card
from simulator.model.onnxfile import OnnxFile, dims, load, shape_words
from simulator.model.passes.graph.change import difference
from simulator.model.passes.graph.edit import inferred, inputs_of, pin
from simulator.model.passes.rewrite import rewrite, rewrites
from simulator.profile import messages
from simulator.profile.graph import Graph
from simulator.profile.implementations import Choice, Choices
from simulator.profile.load import Profile

SUFFIX = {"onnx": "onnx", "torch_export": "pt2", "tflite": "tflite", "rknn": "rknn.zip"}
REPORT = "report.json"
"""Beside an artifact: what the pass that made it tells of its work."""
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
        reports: of the passes of the phase ``after``, in order.
    """

    path: Path
    key: str
    format: str
    notes: tuple[str, ...] = ()
    reports: tuple[BaseModel, ...] = ()


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
    card: Card,
    source: OnnxFile,
    profile: Profile,
    choices: Choices,
    feeds: Feeds | None,
    after: Sequence[Request] = (),
    scratch: Path | None = None,
) -> Artifact:
    """Make the file that a profile's runtime opens, or find it in the cache.

    The way of a model: the card's file, graph rewrites (ONNX), export to another format, cast
    or quantization, passes that act on the result, and the runtime's own compiled form. For many
    artifacts that differ in the last two alone, call :func:`prepare` once and :func:`finish`
    for each.

    Args:
        card: the model card.
        source: the card's checked ONNX file.
        profile: says which rewrites and which precision.
        choices: the implementations behind the profile.
        feeds: calibration inputs; needed for INT8.
        after: see :func:`finish`.
        scratch: see :func:`finish`.

    Raises:
        ModelError: a rewrite does not fit the model, or the card has no file for the runtime.
    """
    made = prepare(card, source, profile, choices, feeds)
    return finish(card, made, choices, after, scratch)


def prepare(
    card: Card, source: OnnxFile, profile: Profile, choices: Choices, feeds: Feeds | None
) -> Artifact:
    """Do what comes before the phase ``after``; see :func:`build`."""
    made = _rewritten(card, start(card, source, profile, choices), profile)
    if made.format == "onnx" and choices[Stage.RUNTIME].offer.make.fixed_shapes:
        made = _fixed(card, made, choices[Stage.RUNTIME])
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
    return made


def finish(
    card: Card,
    made: Artifact,
    choices: Choices,
    after: Sequence[Request] = (),
    scratch: Path | None = None,
) -> Artifact:
    """Apply the passes of the phase ``after``, and let the runtime compile the result.

    Args:
        card: the model card.
        made: what :func:`prepare` gave.
        choices: the implementations behind the profile.
        after: the passes, in order; what they tell of their work is in the artifact's reports.
        scratch: an existing folder for what is made for *after*, in place of the cache: the
            caller deletes it. Without *after* nothing is written there.

    Raises:
        UserError: there is no such pass.
        ModelError: a pass cannot act on this file, or has no such option.
    """
    runtime = choices[Stage.RUNTIME]
    place = scratch if after else None
    for request in after:
        made = _altered(card, made, runtime, request, place)
    return _compiled(card, made, runtime, place)


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
    model = pinned(card, given.path)
    changes = rewrite(model, asked)
    notes = tuple(f"{change.axis}: {change}" for change in changes)
    if not any(change.rewritten for change in changes):
        return replace(given, notes=notes)
    key = digest([given.key, "graph", differs, _shapes(card), makers()])
    path = _cached(card, key, "model.onnx", lambda target: onnx.save(model, str(target)))
    return Artifact(path, key, "onnx", notes)


Make = Callable[[Any, Path, Path], None]


def _step(
    card: Card, given: Artifact, choice: Choice, format: str, make: Make, more: Any = None
) -> Artifact:
    """Let a maker turn one file into another, once."""
    key = digest([given.key, choice.identity(), more, makers()])
    with _about(card, f"{choice.backend.name} cannot {choice.stage}"):
        path = _cached(
            card,
            key,
            f"model.{SUFFIX[format]}",
            lambda target: make(choice.make(), given.path, target),
        )
    return Artifact(path, key, format, given.notes)


def _altered(
    card: Card, given: Artifact, runtime: Choice, request: Request, scratch: Path | None
) -> Artifact:
    """Let a pass change the file that the runtime opens."""
    one = PASSES[request.name]
    if not isinstance(one, AfterPass):
        raise ModelError(
            f"{one.name} is a pass of the phase {one.phase}; a profile's graph.{one.name} asks "
            "for it, nothing asks for it after quantization"
        )
    if given.format not in one.formats:
        raise ModelError(
            f"{one.name} changes {' and '.join(one.formats)} files only, and "
            f"{runtime.backend.name} opens a file of the format {given.format}"
        )
    try:
        options = one.Options.model_validate(request.options)
    except ValidationError as error:
        lines = messages.problems(error, one.Options, lambda _: one.name, "options")
        raise ModelError("\n".join(lines)) from None
    key = digest([given.key, "after", one.name, options.model_dump(mode="json"), makers()])
    name = f"model.{SUFFIX[given.format]}"

    def make(draft: Path) -> None:
        report = one.apply(given.path, draft / name, options)
        (draft / REPORT).write_text(report.model_dump_json())

    with _about(card, f"{one.name} cannot change"):
        folder = _entry(f"artifacts/{_words(card)}-{key[:24]}", make, scratch)
    report = one.Report.model_validate_json((folder / REPORT).read_text())
    return replace(given, path=folder / name, key=key, reports=(*given.reports, report))


def _compiled(card: Card, given: Artifact, choice: Choice, scratch: Path | None) -> Artifact:
    runtime: type[Runtime] = choice.offer.make
    options = runtime.compiled_by
    if options is None:
        return given
    identity = choice.identity()
    identity["options"] = {k: v for k, v in identity["options"].items() if k in options}
    backend, offer = choice.backend, choice.offer
    with _about(card, f"{backend.name} cannot {choice.stage}"):
        place = registry.compile_identity(backend, offer)
        processor = machine.processor()
        key = digest([given.key, "compile", identity, place, processor, makers()])
        folder = _entry(
            f"compiled/{_words(card)}-{key[:24]}",
            lambda draft: registry.compile(backend, offer, given.path, draft, choice.options),
            scratch,
        )
    return replace(given, path=folder, key=key, format="compiled")


def _entry(name: str, make: Callable[[Path], None], scratch: Path | None) -> Path:
    """A folder in the cache, or one of the same name in a scratch folder."""
    if scratch is None:
        return cache.entry(name, make)
    folder = scratch / name
    if not folder.exists():
        folder.mkdir(parents=True)
        make(folder)
    return folder


def _fixed(card: Card, given: Artifact, runtime: Choice) -> Artifact:
    """The model with every free dimension of its inputs given the card's size, batch 1.

    Raises:
        ModelError: the sample decides one of them.
    """
    model = load(given.path)
    fixed = pin(model, card.feeds)
    for value in inputs_of(model):
        shape = dims(value)
        if None in shape:
            raise ModelError(
                f"{runtime.backend.name} takes models of fixed sizes only; input {value.name!r} "
                f"of {card.model} is {shape_words(shape)}, and every sample has a size of its own"
            )
    if not fixed:
        return given
    key = digest([given.key, "fixed", _shapes(card), makers()])
    path = _cached(card, key, "model.onnx", lambda target: onnx.save(inferred(model), str(target)))
    sizes = [
        " ".join(filter(None, (feed.name, "x".join(map(str, feed.shape))))) for feed in card.feeds
    ]
    inputs = "input" if len(sizes) == 1 else "inputs"
    words = f"{fixed} free dimensions of the {inputs} were fixed, to {', '.join(sizes)}"
    return Artifact(path, key, "onnx", (*given.notes, words))


def _shapes(card: Card) -> Any:
    """The shapes that a card's feeds have, for digests."""
    found = {feed.name: list(feed.shape) for feed in card.feeds}
    return found[None] if set(found) == {None} else found


def pinned(card: Card, path: Path) -> onnx.ModelProto:
    """Load a model at the sizes that the card feeds it; rewrites are held against those."""
    model = load(path)
    pin(model, card.feeds)
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
    apply = rewrites()[axis].apply
    return difference(*(apply(pinned(card, source.path), side) for side in sides))


def digest(value: Any) -> str:
    """Return the SHA-256 of a JSON value, written canonically."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def makers() -> dict[str, Any]:
    """What every artifact depends on besides its own recipe: our arithmetic, and ONNX."""
    names = ("onnx", "pipeline-simulator")
    return {name: importlib.metadata.version(name) for name in names} | {"recipe": RECIPE}


@contextmanager
def _about(card: Card, what: str) -> Iterator[None]:
    """Whatever a library raises while it makes an artifact is about this model."""
    try:
        yield
    except SimulatorError:
        raise
    except Exception as error:
        raise ModelError(f"{what} {card.model}: {one_line(error)}") from error


def _cached(card: Card, key: str, name: str, make: Callable[[Path], None]) -> Path:
    entry = cache.entry(f"artifacts/{_words(card)}-{key[:24]}", lambda draft: make(draft / name))
    return entry / name


def _words(card: Card) -> str:
    return re.sub(r"[^\w.-]+", "_", card.spec.name)[:80]
