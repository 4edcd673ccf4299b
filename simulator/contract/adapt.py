"""Test-time adaptation: a network that changes with the samples that it answers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from simulator.contract.backend import Implementation
from simulator.contract.frame import Array


class Adapter(Implementation):
    """One network that answers batch after batch; the same batches in one order, the same bits.

    Args:
        options: the checked fields of the profile's section ``runtime.adaptation``, ``device``,
            ``threads`` and ``mode`` of its ``runtime``, and ``compute`` of its ``precision``.

    Attributes:
        runs_in: the backends of the runtimes that it computes with.
    """

    runs_in: ClassVar[tuple[str, ...]]

    @abstractmethod
    def open(
        self, source: Path, sample: Array, scores: str | None = None, probabilities: bool = False
    ) -> None:
        """Read a network; it has seen no batch yet.

        Args:
            source: an ONNX file with one input.
            sample: (N, ...) float32 inputs, at least one.
            scores: the name of the output (N, classes) whose entropy is lowered; None where the
                network is no classifier.
            probabilities: whether these are probabilities, and not logits.

        Raises:
            ModelError: it has nothing that adapts, or cannot be converted.
        """

    @abstractmethod
    def answer(self, batch: Array) -> Mapping[str, Array]:
        """Answer the next batch, and adapt to it.

        Args:
            batch: (N, ...) float32.

        Returns:
            Every output (N, ...) by its name in the file; a later call never changes them.

        Raises:
            ModelError: the batch does not fit, or what is lowered is not a number any more.
        """

    @abstractmethod
    def state(self) -> bytes:
        """Return all that :meth:`restore` needs to go on with the next batch."""

    @abstractmethod
    def restore(self, state: bytes) -> None:
        """Take back a state, after :meth:`open` with the same network."""
