"""Next word: greedy match and perplexity of the last word of a passage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field

from simulator.contract.text import Row
from simulator.errors import ModelError
from simulator.tasks.figures import Figures
from simulator.tasks.score import Record, Values
from simulator.tasks.task import CHANGES
from simulator.tasks.text import (
    ShiftFlips,
    TextTask,
    array_of,
    power,
    predicting,
    scored,
    shifts,
)
from simulator.tasks.view import Told, View


@dataclass(frozen=True, slots=True)
class Word:
    """What one stack says of a passage's last word.

    Attributes:
        greedy: whether it would write the word itself.
        loglikelihood: of the word, nats.
        best: the ids that it finds most likely at the word's places.
    """

    greedy: bool
    loglikelihood: float
    best: tuple[int, ...]


class NextWordFlips(ShiftFlips):
    """Words that one stack would write and the other not, and how far likelihoods moved."""

    train_perplexity: float | None = Field(
        description="exp of the mean negative log-likelihood of a word on the train side"
    )
    deploy_perplexity: float | None = Field(description="the same on the deploy side")


class NextWordView(View):
    """A word is written by a stack or not; the lines tell perplexities and shifts."""

    metrics: ClassVar[Mapping[str, str]] = {"acc": "greedy match"}
    told: ClassVar[Mapping[str, str]] = {
        "perplexity": "train {train_perplexity:.2f}, deploy {deploy_perplexity:.2f}",
        "log-likelihood": "moved by {mean_shift:.3g} in the mean, {max_shift:.3g} at most",
    }
    titles = ("word", "train (log-likelihood)", "deploy (log-likelihood)")

    def about(self, flip: Told) -> str:
        """Return the word."""
        return flip["train"]["label"] or "-"

    def said(self, flip: Told, side: str) -> str:
        """Return whether a stack would write the word."""
        own = flip[side]
        return f"{'written' if own['greedy'] else 'another'} ({own['loglikelihoods'][0]:.2f})"


class NextWord(TextTask):
    """The last word of a passage; its truth is the word, or None."""

    name = "next_word"
    metrics = ("acc",)
    guess = 0.0  # one word of a whole vocabulary
    answer = ("greedy",)
    missing = ("greedy", "best")
    tried_with = "simulator.tasks.text_specimen:passage"
    Flips = NextWordFlips
    View = NextWordView
    columns: ClassVar[tuple[pa.Field, ...]] = (
        pa.field("label", pa.string()),
        pa.field("acc", pa.float64()),
        pa.field("greedy", pa.bool_()),
        pa.field("best", pa.list_(pa.int64())),
        pa.field("loglikelihoods", pa.list_(pa.float64())),
        *CHANGES,
        *(pa.field(kind, pa.int64()) for kind in TextTask.kinds),
    )

    def decode(self, outputs: Any, settings: Any, placement: tuple[Row, ...]) -> Word:
        """Sum the log-probabilities of the word's tokens; see :func:`scored`.

        Raises:
            ModelError: the sample has more than one request.
        """
        if len(placement) != 1:
            raise ModelError(f"{self.name} takes one request a sample, got {len(placement)}")
        (row,) = placement
        logits = array_of(outputs, row, 3, self.output.logits)
        found = scored(logits, row)
        best = tuple(predicting(logits, row).argmax(-1).tolist())
        return Word(found.greedy, found.loglikelihood, best)

    def compared(self, prediction: Word) -> bool:
        """Return whether the stack would write the word."""
        return prediction.greedy

    def right(self, prediction: Word, truth: str) -> bool:
        """Whether the stack would write the word, which is the truth."""
        return prediction.greedy

    def record(self, prediction: Word, truth: str | None) -> Values:
        """Return whether the word is the model's own, and its log-likelihood."""
        return {
            "label": truth,
            "acc": None if truth is None else float(prediction.greedy),
            "greedy": prediction.greedy,
            "best": list(prediction.best),
            "loglikelihoods": [prediction.loglikelihood],
        }

    def more(self, train: Sequence[Record], deploy: Sequence[Record]) -> Figures:
        """Return both perplexities, and how far log-likelihoods moved."""
        return {
            **shifts(train, deploy),
            "train_perplexity": perplexity(train),
            "deploy_perplexity": perplexity(deploy),
        }

    def severity(self, train: Record, deploy: Record) -> float:
        """Return how far the word's log-likelihood moved, nats."""
        return abs(float(train["loglikelihoods"][0] - deploy["loglikelihoods"][0]))

    def examples(self) -> list[tuple[Any, Any]]:
        """Return three words, each without doubt."""
        words = ("signs", "Gabriel", "a")
        return [(word, Word(True, 0.0, (at,))) for at, word in enumerate(words)]


def perplexity(records: Sequence[Record]) -> float | None:
    """Return exp(-mean log-likelihood) of a word; None where there is none, or above 1e300.

    Source:
        ``lm_eval/api/metrics.py``, ``perplexity``.
    """
    known = [record["loglikelihoods"][0] for record in records]
    mean = -float(np.mean(known)) if known else None
    return None if mean is None else power(mean)
