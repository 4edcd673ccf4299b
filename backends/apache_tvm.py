"""Apache TVM on the CPU: relax, compiled by LLVM without tuning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from backends.onnx_ports import name_nodes, ports, read_onnx
from backends.quiet import quiet
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

tvm = Library("tvm", distribution="apache-tvm", extra="tvm")
relax = Library("tvm.relax", distribution="apache-tvm", extra="tvm")
frontend = Library("tvm.relax.frontend.onnx", distribution="apache-tvm", extra="tvm")

_KINDS = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "int8": "int8", "uint8": "int8"}
_HEAVY = ("conv1d", "conv2d", "conv3d", "conv2d_transpose", "matmul")


class TvmRuntime(Runtime):
    """A relax ``VirtualMachine``, compiled by TVM's ONNX importer and LLVM for this CPU.

    The model is compiled when it is opened, in a few seconds. Without tuning its loops are not
    parallel, so it uses one thread. One call runs at a time.

    Source:
        https://tvm.apache.org/docs/reference/api/python/relax/frontend.html
    """

    fixed_shapes: ClassVar[bool] = True
    batches: ClassVar[tuple[str, ...]] = ("fixed",)
    one_at_a_time: ClassVar[bool] = True

    def _open(self, artifact: Path) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
        model = read_onnx(artifact)
        with quiet():
            self._compile(model, artifact)
        return ports(model)

    def _compile(self, model: Any, artifact: Path) -> None:
        try:
            module = frontend.from_onnx(model, keep_params_in_input=False)
        except tvm.error.OpNotImplemented as error:
            unknown = str(error).partition("ONNX: ")[2].split(", ")
            raise ModelError(
                f"TVM has no operator {name_nodes(model, unknown)}: {artifact}"
            ) from error
        bindings = (b.value for block in module["main"].body.blocks for b in block.bindings)
        calls = (value for value in bindings if isinstance(value, relax.Call))
        products = (c for c in calls if str(c.op.name).rpartition(".")[2] in _HEAVY)
        self._products = Counter(_kind(call) for call in products)
        cpu = tvm.target.codegen.llvm_get_system_cpu()
        target = tvm.target.Target({"kind": "llvm", "mcpu": cpu})
        self._machine = relax.VirtualMachine(tvm.compile(module, target), tvm.cpu())

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        found = self._machine["main"](
            *(tvm.runtime.tensor(feeds[port.name]) for port in self.inputs)
        )
        made = [found] if hasattr(found, "numpy") else list(found)
        return self._named(value.numpy() for value in made)

    def effective(self, feeds: Mapping[str, Array]) -> Effective:
        """Count products by the type of their operands in the imported module."""
        return Effective(products=self._products, options={"device": "cpu", "threads": 1})

    def _close(self) -> None:
        del self._machine


def _kind(call: Any) -> str:
    dtype = str(call.args[0].ty.dtype)
    return _KINDS.get(dtype, dtype)


_PRECISIONS: tuple[dict[str, Admits], ...] = (
    {"storage": ("fp32",), "compute": ("fp32",)},
    {"storage": ("fp16",), "compute": ("fp16",)},
    {"storage": ("int8",), "compute": ("int8",)},
)

BACKEND = Backend(
    name="tvm",
    summary="Apache TVM on the CPU, not tuned: FP32, FP16 of an ONNX file with FP16 tensors, QDQ",
    library=tvm,
    offers=tuple(
        Offer(
            Stage.RUNTIME,
            {"device": ("cpu",), "threads": (1,), **precision},
            TvmRuntime,
            source="https://tvm.apache.org/docs/",
        )
        for precision in _PRECISIONS
    ),
)
