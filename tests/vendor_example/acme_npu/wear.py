"""A task of Acme's own: the wear of a bearing, a number from 0 to 1, and its grade."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field

from simulator.errors import ModelError, NotFinite
from simulator.profile.section import Finite, Section
from simulator.tasks.settings import Network
from simulator.tasks.specimen import Specimen
from simulator.tasks.task import CHANGES, Task


class Output(Section):
    """What the network gives: one number; grades are counted by the limits that it reaches."""

    limits: Annotated[list[Finite], Field(min_length=1)]


@dataclass(frozen=True)
class Graded:
    """An answer; two of one grade are the same answer."""

    grade: int
    wear: float = field(compare=False)


class Wear(Task):
    """The grade of one bearing; its truth is a grade, or None."""

    name = "acme_wear"
    unit = "bearing"
    metrics = ("right",)
    columns: ClassVar[tuple[pa.Field, ...]] = (
        pa.field("right", pa.float64()),
        pa.field("grade", pa.int64()),
        pa.field("wear", pa.float64()),
        *CHANGES,
    )
    Output = Output

    @classmethod
    def specimens(cls) -> Mapping[str, Specimen]:
        """Return a network of three grades."""
        task = cls(cls.Output(limits=[0.3, 0.7]), Network())
        wrong = [(0, Graded(2, 0.9)), (1, Graded(0, 0.1)), (2, Graded(99, 1e30))]
        return {"three grades": Specimen(task, (_output(0.1), _output(0.9)), None, 1, wrong)}

    def decode(self, outputs: Any, settings: Any, placement: Any) -> Graded:
        """Read the number."""
        (values,) = outputs.values()
        if values.shape != (1, 1) or values.dtype.kind not in "fiu":
            raise ModelError(f"{self.name} expects an output (1, 1), got {values.shape}")
        wear = float(values[0, 0])
        if not np.isfinite(wear):
            raise NotFinite("the model gave NaN or an infinity")
        return Graded(sum(wear >= limit for limit in self.output.limits), wear)

    def record(self, prediction: Graded, truth: int | None) -> dict[str, Any]:
        """Return the grade, and whether it is right."""
        right = None if truth is None else float(prediction.grade == truth)
        return {"right": right, "grade": prediction.grade, "wear": prediction.wear}

    def examples(self) -> list[tuple[Any, Any]]:
        """Return the first grades."""
        return [(0, Graded(0, 0.0)), (1, Graded(1, 0.5)), (2, Graded(2, 1.0))]


def _output(wear: float) -> dict[str, Any]:
    return {"wear": np.array([[wear]], np.float32)}
