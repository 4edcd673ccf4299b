"""To be written."""

from simulator.contract import Backend, Library

BACKEND = Backend(
    name="tensorflow",
    summary="to be written",
    library=Library("tensorflow", distribution="tensorflow-cpu", extra="tensorflow"),
    offers=(),
)
