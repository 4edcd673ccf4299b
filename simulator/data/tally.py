"""Notes on what was left out of a data set: how much, and the first few names."""

from __future__ import annotations

from collections.abc import Iterable

NAMED = 5
"""How many names a note lists."""


class Tally:
    """Counts by sentence, in the order in which they first came up."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str, str], int] = {}
        self._named: dict[tuple[str, str, str], list[str]] = {}

    def add(self, done: str, noun: str, rest: str, culprit: str, count: int = 1) -> None:
        """Count something, for example ``add("dropped", "box", "without area", "a.jpg")``.

        Args:
            done: what was done with it, in the past tense.
            noun: the thing, in the singular.
            rest: what is wrong with it.
            culprit: the name to give.
            count: how many there are; nothing happens at 0.
        """
        if count:
            named = self._named.setdefault((done, noun, rest), [])
            if culprit not in named:
                named[NAMED:] = [culprit]
            self._counts[done, noun, rest] = self._counts.get((done, noun, rest), 0) + count

    def counts(self) -> list[tuple[str, str, str, str, int]]:
        """Return calls of :meth:`add`, with all their arguments, that give the same notes."""
        found = []
        for key, count in self._counts.items():
            first, *others = self._named[key]
            found.append((*key, first, count - len(others)))
            found += [(*key, other, 1) for other in others]
        return found

    def notes(self) -> tuple[str, ...]:
        """Return a sentence for each kind, such as ``dropped 3 boxes without area: a.jpg``."""
        return tuple(
            f"{done} {counted(count, noun)} {rest}: {some(self._named[done, noun, rest])}"
            for (done, noun, rest), count in self._counts.items()
        )


def counted(count: int, noun: str) -> str:
    """Return a number of things in words: ``1 box``, ``2 boxes``."""
    plural = noun + ("es" if noun.endswith(("s", "x")) else "s")
    return f"{count} {noun if count == 1 else plural}"


def some(names: Iterable[str]) -> str:
    """Return the first few names, with an ellipsis if there are more."""
    listed = list(names)
    return ", ".join(listed[:NAMED]) + (", …" if len(listed) > NAMED else "")
