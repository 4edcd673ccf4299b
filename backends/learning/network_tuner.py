"""A tuner whose work is done by its network: what the two that learn in PyTorch share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simulator.contract import Array, Tuner

if TYPE_CHECKING:
    from backends.fake_quant.network import Network
    from backends.learning.module import ModuleNetwork
    from backends.learning.network import OnnxNetwork


class NetworkTuner(Tuner):
    """Passes everything but :meth:`open` on to the network that it opened."""

    _network: Network | OnnxNetwork | ModuleNetwork

    def epoch(self, number: int, inputs: Array, labels: Sequence[Any], order: Array) -> float:
        """Learn from every example once."""
        return self._network.epoch(number, inputs, labels, order)

    def answers(self, inputs: Array) -> Array:
        """Return the network's first output."""
        return self._network.answers(inputs)

    def outputs(self, inputs: Array) -> dict[str, Array]:
        """Return all its outputs by name."""
        return self._network.outputs(inputs)

    def state(self) -> bytes:
        """Return parameters, statistics and momentum."""
        return self._network.state()

    def restore(self, state: bytes) -> None:
        """Take them back."""
        self._network.restore(state)

    def write(self, target: Path) -> None:
        """Write the ONNX file."""
        self._network.write(target)
