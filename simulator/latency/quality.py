"""The quality of a stack in rounds where some of its answers are late."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.errors import DataError
from simulator.statistics.bootstrap import Figure, Floats
from simulator.tasks.score import Record
from simulator.tasks.task import Task

BATCH = 2_000_000
"""How many answers are scored at once; each needs about 40 bytes of memory."""

Mask = NDArray[np.bool_]


class Quality:
    """The metrics of one stack, for any set of samples whose answers are late.

    Args:
        task: decides how a late answer is scored.
        records: one per sample.
        truths: the ground truth of each sample.

    Attributes:
        whole: the headline metric with every answer in time.

    Raises:
        DataError: the headline metric cannot be measured on these samples.
    """

    def __init__(self, task: Task, records: Sequence[Record], truths: Sequence[Any]) -> None:
        late = [task.late(record) for record in records]
        score = task.score([*records, *late], [*truths, *truths])
        if score.figure is None:
            raise DataError(f"no ground truth to measure {task.headline} on")
        self._figures: dict[str, Figure] = {task.headline: score.figure, **score.others}
        self._headline = task.headline
        self.whole = float(self.of(np.zeros((1, len(records)), bool))[0])

    @classmethod
    def of_parts(cls, metric: str, right: Floats) -> Quality:
        """Return the quality of parts of answers that may be late by themselves.

        Args:
            metric: the share of them that are right and in time.
            right: (n,) 1 for those that are right, else 0.
        """
        made = cls.__new__(cls)
        made._headline, made.whole = metric, float(right.mean())
        made._figures = {metric: lambda counts: counts[:, : right.size] @ right / right.size}
        return made

    def of(self, late: Mask) -> Floats:
        """Return (R,) the headline metric of each round.

        Args:
            late: (R, n) which answers are late in each round.
        """
        return self._measured(late, [self._headline])[self._headline]

    def each(self, late: Mask) -> dict[str, Floats]:
        """Return (R,) values of every metric, by its name; the headline metric comes first.

        Args:
            late: (R, n) which answers are late in each round.
        """
        return self._measured(late, list(self._figures))

    def _measured(self, late: Mask, names: Sequence[str]) -> dict[str, Floats]:
        """Score rounds with the same late answers only once."""
        distinct: dict[bytes, int] = {}
        packed = np.packbits(late, axis=1)
        which = [distinct.setdefault(row.tobytes(), len(distinct)) for row in packed]
        first = np.unique(which, return_index=True)[1]
        step = max(1, BATCH // late.shape[1])
        found: dict[str, list[Floats]] = {name: [] for name in names}
        for at in range(0, len(first), step):
            rows = late[first[at : at + step]]
            counts = np.concatenate([~rows, rows], axis=1).astype(np.int64)
            for name in names:
                found[name].append(self._figures[name](counts))
        return {name: np.concatenate(parts)[which] for name, parts in found.items()}
