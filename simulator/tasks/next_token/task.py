"""Next token: KL divergence and equal most likely tokens over the chunks of a text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field

from simulator.contract import Array
from simulator.contract.text import Row
from simulator.data.address import Root
from simulator.data.folder import IMAGES, Dataset, Files
from simulator.errors import ModelError, SampleError
from simulator.statistics.bootstrap import Resamples
from simulator.tasks.figures import Comparison, Figures
from simulator.tasks.finite import check_finite
from simulator.tasks.next_token.chunks import cut
from simulator.tasks.next_token.divergence import (
    PERCENTILES,
    Floats,
    divergence,
    figures,
    intervals,
)
from simulator.tasks.next_token.view import NextTokenFlips, NextTokenView
from simulator.tasks.score import Record, Score, Values, each
from simulator.tasks.task import CHANGES
from simulator.tasks.text import LogitsOutput, TextTask, array_of, log_sum_exp


class Output(LogitsOutput):
    """What a language model gives, and the chunks in which it reads a text."""

    context: Annotated[int, Field(ge=4, le=2**20)] = Field(
        default=512, description="tokens of a chunk of a text; the second half of each is scored"
    )


@dataclass(frozen=True, slots=True)
class Distribution:
    """What one stack expects at each scored token of a chunk.

    Attributes:
        ids: the tokens that the text has there.
        logits: (tokens, vocabulary), as the runtime gave them.
        log_sum: (tokens,) log of the sum of their exponentials.
        text: turns ids into text; None where no tokenizer is known.
    """

    ids: tuple[int, ...]
    logits: Array = field(repr=False)
    log_sum: Floats = field(repr=False)
    text: Callable[[Sequence[int]], str] | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, ids: Sequence[int], logits: Array, text: Any = None) -> Distribution:
        """Make one of the logits at its tokens, (tokens, vocabulary)."""
        rows = [log_sum_exp(row.astype(np.float64)[None]) for row in logits]
        return cls(tuple(ids), logits, np.concatenate(rows), text)

    @property
    def best(self) -> Array:
        """The most likely token at each place."""
        return np.asarray(self.logits.argmax(-1))

    @property
    def nll(self) -> Floats:
        """The negative log-likelihood of each of the text's own tokens, nats."""
        own = self.logits[np.arange(len(self.ids)), list(self.ids)]
        return np.asarray(self.log_sum - own, np.float64)

    def word(self, token: int) -> str:
        """Return a token as text, or its id."""
        return repr(self.text([token]))[1:-1] if self.text else str(token)


class NextToken(TextTask):
    """The next token at each place of a text's chunks; its truth is their ids, or None.

    A chunk is a sample, a token a unit.
    """

    name = "next_token"
    unit = "most likely token"
    in_parts = True
    metrics = ("acc",)
    kinds = (*TextTask.kinds, "wrong_to_wrong")
    guess = 0.0  # one token of a whole vocabulary
    answer = ("best",)
    missing = ("best",)
    shown = ()
    shown_once = ("changed", "units", *kinds, "train_word", "deploy_word", "farthest")
    tried_with = "simulator.tasks.text_specimen:chunk"
    Output = Output
    Flips = NextTokenFlips
    View = NextTokenView
    columns: ClassVar[tuple[pa.Field, ...]] = (
        pa.field("acc", pa.float64()),
        pa.field("best", pa.list_(pa.int64())),
        pa.field("nll", pa.list_(pa.float64())),
        pa.field("kld", pa.list_(pa.float64())),
        *(pa.field(f"{side}_word", pa.string()) for side in ("train", "deploy")),
        pa.field("farthest", pa.float64()),
        *CHANGES,
        *(pa.field(kind, pa.int64()) for kind in kinds),
    )

    def vocabulary(self) -> dict[str, Sequence[str]]:
        """Add the names of percentiles."""
        return super().vocabulary() | {"percentile": tuple(PERCENTILES)}

    @property
    def fed(self) -> int:
        """The tokens of a chunk but for the last, behind which nothing is expected."""
        return int(self.output.context) - 1

    def load(self, path: Root, files: Files = IMAGES) -> Dataset:
        """Open samples, of which texts are cut into chunks; see :func:`cut`."""
        return cut(super().load(path, files), self.network.input, self.output.context)

    def decode(self, outputs: Any, settings: Any, placement: tuple[Row, ...]) -> Distribution:
        """Keep the logits at the scored tokens.

        Raises:
            SampleError: no token is scored, or nothing stands before the first.
            ModelError: the sample has several requests, or the output does not fit them.
            NotFinite: a logit is NaN or an infinity.
        """
        if len(placement) != 1:
            raise ModelError(f"{self.name} takes one request a sample, got {len(placement)}")
        (row,) = placement
        logits, place, ids = array_of(outputs, row, 3), row.predicts, row.tokens.scored
        if not ids or place.start < row.first:
            raise SampleError("no token is scored that another one stands before")
        if place.stop > logits.shape[0] or max(ids) >= logits.shape[1]:
            raise ModelError(
                f"logits of {place.stop} tokens and {max(ids) + 1} ids expected, got "
                f"{logits.shape[0]} and {logits.shape[1]}"
            )
        kept = logits[place].copy()  # the rest can go
        check_finite(kept)
        return Distribution.of(ids, kept, row.text)

    def compared(self, prediction: Distribution) -> list[int]:
        """Return the most likely tokens."""
        found: list[int] = prediction.best.tolist()
        return found

    def right(self, prediction: Distribution, truth: Sequence[int]) -> bool:
        """Whether every token of the text is the most likely one."""
        return self.compared(prediction) == list(truth)

    def record(self, prediction: Distribution, truth: Sequence[int] | None) -> Values:
        """Return the most likely tokens, and how likely the text's own are."""
        best = prediction.best
        if truth is not None and len(truth) != len(best):
            raise SampleError(f"{len(best)} tokens are scored, and the label has {len(truth)}")
        return {
            "acc": None if truth is None else float((best == np.array(truth)).mean()),
            "best": best.tolist(),
            "nll": prediction.nll.tolist(),
        }

    def change(self, before: Distribution, after: Distribution, truth: Any) -> Values:
        """Return the KL divergence at each token, and at how many the most likely one is another.

        Raises:
            SampleError: the stacks were scored on other tokens.
            ModelError: their vocabularies are not of one size.
        """
        if before.ids != after.ids:
            raise SampleError("the stacks are scored on other tokens, which have no KL divergence")
        if before.logits.shape != after.logits.shape:
            raise ModelError(
                f"logits of {after.logits.shape[1]:,} ids, and {before.logits.shape[1]:,} of the "
                "training stack: distributions over two vocabularies have no KL divergence"
            )
        kld = divergence(before.logits, before.log_sum, after.logits, after.log_sum)
        one, two = before.best, after.best
        changed = one != two
        at = int(np.where(changed, kld, -1.0).argmax()) if changed.any() else None
        kinds: dict[str, int | None] = dict.fromkeys(self.kinds)
        if truth is not None:
            lost, won = changed & (one == np.array(truth)), changed & (two == np.array(truth))
            kinds = {"right_to_wrong": int(lost.sum()), "wrong_to_right": int(won.sum())}
            kinds["wrong_to_wrong"] = int((changed & ~lost & ~won).sum())
        return {
            "kld": kld.tolist(),
            "train_word": None if at is None else before.word(int(one[at])),
            "deploy_word": None if at is None else after.word(int(two[at])),
            "farthest": None if at is None else float(kld[at]),
            "changed": int(changed.sum()),
            "units": len(kld),
            **kinds,
        }

    def compare(self, train: Score, deploy: Score, draws: Resamples) -> Comparison:
        """Compare two stacks, and add the intervals; see :meth:`Task.compare`."""
        found = super().compare(train, deploy, draws)
        base, other = _sums(train.records, "nll"), _sums(deploy.records, "nll")
        kld, units = _sums(deploy.records, "kld"), np.array([*each(deploy.records, "units")], float)
        found["flips"] |= intervals(base, other, kld, units, draws)
        return found

    def more(self, train: Sequence[Record], deploy: Sequence[Record]) -> Figures:
        """Return what llama.cpp's ``perplexity --kl-divergence`` tells."""
        same = sum(each(deploy, "units")) - sum(each(deploy, "changed"))
        parts = _tokens(train, "nll"), _tokens(deploy, "nll"), _tokens(deploy, "kld")
        return figures(*parts, same)

    def severity(self, train: Record, deploy: Record) -> float:
        """Return the mean KL divergence of the chunk."""
        return float(np.mean(deploy["kld"]))

    def examples(self) -> list[tuple[Any, Any]]:
        """Return two texts of two tokens, each expected without doubt."""
        found = []
        for ids in ([0, 1], [2, 0]):
            logits = np.zeros((2, 3), np.float32)
            logits[range(2), ids] = 60.0
            found.append((ids, Distribution.of(ids, logits)))
        return found


def _tokens(records: Sequence[Record], name: str) -> Floats:
    """One column of all chunks, one value a token."""
    return np.concatenate([np.asarray(values, np.float64) for values in each(records, name)])


def _sums(records: Sequence[Record], name: str) -> Floats:
    """The sum of a column over the tokens of each chunk."""
    return np.array([np.sum(values) for values in each(records, name)], np.float64)
