"""To be written."""

from simulator.contract import Backend, Library

BACKEND = Backend(
    name="qnn",
    summary="to be written",
    library=Library("onnxruntime_qnn", distribution="onnxruntime-qnn", extra="qnn"),
    offers=(),
)
