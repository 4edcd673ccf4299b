"""The tokens of two stacks side by side, where they differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simulator.contract.text import Passage, Tokens
from simulator.modalities.text.opened import encoder
from simulator.modalities.text.placing import TextPlacing

REQUESTS = 4
"""Requests of a sample that are shown at most."""
CHOICES, LETTERS = 16, 2000
"""Requests of a sample whose texts are kept at most, and characters of each text."""
AROUND = 3
"""Equal tokens that are shown before and after those that differ."""
PIECES = 24
"""Tokens that are shown at most."""


def beside(placings: Sequence[TextPlacing], source: Passage) -> list[dict[str, Any]]:
    """Return the requests of a sample whose ids differ between two stacks, the first few.

    Requests that differ in the same pieces, such as those of a shared context, are told once.

    Args:
        placings: of both stacks.
        source: the sample.

    Returns:
        For each the number of the request, and for each stack how many ids it has and the pieces
        about the place where they differ, as JSON.

    Raises:
        SampleError: a stack has no ids for it.
    """
    rows = [placing(source) for placing in placings]
    found: list[dict[str, Any]] = []
    for number, pair in enumerate(zip(*rows, strict=True)):
        tokens = [row.tokens for row in pair]
        if tokens[0].ids != tokens[1].ids and len(found) < REQUESTS:
            parts = _parts(*tokens)
            shown = [_told(placing, one) for placing, one in zip(placings, parts, strict=True)]
            lengths = [len(one.ids) for one in tokens]
            if all(known["pieces"] != shown for known in found):
                found.append({"request": number, "tokens": lengths, "pieces": shown})
    return found


def asked(source: Passage) -> list[dict[str, str]]:
    """Return the texts of a sample's first requests; of a long context the end is kept, as JSON."""
    return [
        {
            "context": text if len(text := one.context) <= LETTERS else f"…{text[-LETTERS:]}",
            "continuation": text if len(text := one.continuation) <= LETTERS else
            f"{text[:LETTERS]}…",
        }
        for one in source.requests[:CHOICES]
    ]  # fmt: skip


def _parts(one: Tokens, other: Tokens) -> list[Sequence[int]]:
    """The ids of both about the place where they differ."""
    pairs = list(zip(one.ids, other.ids, strict=False))
    first = next((at for at, (a, b) in enumerate(pairs) if a != b), len(pairs))
    backward = zip(reversed(one.ids), reversed(other.ids), strict=False)
    same = 0
    for a, b in backward:
        if a != b or same >= len(pairs) - first:
            break
        same += 1
    start = max(first - AROUND, 0)
    ends = (max(len(ids) - same + AROUND, start) for ids in (one.ids, other.ids))
    return [
        ids[start : min(end, start + PIECES)]
        for ids, end in zip((one.ids, other.ids), ends, strict=True)
    ]


def _told(placing: TextPlacing, ids: Sequence[int]) -> list[str]:
    tokenizer = encoder(placing.tokenize).tokenizer
    return list(map(str, ids)) if tokenizer is None else tokenizer.pieces(ids)
