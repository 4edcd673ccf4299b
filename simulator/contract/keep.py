"""Keep lists, which set mixed precision by operator type and by node, for one model."""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from simulator.errors import ModelError

if TYPE_CHECKING:
    import onnx


def kept(model: onnx.ModelProto, keep: Mapping[str, Sequence[str]]) -> set[str]:
    """Find the nodes of a model that a keep list names.

    A node without a name first gets one, in place: the name of its first output.

    Args:
        model: an ONNX model; nodes inside the bodies of If and Loop are ignored.
        keep: ``op_types``, ``nodes`` and a ``reason``. An operator type that the model does not
            use keeps nothing; one that ONNX does not define is an error. In a node's name, ``*``
            stands for any characters.

    Returns:
        Node names.

    Raises:
        ModelError: a node is not in the model, or a name is not an ONNX operator; the message
            lists all such problems.
    """
    import onnx

    nodes = model.graph.node
    taken = {node.name for node in nodes}
    for node in nodes:
        if not node.name:
            node.name = next(filter(None, node.output))
            while node.name in taken:
                node.name += "_"
            taken.add(node.name)
    types = {node.op_type for node in nodes}
    known = {schema.name for schema in onnx.defs.get_all_schemas()} | types
    wild = [name for name in keep["nodes"] if "*" in name]
    found = {name for one in wild for name in fnmatch.filter(taken, one)}
    plain = [n for n in keep["nodes"] if n not in wild or not fnmatch.filter(taken, n)]
    problems = [
        *_lacking("keep.nodes: the model has no node", plain, taken),
        *_lacking("keep.op_types: there is no operator", keep["op_types"], known),
    ]
    if problems:
        raise ModelError("; ".join(problems))
    wanted, by_type = {*keep["nodes"], *found}, set(keep["op_types"])
    return {node.name for node in nodes if node.name in wanted or node.op_type in by_type}


def _lacking(what: str, names: Iterable[str], known: set[str]) -> list[str]:
    problems = []
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f", did you mean {near[0]!r}?" if near else ""
            problems.append(f"{what} {name!r}{hint}")
    return problems
