"""From which error on a layer is looked at."""

from __future__ import annotations

from simulator.model.passes.graph import edit
from simulator.model.points import Graph
from simulator.pipeline.stack import Stack

BOUNDS = {
    "fp32": (1e-4, "ten times what other orders of summation give in FP32"),
    "fp16": (1e-2, "what rounding to the 11 bits of FP16 gives after hundreds of layers"),
    "bf16": (5e-2, "what rounding to the 8 bits of BF16 gives after some layers"),
    "int8": (5e-2, "three times what rounding a layer's weights, input and output to 8 bits gives "
                   "where values are normal and the range is four standard deviations"),
}  # fmt: skip
"""By what the deployment stack computes in: the relative error that is looked at, and why.

Source:
    A step of 8 standard deviations / 255 has a rounding error of 8 / 255 / sqrt(12) = 0.9 %.
"""


def bound_of(stack: Stack, graph: Graph) -> tuple[float, str]:
    """Return the error above which a layer is looked at, and why."""
    rounds = edit.rounded(graph.model)
    kinds = {kind.name for kind in graph.kinds.values()}
    compute = stack.effective.compute or stack.profile.spec.precision.compute
    asked = "int8" if rounds or compute == "int8" else compute
    asked = "fp16" if asked == "fp32" and "float16" in kinds else asked
    return BOUNDS.get(asked, BOUNDS["fp16"])
