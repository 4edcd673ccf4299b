"""Bias correction: the mean error of a quantized layer is taken out of its bias."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from backends.onnx_cut import remade, uses
from backends.ort.library import ort
from simulator.contract import Array

if TYPE_CHECKING:
    import onnx

_LAYERS = {"Conv": 1, "ConvTranspose": 1, "Gemm": -1}
"""The axis of the output's channels."""
SAMPLES = 64
"""The calibration samples that are used; what later layers need of all is in memory at once."""
Feeds = Sequence[Mapping[str, Array]]


def with_biases(model: onnx.ModelProto) -> onnx.ModelProto:
    """Give each layer with constant weights a bias, of zeros where it had none, in place."""
    from onnx import numpy_helper

    graph = model.graph
    stored = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type not in _LAYERS or node.input[1] not in stored:
            continue
        if len(node.input) > 2 and node.input[2]:
            continue
        weight = numpy_helper.to_array(stored[node.input[1]])
        zeros = np.zeros(_channels(node, weight.shape), weight.dtype)
        tensor = numpy_helper.from_array(zeros, f"{node.output[0]}/bias")
        graph.initializer.append(tensor)
        node.input[:] = [*node.input[:2], tensor.name]
    return model


def _channels(node: Any, shape: Sequence[int]) -> int:
    """The number of output channels of a layer with a weight of this shape."""
    values = {one.name: one.i for one in node.attribute}
    if node.op_type == "ConvTranspose":
        return int(shape[1] * values.get("group", 1))
    if node.op_type == "Gemm":
        return int(shape[0 if values.get("transB", 0) else 1])
    return int(shape[0])


def correct(model: onnx.ModelProto, quantized: onnx.ModelProto, feeds: Feeds) -> None:
    """Subtract the mean error of each quantized layer from its bias, in place.

    The layers are corrected in the order of the graph: each sees what the corrected ones before
    it give. The error of a channel is the mean over the first samples and all positions of what
    the layer gives before its activation, against the same layer of the float model. A layer
    without a bias (a MatMul) stays as it is, and so does one that is kept in float.

    Args:
        model: the float model, after :func:`with_biases`.
        quantized: with the same names of nodes; its biases are INT32 behind a DequantizeLinear, or
            floats.
        feeds: calibration inputs; the first :data:`SAMPLES` are used.

    Source:
        Nagel et al., Data-Free Quantization Through Weight Equalization and Bias Correction,
        arXiv 1906.04721, section 4.2 and appendix D, empirical bias correction.
    """
    samples = feeds[:SAMPLES]
    floats = {node.name: node for node in model.graph.node if node.op_type in _LAYERS}
    known = [
        (node, bias)
        for node in quantized.graph.node
        if node.op_type in _LAYERS and node.name in floats
        and (bias := _Bias.of(quantized, node)) is not None
    ]  # fmt: skip
    wanted = _means(model, [floats[node.name] for node, _ in known], samples)
    walk = _Walk(quantized, samples)
    for (node, bias), mean in zip(known, wanted, strict=True):
        walk.shift(node, bias.subtract(walk.mean(node) - mean))


class _Bias:
    """The stored bias of a quantized layer."""

    def __init__(self, tensor: Any, scale: Array) -> None:
        self.tensor, self.scale = tensor, scale

    @classmethod
    def of(cls, model: onnx.ModelProto, node: Any) -> _Bias | None:
        """Find the bias of a layer; None if the layer is in float, or has no bias of its own."""
        from onnx import numpy_helper

        stored = {tensor.name: tensor for tensor in model.graph.initializer}
        made = {one.output[0]: one for one in model.graph.node if one.op_type == "DequantizeLinear"}
        if node.input[1] not in made or len(node.input) < 3:
            return None
        name, scale = node.input[2], np.ones(1)
        if name in made:
            name, scale = made[name].input[0], numpy_helper.to_array(stored[made[name].input[1]])
        shared = sum(name in uses(one) for one in model.graph.node) > 1
        return None if name not in stored or shared else cls(stored[name], scale)

    def subtract(self, error: Array) -> Array:
        """Change the stored values, in units of their scale where they are integers.

        Returns:
            (channels,) float64: by how much the bias has grown, with that rounding.
        """
        from onnx import numpy_helper

        values = numpy_helper.to_array(self.tensor)
        new = values - error / self.scale
        if values.dtype.kind == "i":
            limits = np.iinfo(values.dtype)
            new = np.clip(np.rint(new), limits.min, limits.max)
        new = new.astype(values.dtype)
        self.tensor.CopyFrom(numpy_helper.from_array(new, self.tensor.name))
        return np.asarray((new.astype(np.float64) - values) * self.scale)


class _Walk:
    """Runs a model layer by layer, so that a bias may change before the next layer runs.

    Args:
        model: its nodes are sorted.
        feeds: the samples; what later layers need of each is held in memory.
    """

    def __init__(self, model: onnx.ModelProto, feeds: Feeds) -> None:
        self._model = model
        self._held: list[dict[str, Array]] = [dict(feed) for feed in feeds]
        self._left = list(model.graph.node)

    def mean(self, layer: Any) -> Array:
        """Run up to a layer; return the mean of each channel of its output, (channels,) float64."""
        part = _ancestors(self._left, [layer.output[0]], set(self._held[0]))
        self._left = [node for node in self._left if node not in part]
        later = {name for node in self._left for name in uses(node)}
        made = {name for node in part for name in node.output}
        names = [layer.output[0], *sorted(made & later - {layer.output[0]})]
        total: Array = np.zeros(())
        for number, (held, outputs) in enumerate(_run(self._model, part, names, self._held)):
            self._held[number] = {n: a for n, a in held.items() if n in later} | outputs
            total = total + _channel_means(layer, outputs[layer.output[0]])
        return total / len(self._held)

    def shift(self, layer: Any, by: Array) -> None:
        """Add to each channel of a layer's output, as its bias now does."""
        for held in self._held:
            values = held[layer.output[0]]
            shape = [1] * values.ndim
            shape[_LAYERS[layer.op_type]] = -1
            held[layer.output[0]] = values + by.reshape(shape).astype(values.dtype)


def _means(model: onnx.ModelProto, layers: Sequence[Any], feeds: Feeds) -> list[Array]:
    """The mean of each output channel of some layers, (channels,) float64."""
    names = [layer.output[0] for layer in layers]
    sums: list[Array] = [np.zeros(())] * len(names)
    part = _ancestors(list(model.graph.node), names, set())
    for _, outputs in _run(model, part, names, feeds):
        for at, layer in enumerate(layers):
            sums[at] = sums[at] + _channel_means(layer, outputs[layer.output[0]])
    return [one / len(feeds) for one in sums]


def _channel_means(layer: Any, values: Array) -> Array:
    axis = _LAYERS[layer.op_type] % values.ndim
    others = tuple(one for one in range(values.ndim) if one != axis)
    return np.asarray(values.astype(np.float64).mean(others))


def _ancestors(nodes: Sequence[Any], outputs: Sequence[str], known: set[str]) -> list[Any]:
    """The nodes that some tensors depend on, besides those that make what is known."""
    needed, found = set(outputs), list[Any]()
    for node in reversed(nodes):
        if not needed.isdisjoint(node.output):
            found.insert(0, node)
            needed.update(name for name in uses(node) if name not in known)
    return found


def _run(
    model: onnx.ModelProto, nodes: Sequence[Any], names: Sequence[str], feeds: Feeds
) -> Iterator[tuple[Mapping[str, Array], dict[str, Array]]]:
    """Run some nodes; yield each sample with what they make of it."""
    from onnx import helper

    if not names:
        return
    taken = {name for node in nodes for name in uses(node)}
    inputs = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(value.dtype), [None] * value.ndim
        )
        for name, value in feeds[0].items()
        if name in taken
    ]
    outputs = [helper.make_empty_tensor_value_info(name) for name in names]
    stored = [tensor for tensor in model.graph.initializer if tensor.name in taken]
    part = remade(model, nodes, inputs, outputs, stored).SerializeToString()
    options = ort.SessionOptions()
    # Above this level products are computed in integers, which saturate on some processors.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.log_severity_level = 3
    session = ort.InferenceSession(part, options, providers=["CPUExecutionProvider"])
    wanted = [get_input.name for get_input in session.get_inputs()]
    for sample in feeds:
        found = session.run(list(names), {name: sample[name] for name in wanted})
        yield sample, dict(zip(names, found, strict=True))


def kept(feeds: Iterator[Mapping[str, Array]], into: list[Mapping[str, Array]]) -> Iterator[Any]:
    """Pass calibration inputs on, and keep the first :data:`SAMPLES` of them."""
    for feed in feeds:
        if len(into) < SAMPLES:
            into.append(feed)
        yield feed
