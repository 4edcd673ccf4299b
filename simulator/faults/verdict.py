"""What an inference with faults changed: its answer against that of the same code without them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from simulator.contract import Array, Encoded
from simulator.contract.injection import Faulty
from simulator.contract.recipe import Context
from simulator.pipeline.inference import Answer, Infer
from simulator.profile.section import Section
from simulator.tasks.impact import Decoded, Impact, decoded
from simulator.tasks.task import Task

Row = dict[str, Any]
_NOTHING = Decoded(None)


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """What answers to one sample are judged with.

    Attributes:
        context: the sample.
        placement: where it lies in the network's input.
        truth: what ``Task.opened`` returned.
    """

    context: Context
    placement: Any
    truth: Any


@dataclass(frozen=True, slots=True, eq=False)
class Golden:
    """An inference without faults.

    Attributes:
        run: its outputs.
        prediction: the answer.
        impact: judges answers with faults.
        row: of an inference whose outputs are equal.
    """

    run: Faulty
    prediction: Any
    impact: Impact
    row: Row


class Verdicts:
    """Judges the inferences of one stack.

    Args:
        task: of the model.
        options: of its verdicts.
        infer: the step that runs the network.
        answer: the step that decodes its outputs.
    """

    def __init__(self, task: Task, options: Section, infer: Infer, answer: Answer) -> None:
        self._task, self._names = task, dict(infer.outputs)
        self._settings, self._placing = answer.settings, answer.placing
        self._options = options

    def sample(self, context: Context) -> Sample:
        """Return what is known of a sample.

        Raises:
            SampleError: its truth cannot be used.
        """
        truth = self._task.opened(context.truth, context.source)
        return Sample(context, self._placing(context.source), truth)

    def golden(self, run: Faulty, sample: Sample) -> Golden:
        """Decode an inference without faults.

        Raises:
            SampleError: the model gives NaN without any fault.
        """
        task, source = self._task, sample.context.source
        answer = task.decode(self._named(run), self._settings, sample.placement)
        impact = task.Impact(task, self._options, answer, sample.truth, size_of(source))
        row = self._told(answer, answer, sample.truth) | impact.row(Decoded(answer))
        return Golden(run, answer, impact, row)

    def row(self, sample: Sample, golden: Golden, run: Faulty) -> Row:
        """Return the columns of an inference with faults.

        NaN between layers is the fault's only where the same code without faults has none.
        """
        before, after = (list(values) for values in zip(*run.changes, strict=True))
        row: Row = {"before": before, "after": after}
        finite = run.finite or not golden.run.finite
        if finite and equal(golden.run.outputs, run.outputs):
            return row | golden.row | {"same_outputs": True}
        found, told = _NOTHING, {}
        if finite:
            found = self.answer(sample, run)
            if found.due is None:
                told = self._told(golden.prediction, found.prediction, sample.truth)
        return row | told | golden.impact.row(found, finite) | {"same_outputs": False}

    def answer(self, sample: Sample, run: Faulty) -> Decoded:
        """Decode an inference with faults."""
        return decoded(self._task, self._named(run), self._settings, sample.placement)

    def _told(self, golden: Any, prediction: Any, truth: Any) -> Row:
        """The columns of an answer, as those of every run."""
        return self._task.record(prediction, truth) | self._task.change(golden, prediction, truth)

    def _named(self, run: Faulty) -> dict[str, Array]:
        return {name: run.outputs[own] for name, own in self._names.items()}


def size_of(source: Any) -> tuple[int, int] | None:
    """Return the rows and columns of an image; None of anything else."""
    return (source.height, source.width) if isinstance(source, Encoded) else None


def equal(one: Mapping[str, Array], other: Mapping[str, Array]) -> bool:
    """Whether two inferences gave the same bits."""
    return all(array.tobytes() == other[name].tobytes() for name, array in one.items())
