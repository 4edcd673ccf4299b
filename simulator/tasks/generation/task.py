"""Generation: greedy decoding, exact match, and the token at which two stacks part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field

from simulator.contract.text import Row
from simulator.errors import ModelError
from simulator.statistics.bootstrap import Resamples
from simulator.tasks.finite import check_finite
from simulator.tasks.generation.answer import Written
from simulator.tasks.generation.figures import GenerationFlips
from simulator.tasks.generation.greedy import Greedy
from simulator.tasks.generation.view import GenerationView
from simulator.tasks.score import Record, Score
from simulator.tasks.task import CHANGES, Shapes
from simulator.tasks.text import LogitsOutput, TextTask, array_of

if TYPE_CHECKING:
    from simulator.tasks.specimen import Specimen


class Output(LogitsOutput):
    """What a language model gives, and how long it writes."""

    tokens: Annotated[int, Field(ge=1, le=4096, description="tokens that are written at most")]
    stop: list[Annotated[int, Field(ge=0)]] = Field(description="ids that end a text; may be empty")


class Generation(TextTask):
    """A text that is written on; its truth is the text that should follow, or None."""

    name = "generation"
    unit = "text"
    metrics = ("exact",)
    kinds = ("right_to_wrong", "wrong_to_right")
    Output = Output
    Flips = GenerationFlips
    View = GenerationView
    columns: ClassVar[tuple[pa.Field, ...]] = (
        pa.field("label", pa.string()),
        pa.field("exact", pa.float64()),
        pa.field("text", pa.string()),
        pa.field("tokens", pa.list_(pa.int64())),
        pa.field("parting", pa.int64()),
        pa.field("first_token_ms", pa.float64()),
        pa.field("token_ms", pa.float64()),
        *CHANGES,
        *(pa.field(kind, pa.int64()) for kind in kinds),
    )

    @classmethod
    def specimens(cls) -> Mapping[str, Specimen]:
        """Return a text of three tokens."""
        from simulator.tasks.text_specimen import continued

        return {"continued": continued(cls)}

    def sequel(self, settings: Any) -> Greedy:
        """Return greedy decoding."""
        card = self.network.input
        names = card.names.model_dump()
        stop = tuple(self.output.stop)
        return Greedy(self.output.tokens, stop, card.max_length, names, self.output.logits)

    def decode(self, outputs: Any, settings: Any, placement: tuple[Row, ...]) -> Written:
        """Return the most likely token of each inference.

        Args:
            outputs: a mapping of (1, 1, vocabulary) logits for each token.
            settings: unused.
            placement: the request.
        """
        ids = []
        for number in range(len(outputs)):
            row = Row(number, 0, 0, placement[0].tokens)
            logits = array_of(outputs, row, 3)
            if logits.shape[0] != 1:
                raise ModelError(f"logits of one token expected, got {logits.shape[0]}")
            check_finite(logits)
            ids.append(int(logits[0].argmax()))
        kept = tuple(ids[:-1] if ids[-1] in self.output.stop else ids)
        read = placement[0].text
        return Written(kept, read(kept) if read else None)

    def timed(self, prediction: Written, ns: Sequence[int]) -> Written:
        """Return the text with the time of each token."""
        return replace(prediction, ns=tuple(ns))

    def record(self, prediction: Written, truth: str | None) -> dict[str, Any]:
        """Return the text, whether it is the right one, and milliseconds for a token.

        ``first_token_ms`` is the time of the first inference, which reads the whole text;
        ``token_ms`` the mean of the others. Blanks around a text do not count.
        """
        text, ns = prediction.text, prediction.ns
        known = truth is not None and text is not None
        return {
            "label": truth,
            "exact": float(str(text).strip() == str(truth).strip()) if known else None,
            "text": text,
            "tokens": list(prediction.ids),
            "first_token_ms": ns[0] / 1e6 if ns else None,
            "token_ms": float(np.mean(ns[1:])) / 1e6 if len(ns) > 1 else None,
        }

    def chance(self, shapes: Shapes, records: Sequence[Record]) -> float:
        """Return 0: nobody guesses a text."""
        return 0.0

    @property
    def answer(self) -> tuple[str, ...]:
        """What it wrote."""
        return ("tokens",)

    def change(self, before: Written, after: Written, truth: str | None) -> dict[str, Any]:
        """Return whether the tokens differ, and ``parting``: how many are the same until then."""
        changed = before.ids != after.ids
        right = [truth is not None and _is(one, truth) for one in (before, after)]
        known = truth is not None
        return {
            "changed": int(changed),
            "units": 1,
            "parting": parting(before.ids, after.ids) if changed else None,
            "right_to_wrong": int(changed and right[0] and not right[1]) if known else None,
            "wrong_to_right": int(changed and right[1] and not right[0]) if known else None,
        }

    def late(self, record: Record) -> dict[str, Any]:
        """Return the record without a text, which is wrong where there is a label."""
        return {**super().late(record), "text": None, "tokens": None}

    def more(self, records: Sequence[Record]) -> dict[str, Any]:
        """Return after how many tokens texts part."""
        found = [record["parting"] for record in records if record["parting"] is not None]
        return {
            "earliest_parting": min(found, default=None),
            "median_parting": float(median(found)) if found else None,
        }

    def compare(self, train: Score, deploy: Score, draws: Resamples) -> dict[str, Any]:
        """Compare two stacks; flips have the times of the first token and of a later one."""
        found = super().compare(train, deploy, draws)
        times = {
            f"{side}_{name}": _median([record[name] for record in score.records])
            for side, score in (("train", train), ("deploy", deploy))
            for name in ("first_token_ms", "token_ms")
        }
        return {**found, "flips": {**found["flips"], **times}}

    def severity(self, train: Record, deploy: Record) -> float:
        """Return how early the texts part: 1 at the first token, and less later."""
        return 1 / (1 + (deploy["parting"] or 0))

    def examples(self) -> list[tuple[Any, Any]]:
        """Return three texts, written as they should be."""
        return [("a b", Written((1, 2), "a b")), ("", Written((), "")), ("c", Written((3,), " c"))]


def parting(one: Sequence[int], other: Sequence[int]) -> int:
    """Return how many tokens two texts have in common before they part."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(median(known)) if known else None


def _is(prediction: Written, truth: str) -> bool:
    return prediction.text is not None and prediction.text.strip() == truth.strip()
