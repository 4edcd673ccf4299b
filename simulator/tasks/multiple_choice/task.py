"""Multiple choice: one request for each choice, acc and acc_norm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field

from simulator.contract.text import Row
from simulator.errors import SampleError
from simulator.tasks.figures import Figures
from simulator.tasks.impact import ChoiceImpact
from simulator.tasks.score import Record, Values, each, even_odds
from simulator.tasks.task import CHANGES, Shapes
from simulator.tasks.text import ShiftFlips, TextTask, array_of, scored, shifts
from simulator.tasks.view import Told, View

SHOWN = 60
"""Characters of a choice that records keep."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """What one stack says of one question.

    Attributes:
        loglikelihoods: of the choices, in their order.
        lengths: characters of each choice, by which acc_norm divides; None where it is not asked.
        texts: the choices in words; empty where no tokenizer is known.
    """

    loglikelihoods: tuple[float, ...]
    lengths: tuple[int, ...] | None = None
    texts: tuple[str, ...] = field(default=(), compare=False)

    @property
    def answer(self) -> int:
        """The most likely choice; of equal ones the first."""
        return int(np.argmax(self.loglikelihoods))

    @property
    def answer_norm(self) -> int | None:
        """The choice with the largest log-likelihood for each character."""
        if self.lengths is None:
            return None
        return int(np.argmax(np.divide(self.loglikelihoods, self.lengths)))

    @property
    def margin(self) -> float:
        """The log-likelihood of the answer less the runner-up's; 0 where there is none."""
        return self.lead(self.answer)

    def lead(self, choice: int) -> float:
        """Return the log-likelihood of a choice less that of the best other one."""
        own = self.loglikelihoods[choice]
        others = [value for at, value in enumerate(self.loglikelihoods) if at != choice]
        return own - max(others, default=own)


class MultipleChoiceFlips(ShiftFlips):
    """Answers that differ, and how far the log-likelihoods behind them moved."""

    norm_changed: int | None = Field(
        description="answers by length-normalized log-likelihood that differ"
    )
    margins_below_mean: int = Field(
        description="answers whose margin on the train side is below mean_shift"
    )
    margins_below_max: int = Field(
        description="answers whose margin on the train side is below max_shift"
    )


class MultipleChoiceView(View):
    """Answers are numbers of choices with margins; the lines tell how far likelihoods moved."""

    kinds: ClassVar[Mapping[str, str]] = {"norm_changed": "changed by acc_norm"}
    besides = ("norm_changed",)
    told: ClassVar[Mapping[str, str]] = {
        "log-likelihood": "moved by {mean_shift:.3g} in the mean, {max_shift:.3g} at most",
        "margins": "{margins_below_mean:,} of {units:,} margins are below the mean, "
        "{margins_below_max:,} below the largest",
    }
    titles = ("right choice", "train (margin)", "deploy (margin)")

    def about(self, flip: Told) -> str:
        """Return the right choice, counted from 1."""
        return "-" if flip["label"] is None else f"choice {flip['label'] + 1}"

    def said(self, flip: Told, side: str) -> str:
        """Return an answer, counted from 1, with its margin in nats."""
        own = flip[side]
        text = f" “{own['text']}”" if own.get("text") else ""
        return f"choice {own['answer'] + 1}{text} ({own['margin']:.2f})"


class MultipleChoiceImpact(ChoiceImpact):
    """An answer is corrupted where another choice wins.

    Columns:
        ``answer``: with the fault. ``margin_loss``: the margin without the fault, less that of the
        same choice with it; negative values of the latter mean that another choice wins, nats.
        ``right_to_wrong``, ``wrong_to_right``: None without truth.
    """

    columns: ClassVar[tuple[pa.Field, ...]] = (
        pa.field("answer", pa.int32()),
        pa.field("margin_loss", pa.float64()),
        *ChoiceImpact.turns,
    )
    shown: ClassVar[tuple[str, ...]] = ("margin_loss",)

    def judge(self, faulty: Chosen) -> Values:
        """Compare the answers, and the golden answer's margin."""
        before, now = self.golden.answer, faulty.answer
        loss = self.golden.margin - faulty.lead(before)
        return {**self.compared(before, now), "answer": now, "margin_loss": loss}


class MultipleChoice(TextTask):
    """The choice of a question; its truth is an index, or None."""

    name = "multiple_choice"
    metrics = ("acc", "acc_norm")
    kinds = (*TextTask.kinds, "norm_changed")
    answer = ("answer",)
    missing = ("answer", "answer_norm", "text")
    shown = ("answer", "answer_norm", "text", "margin", "acc", "loglikelihoods")
    shown_once = ("label",)
    tried_with = "simulator.tasks.text_specimen:questions"
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

    def compared(self, prediction: Chosen) -> int:
        """Return the choice."""
        return prediction.answer

    def right(self, prediction: Chosen, truth: int) -> bool:
        """Whether the choice is the right one."""
        return prediction.answer == truth

    def record(self, prediction: Chosen, truth: int | None) -> Values:
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
        return even_odds(each(records, "label"), each(records, "loglikelihoods"))

    def change(self, before: Chosen, after: Chosen, truth: int | None) -> Values:
        """Return whether either answer is another one, and in which direction."""
        norms = before.answer_norm, after.answer_norm
        changed = None if None in norms else int(norms[0] != norms[1])
        return {**super().change(before, after, truth), "norm_changed": changed}

    def more(self, train: Sequence[Record], deploy: Sequence[Record]) -> Figures:
        """Return how far log-likelihoods moved, and how many margins are smaller."""
        moved = shifts(train, deploy)
        margins = list(each(train, "margin"))
        below = {
            f"margins_below_{word}": sum(
                margin < (moved[f"{word}_shift"] or 0) for margin in margins
            )
            for word in ("mean", "max")
        }
        return {**moved, **below}

    def severity(self, train: Record, deploy: Record) -> float:
        """Return how sure both stacks were: a change between two sure answers is worse."""
        return float(train["margin"] + deploy["margin"])

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
