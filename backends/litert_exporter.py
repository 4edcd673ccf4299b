"""To be written."""

from simulator.contract import Backend, Library

BACKEND = Backend(
    name="litert_torch",
    summary="to be written",
    library=Library("litert_torch", distribution="litert-torch", extra="litert"),
    offers=(),
)
