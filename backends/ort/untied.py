"""Transposed constants as constants: what quantizers of matrix products need to find a weight."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import onnx


def untied(model: onnx.ModelProto) -> onnx.ModelProto:
    """Replace each Transpose of a constant by a constant, in place; return the model.

    A language model whose head is its embedding has one; the head is then stored a second time.
    """
    from onnx import numpy_helper

    graph = model.graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    for node in [node for node in graph.node if node.op_type == "Transpose"]:
        if node.input[0] not in constants:
            continue
        weight = numpy_helper.to_array(constants[node.input[0]])
        order = next((list(a.ints) for a in node.attribute if a.name == "perm"), None)
        turned = np.ascontiguousarray(weight.transpose(order))
        graph.initializer.append(numpy_helper.from_array(turned, node.output[0]))
        graph.node.remove(node)
    read = {name for node in graph.node for name in node.input}
    read |= {value.name for value in graph.output}
    for tensor in [one for one in graph.initializer if one.name not in read]:
        graph.initializer.remove(tensor)
    return model
