"""ONNX's own reference evaluator, which defines the operators in numpy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from backends.onnx_ports import name_nodes, ports, read_onnx
from backends.storages import STORED
from simulator.contract import (
    Admits,
    Array,
    Backend,
    Effective,
    Library,
    ModelError,
    Offer,
    Port,
    Runtime,
    Stage,
)

reference = Library("onnx.reference", distribution="onnx", extra="dev")

_KINDS = {"float32": "fp32", "float16": "fp16", "int8": "int8", "uint8": "int8"}
_HEAVY = ("Conv", "ConvTranspose", "Gemm", "MatMul", "ConvInteger", "MatMulInteger",
          "QLinearConv", "QLinearMatMul")  # fmt: skip
_COMPLETE_QDQ = 19


class OnnxReferenceRuntime(Runtime):
    """``onnx.reference.ReferenceEvaluator``: slow; the reference for small graphs.

    QuantizeLinear and DequantizeLinear run as written, so operators between them run in floating
    point. Matrix products use numpy, whose BLAS chooses its number of threads.

    Source:
        https://onnx.ai/onnx/api/reference.html
    """

    batches: ClassVar[tuple[str, ...]] = ("fixed", "dynamic")

    def _open(self, artifact: Path) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
        model = read_onnx(artifact)
        try:
            self._evaluator = reference.ReferenceEvaluator(model, new_ops=_additions(model))
        except (NotImplementedError, RuntimeError) as error:
            unknown = [n.op_type for n in model.graph.node if f"'{n.op_type}'" in str(error)]
            lacks = f"has no operator {name_nodes(model, unknown)}" if unknown else str(error)
            raise ModelError(f"the reference evaluator {lacks}: {artifact}") from error
        self._nodes = model.graph.node
        return ports(model)

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        with np.errstate(all="ignore"):  # its Sigmoid computes the branch that it leaves, too
            return self._named(self._evaluator.run(None, dict(feeds)))

    def effective(self, feeds: Mapping[str, Array]) -> Effective:
        """Return the types of the inputs of each product."""
        values = self._evaluator.run(None, dict(feeds), intermediate=True)
        kinds = (values[n.input[0]].dtype.name for n in self._nodes if n.op_type in _HEAVY)
        return Effective(
            products=Counter(_KINDS.get(kind, kind) for kind in kinds),
            options={"device": "cpu"},
            details={"threads": "as numpy's BLAS decides"},
        )


def _additions(model: Any) -> list[type[Any]]:
    """Return DequantizeLinear, which the evaluator lacks before opset 19."""
    from onnx.defs import onnx_opset_version
    from onnx.reference.ops import load_op

    version = max((o.version for o in model.opset_import if not o.domain), default=1)
    if version >= _COMPLETE_QDQ:
        return []
    newest = load_op("", "DequantizeLinear", onnx_opset_version())
    return [type("DequantizeLinear", (newest,), {"op_domain": ""})]


_PRECISIONS: tuple[dict[str, Admits], ...] = (
    {"storage": tuple(one for one in STORED if one != "fp16"), "compute": ("fp32",)},
    {"storage": ("fp16",), "compute": ("fp16",)},
    {"storage": ("int8",), "compute": ("int8",)},
)

BACKEND = Backend(
    name="onnx_reference",
    summary="ONNX's reference evaluator (numpy): slow, the reference for small graphs",
    library=reference,
    offers=tuple(
        Offer(
            Stage.RUNTIME,
            {"device": ("cpu",), "threads": (1,), **precision},
            OnnxReferenceRuntime,
            source="https://onnx.ai/onnx/api/reference.html",
        )
        for precision in _PRECISIONS
    ),
)
