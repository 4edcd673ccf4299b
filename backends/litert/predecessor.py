"""tflite-runtime, LiteRT's predecessor, which many devices still have."""

from __future__ import annotations

from backends.litert.interpreter import FLOAT, INTEGER, RUN, InterpreterRuntime, tflite
from simulator.contract import Backend, Environment, Library, Offer, Stage


class TfliteRuntime(InterpreterRuntime):
    """``tflite_runtime.interpreter.Interpreter``, with the same API as LiteRT's.

    Its XNNPACK leaves INT8 operators to the built-in kernels.
    """

    @property
    def _library(self) -> Library:
        return tflite


_OWN = {"kernels": ("builtin", "reference")}
_SOURCE = "https://pypi.org/project/tflite-runtime/"

BACKEND = Backend(
    name="tflite_runtime",
    summary="tflite-runtime on the CPU: XNNPACK, built-in and reference kernels; FP32, INT8",
    library=tflite,
    environment=Environment(
        requirements=("tflite-runtime==2.14.0", "numpy==1.26.4"),
        why="tflite-runtime 2.14 was built for NumPy 1, and its interpreter fails with NumPy 2",
    ),
    offers=(
        Offer(Stage.RUNTIME, {**RUN, **FLOAT}, TfliteRuntime, source=_SOURCE),
        Offer(Stage.RUNTIME, {**RUN, **INTEGER, **_OWN}, TfliteRuntime, source=_SOURCE),
    ),
    fields={"kernels": "which kernels run: XNNPACK, the library's own, or its reference kernels"},
)
