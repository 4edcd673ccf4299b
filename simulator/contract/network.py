"""Networks that a program in Python has in memory."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path

from simulator.contract.backend import Implementation
from simulator.contract.frame import Array


class NetworkWriter(Implementation):
    """Writes a network of a library as an ONNX file. Its library need not be installed."""

    @abstractmethod
    def takes(self, network: object) -> bool:
        """Whether this is a network of its library; nothing is imported for it."""

    @abstractmethod
    def write(self, network: object, example: Array, target: Path) -> None:
        """Write a network as it answers, not as it learns; the network is left as it is.

        Args:
            network: one that it takes.
            example: of its one input, with the batch of 1.
            target: the ONNX file.

        Raises:
            ModelError: it does not take the example, cannot be written, or the file answers
                otherwise.
        """
