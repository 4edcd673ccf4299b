"""What records keep of the answers of a task, and how two answers to one sample are compared."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import pyarrow as pa

from simulator.contract.audio import Sound
from simulator.contract.frame import Array
from simulator.errors import UserError
from simulator.tasks import score as scores
from simulator.tasks.score import Record, Values


class Answers(ABC):
    """The part of a task that makes and compares records; its attributes are a task's."""

    name: ClassVar[str]
    metrics: ClassVar[tuple[str, ...]]
    columns: ClassVar[tuple[pa.Field, ...]]
    kinds: ClassVar[tuple[str, ...]] = ()
    missing: ClassVar[tuple[str, ...]] = ()
    shown: ClassVar[tuple[str, ...] | None] = None
    shown_once: ClassVar[tuple[str, ...] | None] = None

    @abstractmethod
    def record(self, prediction: Any, truth: Any) -> Values:
        """Return a prediction's :attr:`columns`, those of :meth:`change` excepted.

        Raises:
            SampleError: this sample's truth cannot be used.
        """

    def recorded(self, prediction: int, score: float, margin: float) -> Any:
        """Return the prediction of a recorded class index; score and margin may be NaN.

        Raises:
            UserError: a prediction of this task is more than a class index.
        """
        raise UserError(
            f"kind: predictions: these are class indices, and the model does {self.name}; record "
            "its outputs"
        )

    def given(self, answer: Array) -> Any:
        """Return the prediction that code or a program gave as an array.

        Args:
            answer: its meaning is the task's: of a classifier a class index, or the index and its
                score; of a detector (n, 6) of x1, y1, x2, y2 in pixels of the image, score, class.

        Raises:
            SampleError: it has another shape.
            UserError: a prediction of this task is no array.
        """
        raise UserError(f"an answer of {self.name} is no array; let the code give the outputs")

    def change(self, before: Any, after: Any, truth: Any) -> Values:
        """Return :data:`CHANGES` and :attr:`kinds`: how an answer differs from the first stack's.

        By default an answer is one unit, and has changed where ``before != after``.
        """
        return {"changed": int(before != after), "units": 1}

    def same(self, before: Record, after: Record) -> bool:
        """Whether two runs of one stack gave the same answer to a sample.

        By default all columns must be equal but those of fractions: how sure a stack was is not
        part of its answer.
        """
        return scores.agree(before, after, self.firm)

    @property
    def firm(self) -> tuple[str, ...]:
        """The columns that are not fractions: what was answered, not how surely."""
        return tuple(field.name for field in self.columns if not _is_fraction(field.type))

    @property
    def answer(self) -> tuple[str, ...]:
        """The columns in which a flip shows: the firm ones that say nothing of another stack."""
        return tuple(name for name in self.firm if name not in self._counts)

    @property
    def _counts(self) -> tuple[str, ...]:
        return ("changed", "units", *self.kinds)

    def flipped(self, before: Record, after: Record) -> bool:
        """Whether two records of one sample are different answers, each whatever stack it is of."""
        return not scores.agree(before, after, self.answer)

    def late(self, record: Record) -> Values:
        """Return a record as if its answer had come too late, so that it counts as wrong.

        By default every metric's column is 0, and those of :attr:`missing` are None.

        Source:
            Yang et al., Quality at the Tail of Machine Learning Inference, arXiv 2212.13925.
        """
        wrong = {name: 0.0 for name in self.metrics if record[name] is not None}
        return {**record, **wrong, **dict.fromkeys(self.missing)}

    def severity(self, train: Record, deploy: Record) -> float:
        """Return how bad a change is; the worst ones are shown. By default the share of units."""
        return float(deploy["changed"] / max(deploy["units"], 1))

    def flip(self, train: Record, deploy: Record) -> Values:
        """Return what ``summary.json`` keeps of a changed answer: ``train`` and ``deploy`` in it.

        By default :attr:`shown` of either stack, and :attr:`shown_once`.
        """
        once = self._counts if self.shown_once is None else self.shown_once
        own = self.shown
        if own is None:
            own = tuple(field.name for field in self.columns if field.name not in self._counts)
        sides = {"train": train, "deploy": deploy}
        said = {side: {name: record[name] for name in own} for side, record in sides.items()}
        return {**said, **{name: deploy[name] for name in once}}

    def spoken(self, prediction: Any) -> Sound:
        """Return the sound that an answer is; only where answers are sounds."""
        raise NotImplementedError(f"the answers of {self.name} are no sounds")


def _is_fraction(kind: pa.DataType) -> bool:
    inner = kind.value_type if pa.types.is_list(kind) else kind
    return bool(pa.types.is_floating(inner))
