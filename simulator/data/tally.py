"""What was left out of a data set: counted, and the first few named."""

from __future__ import annotations

from collections.abc import Iterable

NAMED = 5
"""How many of many culprits are named."""


class Tally:
    """Counts by sentence, in the order in which they first came up."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], int] = {}
        self._named: dict[tuple[str, str], list[str]] = {}

    def add(self, noun: str, rest: str, culprit: str, count: int = 1) -> None:
        """Count a thing, for example ``add("box", "without area dropped", "a.jpg")``.

        Args:
            noun: the thing, in the singular.
            rest: what is the matter, and what was done with it.
            culprit: what to name.
            count: how many there are of it; nothing happens at 0.
        """
        if count:
            named = self._named.setdefault((noun, rest), [])
            if culprit not in named:
                named[NAMED:] = [culprit]
            self._counts[noun, rest] = self._counts.get((noun, rest), 0) + count

    def notes(self) -> tuple[str, ...]:
        """Return a sentence for each kind, such as ``3 boxes without area dropped: a.jpg``."""
        return tuple(
            f"{counted(count, noun)} {rest}: {some(self._named[noun, rest])}"
            for (noun, rest), count in self._counts.items()
        )


def counted(count: int, noun: str) -> str:
    """Return a number of things in words: ``1 box``, ``2 boxes``."""
    plural = noun + ("es" if noun.endswith(("s", "x")) else "s")
    return f"{count} {noun if count == 1 else plural}"


def some(names: Iterable[str]) -> str:
    """Return the first few names; an ellipsis says that there are more."""
    listed = list(names)
    return ", ".join(listed[:NAMED]) + (", …" if len(listed) > NAMED else "")
