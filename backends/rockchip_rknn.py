"""To be written."""

from simulator.contract import Backend, Library

BACKEND = Backend(
    name="rknn",
    summary="to be written",
    library=Library("rknn.api", distribution="rknn-toolkit2", extra="rknn"),
    offers=(),
)
