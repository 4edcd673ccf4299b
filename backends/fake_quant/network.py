"""A network that learns with rounded weights and activations, in PyTorch."""

from __future__ import annotations

import io
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn.utils import parametrize

from backends.fake_quant.converted import convert
from backends.fake_quant.formulas import dorefa_factor
from backends.fake_quant.layers import Layer, Rounding, insert, layers
from backends.fake_quant.learned import STEPS, DorefaWeights, Lsq, activation
from backends.fake_quant.observed import observe, ort
from backends.fake_quant.starts import activation_grid, weight_grid
from backends.opsets import for_quantization
from backends.stored_weights.nodes import constants, drop_unused
from simulator.contract import Array, ModelError, Options

if TYPE_CHECKING:
    import onnx

OUTER_BITS = 8
NEAR = 1e-3
"""Of the largest output: how far the converted network may be from ONNX Runtime."""
_MOMENTUM, _DECAY = 0.9, 1e-4


@dataclass(frozen=True, slots=True)
class _Learned:
    """One layer: in ONNX, in PyTorch, and what rounds its input."""

    layer: Layer
    module: torch.nn.Module
    rounds: Any
    bits: int


class Network:
    """Convolutions and linear layers learn with their biases; all else is as in the file.

    Args:
        source: the ONNX file.
        calibration: (N, ...) float32.
        options: of the tuner.

    Raises:
        ModelError: it cannot be converted, or the converted network answers otherwise.
    """

    def __init__(self, source: Path, calibration: Array, options: Options) -> None:
        self._options = options
        self._model = for_quantization(source)
        for number, node in enumerate(self._model.graph.node):
            node.name = f"n{number}"
        self._held = constants(self._model.graph)
        initializers = {tensor.name for tensor in self._model.graph.initializer}
        self._input = next(
            port.name for port in self._model.graph.input if port.name not in initializers
        )
        self._fixed = self._fixed_batch()
        self.module = convert(self._model)
        found = layers(self._model.graph, self._held)
        if not found:
            raise ModelError("there are no convolutions or products with constant weights")
        names = {layer.node.input[layer.data]: None for layer in found}
        feeds = ({self._input: one[None]} for one in calibration)
        self._check_converted(calibration[:1])
        seen = observe(self._model, names, feeds)
        self._learned = []
        for layer in found:
            bits = OUTER_BITS if layer.outer else options["bits"]
            grid = activation_grid(options, seen[layer.node.input[layer.data]], bits)
            self._learned.append(self._rounded(layer, bits, activation(options["method"], grid)))
        learning = {id(p) for one in self._learned for p in one.module.parameters()}
        for parameter in self.module.parameters():
            parameter.requires_grad_(id(parameter) in learning)
        self._positive = [
            one.keep_positive for one in self.module.modules() if isinstance(one, STEPS)
        ]
        self.optimizer = torch.optim.SGD(self._groups(), options["learning_rate"], _MOMENTUM)

    def _fixed_batch(self) -> bool:
        """Whether the file takes one sample at a time."""
        port = next(p for p in self._model.graph.input if p.name == self._input)
        return bool(port.type.tensor_type.shape.dim[0].dim_value == 1)

    def _check_converted(self, sample: Array) -> None:
        session = ort.InferenceSession(
            self._model.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        want = session.run(None, {self._input: sample})
        if len(want) != 1 or want[0].ndim != 2:
            raise ModelError("fine-tuning takes a network with one output of shape (N, classes)")
        with torch.no_grad():
            got = self.module(torch.from_numpy(np.array(sample))).numpy()
        off = np.abs(got - want[0]).max() / max(np.abs(want[0]).max(), 1e-6)
        if not off <= NEAR:
            raise ModelError(
                f"converted by onnx2torch the model answers otherwise: {off:.1e} of the largest "
                f"output, at most {NEAR:.0e} is allowed"
            )

    def _rounded(self, layer: Layer, bits: int, rounds: Any) -> _Learned:
        """Let a layer of the module round its weights and its input."""
        whole = self.module.get_submodule(layer.node.name)
        kinds = (torch.nn.modules.conv._ConvNd, torch.nn.Linear)
        inner = next((one for one in whole.modules() if isinstance(one, kinds)), None)
        if inner is None:
            raise ModelError(
                f"{layer.node.op_type} {layer.node.output[0]!r} cannot be fine-tuned: onnx2torch "
                "makes neither a convolution nor a linear layer of it"
            )
        held: Any = inner
        weights = self._weights_of(inner)
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

    @staticmethod
    def _weights_of(inner: Any) -> Array:
        return np.array(inner.weight.detach().numpy())

    def _groups(self) -> list[dict[str, Any]]:
        """Weights decay, and PACT's alpha, as in its paper; biases and LSQ's steps do not."""
        decaying: list[torch.nn.Parameter] = []
        others: list[torch.nn.Parameter] = []
        for name, parameter in self.module.named_parameters():
            if parameter.requires_grad:
                decays = name.endswith(("original", "alpha"))
                (decaying if decays else others).append(parameter)
        return [{"params": decaying, "weight_decay": _DECAY}, {"params": others}]

    def epoch(self, number: int, inputs: Array, labels: Array, order: Array) -> float:
        """See :class:`~simulator.contract.Tuner`."""
        batch, total = self._options["batch"], 0.0
        share = number / self._options["epochs"]
        for group in self.optimizer.param_groups:
            group["lr"] = self._options["learning_rate"] * 0.5 * (1 + math.cos(math.pi * share))
        for start in range(0, len(order), batch):
            chosen = order[start : start + batch]
            outputs = self._outputs(torch.from_numpy(np.ascontiguousarray(inputs[chosen])))
            loss = self._loss(outputs, torch.from_numpy(labels[chosen]))
            self.optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            self.optimizer.step()
            for positive in self._positive:
                positive()
            total += float(loss.detach()) * len(chosen)
        return total / len(order)

    def _loss(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        if self._options["output"] == "probabilities":
            return torch.nn.functional.nll_loss(outputs.clamp(min=1e-12).log(), labels)
        return torch.nn.functional.cross_entropy(outputs, labels)

    def _outputs(self, inputs: torch.Tensor) -> torch.Tensor:
        if self._fixed:
            return torch.cat([self.module(one[None]) for one in inputs])
        made: torch.Tensor = self.module(inputs)
        return made

    def answers(self, inputs: Array) -> Array:
        """Return the outputs of every input."""
        parts = []
        with torch.no_grad():
            for start in range(0, len(inputs), 100):
                part = np.array(inputs[start : start + 100])
                parts.append(self._outputs(torch.from_numpy(part)).numpy())
        return np.concatenate(parts)

    def state(self) -> bytes:
        """Return the parameters and the optimizer."""
        held = io.BytesIO()
        state = {"module": self.module.state_dict(), "optimizer": self.optimizer.state_dict()}
        torch.save(state, held)
        return held.getvalue()

    def restore(self, state: bytes) -> None:
        """Take them back."""
        found = torch.load(io.BytesIO(state), weights_only=True)
        self.module.load_state_dict(found["module"])
        self.optimizer.load_state_dict(found["optimizer"])

    def write(self, target: Path) -> None:
        """Write the ONNX file."""
        import onnx
        from onnx import numpy_helper

        model = onnx.ModelProto()
        model.CopyFrom(self._model)
        added = Rounding()
        nodes = {node.name: node for node in model.graph.node}
        for one in self._learned:
            self._write_layer(nodes[one.layer.node.name], one, added)
        drop_unused(model.graph, set(self._held))
        model.graph.initializer.extend(
            numpy_helper.from_array(array, name) for name, array in added.constants.items()
        )
        insert(model.graph, added.nodes)
        onnx.save(model, str(target))

    def _write_layer(self, node: onnx.NodeProto, one: _Learned, added: Rounding) -> None:
        layer, module, part = one.layer, one.module, f"{node.name}.{one.bits}bit"
        paired = one.bits == 8 and self._options["method"] == "lsq"
        data = node.input[layer.data]
        rounded = added.paired if paired else added.rounded
        node.input[layer.data] = rounded(data, one.rounds.grid(), f"{part}.input")
        turned = layer.node.op_type != "ConvTranspose" and layer.axis != 0

        def laid(weights: Array) -> Array:
            return np.ascontiguousarray(weights.T if turned else weights)

        name = f"{part}.weight"
        if paired:
            held: Any = module
            maker = held.parametrizations.weight
            grid = maker[0].grid()
            codes = grid.codes(maker.original.detach().numpy()).astype(np.int8)
            name = added.coded(laid(codes), grid.step.reshape(-1), layer.axis, name)
        else:
            added.stored(laid(self._weights_of(module)), name)
        node.input[layer.weight] = name
        bias = getattr(module, "bias", None)
        if bias is not None and len(node.input) > 2:
            node.input[2] = added.stored(bias.detach().numpy().copy(), f"{part}.bias")
