"""How much noise each layer of a quantized file adds: a first order in which to try keep lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager

import onnx

from simulator.contract import Array
from simulator.errors import ModelError
from simulator.model.onnxfile import load
from simulator.model.passes.graph import edit
from simulator.pipeline.stack import Stack

LAYERS = ("Conv", "ConvTranspose", "Gemm", "MatMul")
Feeds = Mapping[str, Array]
Run = Callable[[onnx.ModelProto], AbstractContextManager[Callable[[Feeds], Feeds]]]


def quantized_layers(stack: Stack, plain: Stack) -> list[str]:
    """Return the names of the layers whose file has a rounded activation and rounded weights.

    Raises:
        ModelError: the file is not ONNX, or has no such layer.
    """
    if stack.artifact.format != "onnx":
        raise ModelError(
            f"{stack.profile.name}: keep lists are found in ONNX files, and this stack opens a "
            f"file of {stack.artifact.format}"
        )
    models = load(stack.artifact.path), load(plain.artifact.path)
    found = [node.name for node in _rounded_layers(*models)]
    if not found:
        raise ModelError(f"{stack.profile.name}: no layer of its file is quantized")
    return found


def noise(plain: Stack, quantized: Stack, feeds: Iterable[Feeds], run: Run) -> dict[str, float]:
    """Return by layer how much more noise its output has than its input.

    The noise of a tensor is the squared difference between the quantized file and the float one,
    divided by the squared values of the float one, over all samples (1 / SQNR). A layer whose
    output has another name in the float file has none here.

    Args:
        plain: the stack in FP32.
        quantized: the same stack, quantized.
        feeds: calibration inputs.
        run: opens a model; see :func:`simulator.pipeline.float_runtime.running`.

    Source:
        The local error of a layer as in ONNX Runtime's onnxruntime.quantization.qdq_loss_debug.
    """
    models = load(plain.artifact.path), load(quantized.artifact.path)
    rounded = edit.rounded(models[1]) or {
        name: name for node in _layers(models[0]) for name in (*node.input[:2], *node.output)
    }
    fed = {node.name: node.input[:2] for node in _layers(models[0])}
    known = edit.dtypes_of(models[0])
    both = {name: made for name, made in rounded.items() if name in known}
    constants = edit.constants(models[0])
    both = {name: made for name, made in both.items() if name not in constants}
    inputs = {value.name for value in models[0].graph.input}
    wanted = [name for name in both if name not in inputs]
    sums = {name: [0.0, 0.0] for name in both}
    with (
        run(edit.until(models[0], wanted)) as of_plain,
        run(edit.until(models[1], list(both.values()))) as of_rounded,
    ):
        for sample in feeds:
            before, after = {**sample, **of_plain(sample)}, of_rounded(sample)
            for name, made in both.items():
                pair = sums[name]
                pair[0] += float(((after[made] - before[name]) ** 2).sum())
                pair[1] += float((before[name] ** 2).sum())
    share = {name: lost / whole if whole else 0.0 for name, (lost, whole) in sums.items()}
    source = {made: name for name, made in rounded.items()}
    found: dict[str, float] = {}
    for node in _rounded_layers(models[1], models[0]):
        out = node.output[0]
        if out in share:
            names = [source.get(name, "") for name in node.input]
            behind = [share.get(name, 0.0) for name in (*names, *fed.get(node.name, ()))]
            found[node.name] = share[out] - max(behind)
    return found


def _layers(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    return [node for node in model.graph.node if node.op_type in LAYERS]


def _rounded_layers(model: onnx.ModelProto, plain: onnx.ModelProto) -> list[onnx.NodeProto]:
    """Those behind DequantizeLinear; in a file without it, those fed by what *plain* lacks."""
    made = {n.output[0] for n in model.graph.node if n.op_type == "DequantizeLinear"}
    if not made:
        made = {name for node in model.graph.node for name in node.output}
        made -= {name for node in plain.graph.node for name in node.output}
    return [node for node in _layers(model) if set(node.input[:2]) <= made]
