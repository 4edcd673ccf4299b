"""The batch dimension of a graph: another size of it, or none that is fixed.

Dimension 0 of every tensor that is computed from the inputs must be the batch, and each sample must
stay in its row. Shapes are inferred for a batch of one and for another size, and compared; a node
that does not fit is refused by its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import numpy_helper

from simulator.errors import ModelError
from simulator.modalities.modality import Feed
from simulator.model.passes.graph import edit

_TRIED = 7
"""The size of the batch for which shapes are compared; no likely size of anything else."""
_SHAPES = ("Shape", "Size")
"""What follows from these depends on the size of the batch, not on what is in it."""
_NEVER = ("If", "Loop", "Scan", "SequenceMap", "Einsum", "RNN", "LSTM", "GRU", "NonMaxSuppression",
          "DynamicQuantizeLinear")  # fmt: skip
"""Operators that put samples together (the last one takes one range from the whole batch), or
whose rows cannot be told apart by their shapes."""
_ALONG = {"Softmax": -1, "LogSoftmax": -1, "Hardmax": -1, "LayerNormalization": -1, "TopK": -1,
          "Gather": 0, "GatherElements": 0, "ScatterElements": 0, "ReverseSequence": None,
          "ArgMax": 0, "ArgMin": 0, "Concat": None, "Split": 0}  # fmt: skip
"""The axis along which an operator works where it names none."""
SYMBOL = "batch"


def with_batch(
    model: onnx.ModelProto, size: int | None, feeds: Sequence[Feed] = ()
) -> onnx.ModelProto:
    """Return a copy of a model that takes *size* samples at once.

    Constants of Reshape that begin with 1 keep the batch instead, and those of Resize get its size.

    Args:
        model: its inputs have a batch of 1, or a free one.
        size: the samples of a batch; None for any number.
        feeds: of its inputs; shapes are compared at the sizes that they are tried with.

    Raises:
        ModelError: samples do not stay in rows of their own, or that cannot be seen; the message
            names the node.
    """
    _refuse_together(model)
    example = onnx.ModelProto()
    example.CopyFrom(model)
    edit.pin(example, [feed.of_one_size() for feed in feeds])
    single, tried = _sized(example, 1), _sized(example, _TRIED)
    before, after = _shapes(single), _shapes(tried)
    fed = {value.name for value in edit.inputs_of(model)}
    for node in tried.graph.node:
        if not fed.intersection(edit.uses(node)) or node.op_type in _SHAPES:
            continue
        _refuse_mixing(node, fed, after)
        fed |= {name for name in node.output if name}
        for name in filter(None, node.output):
            _refuse_other_shape(node, before.get(name), after.get(name))
    for output in model.graph.output:
        if output.name not in fed:
            raise ModelError(f"output {output.name!r} does not depend on the inputs")
    return _sized(model, size)


def _refuse_together(model: onnx.ModelProto) -> None:
    """Refuse operators that may put samples together, whatever their shapes."""
    fed = {value.name for value in edit.inputs_of(model)}
    for node in model.graph.node:
        if node.op_type not in _SHAPES and fed.intersection(edit.uses(node)):
            if node.op_type in _NEVER:
                raise ModelError(f"{edit.label(node)} may put samples together")
            fed |= {name for name in node.output if name}


def _refuse_mixing(node: onnx.NodeProto, fed: set[str], shapes: Mapping[str, list[int]]) -> None:
    """Refuse a node that may compute a row from other rows."""
    what = edit.attributes(node)
    if node.op_type in _ALONG or "axis" in what:
        rank = len(shapes.get(node.input[0], ())) or None
        axis = what.get("axis", what.get("batch_axis", _ALONG.get(node.op_type)))
        first = node.op_type not in ("Gather",) or node.input[0] in fed
        if first and axis is not None and rank and axis % rank == 0:
            raise ModelError(f"{edit.label(node)} works along axis 0, which is the batch")
    if node.op_type == "BatchNormalization" and what.get("training_mode"):
        raise ModelError(f"{edit.label(node)} takes its statistics from the batch")


def _refuse_other_shape(
    node: onnx.NodeProto, one: list[int] | None, many: list[int] | None
) -> None:
    """Refuse a node that does not give one row for each sample."""
    if one is None or many is None or 0 in (*one, *many):
        raise ModelError(f"{edit.label(node)} gives a shape that cannot be told")
    if one[:1] != [1] or many != [_TRIED, *one[1:]]:
        raise ModelError(
            f"{edit.label(node)} gives {one} for one sample and {many} for {_TRIED}; "
            f"{[_TRIED, *one[1:]]} expected"
        )


def _sized(model: onnx.ModelProto, size: int | None) -> onnx.ModelProto:
    """Return a copy with another batch; what does not fit is left as it is."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for value in (*edit.inputs_of(made), *made.graph.output):
        dims = value.type.tensor_type.shape.dim
        if not dims:
            continue
        dims[0].Clear()
        if size is None:
            dims[0].dim_param = SYMBOL
        else:
            dims[0].dim_value = size
    del made.graph.value_info[:]
    known = edit.constants(made)
    for node in edit.nodes_of(made, "Reshape", "Resize"):
        at = {"Reshape": 1, "Resize": 3}[node.op_type]
        name = node.input[at] if len(node.input) > at else ""
        if name not in known or not known[name].size or known[name][0] != 1:
            continue
        if node.op_type == "Reshape" and edit.attributes(node).get("allowzero"):
            if 0 in known[name]:
                raise ModelError(f"{edit.label(node)} makes a tensor without elements")
            edit.set_attributes(node, allowzero=None)
        if node.op_type == "Resize" and size is None:
            raise ModelError(f"{edit.label(node)} has sizes with a fixed batch; give it a number")
        first = 0 if node.op_type == "Reshape" else size
        tensor = numpy_helper.from_array(
            np.array([first, *known[name][1:]], np.int64), f"{node.output[0]}/batched"
        )
        made.graph.initializer.append(tensor)
        node.input[at] = tensor.name
    made.ir_version = max(made.ir_version, 4)  # before, constants were inputs
    edit.splice(made, {})
    return made


def _shapes(model: onnx.ModelProto) -> dict[str, list[int]]:
    """The shape of every tensor.

    Raises:
        ModelError: a node does not fit this batch.
    """
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    try:
        return edit.infer(probe, [value.name for value in probe.graph.output])
    except edit.Misfit as error:
        where = f"node {error.node!r}: " if error.node else ""
        raise ModelError(f"{where}{error}") from error
