"""What a hardware fault does to a class: another one, other runners-up, or less of a margin."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pyarrow as pa

from simulator.tasks.classification.answer import BEST, Answer
from simulator.tasks.impact import ChoiceImpact
from simulator.tasks.score import Values


class ClassificationImpact(ChoiceImpact):
    """An answer is corrupted where its class is another one.

    Columns:
        ``top5_changed``: whether the set of the five best classes is another one; None for a model
        with no more than five. ``margin_loss``: the margin without the fault, less that of the same
        class with it, which is negative where another class wins. ``score_loss``: of its score.
        ``right_to_wrong``, ``wrong_to_right``: None without truth.
    """

    columns: ClassVar[tuple[pa.Field, ...]] = (
        pa.field("top5_changed", pa.bool_()),
        pa.field("prediction", pa.int32()),
        pa.field("margin_loss", pa.float64()),
        pa.field("score_loss", pa.float64()),
        *ChoiceImpact.turns,
    )
    shown: ClassVar[tuple[str, ...]] = ("margin_loss", "score_loss")

    def judge(self, faulty: Answer) -> Values:
        """Compare the classes, and the golden class' score and margin."""
        now = faulty.prediction
        turned = self.compared(self.golden.prediction, now)
        return {**turned, "prediction": now, **self._scores(faulty)}

    def said(self, answer: Answer) -> str:
        """Return the class, with its margin."""
        label = self.task.network.label(answer.prediction)
        return f"{label} (margin {answer.margin:.2f})"

    def _scores(self, faulty: Answer) -> Values:
        if faulty.scores is None or faulty.best is None or self.golden.best is None:
            return {"top5_changed": None, "margin_loss": None, "score_loss": None}
        own, others = self.golden.prediction, np.arange(faulty.scores.size)
        score = float(faulty.scores[own])
        rivals = faulty.scores[others != own]
        rival = float(rivals.max()) if rivals.size else 0.0
        more = faulty.scores.size > BEST
        return {
            "top5_changed": set(self.golden.best) != set(faulty.best) if more else None,
            "margin_loss": self.golden.margin - (score - rival),
            "score_loss": self.golden.score - score,
        }
