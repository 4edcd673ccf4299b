"""To be written."""

from simulator.contract import Backend, Library

BACKEND = Backend(
    name="ncnn",
    summary="to be written",
    library=Library("ncnn", distribution="ncnn", extra="ncnn"),
    offers=(),
)
