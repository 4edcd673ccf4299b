"""To be written."""

from simulator.contract import Backend, Library

BACKEND = Backend(
    name="litert",
    summary="to be written",
    library=Library("ai_edge_litert", distribution="ai-edge-litert", extra="litert"),
    offers=(),
)
