"""Observes samples while they run, for controls and pictures, so that nothing is run again.

The first samples are run twice and with every axis alone; data for pictures are kept of the first
images and of the worst flips. Which flips are the worst is known only at the end: the data of a
sample are kept while it may still be one of them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

from simulator.contract.recipe import Chain
from simulator.data.folder import Item
from simulator.errors import SampleError, one_line
from simulator.experiments import controls
from simulator.experiments.alone import SingleAxisSwaps, axes_alone
from simulator.experiments.by_size import Sizes, sizing
from simulator.experiments.controls import AXIS_SAMPLES, SELF_SAMPLES, AxisEffects, Repeat
from simulator.experiments.moments import severity
from simulator.experiments.observers import Observer, Observers, Ranking, Seen
from simulator.experiments.pictures.pictures import Finished, Pictures, ShownPair, pictures_of
from simulator.experiments.record_store import RecordStore
from simulator.experiments.session import Session
from simulator.modalities.modality import Modality
from simulator.pipeline.executor import Outcome, SampleResult, outcomes_of, pick
from simulator.pipeline.inference import Answer
from simulator.pipeline.plan import Arm, Plan
from simulator.pipeline.stack import Stack
from simulator.pipeline.walk import Walk
from simulator.results.record_table import RecordTable
from simulator.results.store import RunWriter
from simulator.tasks.score import Values
from simulator.tasks.view import Told

REPEAT, AXES, ALONE, SIZE = "repeat", "axes", "alone", "size"
"""What is observed besides pictures: a second run, each axis's effect, the records with each axis
alone, and how large the sample is."""
EVERY = sys.maxsize


@dataclass(slots=True)
class PairWatch:
    """Collects what is observed of one pair; pickled, it becomes its observers.

    Attributes:
        session: the model and the samples.
        stacks: train and deploy.
        arms: their indices in the plan.
        effects: of every axis alone on the first samples.
        alone: the records with every axis alone; empty where that was not asked for.
        pictures: of the samples, as the task or its modality shows them.
        opened: closes the temporary files of the feature maps.
        seen: what was observed so far, by sample.
        records: with every axis alone.
        index: the number of each sample, by its name.
        sizes: of the samples.
    """

    session: Session
    stacks: Sequence[Stack]
    arms: tuple[int, int]
    effects: AxisEffects
    alone: SingleAxisSwaps
    pictures: Sequence[Pictures]
    opened: ExitStack
    seen: dict[str, Seen] = field(default_factory=dict)
    records: RecordStore = field(init=False)
    sizes: Sizes = field(init=False)
    index: dict[str, int] = field(init=False)
    _has_alone: bytearray = field(init=False)
    _observers: Observers = field(init=False)
    _ranking: Ranking = field(default_factory=Ranking)

    def __post_init__(self) -> None:
        task, items = self.session.card.task, self.session.dataset.items
        self.index = {item.name: at for at, item in enumerate(items)}
        self._has_alone = bytearray(len(items))
        self.records = RecordStore(task)
        self.sizes = Sizes(sizing(self.stacks, self.session.under), len(items))
        found = {
            SIZE: Observer(self.sizes.sizing.see, first=EVERY),
            REPEAT: Observer(partial(controls.repeat, task, self.arms), first=SELF_SAMPLES),
            AXES: Observer(self.effects.see, first=AXIS_SAMPLES),
        }
        for picture in self.pictures:
            found[picture.name] = Observer(
                picture.see, picture.first, picture.worst, picture.strips
            )
        if self.alone.chains:
            found[ALONE] = Observer(self.alone.see, first=EVERY)
        most = max(observer.first for observer in found.values() if observer.first < EVERY)
        first = tuple(islice(self.index, most))
        self._observers = Observers(self.arms, found, first)

    def __reduce__(self) -> tuple[Any, ...]:
        observers = self._observers
        return Observers, (observers.arms, observers.by_name, observers.first)

    def keep_in(self, table: RecordTable) -> None:
        """Write the records with each axis alone to a table; take those that it has already."""
        self.records = RecordStore(self.session.card.task, table)
        for rows in table.earlier():
            index = self.index[rows[0]["sample"]]
            item = self.session.dataset.items[index]
            self.records.restore(item, rows, [Arm(row["side"]) for row in rows])
            self._has_alone[index] = True

    def asides(self) -> dict[str, Chain]:
        """Return the chains that are needed besides the arms, by their names in the plan."""
        found = self.effects.asides() | self.alone.asides()
        for picture in self.pictures:
            found |= picture.asides()
        return found

    def __call__(self, walk: Walk, outcomes: Mapping[int, Outcome]) -> Seen | None:
        """Observe one sample, if it is one of the first or may be a worst flip.

        May be called from several threads at once.
        """
        pair = pick(outcomes, self.arms)
        if pair is None:
            return None
        name = walk.context.sample
        wanted = self._observers.wanting(self.index[name], self._rank(name, pair))
        return self._observers.observe(walk, wanted)

    def keep(self, done: SampleResult, seen: Seen | None) -> None:
        """Store the data of a sample, and drop those of flips that are no longer the worst.

        Args:
            done: the sample, with the outcomes of the pair alone.
            seen: what was observed; None for a sample of an earlier attempt.
        """
        if done.skipped is None:
            self._rank(done.item.name, done.outcomes)
        else:
            self._ranking.forget(self.index[done.item.name])
        if seen and SIZE in seen:
            self.sizes.known[self.index[done.item.name]] = seen.pop(SIZE)
        if seen:
            self._add(done.item, seen)
            tops = self._tops()
            for name, own in [*self.seen.items()]:
                index = self.index[name]
                left = {
                    key: one
                    for key, one in own.items()
                    if index in tops[key] or self._observers.by_name[key].wants(index, None)
                }
                self.seen[name] = left
                if not left:
                    del self.seen[name]

    def complete(self, plan: Plan, ran: Sequence[Item], flips: Sequence[Told] = ()) -> None:
        """Run samples again whose data are missing.

        Args:
            plan: of the run.
            ran: the samples that went through.
            flips: the worst ones.

        These are samples that an earlier attempt had finished, samples that replace skipped ones,
        the worst flips where other processes ran the samples, and what is shown of the worst
        moments of clips, which are known only now; else there are none.
        """
        walked = None
        for item, names in [*self._lacking(ran, self._shown(flips))]:
            walked = walked or self.session.executor.walks(plan)
            try:
                walk = walked(item)
                if pick(outcomes_of(walk), self.arms) is None:
                    raise SampleError("a stack fails on it now")
                self._add(item, self._observers.observe(walk, names))
            except SampleError as error:  # the file is gone or changed since the earlier attempt
                lost = {picture.name: picture.lost(one_line(error)) for picture in self.pictures}
                lost |= {REPEAT: Repeat(False, 0), AXES: {}, ALONE: {}}
                self._add(item, {name: lost[name] for name in names if lost[name] is not None})

    def _add(self, item: Item, seen: Seen) -> None:
        """Store what was observed; the records with each axis alone go to their table."""
        alone, index = seen.pop(ALONE, None), self.index[item.name]
        if alone is not None and not self._has_alone[index]:
            self._has_alone[index] = True
            outcomes = tuple(Outcome(record, "", {}) for record in alone.values())
            self.records.add(SampleResult(item, outcomes), [Arm(axis) for axis in alone])
        if seen:
            self.seen[item.name] = seen | self.seen.get(item.name, {})

    def _tops(self) -> dict[str, set[int]]:
        """The samples of the worst flips so far, for each observer."""
        return {name: self._ranking.top(o.worst) for name, o in self._observers.by_name.items()}

    def _shown(self, flips: Sequence[Told]) -> dict[str, set[int]]:
        """The samples of the worst flips, by observer; of clips those of the worst moments."""
        if not any("moment" in flip for flip in flips):
            return self._tops()
        found = {}
        for name, observer in self._observers.by_name.items():
            shown = [
                flip["moment"]["strip"] if observer.strips else [flip["sample"]]
                for flip in flips[: observer.worst]
            ]
            found[name] = {self.index[one] for names in shown for one in names}
        return found

    def _lacking(
        self, ran: Sequence[Item], tops: Mapping[str, set[int]]
    ) -> Iterator[tuple[Item, list[str]]]:
        """Yield the samples whose data are missing, with the observers that lack them.

        The first samples fill up what the worst flips leave of an observer's samples.
        """
        left = {
            name: observer.first - len(tops[name])
            for name, observer in self._observers.by_name.items()
        }
        for item in ran:
            known, index = self.seen.get(item.name, {}), self.index[item.name]
            lacking = []
            for name, top in tops.items():
                if name == SIZE:  # where it lacks, no sample is run for it
                    continue
                is_worst = index in top
                fills_up = not is_worst and left[name] > 0
                left[name] -= fills_up
                there = self._has_alone[index] if name == ALONE else name in known
                if (is_worst or fills_up) and not there:
                    lacking.append(name)
            if lacking:
                yield item, lacking

    def _rank(self, name: str, pair: Sequence[Outcome]) -> int | None:
        """A flip's rank so far, from 0; None for a sample that did not flip."""
        train, deploy = (outcome.record for outcome in pair)
        if not deploy["changed"]:
            return None
        worse = severity(self.session.card.task, train, deploy)
        return self._ranking.add(worse, self.index[name])

    def draw(self, summary: dict[str, Any], ran: Sequence[Item], run: RunWriter) -> None:
        """Write the pictures and add them to the summary."""
        self._beside(summary["worst_flips"])
        for picture in self.pictures:
            kept = {
                name: seen[picture.name] for name, seen in self.seen.items() if picture.name in seen
            }
            picture.draw(Finished(self.session, ran, kept, summary, run))

    def _beside(self, flips: Sequence[Values]) -> None:
        """Add what the modality says of both stacks' inputs to the worst flips."""
        modality = self.session.card.modality
        if type(modality).beside is Modality.beside:
            return  # it says nothing, so that no sample is read again
        last = [stack.chain.last for stack in self.stacks]
        placings = [recipe.placing for recipe in last if isinstance(recipe, Answer)]
        items = self.session.dataset.items
        for flip in flips if len(placings) == len(self.stacks) else ():
            try:
                source = self.session.executor.context(items[self.index[flip["sample"]]]).source
                if told := modality.asked(source):
                    flip["asked"] = told
                found = modality.beside(placings, source)
            except SampleError:  # the file is gone or changed since
                continue
            if found:
                flip["beside"] = found


def pair_watch(
    session: Session,
    stacks: Sequence[Stack],
    differing: Sequence[str],
    arms: tuple[int, int] = (0, 1),
    prefix: str = "",
    quick: bool = True,
) -> PairWatch:
    """Plan the data that are collected for a pair.

    Args:
        session: the model and the samples.
        stacks: train and deploy.
        differing: the axes on which they differ.
        arms: their indices in the plan.
        prefix: of the names of its chains in the plan.
        quick: whether the records with each axis alone are left out.
    """
    train, deploy = stacks
    opened = ExitStack()
    modality = session.card.modality
    shown = pictures_of(ShownPair(session, stacks, arms, differing, prefix, opened, quick))
    scale = modality.scale(train.profile, session.card.spec)
    return PairWatch(
        session,
        stacks,
        arms,
        controls.axis_effects(session, differing, train, deploy, scale, prefix),
        axes_alone(session, stacks, () if quick else differing, prefix),
        shown,
        opened,
    )
