"""What a verdict says besides its decision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from simulator.report.command import Asked


@dataclass(frozen=True, slots=True)
class Told:
    """The sentences of a verdict.

    Attributes:
        lost: what is lost.
        cause: what costs most of it; None where nothing does, or it is not known.
        next: returns the command to run next, of what was asked; None where nothing follows.
    """

    lost: Sequence[str]
    cause: str | None = None
    next: Callable[[Asked], str | None] | None = None
