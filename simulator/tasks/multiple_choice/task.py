"""Multiple choice: one request for each choice, acc and acc_norm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from simulator.contract.text import Row
from simulator.errors import SampleError
from simulator.statistics.bootstrap import Resamples
from simulator.tasks.multiple_choice.answer import Chosen
from simulator.tasks.multiple_choice.figures import MultipleChoiceFlips
from simulator.tasks.multiple_choice.impact import MultipleChoiceImpact
from simulator.tasks.multiple_choice.view import MultipleChoiceView
from simulator.tasks.score import Record, Score, each
from simulator.tasks.task import CHANGES, Shapes
from simulator.tasks.text import TextTask, array_of, scored, shifts

if TYPE_CHECKING:
    from simulator.tasks.specimen import Specimen


SHOWN = 60
"""Characters of a choice that records keep."""


class MultipleChoice(TextTask):
    """The choice of a question; its truth is an index, or None."""

    name = "multiple_choice"
    metrics = ("acc", "acc_norm")
    kinds = ("right_to_wrong", "wrong_to_right", "norm_changed")
    Flips = MultipleChoiceFlips
    View = MultipleChoiceView
    Impact = MultipleChoiceImpact
    columns: ClassVar[tuple[pa.Field, ...]] = (
        pa.field("label", pa.int32()),
        pa.field("acc", pa.float64()),
        pa.field("acc_norm", pa.float64()),
        pa.field("answer", pa.int32()),
        pa.field("answer_norm", pa.int32()),
        pa.field("text", pa.string()),
        pa.field("margin", pa.float64()),
        pa.field("loglikelihoods", pa.list_(pa.float64())),
        *CHANGES,
        *(pa.field(kind, pa.int64()) for kind in kinds),
    )

    @classmethod
    def specimens(cls) -> Mapping[str, Specimen]:
        """Return questions of three choices, in one batch and in three inferences."""
        from simulator.tasks.text_specimen import questions

        return questions(cls)

    def decode(self, outputs: Any, settings: Any, placement: tuple[Row, ...]) -> Chosen:
        """Sum the log-probabilities of each choice's tokens; see :func:`scored`.

        Raises:
            SampleError: a choice has no token.
        """
        found = []
        for number, row in enumerate(placement):
            try:
                logits = array_of(outputs, row, 3, self.output.logits)
                found.append(scored(logits, row).loglikelihood)
            except SampleError as error:
                raise type(error)(f"choice {number}: {error}") from error
        lengths = tuple(row.length for row in placement if row.length)
        known = lengths if len(lengths) == len(found) else None
        return Chosen(tuple(found), known, _texts(placement))

    def record(self, prediction: Chosen, truth: int | None) -> dict[str, Any]:
        """Return the answers, and whether they are right."""
        answer, norm = prediction.answer, prediction.answer_norm
        if truth is not None and not 0 <= truth < len(prediction.loglikelihoods):
            raise SampleError(
                f"the label is choice {truth}, and there are {len(prediction.loglikelihoods)}"
            )
        return {
            "label": truth,
            "acc": None if truth is None else float(answer == truth),
            "acc_norm": None if None in (truth, norm) else float(norm == truth),
            "answer": answer,
            "answer_norm": norm,
            "text": prediction.texts[answer] if prediction.texts else None,
            "margin": prediction.margin,
            "loglikelihoods": list(prediction.loglikelihoods),
        }

    def chance(self, shapes: Shapes, records: Sequence[Record]) -> float | None:
        """Return the mean of 1 / choices over the questions that have a label."""
        known = zip(each(records, "label"), each(records, "loglikelihoods"), strict=True)
        shares = [1 / len(choices) for label, choices in known if label is not None]
        return fmean(shares) if shares else None

    def change(self, before: Chosen, after: Chosen, truth: int | None) -> dict[str, Any]:
        """Return whether either answer is another one, and in which direction."""
        changed = before.answer != after.answer
        known, norms = truth is not None, (before.answer_norm, after.answer_norm)
        return {
            "changed": int(changed),
            "units": 1,
            "right_to_wrong": int(changed and before.answer == truth) if known else None,
            "wrong_to_right": int(changed and after.answer == truth) if known else None,
            "norm_changed": None if None in norms else int(norms[0] != norms[1]),
        }

    @property
    def answer(self) -> tuple[str, ...]:
        """The choice."""
        return ("answer",)

    def late(self, record: Record) -> dict[str, Any]:
        """Return the record without an answer, which is wrong where there is a label."""
        return {**super().late(record), "answer": None, "answer_norm": None, "text": None}

    def compare(self, train: Score, deploy: Score, draws: Resamples) -> dict[str, Any]:
        """Compare two stacks; flips say how far log-likelihoods moved, and against what margins."""
        found = super().compare(train, deploy, draws)
        moved = shifts(train.records, deploy.records)
        margins = [record["margin"] for record in train.records]
        below = {
            f"margins_below_{word}": sum(
                margin < (moved[f"{word}_shift"] or 0) for margin in margins
            )
            for word in ("mean", "max")
        }
        return {**found, "flips": {**found["flips"], **moved, **below}}

    def severity(self, train: Record, deploy: Record) -> float:
        """Return how sure both stacks were: a change between two sure answers is worse."""
        return float(train["margin"] + deploy["margin"])

    def flip(self, train: Record, deploy: Record) -> dict[str, Any]:
        """Return both answers with their margins."""
        wanted = ("answer", "answer_norm", "text", "margin", "acc", "loglikelihoods")
        sides = {
            side: {name: record[name] for name in wanted}
            for side, record in (("train", train), ("deploy", deploy))
        }
        return {"label": train["label"], **sides}

    def examples(self) -> list[tuple[Any, Any]]:
        """Return each of three choices, chosen without doubt."""
        sure = ((0.0, -9.0, -9.0), (-9.0, 0.0, -9.0), (-9.0, -9.0, 0.0))
        return [(index, Chosen(found, (4, 5, 6))) for index, found in enumerate(sure)]


def _texts(placement: Sequence[Row]) -> tuple[str, ...]:
    """The choices in words: the continuations; where these are all the same, ends of contexts."""
    read = placement[0].text if placement else None
    if read is None:
        return ()
    found = [read(row.tokens.scored).strip() for row in placement]
    if len(found) > 1 and len(set(found)) == 1:
        found = [read(row.tokens.ids[: row.tokens.start])[-SHOWN:].strip() for row in placement]
    return tuple(text[:SHOWN] for text in found)
