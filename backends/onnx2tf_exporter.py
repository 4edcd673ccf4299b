"""To be written."""

from simulator.contract import Backend, Library

BACKEND = Backend(
    name="onnx2tf",
    summary="to be written",
    library=Library("onnx2tf", distribution="onnx2tf", extra="litert"),
    offers=(),
)
