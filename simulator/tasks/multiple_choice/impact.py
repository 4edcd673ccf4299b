"""What a hardware fault does to a choice: another one, or less of a margin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pyarrow as pa

from simulator.tasks.impact import Impact


class MultipleChoiceImpact(Impact):
    """An answer is corrupted where another choice wins.

    Columns:
        ``answer``: with the fault. ``margin_loss``: the margin without the fault, less that of the
        same choice with it; negative values of the latter mean that another choice wins, nats.
        ``right_to_wrong``, ``wrong_to_right``: None without truth.
    """

    columns: ClassVar[tuple[pa.Field, ...]] = (
        pa.field("answer", pa.int32()),
        pa.field("margin_loss", pa.float64()),
        pa.field("right_to_wrong", pa.bool_()),
        pa.field("wrong_to_right", pa.bool_()),
    )
    words: ClassVar[Mapping[str, str]] = {
        "margin_loss": "margin lost",
        "right_to_wrong": "right to wrong",
        "wrong_to_right": "wrong to right",
    }
    shown: ClassVar[tuple[str, ...]] = ("margin_loss",)

    def judge(self, faulty: Any) -> dict[str, Any]:
        """Compare the answers, and the golden answer's margin."""
        before, now, truth = self.golden.answer, faulty.answer, self.truth
        rivals = [
            value for index, value in enumerate(faulty.loglikelihoods) if index != before
        ] or [faulty.loglikelihoods[before]]
        left = faulty.loglikelihoods[before] - max(rivals)
        changed = before != now
        return {
            "sdc": changed,
            "answer": now,
            "margin_loss": self.golden.margin - left,
            "right_to_wrong": None if truth is None else changed and before == truth,
            "wrong_to_right": None if truth is None else changed and now == truth,
        }
