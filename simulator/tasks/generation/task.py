"""Generation: greedy decoding, exact match, and the token at which two stacks part."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from statistics import median
from typing import Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field

from simulator.contract import clock
from simulator.contract.text import Row
from simulator.errors import ModelError
from simulator.modalities.text.sections import Decoding
from simulator.tasks.figures import Figures
from simulator.tasks.finite import check_finite
from simulator.tasks.generation.greedy import Greedy
from simulator.tasks.score import Record, Values
from simulator.tasks.settings import CardSettings
from simulator.tasks.task import CHANGES
from simulator.tasks.text import LogitsOutput, TextFlips, TextTask, array_of
from simulator.tasks.view import Told, View, cut
from simulator.typed import Ms


class Output(LogitsOutput):
    """What a language model gives, and how long it writes."""

    tokens: Annotated[int, Field(ge=1, le=4096, description="tokens that are written at most")]
    stop: list[Annotated[int, Field(ge=0)]] = Field(description="ids that end a text; may be empty")


@dataclass(frozen=True, slots=True)
class Written:
    """What one stack wrote.

    Attributes:
        ids: of the tokens, without the one that ended the text.
        text: the same as text; None where no tokenizer is known.
        gave: how many tokens each inference gave, the one that ended the text included.
        until: nanoseconds until each of these tokens; empty where they were not measured.
        after: of each word, after how many tokens it was there; empty where that is not known.
    """

    ids: tuple[int, ...]
    text: str | None = None
    gave: tuple[int, ...] = field(default=(), compare=False)
    until: tuple[int, ...] = field(default=(), compare=False)
    after: tuple[int, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class DecodingSettings(CardSettings):
    """What the card says of the output, and how the profile writes on.

    Attributes:
        decoding: of the profile.
    """

    decoding: Decoding

    def identity(self) -> Any:
        """Return both."""
        how = self.decoding.model_dump(exclude_defaults=True)
        return {**CardSettings.identity(self), **({"decoding": how} if how else {})}


class GenerationFlips(TextFlips):
    """Texts that differ, and after how many tokens they part."""

    earliest_parting: int | None = Field(
        description="the fewest tokens after which two texts part; None where none does"
    )
    median_parting: float | None = Field(description="the median of texts that part, in tokens")
    train_first_token_ms: Ms | None = Field(
        description="median time of the inference that gives the first token, on the train side"
    )
    deploy_first_token_ms: Ms | None = Field(description="the same on the deploy side")
    train_token_ms: Ms | None = Field(
        description="median of the mean time of each later token, on the train side"
    )
    deploy_token_ms: Ms | None = Field(description="the same on the deploy side")


class GenerationView(View):
    """Texts stand side by side; a line tells after how many tokens they part."""

    metrics: ClassVar[Mapping[str, str]] = {"exact": "exact match", "words": "right words"}
    told: ClassVar[Mapping[str, str]] = {
        "texts part": "after {earliest_parting:,} tokens at the earliest, "
        "{median_parting:g} in the median"
    }
    titles = ("parts after", "train", "deploy")

    def about(self, flip: Told) -> str:
        """Return after how many tokens the texts part."""
        at = flip["deploy"]["parting"] or 0
        return f"{at} token{'' if at == 1 else 's'}"

    def said(self, flip: Told, side: str) -> str:
        """Return a text, or its ids from the parting on where there is no text."""
        text = flip[side]["text"]
        if text is None:
            at = flip["deploy"]["parting"] or 0
            text = " ".join(map(str, (flip[side]["tokens"] or [])[at:]))
        return cut(" ".join(text.split()) or "(nothing)")

    def lines(self, summary: Told) -> list[tuple[str, str]]:
        """Return the kinds of flips, where texts part, and how long tokens take."""
        flips = summary["flips"]
        found = super().lines(summary)
        times = []
        for side in ("train", "deploy"):
            first, each = flips[f"{side}_first_token_ms"], flips[f"{side}_token_ms"]
            then = "no other" if each is None else f"{each:.2f} ms for each other"
            if first is not None:
                times.append(f"{side} {first:.2f} ms, then {then}")
        if times:
            found.append(("first token after", "; ".join(times)))
        return found


class Generation(TextTask):
    """A text that is written on; its truth is the text that should follow, or None."""

    name = "generation"
    unit = "text"
    metrics = ("exact", "words")
    arrivals = "words_after"
    guess = 0.0
    answer = ("tokens",)
    goes_on = True
    missing = ("text", "tokens")
    tried_with = "simulator.tasks.text_specimen:continued"
    Output = Output
    Flips = GenerationFlips
    View = GenerationView
    columns: ClassVar[tuple[pa.Field, ...]] = (
        pa.field("label", pa.string()),
        pa.field("exact", pa.float64()),
        pa.field("words", pa.float64()),
        pa.field("words_after", pa.list_(pa.int64())),
        pa.field("text", pa.string()),
        pa.field("tokens", pa.list_(pa.int64())),
        pa.field("parting", pa.int64()),
        pa.field("first_token_ms", pa.float64()),
        pa.field("token_ms", pa.float64()),
        *CHANGES,
        *(pa.field(kind, pa.int64()) for kind in TextTask.kinds),
    )

    def settings(self, asked: Any) -> DecodingSettings:
        """Return the card's settings, and how the profile decodes."""
        return DecodingSettings(self.output, asked if isinstance(asked, Decoding) else Decoding())

    def sequel(self, settings: Any) -> Greedy:
        """Return greedy decoding.

        Raises:
            ModelError: the network takes no mask, or no padding, where it needs them.
        """
        card, output = self.network.input, self.output
        how = settings.decoding
        if (how.lookup or how.shift is not None) and card.names.mask is None:
            raise ModelError(
                "decoding.lookup, shift: tokens are hidden by a mask, and the card names none in "
                "input.names.mask; leave them out"
            )
        if how.neighbours and (card.pad is None or card.names.mask is None):
            raise ModelError(
                "decoding.neighbours: texts of several lengths are padded, for which the card "
                "needs input.pad and input.names.mask; write neighbours: 0"
            )
        return Greedy(
            output.tokens, tuple(output.stop), card.max_length, card.names.model_dump(),
            output.logits, how, card.past.carried if card.past else {}, card.pad,
        )  # fmt: skip

    def decode(self, outputs: Any, settings: Any, placement: tuple[Row, ...]) -> Written:
        """Return the most likely token of each position.

        Args:
            outputs: a mapping of (1, N, vocabulary) logits for each inference, which gave N tokens.
            settings: unused.
            placement: the request.
        """
        ids: list[int] = []
        counts = []
        for number in range(len(outputs)):
            logits = array_of(outputs, Row(number, 0, 0, placement[0].tokens), 3)
            check_finite(logits)
            counts.append(len(logits))
            drawn = outputs[number].get("ids")
            ids += (logits.argmax(-1) if drawn is None else drawn[0]).tolist()
        if not ids:
            raise ModelError("logits of one token or more expected, got none")
        kept = tuple(ids[:-1] if ids[-1] in self.output.stop else ids)
        read = placement[0].text
        if not read:
            return Written(kept, gave=tuple(counts))
        with clock.excluding():  # a stack does not ask after how many tokens a word was there
            after = _after(kept, read)
        return Written(kept, read(kept), gave=tuple(counts), after=after)

    def timed(self, prediction: Written, ns: Sequence[int]) -> Written:
        """Return the text with the time until each token, the one that ended it included."""
        until = np.cumsum(ns).repeat(prediction.gave or 1)
        return replace(prediction, until=tuple(until.tolist()))

    def until(self, prediction: Written) -> tuple[int, ...]:
        """Return the time until each token."""
        return prediction.until

    def record(self, prediction: Written, truth: str | None) -> Values:
        """Return the text, whether it is the right one, and milliseconds for a token.

        ``first_token_ms`` is the time until the first token, for which the whole text is read;
        ``token_ms`` the mean of the others. Blanks around a text do not count. ``words`` is the
        share of the right text's words that stand in their place, ``words_after`` the number of
        tokens until each of them, 0 for never.
        """
        after = _right(prediction, truth) if truth and prediction.text is not None else None
        text, until = prediction.text, prediction.until
        return {
            "label": truth,
            "exact": None if None in (truth, text) else float(self.right(prediction, str(truth))),
            "words": float(np.mean(np.array(after) > 0)) if after else None,
            "words_after": after,
            "text": text,
            "tokens": list(prediction.ids),
            "first_token_ms": until[0] / 1e6 if until else None,
            "token_ms": float(np.mean(np.diff(until))) / 1e6 if len(until) > 1 else None,
        }

    def compared(self, prediction: Written) -> tuple[int, ...]:
        """Return the tokens."""
        return prediction.ids

    def right(self, prediction: Written, truth: str) -> bool:
        """Whether it is the text that should follow; blanks around a text do not count."""
        return prediction.text is not None and prediction.text.strip() == truth.strip()

    def change(self, before: Written, after: Written, truth: str | None) -> Values:
        """Return whether the tokens differ, and ``parting``: how many are the same until then."""
        found = super().change(before, after, truth)
        apart = parting(before.ids, after.ids) if found["changed"] else None
        return {**found, "parting": apart}

    def more(self, train: Sequence[Record], deploy: Sequence[Record]) -> Figures:
        """Return after how many tokens texts part, and the times of the first and later tokens."""
        found = [record["parting"] for record in deploy if record["parting"] is not None]
        times = {
            f"{side}_{name}": _median([record[name] for record in records])
            for side, records in (("train", train), ("deploy", deploy))
            for name in ("first_token_ms", "token_ms")
        }
        return {
            "earliest_parting": min(found, default=None),
            "median_parting": _median(found),
            **times,
        }

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


def _after(ids: Sequence[int], read: Callable[[Sequence[int]], str]) -> tuple[int, ...]:
    """Of each word of a text, after how many tokens it and all words before it were there."""
    whole = read(ids).split()
    found: list[int] = []
    for count in range(1, len(ids) + 1):
        words = read(ids[:count]).split()
        while len(found) < len(whole) and words[: len(found) + 1] == whole[: len(found) + 1]:
            found.append(count)
    return tuple(found)


def _right(prediction: Written, truth: str) -> list[int]:
    """Of each word of the right text, after how many tokens it was there in its place; 0: never."""
    words = str(prediction.text).split()
    after = prediction.after or (len(prediction.ids),) * len(words)
    pairs = zip_longest(truth.split(), words[: len(truth.split())], after[: len(truth.split())])
    return [count if right == word else 0 for right, word, count in pairs]


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(median(known)) if known else None
