"""Notices: what a person should know about a run, with a kind that programs decide by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

NAMED = 3
"""Of more stacks than these, the others are only counted."""


class Kind(StrEnum):
    """What a notice is about."""

    NOT_IN_FORCE = "not_in_force"
    """A runtime computes with something other than what the profile asks for."""
    DROPPED_CAST = "dropped_cast"
    """A runtime leaves out the casts by which a graph rounds on purpose."""
    SATURATED = "saturated"
    """Sums of INT8 products are cut to 16 bits on this processor."""
    COLOR_MISMATCH = "color_mismatch"
    """A color converter assumes another matrix or range than the pixels have."""
    UNASKED = "unasked"
    """Axes differ that the deployment profile only inherits."""
    CALIBRATION = "calibration"
    """INT8 was calibrated on few images, or on images that are also evaluated."""
    MODEL_CARD = "model_card"
    """A model file was given in place of a card: where its card is from, and what it assumes."""
    MODEL = "model"
    """What was done to the model file before a runtime opened it."""
    NOT_CONVERGED = "not_converged"
    """The model card says that the network has learned nothing (NC)."""
    AT_CHANCE = "at_chance"
    """The training stack is not shown to be better than guessing: nothing can be judged by it."""
    ADAPTED = "adapted"
    """The network changes with the samples that it answers."""
    BATCHED = "batched"
    """An inference has several samples; a sample's time is its share."""
    RECORDED = "recorded"
    """Answers were recorded on a device; nothing of the stack was run here."""
    DATA = "data"
    """Files of the data set were left out or look wrong."""
    CHANGED = "changed"
    """Samples that changed while the run went on, and are not used; the verdict begins with it."""
    UNLABELLED = "unlabelled"
    """There is no truth, or too little of it, for some of the figures."""
    FEW_SAMPLES = "few_samples"
    """There are too few samples, rounds or changed answers for some of the figures."""
    FINDING = "finding"
    """What the task has to say about its own figures."""
    NOT_DETERMINISTIC = "not_deterministic"
    """A stack gave other bits for the same input."""
    FAILED_INFERENCES = "failed_inferences"
    """Some inferences failed while they were timed."""
    IN_PROCESS = "in_process"
    """Decoders that run in a worker otherwise ran in this process while they were timed."""
    ELSEWHERE = "elsewhere"
    """A stack asks for a machine that nobody looked for: it ran on this one."""
    BUSY_MACHINE = "busy_machine"
    """Other programs took processor time while latencies were measured."""
    STOPPED_EARLY = "stopped_early"
    """Measuring stopped before the latencies of all samples had settled."""
    SLOW_ROUNDS = "slow_rounds"
    """Whole rounds were slow, which a forecast from single answers does not foresee."""
    LOADGEN = "loadgen"
    """What LoadGen says about its own measurement."""
    MISSING_PICTURE = "missing_picture"
    """Pictures that a report would show could not be made."""


STRICT = frozenset({Kind.NOT_IN_FORCE, Kind.DROPPED_CAST, Kind.SATURATED, Kind.AT_CHANCE})
"""Kinds that ``--strict`` refuses: what runs is not what the profile asks for, or is of no use."""


@dataclass(frozen=True, slots=True)
class Notice:
    """One thing that a person should know.

    Attributes:
        kind: what it is about; programs decide by it.
        text: one sentence in plain words, without the names of stacks.
        about: the stacks that it is about; empty: the whole run.
    """

    kind: Kind
    text: str
    about: tuple[str, ...] = ()

    def of(self, stack: str) -> Notice:
        """Return the same notice about one stack."""
        return replace(self, about=(stack,))

    @property
    def is_strict(self) -> bool:
        """Whether ``--strict`` refuses it."""
        return self.kind in STRICT

    def __str__(self) -> str:
        """Return the text behind the names of the stacks, for people."""
        return f"{_several(self.about)}: {self.text}" if self.about else self.text


def merged(notices: Iterable[Notice]) -> list[Notice]:
    """Return each notice once, about all the stacks that it was told of, in order."""
    stacks: dict[Notice, dict[str, None]] = {}
    for notice in notices:
        stacks.setdefault(replace(notice, about=()), {}).update(dict.fromkeys(notice.about))
    return [replace(notice, about=tuple(names)) for notice, names in stacks.items()]


def _several(names: Sequence[str]) -> str:
    more = len(names) - NAMED
    if more > 0:
        return f"{', '.join(names[:NAMED])} and {more} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
