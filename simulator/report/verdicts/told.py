"""What a verdict says besides its decision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from simulator.report.command import Asked

Decision = Literal["ok", "not ok", "undecided", "not judged"]


@dataclass(frozen=True, slots=True)
class Told:
    """The sentences of a verdict.

    Attributes:
        lost: what is lost.
        cause: what costs most of it; None where nothing does, or it is not known.
        next: returns the command to run next, of what was asked; None where nothing follows.
        decision: None: it follows from the gate.
    """

    lost: Sequence[str]
    cause: str | None = None
    next: Callable[[Asked], str | None] | None = None
    decision: Decision | None = None
