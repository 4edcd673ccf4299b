"""The edit distance of two sequences: how many items must be changed to make one the other."""

from __future__ import annotations

from collections.abc import Hashable, Sequence


def edits(one: Sequence[Hashable], other: Sequence[Hashable]) -> int:
    """Return the fewest substitutions, deletions and insertions that turn *one* into *other*.

    Source:
        Levenshtein, Binary codes capable of correcting deletions, insertions, and reversals,
        Soviet Physics Doklady 10 (1966). By words and divided by those of the truth it is the word
        error rate.
    """
    row = list(range(len(other) + 1))
    for at, item in enumerate(one, 1):
        corner, row[0] = row[0], at
        for to, rival in enumerate(other, 1):
            corner, row[to] = (
                row[to],
                min(row[to] + 1, row[to - 1] + 1, corner + (item != rival)),
            )
    return row[-1]
