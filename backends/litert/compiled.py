"""LiteRT, formerly TensorFlow Lite: the interpreter, and true FP16 by ``CompiledModel``."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import ClassVar

import numpy as np

from backends.litert.interpreter import FLOAT, INTEGER, RUN, InterpreterRuntime, newest
from backends.litert.tensor import sizes
from backends.quiet import quiet
from simulator.contract import Array, Backend, Effective, Library, Offer, Port, Stage, Unsupported

compiled = Library("ai_edge_litert.compiled_model", distribution="ai-edge-litert", extra="litert")
settings = Library("ai_edge_litert.options", distribution="ai-edge-litert", extra="litert")

_FORCE_FP16 = 4  # TFLITE_XNNPACK_DELEGATE_FLAG_FORCE_FP16, xnnpack_delegate.h


class HalfRuntime(InterpreterRuntime):
    """``CompiledModel`` with XNNPACK forced to compute in FP16. One call runs at a time.

    The interpreter has no such switch: it computes a file with FP16 weights in FP32. The library
    does not report its precision. Free dimensions are set to 1.
    """

    batches: ClassVar[tuple[str, ...]] = ()
    one_at_a_time: ClassVar[bool] = True

    def _open(self, artifact: Path) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
        super()._open(artifact)
        del self._local.session
        self._takes = [tensor.fixed() for tensor in self._takes]
        self._gives = [tensor.fixed() for tensor in self._gives]
        for tensor in (*self._takes, *self._gives):
            if tensor.dtype != np.float32:
                raise Unsupported(
                    f"compute fp16 needs float32 inputs and outputs; {tensor.name!r} of "
                    f"{artifact} is {tensor.dtype}"
                )
        ports = self._ports()
        cpu = settings.CpuOptions(num_threads=self.options["threads"], xnnpack_flags=_FORCE_FP16)
        options = settings.Options(
            hardware_accelerators=settings.HardwareAccelerator.CPU, cpu_options=cpu
        )
        with quiet():
            self._model = compiled.CompiledModel.from_file(self._path, options=options)
            self._in = self._model.create_input_buffers(0)
            self._out = self._model.create_output_buffers(0)
            self._run({port.name: np.zeros(sizes(port.shape), np.float32) for port in ports[0]})
        atexit.unregister(_mute)
        atexit.register(_mute)
        return ports

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        for buffer, tensor in zip(self._in, self._takes, strict=True):
            buffer.write(tensor.store(feeds[tensor.name]))
        self._model.run_by_index(0, self._in, self._out)
        return {
            t.name: buffer.read(prod(sizes(t.shape)), np.float32).reshape(sizes(t.shape))
            for buffer, t in zip(self._out, self._gives, strict=True)
        }

    def effective(self, feeds: Mapping[str, Array]) -> Effective:
        """Return the settings; only whether XNNPACK runs every operator can be read back."""
        whole = self._model.is_fully_accelerated()
        return Effective(
            products={},
            options={"device": "cpu", "kernels": "xnnpack" if whole else "partly xnnpack"},
            details={"api": "CompiledModel", "xnnpack_flags": "FORCE_FP16"},
        )

    def _close(self) -> None:
        with quiet():
            del self._in, self._out, self._model


def _mute() -> None:
    """Keep messages of the library's static destructors off stderr."""
    sys.stderr.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


_SOURCE = "https://ai.google.dev/edge/litert"
_HALF = {"kernels": ("xnnpack",), "storage": ("fp32", "fp16", "int8"), "compute": ("fp16",)}

BACKEND = Backend(
    name="litert",
    summary="LiteRT on the CPU: XNNPACK, built-in and reference kernels; FP16, INT8",
    library=newest,
    offers=(
        Offer(Stage.RUNTIME, {**RUN, **FLOAT}, InterpreterRuntime, source=_SOURCE),
        Offer(Stage.RUNTIME, {**RUN, **INTEGER}, InterpreterRuntime, source=_SOURCE),
        Offer(Stage.RUNTIME, {**RUN, **_HALF}, HalfRuntime, source=_SOURCE),
    ),
    fields={"kernels": "which kernels run: XNNPACK, the library's own, or its reference kernels"},
)
