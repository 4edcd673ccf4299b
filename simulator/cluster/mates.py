"""Which samples are in batches with others: a worker that runs one needs all of them."""

from __future__ import annotations

from collections.abc import Sequence

from simulator.data.folder import Item
from simulator.pipeline.batched import Batched
from simulator.pipeline.plan import Plan


class Mates:
    """Finds the samples that are in batches with others.

    Args:
        plan: its arms may have batches of several sizes.

    Attributes:
        step: samples of the largest batch; 1 without batches.
    """

    def __init__(self, plan: Plan) -> None:
        self._batched = [one.recipe for one in plan.nodes if isinstance(one.recipe, Batched)]
        self._batched.sort(key=lambda one: -one.size)
        self._places = {
            item.name: at for one in self._batched[:1] for at, item in enumerate(one.items)
        }
        self.step = max((one.size for one in self._batched), default=1)

    def place(self, items: Sequence[Item]) -> int:
        """Return the place of the first sample in its largest batch."""
        return self._places.get(items[0].name, 0) % self.step if items else 0

    def of(self, samples: Sequence[Item]) -> list[Item]:
        """Return the other samples that are in batches with some samples."""
        found: dict[str, Item] = {}
        for one in self._batched:
            for sample in samples:
                start = self._places.get(sample.name, 0) // one.size * one.size
                found |= {item.name: item for item in one.items[start : start + one.size]}
        for sample in samples:
            found.pop(sample.name, None)
        return list(found.values())
