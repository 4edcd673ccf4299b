"""Texts that grow: the ids, the masks and the positions of the inferences that write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from simulator.contract import Array

Feeds = Mapping[str, Array]


class Growing:
    """The feeds of a batch of texts, which get longer together.

    Args:
        feeds: of the prompts, (rows, T) each.
        names: what the network calls ``ids``, ``mask`` and ``positions``; None for one that it
            does not take.
        last: the place of each text's last token.
        is_cached: whether an inference takes what no earlier one took.

    Attributes:
        last: the place of each text's last token.
    """

    def __init__(
        self, feeds: Feeds, names: Mapping[str, str | None], last: Sequence[int], is_cached: bool
    ) -> None:
        roles = ((role, names.get(role)) for role in ("ids", "mask", "positions"))
        self._names = {role: name for role, name in roles if name is not None}
        self._own = {role: feeds[name].copy() for role, name in self._names.items()}
        self.last, self._is_cached, self._taken = list(last), is_cached, 0

    @property
    def width(self) -> int:
        """How many places there are, padding included."""
        return int(self._own["ids"].shape[1])

    def next(self, most: int | None) -> tuple[int, int]:
        """Return which places the next inference takes, from and to.

        Args:
            most: tokens of an inference with a cache; None: all that there are.
        """
        if not self._is_cached:
            return 0, self.width
        begin = self._taken
        self._taken = self.width if most is None else min(begin + most, self.width)
        return begin, self._taken

    def feeds(self, begin: int, end: int) -> dict[str, Array]:
        """Return what an inference takes of some places; its mask covers all before them."""
        starts = {"ids": begin, "mask": 0, "positions": begin}
        return {
            name: self._own[role][:, starts[role] : end].copy()
            for role, name in self._names.items()
        }

    def length(self, row: int) -> int:
        """Return how many tokens a text has, by its mask."""
        mask = self._own.get("mask")
        return self.last[row] + 1 if mask is None else int((mask[row] > 0).sum())

    def add(self, tokens: Sequence[int | None]) -> None:
        """Write a token of each text: in padding where all have some that no inference has taken.

        Args:
            tokens: one a row; None of a text that has ended.
        """
        places = [last + 1 for last in self.last]
        has_room = max(places) < self.width and not self._is_cached
        if has_room:
            own = {role: values.copy() for role, values in self._own.items()}
        else:
            places = [self.width] * len(places)
            own = {role: np.pad(values, ((0, 0), (0, 1))) for role, values in self._own.items()}
        for row, (token, place) in enumerate(zip(tokens, places, strict=True)):
            if token is None:
                continue
            own["ids"][row, place] = token
            if "mask" in own:
                own["mask"][row, place] = 1
            if "positions" in own:
                own["positions"][row, place] = own["positions"][row, self.last[row]] + 1
            self.last[row] = place
        padded = "mask" in own and not own["mask"][:, 0].any()
        if padded and not has_room and not self._is_cached:  # rows stay as long as they were
            own = {role: values[:, 1:] for role, values in own.items()}
            self.last = [last - 1 for last in self.last]
        self._own = own

    def forget(self, count: int) -> None:
        """Hide the last tokens of the only text; a cache still has their places."""
        if count:
            self._own["mask"][0, -count:] = 0
            self.last[0] -= count

    def shift(self, keep: int) -> None:
        """Hide half of what the only text has behind its first tokens, as llama.cpp does it.

        Source:
            https://github.com/ggml-org/llama.cpp/blob/master/tools/server/server.cpp, context shift
        """
        (places,) = self._own["mask"][0].nonzero()
        behind = places[keep:]
        self._own["mask"][0, behind[: len(behind) // 2]] = 0


def guessed(ids: Sequence[int], most: int) -> list[int]:
    """Return what stood behind the last earlier place of a text's last two tokens.

    Source:
        Saxena, Prompt Lookup Decoding, 2023, https://github.com/apoorvumang/prompt-lookup-decoding
    """
    pair = list(ids[-2:])
    for at in range(len(ids) - 3, -1, -1):
        if list(ids[at : at + 2]) == pair:
            return list(ids[at + 2 : at + 2 + most])
    return []


def joined(
    rows: Sequence[Feeds], names: Mapping[str, str | None], pad: int | None, last: int
) -> tuple[Feeds, list[int]]:
    """Put texts into one batch, padded on the left and masked.

    Args:
        rows: of one text each.
        names: see :class:`Growing`; with a mask, where there are several.
        pad: the id of padding.
        last: the place of the first text's last token.

    Returns:
        The batch, and the place of each text's last token.
    """
    if len(rows) == 1:
        return rows[0], [last]
    ids, mask = str(names["ids"]), str(names["mask"])
    ends = [last, *(int(row[mask][0].nonzero()[0][-1]) for row in rows[1:])]
    width = max(row[ids].shape[1] for row in rows)
    missing = [width - row[ids].shape[1] for row in rows]
    fill = {ids: pad or 0}

    def together(name: str) -> Array:
        parts = [
            np.pad(row[name], ((0, 0), (more, 0)), constant_values=fill.get(name, 0))
            if name in names.values() else row[name]
            for row, more in zip(rows, missing, strict=True)
        ]  # fmt: skip
        return np.concatenate(parts) if parts[0].ndim > 1 else parts[0]

    whole = {name: together(name) for name in rows[0]}
    return whole, [end + more for end, more in zip(ends, missing, strict=True)]
