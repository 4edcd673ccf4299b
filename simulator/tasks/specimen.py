"""Specimens: a task with a few outputs, truths and answers, for the conformance suite to try."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simulator.contract import Array
from simulator.profile.postprocess import Postprocess
from simulator.tasks.settings import Beside
from simulator.tasks.task import Task

Outputs = Mapping[str, Array]


@dataclass(frozen=True)
class Specimen:
    """A task, and what only its author can know.

    Attributes:
        task: made for a model card.
        outputs: what the model may give for one sample, and for another that is answered
            differently; floats without NaN, or integers. Of a task of several inferences, a tuple
            of such mappings for each sample.
        placement: how both samples lie in the network's input; whatever :meth:`Task.decode` takes.
        truth: what may be annotated in the first one.
        steps: of a task whose second network is run once a stack (:meth:`Task.beside`): those of
            two stacks, of which what the first gave for it is in ``joins``.
        joins: what :meth:`Beside.joining` returned; ``outputs`` are then the first network's.
        worthless: truths of samples of that size, each with an answer that deserves no point: none
            at all, a wrong one, and whatever is beyond all bounds. At least one, and none with a
            score that an answer of ``task.examples()`` has as well.
    """

    task: Task
    outputs: tuple[Outputs | tuple[Outputs, ...], Outputs | tuple[Outputs, ...]]
    placement: Any
    truth: Any
    worthless: Sequence[tuple[Any, Any]]
    steps: tuple[Beside, ...] = ()
    joins: Callable[[Outputs], Outputs] | None = None

    def fresh(self, which: int = 0) -> list[dict[str, Array]]:
        """Return a copy of the outputs for one of the samples, one mapping for each inference."""
        found = self.outputs[which]
        parts = found if isinstance(found, tuple) else (found,)
        return [{name: array.copy() for name, array in part.items()} for part in parts]

    def answer(self, which: int = 0, asked: Postprocess | None = None) -> Any:
        """Return the prediction for one of the samples; with a profile, or as the card says."""
        return self.decoded(self.fresh(which), asked)

    def decoded(self, parts: Sequence[Outputs], asked: Postprocess | None = None) -> Any:
        """Return the prediction that the task makes of outputs."""
        settings = self.task.settings(asked or Postprocess())
        return self.task.decode(self.read(parts), settings, self.placement)

    def read(self, parts: Sequence[Outputs]) -> Any:
        """Return what :meth:`Task.decode` takes of the outputs of each inference."""
        joined = [self.joins(part) for part in parts] if self.joins else parts
        return tuple(joined) if self.task.several else joined[0]
