"""Next word: greedy match and perplexity of the last word of a passage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from simulator.contract.text import Row
from simulator.errors import ModelError
from simulator.statistics.bootstrap import Resamples
from simulator.tasks.next_word.answer import Word
from simulator.tasks.next_word.figures import NextWordFlips
from simulator.tasks.next_word.view import NextWordView
from simulator.tasks.score import Record, Score
from simulator.tasks.task import CHANGES, Shapes
from simulator.tasks.text import TextTask, array_of, predicting, scored, shifts

if TYPE_CHECKING:
    from simulator.tasks.specimen import Specimen


class NextWord(TextTask):
    """The last word of a passage; its truth is the word, or None."""

    name = "next_word"
    metrics = ("acc",)
    kinds = ("right_to_wrong", "wrong_to_right")
    Flips = NextWordFlips
    View = NextWordView
    columns: ClassVar[tuple[pa.Field, ...]] = (
        pa.field("label", pa.string()),
        pa.field("acc", pa.float64()),
        pa.field("greedy", pa.bool_()),
        pa.field("best", pa.list_(pa.int64())),
        pa.field("loglikelihoods", pa.list_(pa.float64())),
        *CHANGES,
        *(pa.field(kind, pa.int64()) for kind in kinds),
    )

    @classmethod
    def specimens(cls) -> Mapping[str, Specimen]:
        """Return a passage with a word of two tokens."""
        from simulator.tasks.text_specimen import passage

        return {"passage": passage(cls)}

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

    def record(self, prediction: Word, truth: str | None) -> dict[str, Any]:
        """Return whether the word is the model's own, and its log-likelihood."""
        return {
            "label": truth,
            "acc": None if truth is None else float(prediction.greedy),
            "greedy": prediction.greedy,
            "best": list(prediction.best),
            "loglikelihoods": [prediction.loglikelihood],
        }

    def chance(self, shapes: Shapes, records: Sequence[Record]) -> float:
        """Return 0: a guess hits one word of a whole vocabulary."""
        return 0.0

    def change(self, before: Word, after: Word, truth: str | None) -> dict[str, Any]:
        """Return whether one stack would write the word and the other not."""
        changed = before.greedy != after.greedy
        known = truth is not None
        return {
            "changed": int(changed),
            "units": 1,
            "right_to_wrong": int(changed and before.greedy) if known else None,
            "wrong_to_right": int(changed and after.greedy) if known else None,
        }

    @property
    def answer(self) -> tuple[str, ...]:
        """Whether it would write the word."""
        return ("greedy",)

    def late(self, record: Record) -> dict[str, Any]:
        """Return the record without an answer, which is wrong where there is a label."""
        return {**super().late(record), "greedy": None, "best": None}

    def compare(self, train: Score, deploy: Score, draws: Resamples) -> dict[str, Any]:
        """Compare two stacks; flips have both perplexities, and how far likelihoods moved."""
        found = super().compare(train, deploy, draws)
        more = {
            **shifts(train.records, deploy.records),
            "train_perplexity": perplexity(train.records),
            "deploy_perplexity": perplexity(deploy.records),
        }
        return {**found, "flips": {**found["flips"], **more}}

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
    return exp(mean) if mean is not None and mean < 690 else None
