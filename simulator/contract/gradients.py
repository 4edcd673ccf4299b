"""Gradients: how a classifier's loss changes with its input."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
from numpy.typing import NDArray

from simulator.contract.backend import Options

F32 = NDArray[np.float32]
LOGITS, PROBABILITIES = "logits", "probabilities"


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
    """A classifier's model file, opened to compute gradients of its loss.

    Its methods may be called from several threads at once.

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
    def gradient(self, values: F32, truth: int, kind: str) -> Gradient:
        """Return the cross-entropy of one sample and its derivative.

        Args:
            values: float32, one sample with its batch axis, in the layout of the network.
            truth: the index of the right class among the scores.
            kind: ``logits`` or ``probabilities``: what the first output is.

        Raises:
            ValueError: *truth* is none of the model's classes, or *kind* is unknown.
        """
        if kind not in (LOGITS, PROBABILITIES):
            raise ValueError(f"{LOGITS} or {PROBABILITIES} expected, got {kind!r}")
        scores, loss, gradient = self._gradient(np.ascontiguousarray(values), truth, kind)
        return Gradient(scores.reshape(-1), loss, gradient.reshape(values.shape))

    @final
    def scores(self, values: F32) -> F32:
        """Return the model's first output for one sample as (C,) float32."""
        return self._scores(np.ascontiguousarray(values)).reshape(-1)

    @abstractmethod
    def _open(self, artifact: Path) -> None: ...

    @abstractmethod
    def _gradient(self, values: F32, truth: int, kind: str) -> tuple[F32, float, F32]: ...

    @abstractmethod
    def _scores(self, values: F32) -> F32: ...
