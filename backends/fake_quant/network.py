"""A network that learns with rounded weights and activations, in PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn.utils import parametrize

from backends.fake_quant.formulas import dorefa_factor
from backends.fake_quant.layers import Layer, Rounding, insert, layers
from backends.fake_quant.learned import STEPS, DorefaWeights, Lsq, activation
from backends.fake_quant.observed import observe
from backends.fake_quant.starts import activation_grid, weight_grid
from backends.learning.learner import DECAY, OnnxLearner, laid, layer_of, weights_of
from backends.stored_weights.nodes import drop_unused
from simulator.contract import Array, ModelError, Options
from simulator.contract.description import TUNED

if TYPE_CHECKING:
    import onnx

OUTER_BITS = 8


@dataclass(frozen=True, slots=True)
class _Learned:
    """One layer: in ONNX, in PyTorch, and what rounds its input."""

    layer: Layer
    module: torch.nn.Module
    rounds: Any
    bits: int


class Network(OnnxLearner):
    """Convolutions and linear layers learn with their biases; all else is as in the file.

    Args:
        source: the ONNX file.
        calibration: (N, ...) float32.
        options: of the tuner.

    Raises:
        ModelError: it cannot be converted, or the converted network answers otherwise.
    """

    def __init__(self, source: Path, calibration: Array, options: Options) -> None:
        super().__init__(source, options, calibration[:1])
        found = layers(self._model.graph, self._held)
        if not found:
            raise ModelError("there are no convolutions or products with constant weights")
        names = {layer.node.input[layer.data]: None for layer in found}
        feeds = ({self._input: one[None]} for one in calibration)
        seen = observe(self._model, names, feeds)
        self._learned = []
        for layer in found:
            bits = OUTER_BITS if layer.outer else options["bits"]
            grid = activation_grid(options, seen[layer.node.input[layer.data]], bits)
            self._learned.append(self._rounded(layer, bits, activation(options["method"], grid)))
        self._positive = [
            module.keep_positive for module in self.module.modules() if isinstance(module, STEPS)
        ]
        self.learn(self._groups())

    def _rounded(self, layer: Layer, bits: int, rounds: Any) -> _Learned:
        """Let a layer of the module round its weights and its input."""
        held = layer_of(self.module, layer.node)
        inner: torch.nn.Module = held
        weights = weights_of(held)
        axis = 1 if isinstance(inner, torch.nn.modules.conv._ConvTransposeNd) else 0
        maker: torch.nn.Module
        if self._options["method"] == "lsq":
            maker = Lsq(weight_grid(self._options, weights, axis, bits), per_sample=False)
        else:
            maker = DorefaWeights(bits, float(dorefa_factor(weights, bits)))
        parametrize.register_parametrization(held, "weight", maker)
        inner.add_module("rounds", rounds)
        inner.register_forward_pre_hook(lambda _, args: (rounds(args[0]),))
        return _Learned(layer, inner, rounds, bits)

    def _groups(self) -> list[dict[str, Any]]:
        """Weights decay, and PACT's alpha, as in its paper; biases and LSQ's steps do not."""
        decaying: list[torch.nn.Parameter] = []
        others: list[torch.nn.Parameter] = []
        learning = {id(p) for learned in self._learned for p in learned.module.parameters()}
        for name, parameter in self.module.named_parameters():
            if id(parameter) in learning:
                decays = name.endswith(("original", "alpha"))
                (decaying if decays else others).append(parameter)
        return [{"params": decaying, "weight_decay": DECAY}, {"params": others}]

    def stepped(self) -> None:
        """Keep steps positive."""
        for positive in self._positive:
            positive()

    def write(self, target: Path) -> None:
        """Write the ONNX file."""
        import onnx

        model = onnx.ModelProto()
        model.CopyFrom(self._model)
        added = Rounding()
        nodes = {node.name: node for node in model.graph.node}
        for learned in self._learned:
            self._write_layer(nodes[learned.layer.node.name], learned, added)
        drop_unused(model.graph, set(self._held))
        insert(model.graph, added.nodes, added.constants)
        method, bits = (self._options[name] for name in ("method", "bits"))
        model.metadata_props.add(key=TUNED, value=f"{method} {bits}")
        onnx.save(model, str(target))

    def _write_layer(self, node: onnx.NodeProto, learned: _Learned, added: Rounding) -> None:
        layer, module, part = learned.layer, learned.module, f"{node.name}.{learned.bits}bit"
        paired = learned.bits == 8 and self._options["method"] == "lsq"
        data = node.input[layer.data]
        rounded = added.paired if paired else added.rounded
        node.input[layer.data] = rounded(data, learned.rounds.grid(), f"{part}.input")
        name = f"{part}.weight"
        if paired:
            held: Any = module
            maker = held.parametrizations.weight
            grid = maker[0].grid()
            codes = grid.codes(maker.original.detach().numpy()).astype(np.int8)
            held = laid(codes, node.op_type, layer.axis)
            name = added.coded(held, grid.step.reshape(-1), layer.axis, name)
        else:
            added.stored(laid(weights_of(module), node.op_type, layer.axis), name)
        node.input[layer.weight] = name
        bias = getattr(module, "bias", None)
        if bias is not None and len(node.input) > 2:
            node.input[2] = added.stored(bias.detach().numpy().copy(), f"{part}.bias")
