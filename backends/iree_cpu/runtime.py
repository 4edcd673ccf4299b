"""IREE on the CPU, compiled from ONNX ahead of time."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from backends.iree_cpu.compile import FILE, PRODUCTS, compile_onnx, compiler
from backends.onnx_ports import load_ports
from simulator.contract import (
    Admits,
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

iree = Library("iree.runtime", distribution="iree-base-runtime", extra="iree")


class IreeRuntime(Runtime):
    """``iree.runtime`` with a module compiled by ``iree-compile`` for this CPU at level O3.

    One thread uses the driver ``local-sync``; more use ``local-task`` with that many workers. IREE
    creates the workers once per process, so two stacks cannot use different counts above one. One
    call runs at a time.

    Source:
        https://iree.dev/guides/deployment-configurations/cpu/
    """

    fixed_shapes: ClassVar[bool] = True
    batches: ClassVar[tuple[str, ...]] = ("fixed",)
    one_at_a_time: ClassVar[bool] = True
    compiled_by: ClassVar[tuple[str, ...]] = ()
    _workers: ClassVar[int | None] = None
    _making: ClassVar[threading.Lock] = threading.Lock()

    @classmethod
    def compile(cls, source: Path, folder: Path, options: Mapping[str, Any]) -> None:
        """Import and compile an ONNX file; see :mod:`backends.iree_cpu.compile`."""
        compile_onnx(source, folder)

    def _open(self, artifact: Path) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
        context = iree.SystemContext(config=iree.Config(device=self._device()))
        context.add_vm_module(iree.VmModule.mmap(context.instance, str(artifact / FILE)))
        self._main = context.modules.module["main"]
        self._context = context
        self._products = json.loads((artifact / PRODUCTS).read_text())
        return load_ports(artifact)

    def _device(self) -> Any:
        threads = self.options["threads"]
        if threads == 1:
            return iree.get_device("local-sync", cache=False)
        with self._making:
            if IreeRuntime._workers not in (None, threads):
                raise Unsupported(
                    f"IREE creates its workers once per process: it has {IreeRuntime._workers}, "
                    f"but {threads} were requested; use the same number, or 1"
                )
            iree.flags.parse_flags(f"--task_topology_group_count={threads}")
            IreeRuntime._workers = threads
            return iree.get_device("local-task", cache=False)

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        found = self._main(*(feeds[port.name] for port in self.inputs))
        made = found if isinstance(found, (tuple, list)) else (found,)
        return self._named(value.to_host() for value in made)

    def effective(self, feeds: Mapping[str, Array]) -> Effective:
        """Count products by the type of their operands, as IREE's ONNX importer wrote them."""
        threads = 1 if self.options["threads"] == 1 else IreeRuntime._workers
        return Effective(
            products=self._products,
            options={"device": "cpu", "threads": threads},
            details={"driver": "local-sync" if threads == 1 else "local-task"},
        )

    def _close(self) -> None:
        del self._main, self._context


_RUN: dict[str, Admits] = {"device": ("cpu",), "threads": AtLeast(1)}
_PRECISIONS: tuple[dict[str, Admits], ...] = (
    {"storage": ("fp32",), "compute": ("fp32",)},
    {"storage": ("fp16",), "compute": ("fp16",)},
    {"storage": ("int8",), "compute": ("int8",)},
)

BACKEND = Backend(
    name="iree",
    summary="IREE on the CPU (LLVM): FP32, FP16 of an ONNX file with FP16 tensors, QDQ files",
    library=iree,
    companions=(compiler,),
    offers=tuple(
        Offer(Stage.RUNTIME, {**_RUN, **precision}, IreeRuntime, source="https://iree.dev")
        for precision in _PRECISIONS
    ),
)
