"""Gradients: how a classifier's scores, and its loss, change with its input."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
from numpy.typing import NDArray

from simulator.contract.backend import Options

F32 = NDArray[np.float32]
LOGITS, PROBABILITIES = "logits", "probabilities"
Pull = Callable[[F32], F32]
"""From the derivative of any number by the scores, (C,), to its derivative by the input."""


@dataclass(frozen=True, slots=True, eq=False)
class Gradient:
    """A classifier's answer to one input, and where its loss grows.

    Attributes:
        scores: (C,) float32, the model's first output.
        loss: the cross-entropy in nats; infinite where a probability is 0.
        gradient: the derivative of the loss, float32 in the shape of the input.
    """

    scores: F32
    loss: float
    gradient: F32


class Differentiable(ABC):
    """A classifier's model file, opened to compute gradients.

    Its methods may be called from several threads at once, and give the same bits whatever
    number of threads another runtime of the process asks for.

    Args:
        artifact: the model file.
        options: ``format`` of the file: ``onnx`` or ``torch_export``.

    Attributes:
        rounds: whether the model rounds its activations, so that its scores move by whole steps.

    Raises:
        ModelError: the file has something that cannot be differentiated; the message says what.
    """

    rounds = False

    def __init__(self, artifact: Path, options: Options) -> None:
        self.artifact, self.options = artifact, options
        self._open(artifact)

    @final
    def at(self, values: F32) -> tuple[F32, Pull]:
        """Return the first output for one sample as (C,) float32, and the way back to its input.

        Args:
            values: float32, one sample with its batch axis, in the layout of the network.

        Raises:
            ModelError: the scores have no gradient to the input.
        """
        scores, back = self._at(np.ascontiguousarray(values))

        def pull(cotangent: F32) -> F32:
            found = back(np.ascontiguousarray(cotangent, np.float32).reshape(scores.shape))
            return found.reshape(values.shape)

        return scores.reshape(-1), pull

    @final
    def differentiable_scores(self, values: F32) -> F32:
        """Return the first output for one sample as :meth:`at` does, without the way back."""
        return self.at(values)[0]

    @final
    def pulled(self, values: F32, cotangent: F32) -> F32:
        """Return the derivative by one sample, from that by its scores; see :data:`Pull`."""
        return self.at(values)[1](cotangent)

    @final
    def gradient(self, values: F32, truth: int, kind: str) -> Gradient:
        """Return the cross-entropy of one sample and its derivative.

        Args:
            values: as for :meth:`at`.
            truth: the index of the right class among the scores.
            kind: ``logits`` or ``probabilities``: what the first output is.

        Raises:
            ValueError: *truth* is none of the model's classes, or *kind* is unknown.
        """
        if kind not in (LOGITS, PROBABILITIES):
            raise ValueError(f"{LOGITS} or {PROBABILITIES} expected, got {kind!r}")
        scores, pull = self.at(values)
        if not 0 <= truth < scores.size:
            raise ValueError(f"the label is class {truth}, and the model knows {scores.size}")
        loss, cotangent = _cross_entropy(scores, truth, kind)
        return Gradient(scores, loss, pull(cotangent))

    @final
    def scores(self, values: F32) -> F32:
        """Return the model's first output for one sample as (C,) float32."""
        return self._scores(np.ascontiguousarray(values)).reshape(-1)

    def close(self) -> None:  # noqa: B027 - most hold nothing but memory of this process
        """Free what it holds; closing twice is allowed."""

    @abstractmethod
    def _open(self, artifact: Path) -> None: ...

    @abstractmethod
    def _at(self, values: F32) -> tuple[F32, Pull]:
        """Return the scores in any shape, and a function from and to arrays of these shapes."""

    @abstractmethod
    def _scores(self, values: F32) -> F32: ...


def _cross_entropy(scores: F32, truth: int, kind: str) -> tuple[float, F32]:
    """Return the loss, and its derivative by the scores."""
    wide = scores.astype(np.float64)
    found = np.zeros_like(wide)
    if kind == PROBABILITIES:
        with np.errstate(divide="ignore", invalid="ignore"):
            found[truth] = -1 / wide[truth]
            return float(-np.log(wide[truth])), found.astype(np.float32)
    powers = np.exp(wide - wide.max())
    found[:] = powers / powers.sum()
    found[truth] -= 1
    loss = np.log(powers.sum()) - (wide[truth] - wide.max())
    return float(loss), found.astype(np.float32)
