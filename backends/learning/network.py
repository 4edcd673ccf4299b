"""An ONNX file that learns as it is, in FP32."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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

    Nodes that share weights in the file, such as a detector's head on several levels, share what
    they learn.

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
        _share(products)
        if not products:
            raise ModelError("there are no convolutions or products with constant weights")
        if self._norms and self._options["statistics"] == "learn":
            if self.one_by_one:
                raise ModelError(
                    "the network takes one sample at a time, so it cannot learn statistics of "
                    "batches; keep them, or export it with a free batch size"
                )
            self.fewest = 2
        decaying = _once(one.module.weight for one in products)
        biases = _once(one.module.bias for one in products if one.module.bias is not None)
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
        named: dict[int, str] = {}
        for one in self._learned:
            node = nodes[one.node.name]
            for index, tensor, value in _values(one):
                if id(tensor) not in named:
                    named[id(tensor)] = name = f"{node.output[0]}.learned.{index}"
                    model.graph.initializer.append(numpy_helper.from_array(value, name))
                node.input[index] = named[id(tensor)]
        drop_unused(model.graph, set(self._held))
        for node, name in zip(self._model.graph.node, self._names, strict=True):
            if node.name in nodes:
                nodes[node.name].name = name
        onnx.save(model, str(target))


def _share(products: Sequence[_Learned]) -> None:
    """Give layers of the same weights in the file the same parameters.

    Only weights tell layers apart: exporters merge other constants that happen to be equal.
    """
    first: dict[str, _Learned] = {}
    for one in products:
        assert one.layer is not None
        held = first.setdefault(one.node.input[one.layer.weight], one)
        mine, theirs = one.module, held.module
        if held is one or not torch.equal(mine.weight, theirs.weight):
            continue
        mine.weight = theirs.weight
        if mine.bias is not None and list(one.node.input[2:]) == list(held.node.input[2:]):
            mine.bias = theirs.bias


def _once(values: Iterable[Any]) -> list[Any]:
    """Return parameters without those that came before."""
    return list({id(one): one for one in values}.values())


def _values(one: _Learned) -> Iterator[tuple[int, torch.Tensor, Array]]:
    """Yield the index of each input of a node that was learned, its tensor, and its value there."""
    if one.layer is None:
        for index, name in enumerate(_OF_NORMALIZATION, 1):
            tensor = getattr(one.module, name)
            yield index, tensor, np.array(tensor.detach().numpy())
        return
    module, weights = one.module, weights_of(one.module)
    yield one.layer.weight, module.weight, laid(weights, one.node.op_type, one.layer.axis)
    if module.bias is not None and len(one.node.input) > 2:
        yield 2, module.bias, np.array(module.bias.detach().numpy())


def trains(module: torch.nn.Module, statistics: str) -> None:
    """Put a module into training mode; normalizations of batches only if they learn."""
    module.train()
    if statistics == "keep":
        for one in module.modules():
            if isinstance(one, BATCHES):
                one.eval()
