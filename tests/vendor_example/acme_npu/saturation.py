"""A graph pass of Acme's own: its activations saturate at 6, ``graph: {acme_relu: relu6}``."""

from __future__ import annotations

from typing import Literal

import numpy as np
import onnx

from simulator.contract.passes import GraphPass
from simulator.model.passes.graph import edit
from simulator.model.passes.graph.change import Change, Seen

NAME = "acme_relu"


def apply(model: onnx.ModelProto, asked: str) -> Change:
    """Write every Relu as Clip from 0 to 6, in place."""
    dtypes = edit.dtypes_of(model)
    before, after = {}, {}
    made: dict[str, list[onnx.NodeProto]] = {}
    for node in edit.nodes_of(model, "Relu"):
        name = node.output[0]
        dtype = dtypes.get(node.input[0], np.dtype(np.float32))
        build = edit.Builder(model, NAME, name, dtype)
        if asked == "relu6":
            limits = (build.constant(np.array(limit, dtype)) for limit in (0, 6))
            build("Clip", node.input[0], *limits, last=True)
            made[name] = build.nodes
        before[name] = Seen("Relu", "keep", "keep")
        after[name] = Seen("Relu", asked, asked)
    if made:
        edit.splice(model, made)
    return Change(NAME, "Relu", before, after)


PASS = GraphPass(NAME, 350, Literal["keep", "relu6"], "keep", apply)
