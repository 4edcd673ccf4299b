"""Specimens: a few samples, a model card and a profile, for the conformance suite."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Specimen:
    """The material to test a modality with, made by its author.

    Attributes:
        files: at least two valid samples, all different: where they are, with a ``name``.
        card: a model card, with its model beside it.
        profile: the path or the name of a profile.
    """

    files: tuple[Any, ...]
    card: Path
    profile: str
