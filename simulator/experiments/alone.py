"""Counts how many answers each axis changes when it alone is swapped into the training stack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from simulator.contract.recipe import Chain
from simulator.data.folder import Item
from simulator.errors import SampleError, UserError, one_line
from simulator.experiments.answers import StackRecords
from simulator.experiments.record_store import RecordStore
from simulator.experiments.session import Session, Variant
from simulator.experiments.summary import SIDES
from simulator.pipeline.stack import Stack
from simulator.pipeline.walk import Walk
from simulator.profile.axes import swap
from simulator.results.pair import Alone
from simulator.statistics.bootstrap import Resamples
from simulator.tasks.figures import Delta
from simulator.tasks.score import Record
from simulator.tasks.task import Task

NETWORK = ("precision", "runtime")
SIZE = ("geometry", "input_size")
TOGETHER = (SIZE, NETWORK)
"""Axes that are swapped together where a stack cannot run with one of them alone."""


@dataclass(slots=True)
class SingleAxisSwaps:
    """The training stack with one axis of the deployment stack, for every axis.

    Attributes:
        task: makes and compares the records.
        train: the training stack's own chain.
        prefix: of the names of the chains in the plan.
        chains: to the prediction, by axis; of axes that go together, joined by ``+``.
        cannot: axes that cannot be swapped alone, each with the reason.
    """

    task: Task
    train: Chain
    prefix: str
    chains: dict[str, Chain] = field(default_factory=dict)
    cannot: dict[str, str] = field(default_factory=dict)

    def asides(self) -> dict[str, Chain]:
        """Return the chains by their names in the plan."""
        if not self.chains:
            return {}
        every = {self._name(axis): chain for axis, chain in self.chains.items()}
        return {self._name(""): self.train, **every}

    def see(self, walk: Walk) -> dict[str, Record]:
        """Return a sample's record for each axis; an axis that fails on it is left out."""
        if not self.chains:
            return {}
        train, context = walk.aside(self._name("")).prediction, walk.context
        answers: dict[str, object] = {}
        for axis in self.chains:
            with suppress(SampleError):
                answers[axis] = walk.aside(self._name(axis)).prediction
        records = self.task.records([train, *answers.values()], context.truth, context.source)
        return dict(zip(answers, records[1:], strict=True))

    def figures(
        self, items: Sequence[Item], train: StackRecords, seen: RecordStore, seed: int
    ) -> list[Alone]:
        """Return what each axis changes, the one that changes most first.

        Args:
            items: the samples that went through both stacks.
            train: records of the training stack, of the same samples.
            seen: what :meth:`see` returned, as records of the axes.
            seed: of the bootstrap.
        """
        found = [self._figures(axis, items, train, seen, seed) for axis in self.chains]
        found.sort(key=lambda alone: -alone.changed)
        return found + [_not_run([axis], why) for axis, why in self.cannot.items()]

    def _figures(
        self, axis: str, items: Sequence[Item], train: StackRecords, seen: RecordStore, seed: int
    ) -> Alone:
        places = {seen.items[at].name: at for at in seen.ran_on(axis)}
        which = np.array([at for at, one in enumerate(items) if one.name in places], np.intp)
        swapped = seen.of(axis, [places[items[at].name] for at in which])
        ran = [items[at] for at in which]
        if not ran:
            return _not_run(axis.split("+"), "no sample went through")
        truths = [item.truth for item in ran]
        compared = self.task.compare(
            self.task.score(train.chosen(which), truths),
            self.task.score(swapped, truths),
            Resamples(len(ran), seed, self.task.resamples),
        )
        flips = compared["flips"]
        delta = compared["delta"].get(self.task.headline)
        return Alone(
            axes=axis.split("+"),
            samples=len(ran),
            changed=flips["count"],
            units=flips["units"],
            rate=flips["rate"],
            ci95=flips["ci95"],
            delta=delta and Delta.model_validate(delta),
        )

    def _name(self, axis: str) -> str:
        return f"{self.prefix}alone {axis}"


def _not_run(axes: list[str], why: str) -> Alone:
    return Alone(axes=axes, samples=0, changed=0, units=0, why=why)


def axes_alone(
    session: Session, stacks: Sequence[Stack], differing: Sequence[str], prefix: str
) -> SingleAxisSwaps:
    """Build the training stack with each differing axis of the deployment stack.

    Args:
        session: the model and the samples.
        stacks: train and deploy.
        differing: the axes on which they differ.
        prefix: of the names of the chains in the plan.
    """
    found = SingleAxisSwaps(session.card.task, stacks[0].chain, prefix)
    for group in groups_of(differing):
        try:
            for axis in group:
                found.chains[axis] = _chain(session, stacks, [axis])
        except UserError as error:
            for axis in group:
                found.chains.pop(axis, None)
            _together(found, session, stacks, group, one_line(error))
    return found


def groups_of(
    differing: Sequence[str], together: Sequence[Sequence[str]] = TOGETHER
) -> Iterator[list[str]]:
    """Yield every axis for itself, but for those that may have to go together."""
    grouped = {axis for group in together for axis in group}
    yield from ([axis] for axis in differing if axis not in grouped)
    for group in together:
        if found := [axis for axis in group if axis in differing]:
            yield found


def groupings(differing: Sequence[str]) -> list[list[list[str]]]:
    """Return ways to group axes, those with the fewest joined first; no two alike."""
    sized = ("input_size", *NETWORK)
    ways = ((), (NETWORK,), (SIZE,), TOGETHER, (sized,), (("geometry", *sized),))
    found: list[list[list[str]]] = []
    for together in ways:
        groups = list(groups_of(differing, together))
        if sorted(groups) not in map(sorted, found):
            found.append(groups)
    return found


def _together(
    found: SingleAxisSwaps, session: Session, stacks: Sequence[Stack], group: list[str], why: str
) -> None:
    """Swap a whole group where one of it cannot run alone."""
    if len(group) > 1:
        try:
            found.chains["+".join(group)] = _chain(session, stacks, group)
        except UserError as error:
            why = one_line(error)
        else:
            return
    found.cannot |= dict.fromkeys(group, why)


def _chain(session: Session, stacks: Sequence[Stack], axes: Sequence[str]) -> Chain:
    mixed = swap(stacks[0].profile, stacks[1].profile, axes)
    pair = {side: (stack.profile, stack.choices) for side, stack in zip(SIDES, stacks, strict=True)}
    name = f"train with {' '.join(axes)}"
    return session.stack(Variant(name, mixed, pair)).chain
