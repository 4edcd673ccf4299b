"""What a verdict says besides its decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Told:
    """The sentences of a verdict.

    Attributes:
        lost: what is lost.
        cause: what costs most of it; None where nothing does, or it is not known.
        next: what to do next; None where nothing follows.
    """

    lost: Sequence[str]
    cause: str | None = None
    next: str | None = None
