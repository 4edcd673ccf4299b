"""What a hardware fault does to an answer: masked, silently corrupted, or detected.

The three exclude each other. A fault is detected (DUE, detected unrecoverable error) where NaN or
an infinity is seen between layers or in the outputs, or where the outputs are refused; it is silent
(SDC, silent data corruption) where none of that happens and the answer changes; else it is masked.

Source:
    Qutub et al., Hardware Faults that Matter: Understanding and Estimating the Safety Impact of
    Hardware Faults on Object Detection DNNs, SAFECOMP 2022.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from simulator.contract import U8
from simulator.contract.pictures import Color, Key, Panel, Rectangle
from simulator.contract.warp import Size
from simulator.errors import ModelError, NotFinite, SampleError
from simulator.profile.section import Section
from simulator.tasks.score import Record, Values

if TYPE_CHECKING:
    from simulator.tasks.task import Task


class Due(StrEnum):
    """How a fault was detected.

    Attributes:
        LAYER: NaN or an infinity between two layers.
        OUTPUT: NaN or an infinity in an output that the task reads, or in what it decodes of it.
        REFUSED: the outputs are finite, and not what the model card promises: a class without a
            label, a probability of 7. IVMOD does not count these.
    """

    LAYER = "layer"
    OUTPUT = "output"
    REFUSED = "refused"


VERDICT = (pa.field("sdc", pa.bool_()), pa.field("due", pa.bool_()), pa.field("why", pa.string()))
"""The columns of every row: silent, detected, and by which :class:`Due`; both false: masked."""
WITHOUT: Color = (0, 158, 115)
WITH: Color = (213, 94, 0)
"""The colors of answers in drawings: green and red of Okabe and Ito (2008)."""
LEGEND = (Key(WITHOUT, "without the fault"), Key(WITH, "with it"))


@dataclass(frozen=True, slots=True)
class Decoded:
    """What a task makes of the outputs of an inference with faults.

    Attributes:
        prediction: None where there is none.
        due: why there is none.
    """

    prediction: Any
    due: Due | None = None


def decoded(task: Task, outputs: Any, settings: Any, placement: Any) -> Decoded:
    """Decode outputs that a fault may have spoiled; the arguments are those of ``Task.decode``.

    The outputs of the inference without faults are decoded by ``Task.decode`` itself: what is wrong
    with them is no fault of the hardware.
    """
    try:
        return Decoded(task.decode(outputs, settings, placement))
    except NotFinite:
        return Decoded(None, Due.OUTPUT)
    except (ModelError, SampleError):
        return Decoded(None, Due.REFUSED)


@dataclass(frozen=True, slots=True, eq=False)
class Blobs:
    """Where in a sample a fault changed what is said to be there; masks of the sample's size.

    Attributes:
        false: (H, W) bool, occupied with the fault only.
        missed: (H, W) bool, occupied without the fault only.
        occupied: (H, W) bool, occupied without the fault.
    """

    false: NDArray[np.bool_]
    missed: NDArray[np.bool_]
    occupied: NDArray[np.bool_]

    @property
    def false_area(self) -> float:
        """The share of the sample that is falsely occupied: A_FP."""
        return float(np.count_nonzero(self.false) / self.false.size)

    @property
    def missed_area(self) -> float | None:
        """The share of what was occupied that is free now: A_FN; None where nothing was."""
        whole = np.count_nonzero(self.occupied)
        return float(np.count_nonzero(self.missed) / whole) if whole else None


class Impact:
    """What faults do to the answer for one sample; this one does for any task.

    A task with more to say derives its own and names it as :attr:`Task.Impact`. By default an
    answer is corrupted where :meth:`Task.change` finds a change, and ``severity`` is the share of
    units that changed.

    Attributes:
        columns: what :meth:`judge` returns, besides ``sdc``; None is allowed in each.
        words: what people read instead of a column's name.
        shown: the columns that say most of how severe a corruption is, for narrow tables.
        in_records: whether :meth:`blobs` can be said of what records hold; see :meth:`restored`.
        Options: what a campaign may choose.

    Args:
        task: of the model.
        options: of :attr:`Options`.
        golden: the prediction without faults.
        truth: what ``Task.opened`` returned; None where nobody has annotated the sample.
        size: rows and columns of the sample; None where it is no image.
    """

    columns: ClassVar[tuple[pa.Field, ...]] = (pa.field("severity", pa.float64()),)
    words: ClassVar[Mapping[str, str]] = {"severity": "share of units changed"}
    shown: ClassVar[tuple[str, ...]] = ("severity",)
    in_records: ClassVar[bool] = False
    Options: ClassVar[type[Section]] = Section

    def __init__(
        self, task: Any, options: Any, golden: Any, truth: Any, size: Size | None = None
    ) -> None:
        self.task, self.options, self.golden = task, options, golden
        self.truth, self.size = truth, size

    def judge(self, faulty: Any) -> Values:
        """Return ``sdc`` and the :attr:`columns` of a prediction with faults."""
        found = self.task.change(self.golden, faulty, None)
        return {"sdc": found["changed"] > 0, "severity": found["changed"] / max(found["units"], 1)}

    def blobs(self, faulty: Any) -> Blobs:
        """Return where the answer changed, for tasks whose answers are places in an image."""
        raise NotImplementedError(f"{self.task.name} does not say what is where")

    def reference(self) -> Blobs | None:
        """Return where the answer without faults differs from the truth; None without truth."""
        return None

    @classmethod
    def check(cls, task: Any, options: Any) -> None:
        """Hold what a campaign chose against a model.

        Raises:
            UserError: the model has no such class, say.
        """

    def marks(self, faulty: Any) -> tuple[Rectangle, ...]:
        """Return what to draw on the sample: :data:`WITHOUT` a fault, and :data:`WITH` it."""
        return ()

    def said(self, answer: Any) -> str:
        """Return an answer in a few words; empty where only a picture tells."""
        return ""

    def panels(self, image: U8, faulty: Any) -> list[Panel]:
        """Draw both answers.

        Args:
            image: (H, W, 3) uint8, the sample.
            faulty: the prediction with the fault.
        """
        answers = (self.golden, faulty)
        title = " > ".join(words for answer in answers if (words := self.said(answer)))
        marks = self.marks(faulty)
        return [Panel(image, title, marks, legend=LEGEND if marks else ())]

    @staticmethod
    def restored(record: Record) -> Any:
        """Return the prediction of a record, where :meth:`blobs` can be said of it."""
        raise NotImplementedError("its records keep too little of an answer")

    @final
    def row(self, found: Decoded, finite: bool = True) -> Values:
        """Return :data:`VERDICT` and the :attr:`columns`, which are None where a fault is detected.

        Args:
            found: see :func:`decoded`.
            finite: whether all values that were looked at between layers are finite; also true
                where the inference without faults has NaN or infinities there, because then they
                say nothing of a fault.
        """
        due = found.due if finite else Due.LAYER
        if due is not None:
            nothing = dict.fromkeys(field.name for field in self.columns)
            return {"sdc": False, "due": True, "why": due.value, **nothing}
        return {"due": False, "why": None, **self.judge(found.prediction)}

    @classmethod
    @final
    def schema(cls) -> tuple[pa.Field, ...]:
        """Return the columns of :meth:`row`."""
        return (*VERDICT, *cls.columns)


class ChoiceImpact(Impact):
    """What faults do to an answer that is one of several choices, of which one is right."""

    turns: ClassVar[tuple[pa.Field, ...]] = (
        pa.field("right_to_wrong", pa.bool_()),
        pa.field("wrong_to_right", pa.bool_()),
    )
    words: ClassVar[Mapping[str, str]] = {
        "top5_changed": "other classes among the best 5",
        "right_to_wrong": "right to wrong",
        "wrong_to_right": "wrong to right",
        "margin_loss": "margin lost",
        "score_loss": "score lost",
    }

    def compared(self, before: int, now: int) -> Values:
        """Return ``sdc`` and :attr:`turns`, which are None without truth."""
        changed, truth = before != now, self.truth
        return {
            "sdc": changed,
            "right_to_wrong": None if truth is None else changed and before == truth,
            "wrong_to_right": None if truth is None else changed and now == truth,
        }
