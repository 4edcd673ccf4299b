"""Weights that the deployment stack's file has otherwise: rounded, folded, or other ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx

from simulator.contract import Array
from simulator.diagnose.finding import Finding
from simulator.diagnose.layers.case import Case, percent, replaced
from simulator.diagnose.layers.errors import FAINT, relative
from simulator.model.passes.graph import edit
from simulator.model.points import Graph, Point

DIFFER = "the weights differ"
FEW = 1e-3
"""The share of a layer's weights that is a fault of single ones."""
_CHANNELS = {"Conv": 0, "ConvTranspose": 1, "Gemm": 0, "MatMul": 1}
"""The axis of a layer's weights that has its outputs."""


def weights(case: Case) -> Iterator[Finding]:
    """With the training stack's weights in place of its own, the layer's error is gone."""
    both = pair(case)
    if both is None:
        return
    mine, other, right, own = both
    graph, axis = Graph(case.copy()), _axis(mine)
    if (folded := _folded(case, mine, right, own)) is not None:
        yield from folded
        return
    model, first = case.copy(), _worst(own, right, axis)
    replaced(model, other.input[1], right.astype(np.float32))
    # Behind a rounded output ONNX Runtime would round weights of its own accord.
    left = case.unrounded(model, rounds=True)
    if not case.explained(left) or first == 0:
        yield from _bias(case, mine, other)
        return
    told = (
        f"its weights are {percent(first)} off in the worst channel; with training's weights its "
        f"error goes from {percent(case.error)} to {percent(left)}"
    )
    rounded = graph.makers.get(other.input[1])
    scale = graph.constants.get(rounded.input[1]) if rounded and len(rounded.input) > 1 else None
    if scale is None or rounded is None or rounded.op_type != "DequantizeLinear":
        name, how = _otherwise(right, own)
        yield case.finding(name, f"{told}{how}", left=left, code="export the deployed file again")
        return
    spread = _reach(right, axis)
    ends = float(spread.max()), float(np.median(spread))
    alone = _worst(_by_channel(right, axis), right, axis)
    if scale.size == 1 and alone < first / 2:
        yield case.finding(
            "one scale for all channels of the weights",
            f"{told}; the largest channel reaches {ends[0]:.4g}, the median one {ends[1]:.4g}, and "
            f"all share a step of {float(scale.reshape(-1)[0]):.4g}; with a scale for each the "
            "worst would be "
            f"{percent(alone)} off",
            left=left,
            change=case.quantizer(weights="per_channel"),
            code="round the weights with a scale for each channel (weights: per_channel)",
        )
        return
    change, code = case.keep("its weights do not bear 8 bits")
    yield case.finding("the weights are rounded too coarsely", told, left=left, change=change,
                       code=code)  # fmt: skip


def _otherwise(right: Array, own: Array) -> tuple[str, str]:
    """What is known of weights that are not those of training: a name, and figures."""
    apart = ~np.isclose(own, right, rtol=1e-5, atol=1e-6 * float(np.abs(right).max()))
    count = int(np.count_nonzero(apart))
    if count <= FEW * own.size:
        value, wanted = own[apart][0], right[apart][0]
        name = "a weight is corrupted" if count == 1 else f"{count} weights are corrupted"
        return name, f"; {count} of {own.size:,}: {value:.6g} in place of {wanted:.6g}"
    if own.ndim > 1 and np.allclose(own, right[:, ::-1], rtol=1e-5):
        return "the input channels of the weights are in the reverse order (BGR for RGB)", ""
    power = float((right.astype(np.float64) ** 2).sum())
    factor = float((right.astype(np.float64) * own).sum()) / power if power else 0.0
    if np.allclose(own, factor * right, rtol=1e-3, atol=1e-4 * float(np.abs(own).max())):
        return f"the weights are multiplied by {factor:.4g}", ""
    return DIFFER, ""


def _bias(case: Case, mine: onnx.NodeProto, other: onnx.NodeProto) -> Iterator[Finding]:
    """With the training stack's bias in place of its own, the layer's error is gone."""
    if len(mine.input) < 3 or len(other.input) < 3:
        return
    right = case.train.constants.get(mine.input[2])
    own = Graph(case.copy()).constants.get(other.input[2])
    if right is None or own is None or right.shape != own.shape:
        return
    model = case.copy()
    replaced(model, other.input[2], right.astype(np.float32))
    left = case.unrounded(model, rounds=True)
    if case.explained(left) and np.isfinite(left):
        name = "the bias is missing" if not own.any() else "the bias differs"
        told = f"with training's bias its error goes from {percent(case.error)} to {percent(left)}"
        yield case.finding(name, told, left=left, code="export the deployed file again")


def pair(case: Case) -> tuple[onnx.NodeProto, onnx.NodeProto, Array, Array] | None:
    """Return the one product of a layer in both stacks, and the weights of both.

    None where it has none or several, or where weights are computed or have other shapes.
    """
    mine = [node for node in case.before if node.op_type in _CHANNELS]
    theirs = [node for node in case.model.graph.node if node.op_type in _CHANNELS]
    if len(mine) != 1 or len(theirs) != 1:
        return None
    right = case.train.constants.get(mine[0].input[1])
    own = Graph(case.copy()).constants.get(theirs[0].input[1])
    if right is None or own is None or right.shape != own.shape:
        return None
    return mine[0], theirs[0], right, own


def one_scale(graph: Graph, point: Point) -> bool:
    """Whether a point is made by a layer whose rounded weights have one scale."""
    node = graph.makers.get(point.tensor)
    if node is None or node.op_type not in _CHANNELS:
        return False
    rounded = graph.makers.get(node.input[1])
    if rounded is None or rounded.op_type != "DequantizeLinear":
        return False
    scale = graph.constants.get(rounded.input[1])
    return scale is not None and scale.size == 1


def _axis(node: onnx.NodeProto) -> int:
    if node.op_type == "Gemm" and not edit.attributes(node).get("transB", 0):
        return 1
    return _CHANNELS[node.op_type]


def _reach(values: Array, axis: int) -> Array:
    """Return the largest magnitude of each channel that is not empty."""
    found = np.abs(np.moveaxis(values, axis, 0).reshape(values.shape[axis], -1)).max(axis=1)
    there: Array = found[found > FAINT * found.max(initial=0)]
    return there


def _worst(values: Array, right: Array, axis: int) -> float:
    """Return the error of the channel that is farthest from what is right."""
    least = _reach(right, axis).min(initial=np.inf)
    pairs = zip(np.moveaxis(values, axis, 0), np.moveaxis(right, axis, 0), strict=True)
    return max((relative(a, b) for a, b in pairs if np.abs(b).max() >= least), default=0.0)


def _by_channel(values: Array, axis: int) -> Array:
    """Round to 8 bits, symmetric, with a scale for each channel."""
    others = tuple(at for at in range(values.ndim) if at != axis)
    step = np.abs(values).max(axis=others, keepdims=True) / 127
    step = np.where(step == 0, 1, step)
    found: Array = np.rint(values / step) * step
    return found


def _folded(case: Case, mine: onnx.NodeProto, right: Array, own: Array) -> list[Finding] | None:
    """Find a BatchNormalization that was folded into the weights, with another epsilon.

    Its weights are then those of training times ``scale / sqrt(variance + epsilon)`` by channel.
    """
    norms = [node for node in case.before if node.op_type == "BatchNormalization"]
    if len(norms) != 1 or mine.op_type != "Conv":
        return None
    scale, variance = (case.train.constants.get(norms[0].input[at]) for at in (1, 4))
    if scale is None or variance is None:
        return None
    flat, other = (one.reshape(len(one), -1).astype(np.float64) for one in (right, own))
    power = (flat * flat).sum(axis=1)
    factor = (flat * other).sum(axis=1) / np.where(power == 0, 1, power)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = (scale / factor) ** 2 - variance
    there = np.isfinite(found) & (power > 0)
    epsilon = float(edit.attributes(norms[0]).get("epsilon", 1e-5))
    if not there.any():
        return None
    middle = float(np.median(found[there]))
    spread = float(np.ptp(found[there]))
    fits = relative(flat * (scale / np.sqrt(variance + max(middle, 0)))[:, None], other)
    if fits > 1e-4 or middle <= 0 or abs(middle / epsilon - 1) < 0.01 or spread > middle:
        return None
    return [
        case.finding(
            "a batch normalization was folded with another epsilon",
            f"{norms[0].name!r} has {epsilon:g} in training; the deployed weights are those of "
            f"{middle:.3g}, up to {percent(fits)}",
            left=fits,
            code=f"fold {norms[0].name!r} with epsilon {epsilon:g}",
        )
    ]
