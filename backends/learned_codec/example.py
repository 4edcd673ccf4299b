"""The smallest codec, for the conformance suite: it stores every level and loses nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np

_STRIDE = 4


def write_example(path: Path) -> None:
    """Write a codec whose integers are the pixels' own levels, a block of 4x4 in 48 channels."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    constants = [numpy_helper.from_array(np.array(255, np.float32), "levels")]
    nodes = [
        helper.make_node("Mul", ["pixels", "levels"], ["scaled"]),
        helper.make_node("SpaceToDepth", ["scaled"], ["blocks"], blocksize=_STRIDE),
        helper.make_node("Round", ["blocks"], ["latents"]),
        helper.make_node("DepthToSpace", ["latents"], ["unpacked"], blocksize=_STRIDE),
        helper.make_node("Div", ["unpacked", "levels"], ["decoded"]),
    ]
    ports = {
        "pixels": (1, 3, "height", "width"),
        "decoded": (1, 3, "height", "width"),
        "latents": (1, 3 * _STRIDE**2, "rows", "columns"),
    }
    pixels, *outputs = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in ports.items()
    )
    graph = helper.make_graph(nodes, "example", [pixels], outputs, constants)
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=10)
    helper.set_model_props(model, {"stride": str(_STRIDE)})
    onnx.save(model, path)
