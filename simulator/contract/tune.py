"""Fine-tuning: a network learns, as it is or with rounded weights and activations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

from simulator.contract.backend import Options
from simulator.contract.frame import Array


class Tuner(ABC):
    """Fine-tunes one network; the same inputs, options and order give the same weights.

    Args:
        options: those of its offer, and ``epochs``, ``learning_rate``, ``batch``, ``seed`` and
            ``threads``.
    """

    def __init__(self, options: Options) -> None:
        self.options = options

    @abstractmethod
    def open(self, source: Path, calibration: Array) -> None:
        """Read a network and find the steps to start from.

        Args:
            source: an ONNX file with one input and one output (N, classes); or what else the offer
                takes.
            calibration: (N, ...) float32 inputs, without the axis of batches of the network.

        Raises:
            ModelError: the network cannot be differentiated, or answers otherwise then.
        """

    @abstractmethod
    def epoch(self, number: int, inputs: Array, labels: Array, order: Array) -> float:
        """Learn from every example once; return the mean loss, which may be NaN.

        Args:
            number: from 0.
            inputs: (N, ...) float32.
            labels: (N,) int64, indices of the outputs.
            order: the indices of the examples to learn from, in this order.

        Raises:
            ModelError: the network cannot learn from so few.
        """

    @abstractmethod
    def answers(self, inputs: Array) -> Array:
        """Return the network's outputs (N, classes), float32."""

    @abstractmethod
    def state(self) -> bytes:
        """Return all that :meth:`restore` needs to go on with the next epoch."""

    @abstractmethod
    def restore(self, state: bytes) -> None:
        """Take back a state, after :meth:`open` with the same arguments."""

    @abstractmethod
    def write(self, target: Path) -> None:
        """Write the network as an ONNX file; what rounds, rounds in its nodes."""
