"""ONNX files as SavedModels of TensorFlow, checked against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from backends.onnx_ports import name_nodes, read_onnx
from backends.quiet import quiet
from backends.tensorflow_library import tensorflow, tf_of_one_thread
from backends.tensorflow_operators import OPERATORS, TO_NCHW, TO_NHWC, plain
from simulator.contract import Array, Library, Unsupported
from simulator.errors import one_line

tf: Any = tensorflow
onnxruntime = Library("onnxruntime", distribution="onnxruntime", extra="onnxruntime")
TOLERANCE = 1e-3
"""Allowed difference from ONNX Runtime, relative to the largest output."""


def save(source: Path, target: Path) -> None:
    """Write an ONNX file as a SavedModel.

    Raises:
        Unsupported: it has an operator, or a form of one, that is not converted.
    """
    tf_of_one_thread()
    model = read_onnx(source)
    if lacking := {node.op_type for node in model.graph.node} - OPERATORS.keys():
        raise Unsupported(f"TensorFlow's converter lacks {name_nodes(model, sorted(lacking))}")
    graph = Graph(model.graph)
    weights = {name: tf.Variable(value) for name, value in graph.weights.items()}
    outputs = [port.name for port in model.graph.output]

    def call(**feeds: Any) -> dict[str, Any]:
        return graph.run(feeds, weights, outputs)

    _write(call, graph.inputs, list(weights.values()), target)


def save_conv(weights: Array, path: Path) -> None:
    """Write a 1x1 convolution as a SavedModel; see the contract of runtimes."""
    tf_of_one_thread()
    kernel = tf.Variable(weights.transpose(2, 3, 1, 0))

    def call(x: Any) -> dict[str, Any]:
        made = tf.nn.conv2d(tf.transpose(x, TO_NHWC), kernel, 1, "VALID")
        return {"y": tf.transpose(made, TO_NCHW)}

    _write(call, {"x": (None, weights.shape[1], 8, 8)}, [kernel], path)


def _write(
    call: Callable[..., Any], inputs: Mapping[str, Sequence[int | None]], weights: Any, to: Path
) -> None:
    module = tf.Module()
    module.weights = weights
    specs = {name: tf.TensorSpec(shape, tf.float32, name) for name, shape in inputs.items()}
    with quiet(), tf.device("CPU"):
        module.call = tf.function(call, autograph=False)
        signature = module.call.get_concrete_function(**specs)
        tf.saved_model.save(module, str(to), signatures=signature)


def check(source: Path, made: Path) -> None:
    """Refuse a SavedModel that gives other numbers than ONNX Runtime."""
    session = onnxruntime.InferenceSession(str(source), providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(0)
    feeds = {
        port.name: rng.standard_normal([n if isinstance(n, int) else 1 for n in port.shape], "f4")
        for port in session.get_inputs()
    }
    wanted = dict(
        zip((p.name for p in session.get_outputs()), session.run(None, feeds), strict=True)
    )
    with quiet():
        loaded = tf.saved_model.load(str(made))
    found = loaded.signatures["serving_default"](**{k: tf.constant(v) for k, v in feeds.items()})
    for name, want in wanted.items():
        got = found[name].numpy()
        off = np.abs(got - want).max() if got.shape == want.shape else np.inf
        if not off <= TOLERANCE * np.abs(want).max():
            raise Unsupported(
                f"TensorFlow's converter changes what {source} computes: {name} {want.shape} "
                f"expected, got {got.shape}, off by {off:.2g}"
            )


class Graph:
    """A graph of ONNX, of which each node becomes a function of TensorFlow.

    Args:
        graph: an ``onnx.GraphProto``.

    Attributes:
        inputs: the shape of each, with a free batch.
        weights: initializers that become variables.
    """

    def __init__(self, graph: onnx.GraphProto) -> None:
        self._nodes = list(graph.node)
        held = {one.name: np.array(numpy_helper.to_array(one)) for one in graph.initializer}
        self.weights = {name: v for name, v in held.items() if v.dtype == np.float32 and v.ndim > 1}
        self._constants = {name: v for name, v in held.items() if name not in self.weights}
        self.inputs = {}
        for port in graph.input:
            if port.name not in held:
                kind = port.type.tensor_type.elem_type
                if kind != onnx.TensorProto.FLOAT:
                    got = onnx.TensorProto.DataType.Name(kind)
                    raise Unsupported(f"input {port.name!r}: FLOAT expected, got {got}")
                sizes = [d.dim_value or None for d in port.type.tensor_type.shape.dim]
                self.inputs[port.name] = (None if sizes[0] == 1 else sizes[0], *sizes[1:])

    def run(
        self, feeds: Mapping[str, Any], weights: Mapping[str, Any], outputs: Sequence[str]
    ) -> dict[str, Any]:
        """Compute the outputs; called while TensorFlow traces."""
        values: dict[str, Any] = {"": None, **self._constants, **feeds}
        values |= weights
        for node in self._nodes:
            own = {one.name: helper.get_attribute_value(one) for one in node.attribute}
            given = [values[name] for name in node.input]
            try:
                made = OPERATORS[node.op_type](given, own)
            except (NotImplementedError, TypeError) as error:  # a form of it that is not known
                raise Unsupported(f"{node.op_type} {node.name!r}: {one_line(error)}") from error
            many = made if isinstance(made, list) else [made]
            values |= dict(zip(node.output, many, strict=False))
        return {name: tf.identity(plain(values[name]), name=name) for name in outputs}
