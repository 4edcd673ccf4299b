"""The quality of a stack in rounds in which some of its answers came too late."""

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
"""Answers that are judged at once, with about 40 bytes of memory each."""

Mask = NDArray[np.bool_]


class Quality:
    """Every resampled metric of one stack, for any choice of samples whose answers are late.

    Args:
        task: which says what a late answer is worth.
        records: of the answers, one a sample.
        truths: what people have annotated.

    Attributes:
        whole: the headline metric with every answer in time.

    Raises:
        DataError: the headline metric cannot be measured on these samples.
    """

    def __init__(self, task: Task, records: Sequence[Record], truths: Sequence[Any]) -> None:
        late = [task.late(record) for record in records]
        score = task.score([*records, *late], [*truths, *truths])
        if score.figure is None:
            raise DataError(f"nothing is annotated that {task.headline} could be measured on")
        self._figures: dict[str, Figure] = {task.headline: score.figure, **score.others}
        self._headline = task.headline
        self.whole = float(self.of(np.zeros((1, len(records)), bool))[0])

    def of(self, late: Mask) -> Floats:
        """Return (R,) the headline metric of each round, from (R, n) which answers are late."""
        return self._measured(late, [self._headline])[self._headline]

    def each(self, late: Mask) -> dict[str, Floats]:
        """Return every metric of each round; the headline comes first."""
        return self._measured(late, list(self._figures))

    def _measured(self, late: Mask, names: Sequence[str]) -> dict[str, Floats]:
        """Measure rounds that are late alike once."""
        alike: dict[bytes, int] = {}
        which = [alike.setdefault(row.tobytes(), len(alike)) for row in np.packbits(late, axis=1)]
        first = np.unique(which, return_index=True)[1]
        step = max(1, BATCH // late.shape[1])
        found: dict[str, list[Floats]] = {name: [] for name in names}
        for at in range(0, len(first), step):
            rows = late[first[at : at + step]]
            counts = np.concatenate([~rows, rows], axis=1).astype(np.int64)
            for name in names:
                found[name].append(self._figures[name](counts))
        return {name: np.concatenate(parts)[which] for name, parts in found.items()}
