"""A text that grows: the ids, the mask and the positions of the inferences that write it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from simulator.contract import Array


class Growing:
    """The feeds of a text of one row, which gets longer.

    Args:
        feeds: of the prompt, (1, T) each.
        names: what the network calls ``ids``, ``mask`` and ``positions``; None for one that it
            does not take.
        last: the place of the text's last token.
        is_cached: whether an inference takes what no earlier one took.

    Attributes:
        last: the place of the text's last token.
    """

    def __init__(
        self, feeds: Mapping[str, Array], names: Mapping[str, str | None], last: int,
        is_cached: bool,
    ) -> None:  # fmt: skip
        roles = ((role, names.get(role)) for role in ("ids", "mask", "positions"))
        self._names = {role: name for role, name in roles if name is not None}
        self._own = {role: feeds[name] for role, name in self._names.items()}
        self.last, self._is_cached, self._taken = last, is_cached, 0

    @property
    def width(self) -> int:
        """How many places there are, padding included."""
        return int(self._own["ids"].shape[1])

    def next(self, most: int | None) -> tuple[int, int]:
        """Return which places the next inference takes, from and to.

        Args:
            most: tokens of an inference with a cache; None: all that there are.
        """
        begin = self._taken
        end = self.width if most is None else min(begin + most, self.width)
        self._taken = end if self._is_cached else 0
        return begin, end

    def feeds(self, begin: int, end: int) -> dict[str, Array]:
        """Return what an inference takes of some places; its mask covers all before them."""
        starts = {"ids": begin, "mask": 0, "positions": begin}
        return {
            name: self._own[role][:, starts[role] : end].copy()
            for role, name in self._names.items()
        }

    def add(self, token: int) -> None:
        """Write a token: in padding where there is some that no inference has taken."""
        own, place = self._own, self.last + 1
        put = {"ids": token, "mask": 1}
        if "positions" in own:
            put["positions"] = int(own["positions"][0, self.last]) + 1
        has_room = place < self.width and not self._is_cached
        if has_room:
            own = {role: values.copy() for role, values in own.items()}
        else:
            place = self.width
            own = {role: np.pad(values, ((0, 0), (0, 1))) for role, values in own.items()}
        for role, values in own.items():
            values[0, place] = put[role]
        self._own, self.last = own, place
        shifts = not has_room and not self._is_cached and "mask" in own and not own["mask"][0, 0]
        if shifts:  # a padded row stays as long as it was
            self._own = {role: values[:, 1:] for role, values in own.items()}
            self.last -= 1
