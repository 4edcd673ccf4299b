"""The batchnorm axis: folding into the previous layer, another epsilon, other statistics."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx

from simulator.contract import Array
from simulator.contract.passes import Fit, Fitting, GraphPass, Wanted
from simulator.errors import ModelError
from simulator.model.passes.graph import edit
from simulator.model.passes.graph.change import Change, Seen
from simulator.model.passes.graph.patterns import Graph
from simulator.profile.graph import Batchnorm
from simulator.profile.precision import Calibration

AXIS, NODES = "batchnorm", "BatchNormalization"
LAYERS = ("Conv", "ConvTranspose", "Gemm")
EPSILON = 1e-5

Statistics = tuple[Array, Array]
"""Mean and variance of each channel, float64."""


def apply(
    model: onnx.ModelProto, asked: Batchnorm, fitted: Mapping[str, Statistics] | None = None
) -> Change:
    """Set statistics and epsilon of every BatchNormalization, then fold it, in place.

    A BatchNormalization is folded if it follows a Conv, ConvTranspose or Gemm with constant weights
    and is the only reader of its output. The new weights are computed in FP64 and stored in the
    weights' own type.

    Args:
        model: an ONNX model of opset 7 or later.
        asked: the profile's section.
        fitted: the new statistics, by the output of the node.

    Source:
        ONNX operator BatchNormalization; Jacob et al., arXiv 1712.05877, section 3.2.
    """
    graph = Graph(model)
    outputs = {value.name for value in model.graph.output}
    before, after = {}, {}
    made: dict[str, list[onnx.NodeProto]] = {}
    for node in edit.nodes_of(model, "BatchNormalization"):
        epsilon = edit.attributes(node).get("epsilon", EPSILON)
        if asked.epsilon != "keep" and not np.isclose(epsilon, asked.epsilon, rtol=1e-6):
            edit.set_attributes(node, epsilon=asked.epsilon)
        now = edit.attributes(node).get("epsilon", EPSILON)
        name = node.output[0]
        told = ""
        if asked.statistics and estimable(node):
            told = asked.statistics.model_dump_json()
        if fitted and name in fitted:
            build = edit.Builder(model, "batchnorm/statistics", name)
            for at, values in zip((3, 4), fitted[name], strict=True):
                node.input[at] = build.constant(values, graph.constants[node.input[at]].dtype)
                graph.constants[node.input[at]] = values
        folded = None
        layer = graph.made.get(node.input[0])
        alone = len(graph.readers[node.input[0]]) == 1 and node.input[0] not in outputs
        if asked.folding == "fold" and layer is not None and alone:
            folded = _folded(model, graph, layer, node, now)
        if layer is not None and folded:
            made[layer.output[0]], made[name] = [], folded
        before[name] = Seen(node.op_type, (epsilon, False, ""), (epsilon, False, ""))
        settings = now, bool(folded), told
        after[name] = Seen(node.op_type, settings, settings)
    if made or fitted:
        edit.splice(model, made)
    stay = len(before) - sum(bool(nodes) for nodes in made.values())
    notes: tuple[str, ...] = ()
    if asked.folding == "fold" and stay:
        notes = (
            f"{stay} not folded, because no layer with constant weights comes directly before",
        )
    if fitted:
        notes += (f"statistics of {len(fitted)} taken anew from the calibration samples",)
    return Change(AXIS, NODES, before, after, notes=notes)


def _folded(
    model: onnx.ModelProto,
    graph: Graph,
    layer: onnx.NodeProto,
    node: onnx.NodeProto,
    epsilon: float,
) -> list[onnx.NodeProto] | None:
    """Return the layer with the normalization folded into its weights; None if not possible."""
    values = edit.attributes(layer)
    names = [*layer.input[1:], *node.input[1:]]
    known = all(name in graph.constants for name in names if name)
    training = edit.attributes(node).get("training_mode", 0) or len(node.output) > 1
    if layer.op_type not in LAYERS or layer.domain or not known or training:
        return None
    if layer.op_type == "Gemm" and (values.get("alpha", 1), values.get("beta", 1)) != (1, 1):
        return None
    weight = graph.constants[layer.input[1]]
    gamma, beta, mean, variance = (
        graph.constants[name].astype(np.float64) for name in node.input[1:5]
    )
    scale = gamma / np.sqrt(variance + epsilon)
    bias: Array = np.zeros_like(scale)
    if len(layer.input) > 2 and layer.input[2]:
        bias = graph.constants[layer.input[2]].astype(np.float64)
    build = edit.Builder(model, "batchnorm", node.output[0], weight.dtype)
    inputs = [
        layer.input[0],
        build.constant(_scaled(layer, weight.astype(np.float64), scale)),
        build.constant((bias - mean) * scale + beta),
    ]
    build(layer.op_type, *inputs, last=True, **values)
    return build.nodes


def _scaled(layer: onnx.NodeProto, weight: Array, scale: Array) -> Array:
    """Return the weights times the factor of their output channel."""
    values = edit.attributes(layer)
    if layer.op_type == "Gemm":
        return weight * (scale[:, None] if values.get("transB", 0) else scale)
    if layer.op_type == "Conv":
        return weight * scale.reshape(-1, *[1] * (weight.ndim - 1))
    groups = values.get("group", 1)
    apart = scale.reshape(groups, 1, -1, *[1] * (weight.ndim - 2))
    split = weight.reshape(groups, -1, *weight.shape[1:])
    return np.asarray(split * apart).reshape(weight.shape)


def wanted(asked: Batchnorm) -> Wanted | None:
    """Return the samples that the statistics are taken from."""
    given = asked.statistics
    return Wanted(given.samples, given.source, (given.through,)) if given else None


def estimable(node: onnx.NodeProto) -> bool:
    """Whether a BatchNormalization normalizes by stored statistics."""
    return len(node.output) == 1 and not edit.attributes(node).get("training_mode", 0)


def estimated(model: onnx.ModelProto, asked: Batchnorm, fitting: Fitting) -> dict[str, Statistics]:
    """Take the statistics of every BatchNormalization anew, in the order of the graph.

    Each is that of its input over all samples and positions, behind nodes whose statistics are
    new already. This is what one step of training with all samples as one batch stores, in
    PyTorch with ``momentum=None``: the stored variance is the unbiased one, and the samples are
    normalized by the biased one.

    Args:
        model: not changed.
        asked: the profile's section.
        fitting: the samples.

    Returns:
        By the output of each node.

    Raises:
        ModelError: the samples have a single value for each channel.

    Source:
        Li et al., Adaptive Batch Normalization, arXiv 1603.04779; the variance: PyTorch,
        ``torch.nn.BatchNorm2d``, "track_running_stats".
    """
    work = onnx.ModelProto()
    work.CopyFrom(model)
    nodes = [node for node in edit.nodes_of(work, "BatchNormalization") if estimable(node)]
    samples = [feeds for (feeds,) in fitting.samples()] if nodes else []
    found: dict[str, Statistics] = {}
    for node in nodes:
        if asked.epsilon != "keep":
            edit.set_attributes(node, epsilon=asked.epsilon)
        seen, name = _Moments(), node.input[0]
        if name in samples[0]:
            for feeds in samples:
                seen.add(feeds[name])
        else:
            with fitting.run(edit.until(work, [name])) as run:
                for feeds in samples:
                    seen.add(run(feeds)[name])
        if seen.count < 2:
            raise ModelError(
                f"graph.batchnorm.statistics: {edit.label(node)} sees one value for each channel; "
                "a variance needs more samples"
            )
        found[node.output[0]] = seen.mean, seen.squares / (seen.count - 1)
        build = edit.Builder(work, "batchnorm/statistics", node.output[0])
        node.input[3] = build.constant(seen.mean)
        node.input[4] = build.constant(seen.squares / seen.count)
    return found


class _Moments:
    """Mean and sum of squared deviations of each channel, over arrays (N, channels, ...).

    Source:
        Chan, Golub and LeVeque, Updating Formulae and a Pairwise Algorithm for Computing Sample
        Variances, 1979.
    """

    def __init__(self) -> None:
        self.count = 0
        self.mean: Array = np.zeros(())
        self.squares: Array = np.zeros(())

    def add(self, values: Array) -> None:
        """Take in one array."""
        rows = np.moveaxis(values, 1, 0).reshape(values.shape[1], -1).astype(np.float64)
        count, mean = rows.shape[1], rows.mean(1)
        squares = ((rows - mean[:, None]) ** 2).sum(1)
        step, whole = mean - self.mean, self.count + count
        self.squares = self.squares + squares + step**2 * self.count * count / whole
        self.mean = self.mean + step * count / whole
        self.count = whole


EXAMPLES = (Batchnorm(statistics=Calibration(samples=4, through="deploy", source="data")),)
PASS = GraphPass(AXIS, 400, Batchnorm, Batchnorm(), apply, EXAMPLES, fit=Fit(wanted, estimated))
