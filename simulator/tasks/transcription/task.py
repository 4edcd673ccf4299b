"""Transcription: the words that were said; word error rate, and words that two stacks differ in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa

from simulator.contract import Array
from simulator.errors import ModelError
from simulator.profile.section import Section
from simulator.statistics.bootstrap import Ratio
from simulator.tasks.edits import edits
from simulator.tasks.score import Record, Score
from simulator.tasks.task import CHANGES, Network, Shapes, Task
from simulator.tasks.transcription.answer import Transcript
from simulator.tasks.transcription.view import TranscriptionView
from simulator.tasks.transcription.vocabulary import vocabulary

if TYPE_CHECKING:
    from simulator.tasks.specimen import Specimen


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

    @classmethod
    def specimens(cls) -> Mapping[str, Specimen]:
        """Return a vocabulary of single letters."""
        from simulator.tasks.transcription.specimen import letters

        return {"letters": letters(cls)}

    def outputs(self) -> tuple[str, ...]:
        """Return the output that the card names."""
        return (self.output.ids,) if self.output.ids else ()

    def check(self, shapes: Shapes) -> None:
        """Expect a row of ids."""
        name, shape = next(iter(shapes.items()))
        if len(shape) != 2 or shape[0] not in (1, None):
            raise ModelError(f"output {name!r}: ids (1, N) expected, got {tuple(shape)}")

    def decode(self, outputs: Mapping[str, Array], settings: Any, placement: Any) -> Transcript:
        """Turn ids into text, and text into words."""
        name = self.output.ids or next(iter(outputs))
        if name not in outputs:
            raise ModelError(f"the model gave no output {name!r}")
        ids = outputs[name]
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

    def record(self, prediction: Transcript, truth: tuple[str, ...] | None) -> dict[str, Any]:
        """Return the text and its errors; of a truth without words there is no share."""
        known = truth is not None
        errors = edits(truth, prediction.words) if truth is not None else None
        return {
            "text": prediction.text,
            "errors": errors,
            "words": len(truth) if truth is not None else None,
            "exact": float(errors == 0) if known and (truth or errors) else None,
        }

    def chance(self, shapes: Shapes, records: Sequence[Record]) -> float:
        """Return 0: nobody guesses words."""
        return 0.0

    def flipped(self, before: Record, after: Record) -> bool:
        """Whether a word differs, as words are compared."""
        return self._words(before["text"]) != self._words(after["text"])

    def change(self, before: Transcript, after: Transcript, truth: Any) -> dict[str, Any]:
        """Count the words that differ, and whether any does."""
        changed = edits(before.words, after.words)
        words = max(len(before.words), len(after.words))
        return {"changed": changed, "units": words, "transcripts": int(changed > 0)}

    def late(self, record: Record) -> dict[str, Any]:
        """Return the record as if nothing had been said: every word is missed."""
        if record["words"] is None:
            return {**record, "text": ""}
        exact = None if record["exact"] is None else 0.0
        return {**record, "text": "", "errors": record["words"], "exact": exact}

    def score(self, records: Sequence[Record], truths: Sequence[Any]) -> Score:
        """Measure the word accuracy over all samples, and the share of exact transcripts."""
        known = [record for record in records if record["words"] is not None]
        words = np.array([record["words"] or 0 for record in records], np.float64)
        right = words - np.array([record["errors"] or 0 for record in records], np.float64)
        judged = np.array([record["exact"] is not None for record in records], np.float64)
        exact = np.array([record["exact"] or 0.0 for record in records], np.float64)
        metrics = {
            "word_accuracy": float(right.sum() / words.sum()) if words.any() else None,
            "exact": float(exact.sum() / judged.sum()) if judged.any() else None,
        }
        figure = Ratio(right, words) if words.any() else None
        others = {"exact": Ratio(exact, judged)} if judged.any() else {}
        return Score(records, len(known), metrics, figure, others)

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
