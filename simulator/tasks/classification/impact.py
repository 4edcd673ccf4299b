"""What a hardware fault does to a class: another one, other runners-up, or less of a margin."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from simulator.tasks.classification.answer import Answer
from simulator.tasks.impact import Impact

TOP = 5


class ClassificationImpact(Impact):
    """An answer is corrupted where its class is another one.

    Columns:
        ``top5``: whether the set of the five best classes is another one; None for a model with no
        more than five. ``margin_loss``: the margin without the fault, less that of the same class
        with it, which is negative where another class wins. ``score_loss``: of its score.
        ``right_to_wrong``, ``wrong_to_right``: None without truth.
    """

    columns: ClassVar[tuple[pa.Field, ...]] = (
        pa.field("top5", pa.bool_()),
        pa.field("prediction", pa.int32()),
        pa.field("margin_loss", pa.float64()),
        pa.field("score_loss", pa.float64()),
        pa.field("right_to_wrong", pa.bool_()),
        pa.field("wrong_to_right", pa.bool_()),
    )

    def judge(self, faulty: Answer) -> dict[str, Any]:
        """Compare the classes, and the golden class' score and margin."""
        before, now, truth = self.golden.prediction, faulty.prediction, self.truth
        changed = now != before
        return {
            "sdc": changed,
            "prediction": now,
            **self._scores(faulty),
            "right_to_wrong": None if truth is None else changed and before == truth,
            "wrong_to_right": None if truth is None else changed and now == truth,
        }

    def _scores(self, faulty: Answer) -> dict[str, Any]:
        if self.golden.values is None or faulty.values is None or faulty.scores is None:
            return {"top5": None, "margin_loss": None, "score_loss": None}
        own, others = self.golden.prediction, np.arange(faulty.scores.size)
        score = float(faulty.scores[own])
        rivals = faulty.scores[others != own]
        rival = float(rivals.max()) if rivals.size else 0.0
        best = None
        if faulty.values.size > TOP:
            best = not np.array_equal(top(self.golden.values), top(faulty.values))
        return {
            "top5": best,
            "margin_loss": self.golden.margin - (score - rival),
            "score_loss": self.golden.score - score,
        }


def top(values: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the indices of the :data:`TOP` largest of (C,) values, in ascending order.

    They are taken from what the model gave: a softmax rounds many scores to equal ones. Of equal
    values the lowest class comes first.
    """
    return np.sort(np.argsort(-values, kind="stable")[:TOP])
