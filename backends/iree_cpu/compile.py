"""IREE's compiler: from an ONNX file to a module for this CPU."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from backends.onnx_ports import name_nodes, ports, read_onnx, run_tool, save_ports
from simulator.contract import Library, ModelError

compiler = Library("iree.compiler", distribution="iree-base-compiler", extra="iree")

FILE, PRODUCTS = "model.vmfb", "products.json"
_IMPORT = "iree.compiler.tools.import_onnx"
_COMPILE = "iree.compiler.tools.scripts.iree_compile"
_TARGET = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
)
_OLDEST = 17
"""The oldest opset that IREE's importer supports; older files are converted to it."""

_HEAVY = re.compile(
    r"linalg\.\w*(?:conv|matmul|mmt|vecmat|matvec)\w*.*?ins\([^:]*: tensor<([^>]*)>"
)
_KINDS = {"f32": "fp32", "f16": "fp16", "i8": "int8"}


def compile_onnx(source: Path, folder: Path) -> None:
    """Compile at optimization level O3, and count the products of the imported module by type.

    Raises:
        ModelError: IREE lacks an operator, or fails.
    """
    import onnx

    compiler.load()
    model = read_onnx(source)
    model.graph.name = "main"  # the function's name
    old = max((o.version for o in model.opset_import if not o.domain), default=1) < _OLDEST
    raised = [f"--opset-version={_OLDEST}"] if old else []
    steps = [
        [_IMPORT, "model.onnx", "-o", "model.mlir", *raised],
        [_COMPILE, "model.mlir", "-o", "input.mlir", "--compile-to=input", *_TARGET,
         "--mlir-elide-elementsattrs-if-larger=8"],
        [_COMPILE, "model.mlir", "-o", str(folder / FILE), "--iree-opt-level=O3", *_TARGET],
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as work:
        onnx.save(model, str(Path(work) / "model.onnx"))
        for step in steps:
            code, said = run_tool([sys.executable, "-m", *step], Path(work))
            if code:
                raise ModelError(f"IREE cannot compile {_problem(model, said)}: {source}")
        text = (Path(work) / "input.mlir").read_text()
    kinds = (shape.rpartition("x")[2] for shape in _HEAVY.findall(text))
    products = Counter(_KINDS.get(kind, kind) for kind in kinds)
    (folder / PRODUCTS).write_text(json.dumps(products))
    save_ports(folder, *ports(model))


def _problem(model: Any, said: str) -> str:
    if unknown := re.search(r'torch\.operator "onnx\.(\w+)"', said):
        return f"operator {name_nodes(model, [unknown[1]])}"
    lines = [line for line in said.splitlines() if "error" in line.lower()] or ["no reason given"]
    return f"this model ({' '.join(lines[0].split())[:200]})"
