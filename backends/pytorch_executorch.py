"""To be written."""

from simulator.contract import Backend, Library

BACKEND = Backend(
    name="executorch",
    summary="to be written",
    library=Library("executorch", distribution="executorch", extra="executorch"),
    offers=(),
)
