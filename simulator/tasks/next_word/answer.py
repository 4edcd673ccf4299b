"""What a stack says of the last word of a passage."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Word:
    """What one stack says of a passage's last word.

    Attributes:
        greedy: whether it would write the word itself.
        loglikelihood: of the word, nats.
        best: the ids that it finds most likely at the word's places.
    """

    greedy: bool
    loglikelihood: float
    best: tuple[int, ...]
