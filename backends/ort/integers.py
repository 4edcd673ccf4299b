"""ONNX Runtime's INT8 graph, with the integer arithmetic of other processors."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from backends.onnx_ports import name_nodes
from backends.ort.library import ort, plainly, session_options, session_ports
from backends.ort.products import convolve, product
from simulator.contract import (
    Admits,
    Array,
    Backend,
    Effective,
    Evidence,
    Offer,
    Port,
    Runtime,
    Stage,
    Unsupported,
)

if TYPE_CHECKING:
    import onnx

Values = dict[str, Array]
Step = Callable[[Values], None]

_INPUTS = {
    "QLinearConv": "x xs xz w ws wz ys yz bias",
    "QLinearMatMul": "x xs xz w ws wz ys yz",
    "QGemm": "x xs xz w ws wz bias ys yz",
    "MatMulIntegerToFloat": "x w xs ws xz wz added",
    "MatMulInteger": "x w xz wz",
    "ConvInteger": "x w xz wz",
}
"""What each of the products takes, in order; s: scale, z: zero point."""
_OTHERS = ("QAttention", "DynamicQuantizeLSTM", "MatMulNBits", "QLinearConvTranspose", "QMoE")
_FLOATS = ("Conv", "FusedConv", "ConvTranspose", "Gemm", "FusedGemm", "MatMul", "FusedMatMul")
_SEPARATE = ["MatMulIntegerToFloatFusion", "DynamicQuantizeMatMulFusion"]
"""Fusions that are left out, so that a product and what comes before and after it are nodes."""
_CPU = ["CPUExecutionProvider"]


class IntegerRuntime(Runtime):
    """The graph that ONNX Runtime makes of an INT8 file, with its products computed here.

    Convolutions and matrix products of 8-bit codes are whole numbers in NumPy. ``accumulator``:
    ``int32`` of VNNI, AMX and ARM's dot products; ``int16_pairs`` of AVX2, and of AVX-512 without
    VNNI, where ``vpmaddubsw`` cuts two products of an unsigned and a signed byte to 16 bits
    together (not of unsigned weights, depthwise convolutions and ConvInteger: kernels widen
    those); ``int24`` or ``int16``, to which one product after the other is added, each of codes
    less their zero points. The bias is added in 32 bits, then one
    FP32 factor requantizes, as in ONNX Runtime. Everything else is run by ONNX Runtime.
    """

    batches: ClassVar[tuple[str, ...]] = ("fixed", "dynamic")

    def _open(self, artifact: Path) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
        import onnx
        from onnx.numpy_helper import to_array

        options = session_options(1, "extended")
        with tempfile.TemporaryDirectory() as folder, plainly():
            options.optimized_model_filepath = str(Path(folder) / "optimized.onnx")
            whole = ort.InferenceSession(
                str(artifact), options, providers=_CPU, disabled_optimizers=_SEPARATE
            )
            model = onnx.load(options.optimized_model_filepath)
        kinds = Counter(node.op_type for node in model.graph.node)
        if others := [kind for kind in _OTHERS if kind in kinds]:
            raise Unsupported(f"no arithmetic of our own for {name_nodes(model, others)}")
        self._products = {
            "int8": sum(kinds[kind] for kind in _INPUTS),
            "fp32": sum(kinds[kind] for kind in _FLOATS),
        }
        self._stored = {tensor.name: to_array(tensor) for tensor in model.graph.initializer}
        inputs, outputs = session_ports(whole)
        self._steps = list(self._cut(model, {port.name: port.dtype for port in inputs}))
        return inputs, outputs

    def _cut(self, model: onnx.ModelProto, types: dict[str, np.dtype[Any]]) -> Iterator[Step]:
        """Yield the products, and sessions of what stands between them, in order."""
        from backends.onnx_cut import uses

        nodes: list[onnx.NodeProto] = list(model.graph.node)
        waiting: list[onnx.NodeProto] = []
        ends = {value.name for value in model.graph.output}
        for at, node in enumerate(nodes):
            if node.op_type in _INPUTS:
                later = ends.union(*(uses(one) for one in nodes[at:]))
                if waiting:
                    yield _Between(model, waiting, types, later)
                    waiting = []
                step = _Product(node, self.options)
                types[node.output[0]] = step.kind(types, self._stored)
                yield step
            else:
                waiting.append(node)
        if waiting:
            yield _Between(model, waiting, types, ends)

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        values = self._stored | dict(feeds)
        for step in self._steps:
            step(values)
        return {port.name: values[port.name] for port in self.outputs}

    def effective(self, feeds: Mapping[str, Array]) -> Effective:
        """Return what is computed here, and the counts of products in the optimized graph."""
        return Effective(
            products={kind: count for kind, count in self._products.items() if count},
            options={n: self.options[n] for n in ("device", *BACKEND.fields) if n in self.options},
            details={"threads": "as numpy's BLAS decides"},
        )


class _Between:
    """What ONNX Runtime runs between two products."""

    def __init__(
        self,
        model: onnx.ModelProto,
        nodes: Sequence[onnx.NodeProto],
        types: dict[str, np.dtype[Any]],
        later: set[str],
    ) -> None:
        from onnx import helper

        from backends.onnx_cut import remade, uses

        made = [name for node in nodes for name in node.output if name]
        used = {name for node in nodes for name in uses(node)}
        inputs = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(types[name]), None)
            for name in types
            if name in used and name not in made
        ]
        ends = [helper.make_empty_tensor_value_info(name) for name in made if name in later]
        stored = [tensor for tensor in model.graph.initializer if tensor.name in used]
        part = remade(model, nodes, inputs, ends, stored).SerializeToString()
        with plainly():
            self._session = ort.InferenceSession(part, session_options(1), providers=_CPU)
        ports, self._outputs = session_ports(self._session)
        self._inputs = [port.name for port in ports]
        types |= {port.name: port.dtype for port in self._outputs}

    def __call__(self, values: Values) -> None:
        with plainly():
            found = self._session.run(None, {name: values[name] for name in self._inputs})
        values |= {port.name: array for port, array in zip(self._outputs, found, strict=True)}


class _Product:
    """A convolution or a matrix product of codes."""

    def __init__(self, node: onnx.NodeProto, options: Mapping[str, Any]) -> None:
        from onnx import helper

        names = zip(_INPUTS[node.op_type].split(), node.input, strict=False)
        self._names = {role: name for role, name in names if name}
        self._how = {one.name: helper.get_attribute_value(one) for one in node.attribute}
        self._conv, self._output = "Conv" in node.op_type, node.output[0]
        self._options = dict(options)
        if node.op_type == "ConvInteger" and options["accumulator"] == "int16_pairs":
            self._options["accumulator"] = "int32"

    def kind(self, types: Mapping[str, np.dtype[Any]], stored: Values) -> np.dtype[Any]:
        """Return the type of what it makes."""
        if zero := self._names.get("yz"):
            return stored[zero].dtype if zero in stored else types[zero]
        return np.dtype(np.float32 if "xs" in self._names else np.int32)

    def __call__(self, values: Values) -> None:
        own = {role: values[name] for role, name in self._names.items()}
        sums = self._sums(own)
        if "bias" in own:
            sums += self._spread(own["bias"], sums.ndim)
        values[self._output] = self._stored_as(sums.astype(np.int32), own)

    def _sums(self, own: Values) -> Array:
        x, w = own["x"], own["w"]
        none = np.zeros((), np.uint8)
        zeros = own.get("xz", none), own.get("wz", none)
        if self._conv:
            return convolve(x, w, zeros, self._how, self._options)
        x = x.T if self._how.get("transA") else x
        w = w.T if self._how.get("transB") else w
        return product(x, w, zeros, self._options)

    def _stored_as(self, sums: Array, own: Values) -> Array:
        if "xs" not in own:
            return sums
        factor = np.asarray(own["xs"] * np.float32(self._how.get("alpha", 1)) * own["ws"])
        if "ys" in own:
            factor = np.asarray(factor / own["ys"])
        scaled = sums.astype(np.float32) * self._spread(factor, sums.ndim)
        if "ys" not in own:
            return np.asarray(scaled + own.get("added", np.float32(0)), np.float32)
        zero, ends = own["yz"], np.iinfo(own["yz"].dtype)
        wide = scaled.astype(np.float64)
        if self._options["rounding"] == "half_away":
            wide = np.trunc(wide + np.copysign(0.5, wide))
        codes = np.clip(np.rint(wide) + zero, ends.min, ends.max)
        return np.asarray(codes, zero.dtype)

    def _spread(self, values: Array, ndim: int) -> Array:
        """Return what each output channel has of its own, along the axis of channels."""
        if not self._conv or values.size == 1:
            return values
        return values.reshape(-1, *[1] * (ndim - 2))


_STANDS: dict[str, Admits] = {
    "device": ("cpu",),
    "threads": (1,),
    "rounding": ("half_even", "half_away"),
    "storage": ("int8",),
    "compute": ("int8",),
}
_ACCUMULATORS: tuple[dict[str, Admits], ...] = (
    {"accumulator": ("int32", "int16_pairs"), "overflow": ("saturate",)},
    {"accumulator": ("int24", "int16"), "overflow": ("saturate", "wrap")},
)

BACKEND = Backend(
    name="int8_arithmetic",
    summary="ONNX Runtime's INT8 graph with the accumulators of other processors, in NumPy",
    library=ort,
    offers=tuple(
        Offer(
            Stage.RUNTIME,
            {**_STANDS, **accumulator},
            IntegerRuntime,
            Evidence.EMULATED,
            "Intel's SDM, VPMADDUBSW and VPDPBUSD; equal to ONNX Runtime under qemu -cpu Haswell",
        )
        for accumulator in _ACCUMULATORS
    ),
    fields={
        "accumulator": "how the products of 8-bit codes are added",
        "overflow": "what an accumulator does at its ends",
        "rounding": "of a sum that lies between two codes",
    },
)
