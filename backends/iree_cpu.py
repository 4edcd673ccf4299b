"""IREE on the CPU, compiled from ONNX ahead of time."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from backends.onnx_ports import load_ports, name_nodes, ports, read_onnx, save_ports
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
from simulator.errors import ModelError

iree = Library("iree.runtime", distribution="iree-base-runtime", extra="iree")
compiler = Library("iree.compiler", distribution="iree-base-compiler", extra="iree")

_IMPORT = "iree.compiler.tools.import_onnx"
_COMPILE = "iree.compiler.tools.scripts.iree_compile"
_TARGET = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
)
_FILE, _PRODUCTS = "model.vmfb", "products.json"
_OLDEST = 17
_HEAVY = re.compile(
    r"linalg\.\w*(?:conv|matmul|mmt|vecmat|matvec)\w*.*?ins\([^:]*: tensor<([^>]*)>"
)
_KINDS = {"f32": "fp32", "f16": "fp16", "bf16": "bf16", "i8": "int8"}


class IreeRuntime(Runtime):
    """``iree.runtime`` on what ``iree-compile`` makes for this CPU at optimisation level O3.

    One thread is the driver ``local-sync``, more are ``local-task`` with as many workers. IREE
    makes the workers once a process, so two stacks cannot have two counts above one. One call
    at a time.

    Source:
        https://iree.dev/guides/deployment-configurations/cpu/
    """

    compiled_by: ClassVar[tuple[str, ...]] = ()
    _workers: ClassVar[int | None] = None
    _making: ClassVar[threading.Lock] = threading.Lock()

    @classmethod
    def compile(cls, source: Path, folder: Path, options: Mapping[str, Any]) -> None:
        """Import an ONNX file and compile it.

        Raises:
            ModelError: IREE lacks an operator, or fails.
        """
        import onnx

        compiler.load()
        model = read_onnx(source)
        model.graph.name = "main"  # the function's name
        old = max((o.version for o in model.opset_import if not o.domain), default=1) < _OLDEST
        with tempfile.TemporaryDirectory() as work:
            onnx.save(model, str(Path(work) / "model.onnx"))
            raised = [f"--opset-version={_OLDEST}"] if old else []
            steps = [
                [_IMPORT, "model.onnx", "-o", "model.mlir", *raised],
                [_COMPILE, "model.mlir", "-o", "input.mlir", "--compile-to=input", *_TARGET,
                 "--mlir-elide-elementsattrs-if-larger=8"],
                [_COMPILE, "model.mlir", "-o", str(folder / _FILE), "--iree-opt-level=O3",
                 *_TARGET],
            ]  # fmt: skip
            for step in steps:
                done = subprocess.run(
                    [sys.executable, "-m", *step],
                    cwd=work,
                    capture_output=True,
                    text=True,
                    errors="replace",
                    check=False,
                )
                if done.returncode:
                    raise ModelError(_problem(model, source, done.stderr))
            products = _products((Path(work) / "input.mlir").read_text())
        (folder / _PRODUCTS).write_text(json.dumps(products))
        save_ports(folder, *ports(model))

    def _open(self, artifact: Path) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
        context = iree.SystemContext(config=iree.Config(device=self._device()))
        context.add_vm_module(iree.VmModule.mmap(context.instance, str(artifact / _FILE)))
        self._main = context.modules.module["main"]
        self._context, self._lock = context, threading.Lock()
        self._products = json.loads((artifact / _PRODUCTS).read_text())
        return load_ports(artifact)

    def _device(self) -> Any:
        threads = self.options["threads"]
        if threads == 1:
            return iree.get_device("local-sync", cache=False)
        with self._making:
            if IreeRuntime._workers not in (None, threads):
                raise Unsupported(
                    f"IREE makes its workers once a process: here it has {IreeRuntime._workers}, "
                    f"and {threads} were asked for; use one number, or 1"
                )
            from iree.runtime.flags import parse_flags

            parse_flags(f"--task_topology_group_count={threads}")
            IreeRuntime._workers = threads
            return iree.get_device("local-task", cache=False)

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        with self._lock:
            found = self._main(*(feeds[port.name] for port in self.inputs))
            made = found if isinstance(found, (tuple, list)) else (found,)
            return {p.name: v.to_host() for p, v in zip(self.outputs, made, strict=True)}

    def effective(self, feeds: Mapping[str, Array]) -> Effective:
        """Count products by the type of their operands, as IREE's ONNX importer left them."""
        threads = 1 if self.options["threads"] == 1 else IreeRuntime._workers
        return Effective(
            products=self._products,
            options={"device": "cpu", "threads": threads},
            details={"driver": "local-sync" if threads == 1 else "local-task"},
        )

    def _close(self) -> None:
        del self._main, self._context


def _products(text: str) -> dict[str, int]:
    """Count the convolutions and matrix products of a linalg module by operand type."""
    kinds = (shape.rpartition("x")[2] for shape in _HEAVY.findall(text))
    return dict(Counter(_KINDS.get(kind, kind) for kind in kinds))


def _problem(model: Any, source: Path, said: str) -> str:
    if unknown := re.search(r'torch\.operator "onnx\.(\w+)"', said):
        return f"IREE cannot compile {name_nodes(model, [unknown[1]])}: {source}"
    lines = [line for line in said.splitlines() if "error" in line.lower()]
    return (
        f"IREE cannot compile {source}: {' '.join((lines or ['no reason given'])[0].split())[:200]}"
    )


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
