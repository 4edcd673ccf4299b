"""One image under every condition, as the network of each stack saw it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simulator.conditions.condition import AppliedCondition
from simulator.contract import U8, Array, Stage
from simulator.contract.recipe import Boundary, Chain
from simulator.errors import SampleError, one_line
from simulator.experiments.pictures.decoded import writer
from simulator.experiments.session import Session
from simulator.modalities.image.shown import thumbnail
from simulator.pipeline import recorded
from simulator.pipeline.executor import SampleResult
from simulator.pipeline.plan import Plan
from simulator.pipeline.stack import Stack
from simulator.pipeline.walk import Walk
from simulator.results.layout import LOOKS
from simulator.results.robustness import ConditionPictures
from simulator.results.store import RunWriter


@dataclass(frozen=True, slots=True)
class Grid:
    """The pictures of one sample.

    Attributes:
        sample: the name of the sample that is shown.
        chains: to the network's input, by condition (its row's name, ``clean`` without one) and
            stack.
        shown: makes a picture of an input, as the first stack's are shown; plain data.
    """

    sample: str
    chains: Mapping[tuple[str, str], Chain]
    shown: Callable[[Array], U8]

    def asides(self) -> dict[str, Chain]:
        """Return the chains by their names in the plan."""
        return {_name(*key): chain for key, chain in self.chains.items()}

    def see(self, walk: Walk, _: Mapping[int, Any]) -> dict[tuple[str, str], Array | str] | None:
        """Return the tensors of the sample that is shown; a text says why there is none."""
        if walk.context.sample != self.sample:
            return None
        found: dict[tuple[str, str], Array | str] = {}
        for key in self.chains:
            try:
                found[key] = walk.aside(_name(*key))
            except SampleError as error:
                found[key] = one_line(error)
        return found

    def write(
        self, seen: Mapping[tuple[str, str], Array | str], run: RunWriter
    ) -> ConditionPictures:
        """Write a picture of each tensor; return the ``pictures`` of the summary."""
        draw = writer()
        cells: dict[str, dict[str, str]] = {}
        for number, ((row, side), tensor) in enumerate(seen.items(), 1):
            if draw is None or isinstance(tensor, str):
                continue
            path = f"{LOOKS}/{number:03}.png"
            run.write_file(path, draw.png(thumbnail(self.shown(tensor), LONGEST)[0]))
            cells.setdefault(row, {})[side] = path
        return ConditionPictures(sample=self.sample, cells=cells)


@dataclass(slots=True)
class PictureWatch:
    """Draws the sample that is shown; pickled, it becomes its grid's observer.

    Attributes:
        session: runs the sample again if an earlier attempt had finished it.
        plan: of the run.
        grid: what is observed.
        run: the pictures are written to it.
        shown: the ``pictures`` of the summary; None until the sample is through.
    """

    session: Session
    plan: Plan
    grid: Grid
    run: RunWriter
    shown: ConditionPictures | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (self.grid, "see")

    def __call__(self, walk: Walk, outcomes: Mapping[int, Any]) -> Any:
        """Return what was observed of a sample."""
        return self.grid.see(walk, outcomes)

    def keep(self, done: SampleResult, seen: Any) -> None:
        """Draw a sample if it is the one that is shown."""
        if done.item.name == self.grid.sample and done.skipped is None:
            seen = seen or self.grid.see(self.session.executor.walks(self.plan)(done.item), {})
            self.shown = self.grid.write(seen, self.run)


LONGEST = 128
"""Pixels of a picture's longer side; a page shows many of them."""
CLEAN = "clean"
"""The row of the sample without a condition."""


def grid(
    session: Session, stacks: Sequence[Stack], conditions: Mapping[str, AppliedCondition]
) -> Grid | None:
    """Plan the pictures of the first sample.

    Returns:
        None where the modality shows no inputs, or no stack has one that could be shown.
    """
    card = session.card
    shown = [
        one for one in stacks if not recorded.recording(one.profile, one.choices, Stage.RUNTIME)
    ]
    made = card.modality.shown_input(shown[0].profile, card.spec) if shown else None
    if made is None:
        return None
    chains: dict[tuple[str, str], Chain] = {}
    for stack in shown:
        chains[CLEAN, stack.side] = stack.chain.until(Boundary.INPUT)
    for name, under in conditions.items():
        for stack in shown:
            disturbed = under.disturbed(stack.chain).until(Boundary.INPUT)
            if disturbed != chains[CLEAN, stack.side]:
                chains[name, stack.side] = disturbed
    return Grid(session.dataset.items[0].name, chains, made)


def _name(row: str, side: str) -> str:
    return f"picture {row} {side}"
