"""What is collected of a sample for controls and pictures, in whatever process it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simulator.experiments import controls
from simulator.experiments.alone import AxesAlone
from simulator.experiments.controls import AXIS_SAMPLES, SELF_SAMPLES, AxisEffects, Repeat
from simulator.experiments.flip_pictures import FlipPictures, FlipSeen
from simulator.experiments.gallery import IMAGES, Gallery, ImageSeen
from simulator.experiments.sounds import Sounds, SoundSeen
from simulator.pipeline.executor import Outcome, outcomes_of, pick
from simulator.pipeline.walk import Walk
from simulator.tasks.score import Record
from simulator.tasks.task import Task


@dataclass(frozen=True, slots=True)
class Seen:
    """The data that were collected for one sample; None for what was not asked for.

    Attributes:
        repeat: the result of running it twice.
        axes: the effect of each axis alone.
        flip: for a picture of its flip.
        look: for its entry in the gallery.
        alone: its record with each axis alone.
    """

    repeat: Repeat | None = None
    axes: Mapping[str, Any] | None = None
    flip: FlipSeen | None = None
    look: ImageSeen | SoundSeen | None = None
    alone: Mapping[str, Record] | None = None


@dataclass(frozen=True, slots=True)
class Parts:
    """Which parts of :class:`Seen` are to be collected for one sample."""

    repeat: bool = False
    axes: bool = False
    flip: bool = False
    look: bool = False
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Collector:
    """Collects data about the samples of one pair; plain data, so that it can be pickled.

    Attributes:
        task: opens the truth for a picture.
        arms: indices of train and deploy in the plan.
        effects: of every axis alone.
        alone: the records with every axis alone; empty where that was not asked for.
        pictures: of flips; or why there are none; None where the task draws none.
        shown: the gallery, of pictures or of sounds; None where samples are neither.
        prefix: of the names of its chains in the plan.
        first: the names of the first samples, in order.
    """

    task: Task
    arms: tuple[int, int]
    effects: AxisEffects
    alone: AxesAlone
    pictures: FlipPictures | str | None
    shown: Gallery | Sounds | None
    prefix: str
    first: tuple[str, ...]

    def __call__(self, walk: Walk, outcomes: Mapping[int, Outcome]) -> Seen | None:
        """Collect what can be known to be needed without the other samples' answers."""
        pair, name = pick(outcomes, self.arms), walk.context.sample
        if pair is None:
            return None
        index = self.first.index(name) if name in self.first else len(self.first)
        parts = Parts(
            index < SELF_SAMPLES,
            index < AXIS_SAMPLES,
            False,
            index < IMAGES,
            bool(self.alone.chains),
        )
        return self.collect(walk, pair, parts)

    def collect(self, walk: Walk, pair: Sequence[Outcome], parts: Parts) -> Seen | None:
        """Collect some parts for one sample; None where that gives nothing."""
        repeat = axes = flip = look = alone = None
        if parts.repeat:
            repeat = controls.repeat(walk, pair, self.arms, outcomes_of)
        if parts.axes:
            axes = self.effects.see(walk, f"{self.prefix}axis ")
        if parts.flip and isinstance(self.pictures, FlipPictures):
            flip = self.pictures.see(self.task, walk)
        if parts.look and self.shown:
            look = self.shown.see(walk)
        if parts.alone:
            alone = self.alone.see(walk)
        found = Seen(repeat, axes, flip, look, alone)
        return None if found == Seen() else found
