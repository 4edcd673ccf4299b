"""What a stack wrote."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Written:
    """What one stack wrote.

    Attributes:
        ids: of the tokens, without the one that ended the text.
        text: the same as text; None where no tokenizer is known.
        ns: the time of each inference in nanoseconds; empty where it was not measured.
    """

    ids: tuple[int, ...]
    text: str | None = None
    ns: tuple[int, ...] = field(default=(), compare=False)
