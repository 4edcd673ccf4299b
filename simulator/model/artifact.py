"""Artifacts: one concrete model file per (graph rewrites x precision), cached by content."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx

from simulator import cache
from simulator.contract import Array, Stage
from simulator.errors import ModelError, SimulatorError
from simulator.model.card import Card
from simulator.model.graph.pooling import PoolingChange, output_sizes, set_ceil_mode
from simulator.model.onnxfile import OnnxFile, load
from simulator.profile.choose import Choice, Choices
from simulator.profile.load import Profile

RECIPE = 1
"""Raise it when a rewrite, or arithmetic of ours that calibration goes through, changes."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """A model file that a runtime opens.

    Attributes:
        path: the file.
        key: the digest of everything that it was made from.
        notes: what the rewrites did.
    """

    path: Path
    key: str
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

    Args:
        card: the model card.
        source: the card's checked ONNX file.
        profile: says which rewrites and which precision.
        choices: the implementations behind the profile.
        feeds: calibration inputs; needed for INT8.

    Raises:
        ModelError: a rewrite does not fit the model, or the runtime does not take ONNX and
            the card has nothing else for it.
    """
    takes = getattr(choices[Stage.RUNTIME].offer.make, "takes", "onnx")
    if takes == "torch_export":
        return _torch_export(card, source, profile)
    path, key, notes = source.path, source.digest, []
    ceil_mode = profile.spec.graph.ceil_mode
    if ceil_mode != "keep":
        model = load(path)
        change = set_ceil_mode(model, ceil_mode == "ceil")
        notes.append(f"pooling: {change}")
        if change.rewritten:
            key = digest([key, "ceil_mode", ceil_mode, _makers()])
            path = _cached(card, key, lambda target: onnx.save(model, str(target)))
    made = choices.get(Stage.CAST)
    if made:
        before, key = path, digest([key, made.identity(), _makers()])
        with _about(card, made):
            path = _cached(card, key, lambda target: made.make().cast(before, target))
    quantized = choices.get(Stage.QUANTIZE)
    if quantized:
        if feeds is None:
            raise ModelError("INT8 needs calibration inputs")
        before, key = path, digest([key, quantized.identity(), feeds.identity, _makers()])
        with _about(card, quantized):
            path = _cached(
                card,
                key,
                lambda target: quantized.make().quantize(before, target, feeds.tensors()),
            )
    return Artifact(path, key, tuple(notes))


def pooling_difference(source: OnnxFile, train: str, deploy: str) -> tuple[int, str]:
    """Compare the pooling of a model under two values of ``ceil_mode``.

    Returns:
        How many pooling nodes give another output size, and the same in words.
    """
    sizes = []
    for ceil_mode in (train, deploy):
        model = load(source.path)
        if ceil_mode != "keep":
            set_ceil_mode(model, ceil_mode == "ceil")
        sizes.append(output_sizes(model))
    before, after = sizes
    if not before:
        return 0, str(PoolingChange(0, 0, 0))
    changed = sum(before[name] != after[name] for name in before)
    return changed, f"{changed} of {len(before)} pooling nodes give another output size"


def digest(value: Any) -> str:
    """Return the SHA-256 of a JSON value, written canonically."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _makers() -> dict[str, Any]:
    """What every artifact depends on besides its own recipe: our arithmetic, and ONNX."""
    names = ("onnx", "pipeline-simulator")
    return {name: importlib.metadata.version(name) for name in names} | {"recipe": RECIPE}


def _torch_export(card: Card, source: OnnxFile, profile: Profile) -> Artifact:
    where = profile.where(("runtime", "backend"))
    if card.torch_export is None:
        raise ModelError(
            f"{where}: runtime {profile.spec.runtime.backend} runs a torch.export program, and "
            f"{card.path} names none; add torch_export: FILE.pt2"
        )
    ceil_mode = profile.spec.graph.ceil_mode
    if ceil_mode != "keep" and source.pools:
        raise ModelError(
            f"{profile.where(('graph', 'ceil_mode'))}: graph.ceil_mode: rewrites change the ONNX "
            "file, which this runtime does not read; use keep"
        )
    key = hashlib.sha256(card.torch_export.read_bytes()).hexdigest()
    return Artifact(card.torch_export, key)


@contextmanager
def _about(card: Card, choice: Choice) -> Iterator[None]:
    """Whatever a library raises while it makes an artifact is about this model."""
    try:
        yield
    except SimulatorError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        raise ModelError(
            f"{choice.backend.name} cannot {choice.stage} {card.model}: {reason}"
        ) from error


def _cached(card: Card, key: str, make: Callable[[Path], None]) -> Path:
    name = "model.onnx"
    words = re.sub(r"[^\w.-]+", "_", card.spec.name)[:80]
    entry = cache.entry(f"artifacts/{words}-{key[:24]}", lambda draft: make(draft / name))
    return entry / name
