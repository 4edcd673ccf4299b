"""Texts that are written beside those of other samples, in the same batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from simulator.contract import clock
from simulator.contract.recipe import Apply, Chain, Recipe, Runtimes
from simulator.data.folder import Item
from simulator.errors import SampleError
from simulator.modalities.modality import Modality
from simulator.pipeline.batched import order_of
from simulator.pipeline.inference import Follow
from simulator.pipeline.plan import Arm, plan
from simulator.pipeline.walk import Opened, context_of


@dataclass(frozen=True, eq=False)
class FollowBeside(Follow):
    """Runs the inferences of a sample with its neighbours: those after it in the order of the run.

    Behind the last sample comes the first one; a sample that a step before cannot process is
    nobody's neighbour. The sample's time is that of its batch, without the preparation of the
    others.

    Attributes:
        modality: reads the samples.
        items: all samples, in the order of the run.
        before: the steps before it; the plan fills them in.
    """

    modality: Modality
    items: tuple[Item, ...]
    before: tuple[Recipe, ...] = ()

    def identity(self) -> Any:
        """Return the step, and the samples in their order."""
        return [*super().identity(), order_of(self.items)]

    def behind(self, before: tuple[Recipe, ...]) -> FollowBeside:
        """Return the step with what makes its inputs."""
        return replace(self, before=before)

    def open(self, runtimes: Runtimes) -> Apply:
        """Open the steps before it."""
        alone = super().open(runtimes)
        prepare = self._preparing(runtimes)
        places = {item.name: at for at, item in enumerate(self.items)}

        def apply(value: Any, context: Any) -> Any:
            others: list[Any] = []
            with clock.excluding():
                at, count = places[context.sample], len(self.items)
                for step in range(1, count):
                    if len(others) == self.sequel.neighbours:
                        break
                    found = prepare(self.items[(at + step) % count])
                    others += [] if found is None else [found]
            return alone([value, *others], context)

        return apply

    def _preparing(self, runtimes: Runtimes) -> Callable[[Item], Any]:
        opened = Opened(plan({Arm("beside"): Chain(self.before)}), runtimes)

        def prepare(item: Item) -> Any:
            try:
                (value,) = opened.walk(context_of(self.modality, item)).answers()
            except SampleError:
                return None
            return value

        return prepare
