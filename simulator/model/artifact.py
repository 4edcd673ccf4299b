"""Artifacts: one concrete model file per (graph x format x precision), cached by content.

:mod:`simulator.contract.passes` describes the phases that lead to an artifact.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import onnx

from simulator import registry
from simulator.contract import Array, Stage
from simulator.contract.model import of_shape, shape_words
from simulator.contract.model_format import MODEL_FORMATS, ONNX, ModelFormat, suffix_of
from simulator.contract.passes import Fitting, Request
from simulator.errors import ModelError
from simulator.model.after import finish
from simulator.model.card import Card
from simulator.model.onnxfile import ModelFile, dims, load, structure
from simulator.model.passes.graph.batch import with_batch
from simulator.model.passes.graph.edit import inferred, inputs_of, pin
from simulator.model.rewritten import changed, pinned, rewritten
from simulator.model.store import NOTES, Artifact, about, cached, digest, makers
from simulator.profile.artifact import own_file
from simulator.profile.implementations import Choice, Choices
from simulator.profile.profile import Profile
from simulator.profile.schema import Runtime

__all__ = [
    "Artifact", "Feeds", "before_export", "build", "digest", "finish", "fixed", "prepare", "start",
    "takes",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Feeds:
    """Calibration inputs, with a description that exists before they are computed.

    Attributes:
        identity: what they depend on: image digests and preprocessing.
        tensors: computes them, one sample at a time.
        remarks: on the samples, known once they were computed; kept with the artifact.
    """

    identity: Any
    tensors: Callable[[], Iterator[Mapping[str, Array]]]
    remarks: Mapping[str, str] = field(default_factory=dict)


def build(
    card: Card,
    source: ModelFile,
    profile: Profile,
    choices: Choices,
    feeds: Feeds | None,
    after: Sequence[Request] = (),
    fittings: Mapping[str, Fitting] | None = None,
) -> Artifact:
    """Make the file that a profile's runtime opens, or find it in the cache.

    The steps: the card's file, graph rewrites (ONNX), export to another format, cast or
    quantization, passes over the result, and the runtime's own compiled form. For many artifacts
    that differ only in the last two, call :func:`prepare` once and :func:`finish` for each.

    Args:
        card: the model card.
        source: the card's checked ONNX file.
        profile: requests rewrites and a precision.
        choices: the profile's implementations.
        feeds: calibration inputs; required for INT8.
        after: see :func:`finish`.
        fittings: by graph axis, what its rewrite is fitted to; required where it is.

    Raises:
        ModelError: a rewrite does not fit the model, or the card has no file for the runtime.
    """
    made = prepare(card, source, profile, choices, feeds, fittings)
    return finish(card, made, choices, after)


def prepare(
    card: Card,
    source: ModelFile,
    profile: Profile,
    choices: Choices,
    feeds: Feeds | None,
    fittings: Mapping[str, Fitting] | None = None,
) -> Artifact:
    """Do the steps before the phase ``after``; see :func:`build`."""
    made = before_export(card, source, profile, choices, fittings)
    if profile.spec.precision.artifact:
        return made
    exporter, quantizer = choices.get(Stage.EXPORT), choices.get(Stage.QUANTIZE)
    strict = of_one_size(choices) if made.format == ONNX else None
    differs = strict is not None and _differs(card, made)
    late = strict if differs and quantizer and not exporter else None  # it sees every size
    if strict and not late and (strict is not exporter or differs):
        made = fixed(card, made, strict.backend.name)
    runtime = profile.spec.runtime
    if exporter and card.is_sized and made.format != ONNX:
        shapes = [list(feed.shape) for feed in card.feeds]
        exporter = replace(exporter, options={**exporter.options, "shapes": shapes})
    if exporter and not choices[Stage.RUNTIME].offer.make.resizes:
        made = _batched(card, made, runtime)
    if exporter:
        made = _step(
            card, made, exporter, exporter.offer.make.gives, lambda e, s, t: e.export(s, t)
        )
    cast = choices.get(Stage.CAST)
    if cast:
        given = cast.offer.make.gives or made.format
        made = _step(card, made, cast, given, lambda c, s, t: c.cast(s, t))
    if quantizer:
        if feeds is None and quantizer.offer.make.calibrates:
            raise ModelError("INT8 needs calibration inputs")
        gives = quantizer.offer.make.gives or made.format
        own = exporter and card.is_sized
        tensors = partial(_calibrating, card if own else None, feeds)
        made = _step(
            card, made, quantizer, gives,
            lambda q, s, t: q.quantize(s, t, tensors()), feeds.identity if feeds else None,
            feeds.remarks if feeds else {},
        )  # fmt: skip
        made = fixed(card, made, late.backend.name) if late else made
    if exporter or choices[Stage.RUNTIME].offer.make.resizes:
        return made
    return _batched(card, made, runtime)


def of_one_size(choices: Choices) -> Choice | None:
    """Return the runtime that opens models of fixed sizes only, or what exports at one size."""
    runtime = choices[Stage.RUNTIME]
    return runtime if runtime.offer.make.fixed_shapes else choices.get(Stage.EXPORT)


def _differs(card: Card, made: Artifact) -> bool:
    """Whether images of any size fit into a file."""
    if card.feeds[0].axes not in ("NCHW", "NHWC"):
        return False
    return any(None in dims(value)[1:] for value in inputs_of(structure(made.path)[0]))


def _calibrating(card: Card | None, feeds: Feeds | None) -> Iterator[Mapping[str, Array]]:
    """Yield calibration inputs; of a card, those of its size only, which its engine takes.

    Raises:
        ModelError: there are none of this size.
    """
    fits = False
    for one in feeds.tensors() if feeds else ():
        shapes = [value.shape for value in one.values()]
        if not card or all(map(of_shape, shapes, [feed.shape for feed in card.feeds])):
            fits = True
            yield one
    if feeds and not fits:
        sizes = shape_words(card.feeds[0].shape) if card else "any size"
        raise ModelError(
            f"none of the calibration samples is of {sizes}; take more of them, or leave this "
            "size out of geometry.input_size"
        )


def before_export(
    card: Card,
    source: ModelFile,
    profile: Profile,
    choices: Choices,
    fittings: Mapping[str, Fitting] | None = None,
) -> Artifact:
    """Return the file that the first step takes, with the rewrites of the graph; see :func:`build`.

    Raises:
        ModelError: a rewrite does not fit the model, or the card names no such file.
    """
    return rewritten(card, start(card, source, profile, choices), profile, fittings or {})


def start(card: Card, source: ModelFile, profile: Profile, choices: Choices) -> Artifact:
    """Return the profile's own file, or the card's in the format that the first step takes.

    Raises:
        ModelError: the card names no such file.
    """
    if own := own_file(profile):
        return Artifact(own.path, own.digest, own.format.name)
    wanted = takes(choices)
    if wanted == ONNX == source.format:
        return Artifact(source.path, source.digest, ONNX)
    made = Stage.QUANTIZE in choices or Stage.CAST in choices
    weights = "fp32" if made else profile.spec.precision.storage
    file = card.file(wanted, weights)
    if file is None:
        where, backend = profile.where(("runtime", "backend")), profile.spec.runtime.backend
        missing = _missing(card, MODEL_FORMATS[wanted], weights)
        raise ModelError(f"{where}: runtime {backend} takes {missing}")
    try:
        return Artifact(file, MODEL_FORMATS[wanted].digest([file]), wanted)
    except OSError as error:
        raise ModelError(f"{file}: cannot be read: {error.strerror}") from error


def _missing(card: Card, format: ModelFormat, weights: str) -> str:
    """Say that a card names no file of a format; what makes one, and what runs the card's own."""
    of = f" of {weights}" if format.by_weights else ""
    written = format.written.replace("fp32", weights)
    made = [
        f"{{backend: {backend.name}}}"
        for backend in registry.backends()
        for offer in backend.of(Stage.EXPORT)
        if offer.make.gives == format.name and card.file(offer.make.takes)
    ]
    more = f", or let one be made: runtime.exporter: {' or '.join(made)}" if made else ""
    if card.format.name not in (ONNX, format.name):
        more += f", or use a runtime that takes {card.format.about}: "
        more += ", ".join(registry.takers(card.format.name))
    return f"{format.about}, and {card.path} names none{of}; add {written}{more}"


def takes(choices: Choices) -> str:
    """Return the format of the card's file that a stack starts from, for example ``gguf``."""
    if Stage.EXPORT in choices:
        return str(choices[Stage.EXPORT].offer.make.takes)
    return str(getattr(choices[Stage.RUNTIME].offer.make, "takes", "onnx"))


Make = Callable[[Any, Path, Path], None]


def _step(
    card: Card,
    given: Artifact,
    choice: Choice,
    format: str,
    make: Make,
    more: Any = None,
    remarks: Mapping[str, str] | None = None,
) -> Artifact:
    """Convert a file with an exporter, cast or quantizer, and cache the result."""
    key = digest([given.key, choice.identity(), more, makers()])

    def into(target: Path) -> None:
        make(choice.make(), given.path, target)
        if remarks:
            (target.parent / NOTES).write_text(json.dumps(list(remarks.values())))

    with about(card, f"{choice.backend.name} cannot {choice.stage}"):
        path = cached(card, key, f"model{suffix_of(format)}", into)
    kept = path.parent / NOTES
    told = json.loads(kept.read_text()) if kept.exists() else []
    return Artifact(path, key, format, (*given.notes, *told), made_of=given)


def _batched(card: Card, given: Artifact, runtime: Runtime) -> Artifact:
    """Return the model with the batch that a profile asks for.

    Raises:
        ModelError: the samples of a batch would not stay apart; the message names the node.
    """
    if runtime.samples == 1:
        return given
    what = f"runtime.batch: {card.path} cannot take {runtime.samples} samples at once"
    if given.format != "onnx":
        raise ModelError(f"{what}: its {given.format} file has a batch of its own")
    size = None if runtime.is_dynamic else runtime.samples

    def batched() -> onnx.ModelProto:
        try:
            return with_batch(pinned(card, given.path), size, card.feeds)
        except ModelError as error:
            raise ModelError(f"{what}: {error}") from error

    return changed(card, given, ["batch", size], batched)


def fixed(card: Card, given: Artifact, who: str) -> Artifact:
    """Return the model with every free input dimension set to the card's size, with batch 1.

    Args:
        card: the model card.
        given: an ONNX file.
        who: needs that, in messages.

    Raises:
        ModelError: the size of one of them depends on the sample.
    """
    model = load(given.path)
    count = pin(model, card.feeds)
    for value in inputs_of(model):
        shape = dims(value)
        if None in shape:
            raise ModelError(
                f"{who} takes only models of fixed sizes; input {value.name!r} "
                f"of {card.model} is {shape_words(shape)} and varies by sample"
                f"{card.feeds[0].remedy}"
            )
    if not count:
        return given
    sizes = [
        " ".join(filter(None, (feed.name, "x".join(map(str, feed.shape))))) for feed in card.feeds
    ]
    inputs = "input" if len(sizes) == 1 else "inputs"
    words = f"{count} free dimensions of the {inputs} were fixed, to {', '.join(sizes)}"
    return changed(card, given, ["fixed"], lambda: inferred(model), words)
