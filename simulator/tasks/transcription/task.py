"""Transcription: the words that were said; word error rate, and words that two stacks differ in."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import pyarrow as pa

from simulator.contract import Array
from simulator.errors import ModelError
from simulator.profile.section import Section
from simulator.statistics.bootstrap import Ratio
from simulator.tasks.finite import output_of
from simulator.tasks.score import Record, Score, Values, mean_score, numbers
from simulator.tasks.settings import Network
from simulator.tasks.task import CHANGES, Shapes, Task
from simulator.tasks.transcription.vocabulary import vocabulary
from simulator.tasks.view import Told, View, cut

_LENGTH = 120
"""Characters of a transcript that are shown."""


class Output(Section):
    """What the network gives: token ids.

    Attributes:
        ids: the output with the ids; None: the first one.
        tokens: the ``tokenizer.json`` that turns them into text, beside the card.
        words: how two words are compared. ``lower``: in lower case, and of letters, digits and
            apostrophes only; ``as_they_are``: with case and punctuation.
    """

    ids: str | None = None
    tokens: str
    words: Literal["lower", "as_they_are"]


@dataclass(frozen=True, slots=True)
class Transcript:
    """The answer for one sound.

    Attributes:
        words: as they are compared.
        text: as it was written.
    """

    words: tuple[str, ...]
    text: str = field(compare=False)


class TranscriptionView(View):
    """Both texts; the word error rate is told beside the accuracy."""

    metrics: ClassVar[Mapping[str, str]] = {
        "word_accuracy": "word accuracy (1 - WER)",
        "exact": "exact transcripts",
    }
    kinds: ClassVar[Mapping[str, str]] = {"transcripts": "changed transcripts"}
    besides = ("transcripts",)
    titles = ("words changed", "train heard", "deploy heard")

    def said(self, flip: Told, side: str) -> str:
        """Return the text."""
        return cut(flip[side]["text"], _LENGTH)

    def lines(self, summary: Told) -> list[tuple[str, str]]:
        """Return how many transcripts changed, and the word error rate of both stacks."""
        found = super().lines(summary)
        rates = [summary[side]["metric"]["word_accuracy"] for side in ("train", "deploy")]
        if None not in rates:
            found.append(("WER", " -> ".join(f"{1 - rate:.2%}" for rate in rates)))
        return found


class Transcription(Task):
    """What is said in a sound; its truth is a text, or None.

    ``word_accuracy`` is 1 less the word error rate: the edits from the truth's words to the
    answer's, by the number of the truth's words, over all samples together. Many words too many
    make it negative. ``exact`` is the share of transcripts without an error.
    """

    name = "transcription"
    unit = "word"
    in_parts = True
    metrics = ("word_accuracy", "exact")
    kinds = ("transcripts",)
    guess = 0.0  # nobody guesses words
    reads = ("ids",)
    tried_with = "simulator.tasks.transcription.specimen:letters"
    Output = Output
    View = TranscriptionView
    columns: ClassVar[tuple[pa.Field, ...]] = (
        pa.field("text", pa.string()),
        pa.field("errors", pa.int64()),
        pa.field("words", pa.int64()),
        pa.field("exact", pa.float64()),
        pa.field("transcripts", pa.int64()),
        *CHANGES,
    )

    def __init__(self, output: Any, network: Network) -> None:
        super().__init__(output, network)
        self._tokens = network.folder / output.tokens
        vocabulary(self._tokens)

    def check(self, shapes: Shapes) -> None:
        """Expect a row of ids."""
        name, shape = next(iter(shapes.items()))
        if len(shape) != 2 or shape[0] not in (1, None):
            raise ModelError(f"output {name!r}: ids (1, N) expected, got {tuple(shape)}")

    def decode(self, outputs: Mapping[str, Array], settings: Any, placement: Any) -> Transcript:
        """Turn ids into text, and text into words."""
        name, ids = output_of(outputs, self.output.ids)
        if ids.ndim != 2 or ids.shape[0] != 1 or ids.dtype.kind not in "iu":
            raise ModelError(f"output {name!r}: ids (1, N) expected, got {ids.dtype} {ids.shape}")
        text = vocabulary(self._tokens).text(ids[0].tolist())
        return Transcript(self._words(text), text)

    def _words(self, text: str) -> tuple[str, ...]:
        if self.output.words == "lower":
            text = re.sub(r"[^\w']|_", " ", text.lower().replace("’", "'"))
        return tuple(text.split())

    def truth_of(self, text: str, where: str) -> str:
        """Return the text, which is what was said."""
        return text

    def opened(self, truth: Any, source: Any = None) -> Any:
        """Return the words of the truth."""
        return None if truth is None else self._words(truth)

    def record(self, prediction: Transcript, truth: tuple[str, ...] | None) -> Values:
        """Return the text and its errors; of a truth without words there is no share."""
        if truth is None:
            return {"text": prediction.text, "errors": None, "words": None, "exact": None}
        errors = edits(truth, prediction.words)
        return {
            "text": prediction.text,
            "errors": errors,
            "words": len(truth),
            "exact": float(errors == 0) if truth or errors else None,
        }

    def flipped(self, before: Record, after: Record) -> bool:
        """Whether a word differs, as words are compared."""
        return self._words(before["text"]) != self._words(after["text"])

    def change(self, before: Transcript, after: Transcript, truth: Any) -> Values:
        """Count the words that differ, and whether any does."""
        changed = edits(before.words, after.words)
        words = max(len(before.words), len(after.words))
        return {"changed": changed, "units": words, "transcripts": int(changed > 0)}

    def late(self, record: Record) -> Values:
        """Return the record as if nothing had been said: every word is missed."""
        if record["words"] is None:
            return {**record, "text": ""}
        exact = None if record["exact"] is None else 0.0
        return {**record, "text": "", "errors": record["words"], "exact": exact}

    def score(self, records: Sequence[Record], truths: Sequence[Any]) -> Score:
        """Measure the word accuracy over all samples, and the share of exact transcripts."""
        words, known = numbers(records, "words")
        right = words - numbers(records, "errors")[0]
        exact = mean_score(["exact"], records, truths)
        accuracy = float(right.sum() / words.sum()) if words.any() else None
        return Score(
            records,
            int(known.sum()),
            {"word_accuracy": accuracy, **exact.metrics},
            Ratio(right, words) if words.any() else None,
            {"exact": exact.figure} if exact.figure else {},
        )

    def severity(self, train: Record, deploy: Record) -> float:
        """Return how many words differ."""
        return float(deploy["changed"])

    def examples(self) -> list[tuple[Any, Any]]:
        """Return two texts and silence."""
        return [
            ("It rains.", self._said("It rains.")),
            ("", self._said("")),
            ("Printing, in the only sense", self._said("Printing, in the only sense")),
        ]

    def _said(self, text: str) -> Transcript:
        return Transcript(self._words(text), text)


def edits(one: Sequence[Hashable], other: Sequence[Hashable]) -> int:
    """Return the fewest substitutions, deletions and insertions that turn *one* into *other*.

    Source:
        Levenshtein, Binary codes capable of correcting deletions, insertions, and reversals,
        Soviet Physics Doklady 10 (1966). By words and divided by those of the truth it is the word
        error rate.
    """
    row = list(range(len(other) + 1))
    for at, item in enumerate(one, 1):
        corner, row[0] = row[0], at
        for to, rival in enumerate(other, 1):
            corner, row[to] = (row[to], min(row[to] + 1, row[to - 1] + 1, corner + (item != rival)))
    return row[-1]
