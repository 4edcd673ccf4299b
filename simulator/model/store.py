"""Where artifacts are stored, and what identifies them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from simulator import cache
from simulator.contract.library import installed_version
from simulator.errors import ModelError, foreign
from simulator.model.card import Card

NOTES = "notes.json"
"""The remarks of rewrites that are fitted, or on calibration samples, beside the model file."""
RECIPE = 4
"""Increase it when a rewrite changes, or our own arithmetic that calibration uses."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """A model file that a runtime opens.

    Attributes:
        path: the file; a folder if the runtime has its own compiled form.
        key: the digest of everything that it depends on.
        format: the name of a model format, or ``compiled``.
        notes: the remarks of the rewrites.
        reports: the reports of the passes of the phase ``after``, in order.
        made_of: what was exported, cast, quantized or compiled to it; None of a file that was not.
    """

    path: Path
    key: str
    format: str
    notes: tuple[str, ...] = ()
    reports: tuple[BaseModel, ...] = ()
    made_of: Artifact | None = None


def digest(value: Any) -> str:
    """Return the SHA-256 of a JSON value in canonical form, in hexadecimal."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def makers() -> dict[str, str | int | None]:
    """Return what every artifact depends on besides its own inputs: our arithmetic, and ONNX."""
    names = ("onnx", "pipeline-simulator")
    return {**{name: installed_version(name) for name in names}, "recipe": RECIPE}


@contextmanager
def about(card: Card, what: str) -> Iterator[None]:
    """Turn any exception of a library into a ModelError about this model."""
    with foreign(ModelError, f"{what} {card.model}"):
        yield


def entry(kind: str, card: Card, key: str, make: Callable[[Path], None]) -> Path:
    """Return the folder of an artifact; make it first if it does not exist.

    Args:
        kind: ``artifacts`` or ``compiled``.
        card: the model card.
        key: the digest of everything that the artifact depends on.
        make: writes its files into the folder that it receives.
    """
    return cache.entry(f"{kind}/{_words(card)}-{key[:24]}", make)


def cached(card: Card, key: str, name: str, make: Callable[[Path], None]) -> Path:
    """Return one file of the cache; make it first if it does not exist."""
    return entry("artifacts", card, key, lambda draft: make(draft / name)) / name


def _words(card: Card) -> str:
    return re.sub(r"[^\w.-]+", "_", card.spec.name)[:80]
