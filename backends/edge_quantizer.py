"""To be written."""

from simulator.contract import Backend, Library

BACKEND = Backend(
    name="ai_edge_quantizer",
    summary="to be written",
    library=Library("ai_edge_quantizer", distribution="ai-edge-quantizer", extra="litert"),
    offers=(),
)
