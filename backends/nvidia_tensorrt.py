"""To be written."""

from simulator.contract import Backend, Library

BACKEND = Backend(
    name="tensorrt",
    summary="to be written",
    library=Library("tensorrt", distribution="tensorrt", extra="tensorrt"),
    offers=(),
)
