"""TensorFlow's runtime: SavedModels, by their signature, as a graph or compiled by XLA."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from backends.quiet import quiet
from backends.tensorflow_library import onednn_is_on, tensorflow, tf_for_networks
from simulator.contract import Array, Effective, Exporter, Port, Runtime, Unsupported

SIGNATURE = "serving_default"
"""The signature that Keras and ``tf.saved_model.save`` name so; else the only one is taken."""
_HEAVY = {
    "Conv2D", "Conv3D", "DepthwiseConv2dNative", "Conv2DBackpropInput", "MatMul", "BatchMatMulV2",
    "BatchMatMulV3", "Einsum", "_FusedConv2D", "_FusedMatMul",
}  # fmt: skip
_KINDS = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}


class SavedModelRuntime(Runtime):
    """``tf.saved_model.load``, and the signature of the model in a ``tf.function``.

    With ``jit_compile`` XLA compiles the function when it is first called with a shape. Threads and
    oneDNN belong to the process: a second stack with others is refused.

    Source:
        https://www.tensorflow.org/guide/saved_model
    """

    takes: ClassVar[str] = "saved_model"
    batches: ClassVar[tuple[str, ...]] = ("fixed", "dynamic")
    resizes: ClassVar[bool] = True

    @classmethod
    def save_suite(cls, source: Path, target: Path) -> None:
        """Write a model of the conformance suite as a SavedModel."""
        from backends.tensorflow_onnx import save

        save(source, target)

    @classmethod
    def save_conv(cls, weights: Array, path: Path) -> None:
        """Write ``tf.nn.conv2d`` in a SavedModel."""
        from backends.tensorflow_onnx import save_conv

        save_conv(weights, path)

    def _open(self, artifact: Path) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
        tf = self._tf = tf_for_networks(self.options["threads"], self.options["onednn"])
        with quiet(), tf.device("CPU"):
            self._model = tf.saved_model.load(str(artifact))
        known = dict(self._model.signatures)
        if SIGNATURE not in known and len(known) != 1:
            raise Unsupported(
                f"{artifact}: a signature {SIGNATURE} expected, or a single one, got "
                f"{', '.join(known) or 'none'}; save it with signatures"
            )
        signature = known.get(SIGNATURE) or next(iter(known.values()))
        self._graph = signature.graph
        self._call = signature
        if self.options["jit_compile"]:
            self._call = tf.function(signature, jit_compile=True, autograph=False)
        given, made = signature.structured_input_signature[1], signature.structured_outputs
        return (
            tuple(_port(name, spec) for name, spec in given.items()),
            tuple(_port(name, spec) for name, spec in made.items()),
        )

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        found = self._call(**{port.name: self._tensor(port, feeds) for port in self.inputs})
        return {port.name: found[port.name].numpy() for port in self.outputs}

    def _tensor(self, port: Port, feeds: Mapping[str, Array]) -> Any:
        value = feeds[port.name]
        order = port.order(value.shape)
        assert order is not None  # the contract has checked it
        return self._tf.constant(value.transpose(order))

    def effective(self, feeds: Mapping[str, Array]) -> Effective:
        """Count the products of the graph by their type; read back threads, oneDNN and XLA."""
        self._run(feeds)
        tf, compiled = self._tf, False
        if self.options["jit_compile"]:
            shaped = {port.name: self._tensor(port, feeds) for port in self.inputs}
            definition = self._call.get_concrete_function(**shaped).function_def
            compiled = bool(definition.attr["_XlaMustCompile"].b)
        return Effective(
            products=_products(self._graph),
            options={
                "device": "cpu",
                "threads": tf.config.threading.get_intra_op_parallelism_threads(),
                "onednn": onednn_is_on(),
                "jit_compile": compiled,
            },
        )

    def _close(self) -> None:
        del self._model, self._call, self._graph


def _port(name: str, spec: Any) -> Port:
    if spec.shape.rank is None:
        raise Unsupported(
            f"{name!r} has no known number of dimensions; save it with an input_signature"
        )
    return Port(name, np.dtype(spec.dtype.as_numpy_dtype), tuple(spec.shape.as_list()), True)


def _products(graph: Any) -> dict[str, int]:
    """How many convolutions and matrix products a graph and its functions have, by type."""
    definition = graph.as_graph_def()
    nodes = [
        *definition.node,
        *(node for one in definition.library.function for node in one.node_def),
    ]
    kinds = Counter[str]()
    for node in nodes:
        if node.op in _HEAVY:
            kind = tensorflow.dtypes.as_dtype(node.attr["T"].type).name
            kinds[_KINDS.get(kind, kind)] += 1
    return dict(kinds)


class OnnxExporter(Exporter):
    """A SavedModel with the inputs, outputs and layouts of the ONNX file, and a free batch.

    Between convolutions images are NHWC, as TensorFlow's CPU kernels need them. A graph that does
    not give what ONNX Runtime gives is refused.
    """

    takes: ClassVar[str] = "onnx"
    gives: ClassVar[str] = "saved_model"

    def export(self, source: Path, target: Path) -> None:
        """Convert an ``.onnx`` file."""
        from backends.tensorflow_onnx import check, save

        save(source, target)
        check(source, target)
