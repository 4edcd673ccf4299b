"""To be written."""

from simulator.contract import Backend, Library

BACKEND = Backend(
    name="ascend",
    summary="to be written",
    library=Library("acl", distribution="acl", extra="ascend"),
    offers=(),
)
