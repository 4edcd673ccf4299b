"""The records of a robustness run: every sample was run by every arm, a stack under a condition."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

from simulator.data.folder import Item
from simulator.statistics.bootstrap import Resamples
from simulator.tasks.score import Score
from simulator.tasks.task import Task

CLEAN = ""
"""The condition of the arms that have none."""
RunArm = tuple[str, str]
"""The names of a stack and of a condition."""


@dataclass(frozen=True)
class ArmRecords:
    """The records of some samples.

    Attributes:
        table: a row for each sample and arm, the arms of each sample in their order.
        arms: of each sample.
        items_under: all samples under a condition, in the order of the records.
        task: that the records belong to.
        seed: of the resamples.
        only: the samples that are looked at; None for all that went through.
    """

    table: pa.Table
    arms: Sequence[RunArm]
    items_under: Callable[[str], Sequence[Item]]
    task: Task
    seed: int
    only: Sequence[int] | None = None

    @cached_property
    def reasons(self) -> list[str | None]:
        """Why each sample was skipped; None where it was not."""
        first = pa.array(range(0, len(self.table), len(self.arms)))
        found: list[str | None] = self.table["skipped"].take(first).to_pylist()
        return found

    @cached_property
    def ran(self) -> Sequence[int]:
        """The samples that are looked at."""
        return self.only or [at for at, why in enumerate(self.reasons) if why is None]

    @property
    def draws(self) -> Resamples:
        """The resamples of these samples."""
        return Resamples(len(self.ran), self.seed, self.task.resamples)

    def of(self, samples: Sequence[int]) -> ArmRecords:
        """Return the records of these samples."""
        return replace(self, only=samples)

    def by_sample(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return (samples, arms, ...) of what has an entry for each row."""
        return values.reshape(-1, len(self.arms), *values.shape[1:])[self.ran]

    def scores(self, without: Collection[str] = ()) -> Iterator[tuple[RunArm, Score, float]]:
        """Yield the score of each arm, one after the other: few records are in memory at once.

        It comes with the share of units that differ from the first stack's answers.
        """
        plain = self.table.drop_columns(["ns", "digest"])
        condition, items = CLEAN, self.items_under(CLEAN)
        for number, arm in enumerate(self.arms):
            if arm[1] in without:
                continue
            places = [at * len(self.arms) + number for at in self.ran]
            rows = plain.take(pa.array(places, pa.int64())).to_pylist()
            if arm[1] != condition:  # the arms of one condition are neighbors
                condition, items = arm[1], self.items_under(arm[1])
            units = sum(row["units"] for row in rows)
            changed = sum(row["changed"] for row in rows) / units if units else 0.0
            yield arm, self.task.score(rows, [items[at].truth for at in self.ran]), changed
