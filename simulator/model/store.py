"""Where artifacts lie, and what tells one from another."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from simulator import cache
from simulator.errors import ModelError, SimulatorError, one_line
from simulator.model.card import Card

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
        reports: of the passes of the phase ``after``, in order.
    """

    path: Path
    key: str
    format: str
    notes: tuple[str, ...] = ()
    reports: tuple[BaseModel, ...] = ()


def digest(value: Any) -> str:
    """Return the SHA-256 of a JSON value, written canonically."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def makers() -> dict[str, Any]:
    """What every artifact depends on besides its own recipe: our arithmetic, and ONNX."""
    names = ("onnx", "pipeline-simulator")
    return {name: importlib.metadata.version(name) for name in names} | {"recipe": RECIPE}


@contextmanager
def about(card: Card, what: str) -> Iterator[None]:
    """Whatever a library raises while it makes an artifact is about this model."""
    try:
        yield
    except SimulatorError:
        raise
    except Exception as error:
        raise ModelError(f"{what} {card.model}: {one_line(error)}") from error


def entry(
    kind: str, card: Card, key: str, make: Callable[[Path], None], scratch: Path | None = None
) -> Path:
    """Return the folder of an artifact, making it first where it is not there.

    Args:
        kind: ``artifacts`` or ``compiled``.
        card: the model's.
        key: the digest of everything that the artifact is made from.
        make: writes its files into the folder that it is given.
        scratch: a folder to be used in place of the cache.
    """
    return cache.entry(f"{kind}/{_words(card)}-{key[:24]}", make, scratch)


def _words(card: Card) -> str:
    return re.sub(r"[^\w.-]+", "_", card.spec.name)[:80]
