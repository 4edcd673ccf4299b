"""ExecuTorch on the CPU: torch.export programs lowered to XNNPACK."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from backends.quiet import QuietLibrary, quiet
from simulator.contract import (
    Array,
    AtLeast,
    Backend,
    Effective,
    Library,
    Offer,
    Port,
    Runtime,
    Stage,
    Unsupported,
)
from simulator.contract.program import plain_program

executorch = QuietLibrary("executorch.runtime", distribution="executorch", extra="executorch")
exir = QuietLibrary("executorch.exir", distribution="executorch", extra="executorch")
xnnpack = QuietLibrary(
    "executorch.backends.xnnpack.partition.xnnpack_partitioner",
    distribution="executorch",
    extra="executorch",
)
bindings = QuietLibrary(
    "executorch.extension.pybindings.portable_lib", distribution="executorch", extra="executorch"
)
torch = Library("torch", distribution="torch", extra="pytorch")

_FILE = "model.pte"


class ExecutorchRuntime(Runtime):
    """``executorch.runtime`` on a ``.pte`` file lowered to XNNPACK.

    For ``fp16`` the program's weights and activations are converted to FP16 (``.half()``) before it
    is lowered; inputs are rounded to FP16 and outputs converted to FP32 here. ExecuTorch has one
    thread pool per process, which loaded programs keep in use, so two stacks cannot have different
    thread counts at once. One call runs at a time.

    Source:
        https://docs.pytorch.org/executorch/stable/backends/xnnpack/xnnpack-overview.html
    """

    takes: ClassVar[str] = "torch_export"
    one_at_a_time: ClassVar[bool] = True
    compiled_by: ClassVar[tuple[str, ...]] = ("compute",)
    compiled_format: ClassVar[str] = "executorch"
    _open_with: ClassVar[list[int]] = []
    _pool: ClassVar[threading.Lock] = threading.Lock()

    @classmethod
    def compile(cls, source: Path, folder: Path, options: Mapping[str, Any]) -> None:
        """Lower a ``torch.export`` program; the folder keeps the ``.pte``."""
        with quiet():
            program = torch.export.load(plain_program(source))
            if options["compute"] == "fp16":
                program = _halved(program)
            lowered = exir.to_edge_transform_and_lower(
                program, partitioner=[xnnpack.XnnpackPartitioner()]
            )
            (folder / _FILE).write_bytes(lowered.to_executorch().buffer)

    def _open(self, artifact: Path) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
        file = artifact if artifact.is_file() else artifact / _FILE
        with quiet(), self._pool:
            self._set_threads()
            self._program = executorch.Runtime.get().load_program(str(file))
            self._method = self._program.load_method("forward")
            self._open_with.append(self.options["threads"])
        meta = self._method.metadata
        inputs = [meta.input_tensor_meta(i) for i in range(meta.num_inputs())]
        outputs = [meta.output_tensor_meta(i) for i in range(meta.num_outputs())]
        return _ports("input", inputs), _ports("output", outputs)

    def _set_threads(self) -> None:
        threads = self.options["threads"]
        if self._open_with and self._open_with[0] != threads:
            raise Unsupported(
                f"ExecuTorch has one thread pool per process: it has {self._open_with[0]} threads, "
                f"but {threads} were requested; use the same number"
            )
        if not self._open_with:
            bindings._unsafe_reset_threadpool(threads)

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        kind = torch.half if self.options["compute"] == "fp16" else torch.float32
        inputs = [torch.from_numpy(np.ascontiguousarray(feeds[p.name])) for p in self.inputs]
        made = self._method.execute([tensor.to(kind) for tensor in inputs])
        return self._named(value.float().numpy() for value in made)

    def effective(self, feeds: Mapping[str, Array]) -> Effective:
        """XNNPACK does not report its precision; the type of the program's input is known."""
        meta = self._method.metadata
        return Effective(
            products={},
            options={"device": "cpu", "threads": bindings._threadpool_get_thread_count()},
            details={"input": str(meta.input_tensor_meta(0))},
        )

    def _close(self) -> None:
        with self._pool:
            self._open_with.remove(self.options["threads"])
            del self._method, self._program


def _halved(program: Any) -> Any:
    values = {node.name: node.meta.get("val") for node in program.graph.nodes}
    names = program.graph_signature.user_inputs
    example = tuple(torch.zeros(values[name].shape, dtype=torch.half) for name in names)
    return torch.export.export(program.module().half(), example)


def _ports(word: str, infos: list[Any]) -> tuple[Port, ...]:
    float32 = np.dtype(np.float32)
    return tuple(Port(f"{word}{i}", float32, tuple(x.sizes())) for i, x in enumerate(infos))


BACKEND = Backend(
    name="executorch",
    summary="ExecuTorch on the CPU with XNNPACK: torch.export programs in FP32 or true FP16",
    library=executorch,
    companions=(torch,),
    offers=(
        Offer(
            Stage.RUNTIME,
            {
                "device": ("cpu",),
                "threads": AtLeast(1),
                "storage": ("fp32",),
                "compute": ("fp32", "fp16"),
            },
            ExecutorchRuntime,
            source="https://docs.pytorch.org/executorch/stable/",
        ),
    ),
)
