"""An ONNX file that learns as it is, in FP32."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from backends.fake_quant.layers import Layer, layers
from backends.learning.learner import DECAY, OnnxLearner, laid, layer_of, weights_of
from backends.stored_weights.nodes import drop_unused
from simulator.contract import Array, ModelError, Options

if TYPE_CHECKING:
    import onnx

BATCHES = torch.nn.modules.batchnorm._BatchNorm
_OF_NORMALIZATION = ("weight", "bias", "running_mean", "running_var")


@dataclass(frozen=True, slots=True)
class _Learned:
    """A node and its module; a normalization has no layer."""

    node: onnx.NodeProto
    module: Any
    layer: Layer | None = None


class OnnxNetwork(OnnxLearner):
    """Convolutions, linear layers and normalizations of batches learn; all else is as in the file.

    Args:
        source: the ONNX file.
        calibration: (N, ...) float32.
        options: of the tuner.

    Raises:
        ModelError: it cannot be converted, or nothing of it can learn.
    """

    def __init__(self, source: Path, calibration: Array, options: Options) -> None:
        super().__init__(source, options, calibration[:1])
        graph = self._model.graph
        products = [
            _Learned(layer.node, layer_of(self.module, layer.node), layer)
            for layer in layers(graph, self._held)
        ]
        self._norms = [
            _Learned(node, self.module.get_submodule(node.name))
            for node in graph.node
            if node.op_type == "BatchNormalization" and set(node.input[1:5]) <= set(self._held)
        ]
        self._learned = [*products, *self._norms]
        if not products:
            raise ModelError("there are no convolutions or products with constant weights")
        if self._norms and self._options["statistics"] == "learn":
            if self.one_by_one:
                raise ModelError(
                    "the network takes one sample at a time, so it cannot learn statistics of "
                    "batches; keep them, or export it with a free batch size"
                )
            self.fewest = 2
        decaying = [one.module.weight for one in products]
        biases = [one.module.bias for one in products if one.module.bias is not None]
        scales = [value for one in self._norms for value in (one.module.weight, one.module.bias)]
        self.learn([{"params": decaying, "weight_decay": DECAY}, {"params": [*biases, *scales]}])

    def begin(self) -> None:
        """Let normalizations see batches, if their statistics are learned."""
        for one in self._norms:
            one.module.train(self._options["statistics"] == "learn")

    def end(self) -> None:
        """Normalize by the statistics."""
        for one in self._norms:
            one.module.eval()

    def write(self, target: Path) -> None:
        """Write the ONNX file: the same nodes, with what was learned."""
        import onnx
        from onnx import numpy_helper

        model = onnx.ModelProto()
        model.CopyFrom(self._model)
        nodes = {node.name: node for node in model.graph.node}
        for one in self._learned:
            node = nodes[one.node.name]
            for index, value in _values(one, len(node.input)):
                name = f"{node.output[0]}.learned.{index}"
                node.input[index] = name
                model.graph.initializer.append(numpy_helper.from_array(value, name))
        drop_unused(model.graph, set(self._held))
        for node, name in zip(self._model.graph.node, self._names, strict=True):
            if node.name in nodes:
                nodes[node.name].name = name
        onnx.save(model, str(target))


def _values(one: _Learned, inputs: int) -> Iterator[tuple[int, Array]]:
    """Yield the index of each input of a node that was learned, with its value."""
    if one.layer is None:
        for index, name in enumerate(_OF_NORMALIZATION, 1):
            yield index, np.array(getattr(one.module, name).detach().numpy())
        return
    yield one.layer.weight, laid(weights_of(one.module), one.node.op_type, one.layer.axis)
    if one.module.bias is not None and inputs > 2:
        yield 2, np.array(one.module.bias.detach().numpy())


def trains(module: torch.nn.Module, statistics: str) -> None:
    """Put a module into training mode; normalizations of batches only if they learn."""
    module.train()
    if statistics == "keep":
        for one in module.modules():
            if isinstance(one, BATCHES):
                one.eval()
