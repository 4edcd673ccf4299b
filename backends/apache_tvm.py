"""To be written."""

from simulator.contract import Backend, Library

BACKEND = Backend(
    name="tvm",
    summary="to be written",
    library=Library("tvm", distribution="apache-tvm", extra="tvm"),
    offers=(),
)
