"""To be written."""

from simulator.contract import Backend, Library

BACKEND = Backend(
    name="mnn",
    summary="to be written",
    library=Library("MNN", distribution="mnn", extra="mnn"),
    offers=(),
)
