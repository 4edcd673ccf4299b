"""What a stack hears."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Transcript:
    """The answer for one sound.

    Attributes:
        words: as they are compared.
        text: as it was written.
    """

    words: tuple[str, ...]
    text: str = field(compare=False)
