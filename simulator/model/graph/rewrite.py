"""Every rewrite of a graph, in the order in which they are applied."""

from __future__ import annotations

import onnx

from simulator.model.graph.pooling import PoolingChange, set_ceil_mode
from simulator.profile.schema import Graph


def rewrite(model: onnx.ModelProto, asked: Graph) -> list[PoolingChange]:
    """Apply what a profile asks for, in place.

    Returns:
        What each rewrite did.

    Raises:
        ModelError: the model does not stay valid; the message names the node.
    """
    changes = []
    if asked.pooling.ceil_mode != "keep":
        changes.append(set_ceil_mode(model, asked.pooling.ceil_mode == "ceil"))
    return changes
