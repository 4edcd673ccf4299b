"""To be written."""

from simulator.contract import Backend, Library

BACKEND = Backend(
    name="iree",
    summary="to be written",
    library=Library("iree.runtime", distribution="iree-base-runtime", extra="iree"),
    offers=(),
)
