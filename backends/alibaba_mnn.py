"""MNN on the CPU, converted from ONNX by its own converter."""

from __future__ import annotations

import ctypes
import os
import re
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from backends.onnx_ports import load_ports, name_nodes, ports, read_onnx, run_tool, save_ports
from backends.quiet import QuietLibrary, quiet
from simulator.contract import (
    Array,
    AtLeast,
    Backend,
    Effective,
    ModelError,
    Offer,
    Port,
    Runtime,
    Stage,
)

mnn = QuietLibrary("MNN", distribution="mnn", extra="mnn")

_STORES: dict[str, list[str]] = {"fp32": [], "fp16": ["--fp16"], "int8": ["--weightQuantBits", "8"]}
_CONVERT = "import sys, _tools; _tools.mnnconvert(sys.argv)"
_FILE = "model.mnn"


class MnnRuntime(Runtime):
    """An MNN ``Module`` with ``precision: high``, from the ``.mnn`` that ``mnnconvert`` writes.

    ``weight_storage`` is the type in which the converter stores the weights of convolutions and
    matrix products: FP32, FP16, or 8 bits (256 levels between the smallest and the largest weight
    of an output channel). Loading converts them to FP32, so the arithmetic is always FP32. One call
    at a time.

    The package's ``mnnconvert`` command installs a usage reporter with pip. So its C entry point is
    called instead, in a child process that finds no commands and no proxy.

    Source:
        https://mnn-docs.readthedocs.io/en/latest/tools/convert.html
    """

    batches: ClassVar[tuple[str, ...]] = ("fixed",)
    one_at_a_time: ClassVar[bool] = True
    compiled_by: ClassVar[tuple[str, ...]] = ("weight_storage",)
    compiled_format: ClassVar[str] = "mnn"

    @classmethod
    def compile(cls, source: Path, folder: Path, options: Mapping[str, Any]) -> None:
        """Convert an ONNX file.

        Raises:
            ModelError: the converter fails or crashes, or lacks an operator.
        """
        import onnx

        mnn.load()
        model = read_onnx(source)
        target = folder / _FILE
        with tempfile.TemporaryDirectory() as work:
            onnx.save(model, str(Path(work) / "model.onnx"))
            code, said = run_tool(
                [
                    *(sys.executable, "-I", "-c", _CONVERT),
                    *("-f", "ONNX", "--modelFile", "model.onnx", "--MNNModel", str(target)),
                    *("--bizCode", "simulator", *_STORES[options["weight_storage"]]),
                ],
                Path(work),
                {"PATH": os.devnull},
            )
        if unknown := re.search(r"Op Not Support: (.*)", said):
            kinds = re.findall(r"ONNX::(\S+)", unknown[1]) or [unknown[1].strip()]
            raise ModelError(f"MNN has no operator {name_nodes(model, kinds)}: {source}")
        if code or not target.is_file():
            reason = [line for line in said.splitlines() if re.search("rror|ailed", line)][:1]
            words = "".join(reason)[:200] or f"its converter ended with {code}"
            raise ModelError(f"MNN cannot convert {source}: {words}")
        save_ports(folder, *ports(model))

    def _open(self, artifact: Path) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
        ready = artifact.is_file()
        inputs, outputs = _ports(artifact) if ready else load_ports(artifact)
        with quiet():
            self._manager = mnn.nn.create_runtime_manager(
                ({"backend": "CPU", "precision": "high", "numThread": self.options["threads"]},)
            )
            self._module = mnn.nn.load_module_from_file(
                str(artifact if ready else artifact / _FILE),
                [port.name for port in inputs],
                [port.name for port in outputs],
                runtime_manager=self._manager,
            )
            ctypes.CDLL(None).fflush(None)  # flush C's buffer, which would be printed later
        return inputs, outputs

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        expr = mnn.expr
        variables = []
        for port in self.inputs:
            array = np.ascontiguousarray(feeds[port.name])
            variables.append(expr.placeholder(list(array.shape), expr.NCHW))
            variables[-1].write(array)
        made = self._module.forward(variables)
        return self._named(np.array(expr.convert(value, expr.NCHW).read()) for value in made)

    def effective(self, feeds: Mapping[str, Array]) -> Effective:
        """MNN reports neither threads nor precision; only the storage in the file is known."""
        return Effective(
            products={},
            options={"device": "cpu"},
            details={"weight_storage": self.options["weight_storage"], "precision": "high"},
        )

    def _close(self) -> None:
        del self._module, self._manager


def _ports(file: Path) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
    """Ask MNN for the inputs and outputs of a file; it does not say their types here.

    Raises:
        ModelError: MNN cannot read it.
    """
    with quiet():
        reader = mnn.Interpreter(str(file))
        session = reader.createSession({}) if reader else None
        if session is None:
            raise ModelError(f"MNN cannot read {file}")
        sides = reader.getSessionInputAll(session), reader.getSessionOutputAll(session)
        inputs, outputs = (
            tuple(
                Port(name, np.dtype(np.float32), tuple(tensor.getShape()))
                for name, tensor in side.items()
            )
            for side in sides
        )
    return inputs, outputs


BACKEND = Backend(
    name="mnn",
    summary="MNN on the CPU by its own converter: FP32 arithmetic; FP32, FP16 or INT8 weights",
    library=mnn,
    offers=(
        Offer(
            Stage.RUNTIME,
            {
                "device": ("cpu",),
                "threads": AtLeast(1),
                "weight_storage": tuple(_STORES),
                "storage": ("fp32",),
                "compute": ("fp32",),
            },
            MnnRuntime,
            source="https://mnn-docs.readthedocs.io/en/latest/",
        ),
    ),
    fields={"weight_storage": "how the converter stores weights; loading converts them to FP32"},
)
