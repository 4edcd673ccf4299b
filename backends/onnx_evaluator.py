"""To be written."""

from simulator.contract import Backend, Library

BACKEND = Backend(
    name="onnx_reference",
    summary="to be written",
    library=Library("onnx.reference", distribution="onnx", extra="dev"),
    offers=(),
)
