"""Fine-tuning: a network learns, as it is or with rounded weights and activations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from simulator.contract.backend import Implementation
from simulator.contract.frame import Array


class TrainingObjective(ABC):
    """What a network learns where that is not one class for each sample; its task makes it."""

    @abstractmethod
    def target(self, truth: Any, placement: Any) -> Any:
        """Return what :meth:`loss` needs of one sample.

        Args:
            truth: what people have annotated; not None.
            placement: how the sample lies in the network's input.
        """

    @abstractmethod
    def loss(
        self, outputs: Mapping[str, Array], targets: Sequence[Any]
    ) -> tuple[float, dict[str, Array]]:
        """Return the mean loss of a batch, and its derivative by each output that it reads.

        Args:
            outputs: (batch, ...) float32 by name: all of the network's.
            targets: one for each sample of the batch.

        Returns:
            The loss, and float32 derivatives in the shapes of the outputs.

        Raises:
            ModelError: an output is not what the card promises.
        """


class Tuner(Implementation):
    """Fine-tunes one network; the same inputs, options and order give the same weights.

    Args:
        options: those of its offer, and ``epochs``, ``learning_rate``, ``batch``, ``seed``,
            ``threads``, and ``lesson`` where it learns by one: see :class:`TrainingObjective`.
    """

    @abstractmethod
    def open(self, source: Path, calibration: Array) -> None:
        """Read a network and find the steps to start from.

        Args:
            source: an ONNX file with one input, and without a lesson one output (N, classes); or
                what else the offer takes.
            calibration: (N, ...) float32 inputs, without the axis of batches of the network.

        Raises:
            ModelError: the network cannot be differentiated, or answers otherwise then.
        """

    @abstractmethod
    def epoch(self, number: int, inputs: Array, labels: Sequence[Any], order: Array) -> float:
        """Learn from every example once; return the mean loss, which may be NaN.

        Args:
            number: from 0.
            inputs: (N, ...) float32.
            labels: (N,) int64, indices of the outputs; with a lesson N targets.
            order: the indices of the examples to learn from, in this order.

        Raises:
            ModelError: the network cannot learn from so few.
        """

    @abstractmethod
    def answers(self, inputs: Array) -> Array:
        """Return the network's first output of every input, float32; (N, classes) of classes."""

    @abstractmethod
    def outputs(self, inputs: Array) -> dict[str, Array]:
        """Return all outputs by name, float32, of (N, ...) inputs."""

    @abstractmethod
    def state(self) -> bytes:
        """Return all that :meth:`restore` needs to go on with the next epoch."""

    @abstractmethod
    def restore(self, state: bytes) -> None:
        """Take back a state, after :meth:`open` with the same arguments."""

    @abstractmethod
    def write(self, target: Path) -> None:
        """Write the network as an ONNX file; what rounds, rounds in its nodes."""
