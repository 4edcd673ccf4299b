"""To be written."""

from simulator.contract import Backend, Library

BACKEND = Backend(
    name="tflite_runtime",
    summary="to be written",
    library=Library("tflite_runtime", distribution="tflite-runtime", extra="litert"),
    offers=(),
)
