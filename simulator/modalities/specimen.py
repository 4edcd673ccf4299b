"""Specimens: a few samples, a model card and a profile, for the conformance suite to try."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Specimen:
    """What only the author of a modality can make.

    Attributes:
        files: two good samples or more, different ones.
        card: a model card, with its model beside it.
        profile: a stack: a path or a name.
    """

    files: tuple[Path, ...]
    card: Path
    profile: str
