"""Collects the data for controls and pictures while samples run, so that nothing is run again.

The first samples are run twice and with every axis alone; data for pictures are kept of the first
images and of the worst flips. Which flips are the worst is known only at the end: the data of a
sample are kept while it may still be one of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from simulator.contract.recipe import Chain
from simulator.data.folder import Item
from simulator.errors import SampleError, one_line
from simulator.experiments import controls
from simulator.experiments.alone import AloneSeen, AxesAlone, axes_alone
from simulator.experiments.collected import Collector, Parts, Seen
from simulator.experiments.controls import AXIS_SAMPLES, SELF_SAMPLES, AxisEffects, Repeat
from simulator.experiments.flip_pictures import FlipPictures, draw, flip_pictures, writer
from simulator.experiments.gallery import (
    FIRST,
    IMAGES,
    WORST,
    Gallery,
    ImageSeen,
    gallery,
    write_gallery,
)
from simulator.experiments.ranking import Ranking
from simulator.experiments.session import Session
from simulator.experiments.sounds import Sounds, SoundSeen, sounds
from simulator.experiments.summary import WORST as FLIPS
from simulator.experiments.summary import severity
from simulator.modalities.modality import Modality
from simulator.notices import Kind, Notice
from simulator.pipeline.executor import Done, Outcome, outcomes_of, pick
from simulator.pipeline.inference import Answer
from simulator.pipeline.plan import Plan
from simulator.pipeline.stack import Stack
from simulator.pipeline.walk import Walk
from simulator.results.store import RunWriter


@dataclass(slots=True)
class PairWatch:
    """Collects data about the samples of one pair; a :class:`Watcher`.

    Attributes:
        session: the model and the samples.
        stacks: train and deploy.
        arms: their indices in the plan.
        effects: of every axis alone on the first samples.
        alone: the records with every axis alone; empty where that was not asked for.
        pictures: of flips; or why there are none; None where the task draws none.
        shown: the gallery, of pictures or of sounds; None where samples are neither.
        prefix: of the names of its chains in the plan.
        opened: closes the temporary files of the feature maps.
        folder: where temporary files are; see :class:`simulator.experiments.kept.Kept`.
        seen: the data so far, by sample.
        records: with every axis alone.
        collector: what collects the data of a sample in any process.
    """

    session: Session
    stacks: Sequence[Stack]
    arms: tuple[int, int]
    effects: AxisEffects
    alone: AxesAlone
    pictures: FlipPictures | str | None
    shown: Gallery | Sounds | None
    prefix: str
    opened: ExitStack
    folder: Path | None
    seen: dict[str, Seen] = field(default_factory=dict)
    records: AloneSeen = field(init=False)
    _index: dict[str, int] = field(default_factory=dict)
    _ranking: Ranking = field(default_factory=Ranking)
    collector: Collector = field(init=False)

    def __post_init__(self) -> None:
        self.records = AloneSeen(self.session.card.task, self._index, self.folder)
        self.collector = Collector(
            self.session.card.task,
            self.arms,
            self.effects,
            self.alone,
            self.pictures,
            self.shown,
            self.prefix,
            tuple(islice(self._index, max(SELF_SAMPLES, AXIS_SAMPLES, IMAGES))),
        )

    def asides(self) -> dict[str, Chain]:
        """Return the chains that are needed besides the arms, by their names in the plan."""
        found = controls.asides(self.effects, self.stacks[0], f"{self.prefix}axis ")
        found |= self.alone.asides()
        if isinstance(self.pictures, FlipPictures):
            found |= self.pictures.asides()
        return found | (self.shown.asides() if self.shown else {})

    def see(self, walk: Walk, outcomes: Mapping[int, Outcome]) -> Seen | None:
        """Collect the data of one sample, if it is one of the first or may be a worst flip."""
        pair = pick(outcomes, self.arms)
        if pair is None:
            return None
        index, rank = self._index[walk.context.sample], self._rank(walk.context.sample, pair)
        parts = Parts(
            index < SELF_SAMPLES,
            index < AXIS_SAMPLES,
            rank is not None and rank < FLIPS,
            index < IMAGES or (rank is not None and rank < IMAGES),
            bool(self.alone.chains),
        )
        return self.collector.collect(walk, pair, parts)

    def keep(self, done: Done, seen: Seen | None) -> None:
        """Store the data of a sample, and drop those of flips that are no longer the worst.

        Args:
            done: the sample, with the outcomes of the pair alone.
            seen: what :meth:`see` returned.
        """
        if done.skipped is None:
            self._rank(done.item.name, done.outcomes)
        else:
            self._ranking.forget(self._index[done.item.name])
        if seen is not None and seen.alone is not None:
            self.records.add(done.item, seen.alone)
            seen = replace(seen, alone=None)
        if seen is not None and seen != Seen():
            self.seen[done.item.name] = seen
            drawn, shown = self._ranking.top(FLIPS), self._ranking.top(IMAGES)
            for name, one in [*self.seen.items()]:
                index = self._index[name]
                flip = one.flip if index in drawn else None
                look = one.look if index in shown or index < IMAGES else None
                self.seen[name] = replace(one, flip=flip, look=look)
                if self.seen[name] == Seen():
                    del self.seen[name]

    def complete(self, plan: Plan, ran: Sequence[Item]) -> None:
        """Run samples again whose data are missing.

        Args:
            plan: of the run.
            ran: the samples that went through.

        These are samples that an earlier attempt had finished, samples that replace skipped ones,
        and the worst flips where other processes ran the samples; else there are none.
        """
        walked = None
        for item, parts in self._lacking(ran):
            walked = walked or self.session.executor.walks(plan)
            try:
                walk = walked(item)
                pair = pick(outcomes_of(walk), self.arms)
                if pair is None:
                    raise SampleError("a stack fails on it now")
                found = self.collector.collect(walk, pair, parts) or Seen()
            except SampleError as error:  # the file is gone or changed since the earlier attempt
                notes = [f"the rest is not shown: {one_line(error)}"]
                repeat = Repeat(False, 0) if parts.repeat else None
                empty = SoundSeen if isinstance(self.shown, Sounds) else ImageSeen
                found = Seen(repeat, {}, None, empty(notes=notes), {})
            if parts.alone and found.alone is not None:
                self.records.add(item, found.alone)
            known = self.seen.get(item.name, Seen())
            self.seen[item.name] = Seen(
                known.repeat or found.repeat,
                found.axes if known.axes is None else known.axes,
                known.flip or found.flip,
                known.look or found.look,
            )

    def _lacking(self, ran: Sequence[Item]) -> list[tuple[Item, Parts]]:
        """The samples whose data are missing, with the missing parts."""
        drawn, shown = self._ranking.top(FLIPS), self._ranking.top(IMAGES)
        first = IMAGES - len(shown)
        found = []
        for at, item in enumerate(ran):
            index, known = self._index[item.name], self.seen.get(item.name, Seen())
            fills_up = index not in shown and first > 0
            first -= fills_up
            parts = Parts(
                at < SELF_SAMPLES and known.repeat is None,
                at < AXIS_SAMPLES and known.axes is None,
                index in drawn and isinstance(self.pictures, FlipPictures) and known.flip is None,
                (index in shown or fills_up) and self.shown is not None and known.look is None,
                bool(self.alone.chains) and item.name not in self.records,
            )
            if parts != Parts():
                found.append((item, parts))
        return found

    def _rank(self, name: str, pair: Sequence[Outcome]) -> int | None:
        """A flip's rank so far, from 0; None for a sample that did not flip."""
        train, deploy = (outcome.record for outcome in pair)
        if not deploy["changed"]:
            return None
        worse = severity(self.session.card.task, train, deploy)
        return self._ranking.add(worse, self._index[name])

    def draw(self, summary: dict[str, Any], ran: Sequence[Item], run: RunWriter) -> None:
        """Write the pictures of the worst flips and the gallery, and add them to the summary."""
        flips = summary["worst_flips"]
        self._beside(flips)
        if isinstance(self.pictures, str) and flips:
            words = f"the worst flips are not drawn: {self.pictures}"
            summary["warnings"].append(Notice(Kind.MISSING_PICTURE, words))
        elif isinstance(self.pictures, FlipPictures):
            kept = {name: one.flip for name, one in self.seen.items() if one.flip}
            draw(self.session, flips, kept, run)
        if self.shown is None:
            return
        self.session.show.say("drawing the gallery")
        whys = {flip["sample"]: WORST for flip in flips}
        for item in ran[:IMAGES]:
            whys.setdefault(item.name, FIRST.format(unit=self.session.card.modality.unit))
        looks = [
            (*pair, self.seen.get(pair[0], Seen()).look) for pair in list(whys.items())[:IMAGES]
        ]
        files = writer()
        if files is None:
            words = "the gallery is not drawn: no installed backend writes PNG"
            summary["warnings"].append(Notice(Kind.MISSING_PICTURE, words))
        elif isinstance(self.shown, Sounds):
            heard = [(a, b, c if isinstance(c, SoundSeen) else SoundSeen()) for a, b, c in looks]
            summary["sounds"] = self.shown.write(heard, files, run)
        else:
            seen = [(a, b, c if isinstance(c, ImageSeen) else ImageSeen()) for a, b, c in looks]
            summary["gallery"] = write_gallery(self.shown, seen, files, self.session.workers, run)

    def _beside(self, flips: Sequence[dict[str, Any]]) -> None:
        """Add what the modality says of both stacks' inputs to the worst flips."""
        modality = self.session.card.modality
        if type(modality).beside is Modality.beside:
            return  # it says nothing, so that no sample is read again
        last = [stack.chain.last for stack in self.stacks]
        placings = [one.placing for one in last if isinstance(one, Answer)]
        items = self.session.dataset.items
        for flip in flips if len(placings) == len(self.stacks) else ():
            try:
                source = self.session.executor.context(items[self._index[flip["sample"]]]).source
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
    folder: Path | None = None,
) -> PairWatch:
    """Plan the data that are collected for a pair.

    Args:
        session: the model and the samples.
        stacks: train and deploy.
        differing: the axes on which they differ.
        arms: their indices in the plan.
        prefix: of the names of its chains in the plan.
        quick: whether the records with each axis alone are left out.
        folder: where temporary files are; see :class:`simulator.experiments.kept.Kept`.
    """
    train, deploy = stacks
    opened = ExitStack()
    modality = session.card.modality
    shown: Gallery | Sounds | None = None
    if modality.draws:
        shown = gallery(session, stacks, differing, f"{prefix}look ", opened)
    elif modality.sounds or session.card.task.speaks:
        shown = sounds(session, stacks, arms, f"{prefix}sound ")
    scale = modality.scale(train.profile, session.card.spec)
    return PairWatch(
        session,
        stacks,
        arms,
        controls.axis_effects(session, differing, train, deploy, scale),
        axes_alone(session, stacks, () if quick else differing, prefix),
        flip_pictures(session, stacks, arms, f"{prefix}") if modality.draws else None,
        shown,
        prefix,
        opened,
        folder,
        _index={item.name: at for at, item in enumerate(session.dataset.items)},
    )
