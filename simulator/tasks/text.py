"""What tasks of texts share: answers that turn right or wrong, and log-likelihoods.

Log-likelihoods follow the rules of lm-evaluation-harness.

Source:
    Gao et al., A framework for few-shot language model evaluation, ``lm_eval`` 0.4.13:
    ``lm_eval/models/huggingface.py``, ``_loglikelihood_tokens``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from simulator.contract import Array
from simulator.contract.text import Row
from simulator.errors import ModelError, SampleError
from simulator.profile.section import Section
from simulator.tasks.figures import Flips
from simulator.tasks.finite import check_finite
from simulator.tasks.score import Record, Values, turned
from simulator.tasks.task import Shapes, Task
from simulator.typed import Nats

Outputs = Mapping[str, Array]
Floats = NDArray[np.float64]


class LogitsOutput(Section):
    """What a language model gives."""

    logits: str | None = Field(
        default=None, description="the output with the logits; without it the first one"
    )


class VectorOutput(Section):
    """What a model of sentences gives."""

    vectors: str | None = Field(
        default=None, description="the output with the vectors; without it the first one"
    )
    pooling: Literal["none", "mean", "first", "last"] = Field(
        description="none: the output is one vector a text; else how those of its tokens become one"
    )

    @property
    def rank(self) -> int:
        """How many dimensions the output has."""
        return 2 if self.pooling == "none" else 3


class TextFlips(Flips):
    """Answers that differ; of answers with a truth, in which direction."""

    right_to_wrong: int | None = Field(description="answers right on the train side only")
    wrong_to_right: int | None = Field(description="answers right on the deploy side only")


class ShiftFlips(TextFlips):
    """Answers that differ, and how far the log-likelihoods behind them moved."""

    mean_shift: Nats | None = Field(description="mean absolute change of a log-likelihood, nats")
    max_shift: Nats | None = Field(description="largest absolute change of one, nats")


@dataclass(frozen=True, slots=True)
class Scored:
    """How likely a model finds a continuation.

    Attributes:
        loglikelihood: the sum of the log-probabilities of its tokens, natural logarithm; 0 or less.
        greedy: whether each of its tokens is the one with the largest logit.
        tokens: how many it has; at least 1.
    """

    loglikelihood: float
    greedy: bool
    tokens: int


class TextTask(Task):
    """A task for texts: its placement is a tuple of :class:`simulator.contract.text.Row`.

    Two answers are the same where what :meth:`compared` returns is.
    """

    unit = "answer"
    several = True
    kinds: ClassVar[tuple[str, ...]] = ("right_to_wrong", "wrong_to_right")
    reads = ("logits",)
    Output: ClassVar[type[Section]] = LogitsOutput
    Flips: ClassVar[type[Flips]] = TextFlips

    @abstractmethod
    def compared(self, prediction: Any) -> Any:
        """Return the part of an answer that two stacks are compared by."""

    @abstractmethod
    def right(self, prediction: Any, truth: Any) -> bool:
        """Whether an answer is right; only where there is a truth."""

    def change(self, before: Any, after: Any, truth: Any) -> Values:
        """Return whether the answer is another one, and in which direction."""
        changed = self.compared(before) != self.compared(after)
        right = [truth is not None and self.right(one, truth) for one in (before, after)]
        kinds = turned(changed, *right) if truth is not None else {}
        return {"changed": int(changed), "units": 1, **dict.fromkeys(TextTask.kinds), **kinds}

    def check(self, shapes: Shapes) -> None:
        """Compare the logits with the card's vocabulary.

        Raises:
            ModelError: they are no (batch, tokens, vocabulary), or of another vocabulary.
        """
        (name, shape), *_ = shapes.items()
        if len(shape) != 3:
            raise ModelError(
                f"{self.name} expects logits (batch, tokens, vocabulary); output {name!r} is "
                f"{tuple(shape)}"
            )
        known = getattr(self.network.input, "vocabulary", None)
        found = shape[-1]
        if known is not None and found is not None and found < known:
            raise ModelError(
                f"output {name!r} has {found} logits, and the card's vocabulary {known} ids; "
                "the tokenizer is of another model"
            )


def array_of(outputs: Any, row: Row, rank: int, name: str | None = None) -> Array:
    """Return a request's part of the outputs, without the axis of the batch.

    Args:
        outputs: a mapping, or a tuple of mappings, one for each inference.
        row: where the request is.
        rank: of the output, the batch included.
        name: of the output; None: the first one.

    Raises:
        ModelError: it is not there, or not a tensor of floats of this rank.
    """
    parts: tuple[Outputs, ...] = outputs if isinstance(outputs, tuple) else (outputs,)
    if row.inference >= len(parts):
        raise ModelError(f"{row.inference + 1} inferences expected, got {len(parts)}")
    part = parts[row.inference]
    if name is not None and name not in part:
        raise ModelError(f"there is no output {name!r}, only {', '.join(part)}")
    values = part[name] if name is not None else next(iter(part.values()))
    if values.ndim != rank or values.dtype.kind not in "fiu" or row.row >= values.shape[0]:
        raise ModelError(
            f"an output of rank {rank} with {row.row + 1} rows or more expected, got "
            f"{values.dtype} {values.shape}"
        )
    kept: Array = values[row.row]
    return kept


def vector_of(outputs: Any, row: Row, asked: VectorOutput) -> Floats:
    """Return the vector of a text.

    Raises:
        SampleError: it has no token.
        ModelError: the output is not what the card says.
        NotFinite: the vector has NaN or an infinity.
    """
    values = array_of(outputs, row, asked.rank, asked.vectors)
    if asked.pooling != "none":
        last = row.first + len(row.tokens.ids)
        values = values[row.first : last]
        if not len(values):
            raise SampleError("a text has no token")
        if len(values) < last - row.first:
            raise ModelError(f"states of {last} tokens expected, got {len(values) + row.first}")
    found: Floats = values.astype(np.float64)
    check_finite(found)
    if asked.pooling == "mean":
        return np.asarray(found.mean(0))
    picked: Floats = {"none": found, "first": found[0], "last": found[-1]}[asked.pooling]
    return picked


def scored(logits: Array, row: Row) -> Scored:
    """Return the log-likelihood of a request's continuation; sums are in float64.

    Args:
        logits: (tokens, vocabulary), of one row of the batch.
        row: where the request is in it.

    Raises:
        SampleError: the continuation has no token, or nothing stands before it.
        ModelError: an id is not in the vocabulary, or the output is too short.
        NotFinite: one of the logits that are read is NaN or an infinity.
    """
    wanted = np.array(row.tokens.scored, np.int64)
    values = predicting(logits, row)
    if wanted.max() >= values.shape[-1] or wanted.min() < 0:
        raise ModelError(
            f"the id {wanted.max()} is not one of {values.shape[-1]} logits; the tokenizer is of "
            "another model"
        )
    every = np.arange(wanted.size)
    found = float(np.sum(values[every, wanted] - log_sum_exp(values)))
    return Scored(min(found, 0.0), bool((values.argmax(-1) == wanted).all()), wanted.size)


def predicting(logits: Array, row: Row) -> Floats:
    """Return (scored tokens, vocabulary) float64: the logits that predict the continuation.

    Raises:
        SampleError: the continuation has no token, or nothing stands before it.
        ModelError: the output is too short.
        NotFinite: one of them is NaN or an infinity.
    """
    place = row.predicts
    if place.start >= place.stop:
        raise SampleError("the continuation has no token")
    if place.start < row.first:
        raise SampleError("no token stands before the continuation, so nothing predicts its first")
    if place.stop > logits.shape[0]:
        raise ModelError(f"logits for {place.stop} tokens expected, got {logits.shape[0]}")
    values: Floats = logits[place].astype(np.float64)
    check_finite(values)
    return values


def log_sum_exp(values: Floats) -> Floats:
    """Return log(sum(exp(values))) over the last axis; the maximum is taken out first."""
    top = values.max(-1, keepdims=True)
    with np.errstate(over="ignore"):
        summed = np.exp(values - top).sum(-1)
    total: Floats = top[..., 0] + np.log(summed)
    return total


def shifts(train: Sequence[Record], deploy: Sequence[Record]) -> dict[str, float | None]:
    """Return how far log-likelihoods moved from one stack to the other.

    Args:
        train: records with ``loglikelihoods``.
        deploy: those of the same samples.

    Returns:
        ``mean_shift`` and ``max_shift``, absolute, over all requests; None where there is none.
    """
    moved = [
        abs(b - a)
        for one, other in zip(train, deploy, strict=True)
        for a, b in zip(one["loglikelihoods"] or (), other["loglikelihoods"] or (), strict=False)
    ]
    if not moved:
        return {"mean_shift": None, "max_shift": None}
    return {"mean_shift": float(np.mean(moved)), "max_shift": float(np.max(moved))}


def power(mean: float) -> float | None:
    """Return the perplexity of a mean negative log-likelihood; None where it is above 1e300."""
    return exp(mean) if mean < 690 else None
