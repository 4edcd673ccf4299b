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
        decaying = _once(product.module.weight for product in products)
        biases = _once(
            product.module.bias for product in products if product.module.bias is not None
        )
        scales = [value for norm in self._norms for value in (norm.module.weight, norm.module.bias)]
        self.learn([{"params": decaying, "weight_decay": DECAY}, {"params": [*biases, *scales]}])

    def begin(self) -> None:
        """Let normalizations see batches, if their statistics are learned."""
        for norm in self._norms:
            norm.module.train(self._options["statistics"] == "learn")

    def end(self) -> None:
        """Normalize by the statistics."""
        for norm in self._norms:
            norm.module.eval()

    def write(self, target: Path) -> None:
        """Write the ONNX file: the same nodes, with what was learned."""
        import onnx
        from onnx import numpy_helper

        model = onnx.ModelProto()
        model.CopyFrom(self._model)
        nodes = {node.name: node for node in model.graph.node}
        named: dict[int, str] = {}
        for learned in self._learned:
            node = nodes[learned.node.name]
            for index, tensor, value in _values(learned):
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
    for product in products:
        assert product.layer is not None
        held = first.setdefault(product.node.input[product.layer.weight], product)
        mine, theirs = product.module, held.module
        if held is product or not torch.equal(mine.weight, theirs.weight):
            continue
        mine.weight = theirs.weight
        if mine.bias is not None and list(product.node.input[2:]) == list(held.node.input[2:]):
            mine.bias = theirs.bias


def _once(values: Iterable[Any]) -> list[Any]:
    """Return parameters without those that came before."""
    return list({id(value): value for value in values}.values())


def _values(learned: _Learned) -> Iterator[tuple[int, torch.Tensor, Array]]:
    """Yield the index of each input of a node that was learned, its tensor, and its value there."""
    if learned.layer is None:
        for index, name in enumerate(_OF_NORMALIZATION, 1):
            tensor = getattr(learned.module, name)
            yield index, tensor, np.array(tensor.detach().numpy())
        return
    module, weights = learned.module, weights_of(learned.module)
    yield (
        learned.layer.weight,
        module.weight,
        laid(weights, learned.node.op_type, learned.layer.axis),
    )
    if module.bias is not None and len(learned.node.input) > 2:
        yield 2, module.bias, np.array(module.bias.detach().numpy())


def trains(module: torch.nn.Module, statistics: str) -> None:
    """Put a module into training mode; normalizations of batches only if they learn."""
    module.train()
    if statistics == "keep":
        for one in module.modules():
            if isinstance(one, BATCHES):
                one.eval()
