"""Parts of ``torch.fx`` graphs of exported programs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import torch

PRODUCTS = {
    **{f"aten.conv{n}d.{kind}": (1, 2) for n in (1, 2, 3) for kind in ("default", "padding")},
    "aten.convolution.default": (1, 2),
    "aten.conv_transpose1d.default": (1, 2),
    "aten.conv_transpose2d.input": (1, 2),
    "aten.conv_transpose3d.input": (1, 2),
    "aten.linear.default": (1, 2),
    "aten.addmm.default": (2, 0),
    "aten.mm.default": (1, None),
    "aten.bmm.default": (1, None),
    "aten.matmul.default": (1, None),
    "aten.scaled_dot_product_attention.default": (None, None),
}
"""Convolutions and products, with the places of their weights and biases among the arguments."""


def share(module: Any) -> None:
    """Read a tensor that is stored under several names by one of them."""
    first: dict[Any, Any] = {}
    for node in list(module.graph.nodes):
        if node.op == "get_attr" and isinstance(held := attribute(module, node), torch.Tensor):
            place = (held.data_ptr(), held.shape, held.stride(), held.dtype)
            known = first.setdefault(place, node)
            if known is not node and held.numel():
                node.replace_all_uses_with(known)
                module.graph.erase_node(node)
    module.recompile()


def functional(module: Any) -> bool:
    """Replace operators that change a tensor in place by those that make a new one.

    Args:
        module: a ``torch.fx.GraphModule``; it is changed.

    Returns:
        Whether any was replaced; views of what such an operator changes keep their old values.
    """
    order = {node: number for number, node in enumerate(module.graph.nodes)}
    replaced = False
    for node in list(module.graph.nodes):
        schema = getattr(node.target, "_schema", None)
        if node.op != "call_function" or schema is None or not schema.is_mutable:
            continue
        name = schema.name.removeprefix("aten::").removesuffix("_")
        node.target = getattr(getattr(torch.ops.aten, name), node.target._overloadname)
        node.args[0].replace_all_uses_with(
            node, delete_user_cb=lambda user, here=order[node]: order[user] > here
        )
        replaced = True
    module.recompile()
    return replaced


def depending(node: Any) -> set[Any]:
    """Return the nodes that are computed from a node."""
    found: set[Any] = set()
    left = [node]
    while left:
        for user in left.pop().users:
            if user not in found:
                found.add(user)
                left.append(user)
    return found


def needed(results: Iterable[Any], known: Collection[Any]) -> set[Any]:
    """Return the nodes that results are computed with; what leads to known ones is left out."""
    found: set[Any] = set()
    left = list(results)
    while left:
        node = left.pop()
        if node not in found:
            found.add(node)
            left.extend([] if node in known else node.all_input_nodes)
    return found


def stored(module: Any, value: Any) -> Any:
    """Return the node that reads the largest stored tensor of which a value is made.

    Args:
        module: the graph's.
        value: an argument of a node.

    Returns:
        None if the value depends on the network's input, or is no tensor.
    """
    if not isinstance(value, torch.fx.Node):
        return None
    sources = [node for node in needed([value], ()) if not node.all_input_nodes]
    if not sources or any(node.op != "get_attr" for node in sources):
        return None
    return max(sources, key=lambda node: attribute(module, node).numel())


def attribute(module: Any, node: Any) -> Any:
    """Return the tensor that a node reads."""
    found = module
    for name in node.target.split("."):
        found = getattr(found, name)
    return found


def part(
    module: Any,
    inputs: Sequence[Any],
    results: Sequence[Any],
    taps: bool = False,
    hooked: Sequence[Any] = (),
) -> Any:
    """Return the part of a graph between some nodes and others, as a module.

    Args:
        module: the whole graph; its tensors are shared.
        inputs: nodes whose values are given, in the order of the arguments.
        results: nodes whose values are returned, as a tuple.
        taps: whether the extremes of all convolutions and products on the way, as one tensor,
            are returned too, at the end; None where there is none.
        hooked: nodes on the way whose values a function changes, which is then the first argument;
            it gets a value and the number of its node, and returns another value.
    """
    graph = torch.fx.Graph()
    hook = graph.placeholder("hook") if hooked else None
    made = {node: graph.placeholder(node.name) for node in inputs}
    wanted = needed(results, inputs)
    ends = []
    for node in module.graph.nodes:
        if node in wanted and node not in made:
            made[node] = graph.node_copy(node, made.__getitem__)
            if node in hooked:
                given = (hook, made[node], hooked.index(node))
                made[node] = graph.call_function(changed, given)
        if taps and node in made and str(node.target) in PRODUCTS:
            ends.append(graph.call_function(extremes, (made[node],)))
    tail = (graph.call_function(torch.stack, (ends,)) if ends else None,) if taps else ()
    graph.output((*(made[node] for node in results), *tail))
    return torch.fx.GraphModule(module, graph)


def changed(hook: Any, values: Any, number: int) -> Any:
    """Return what a function makes of a value."""
    return hook(values, number)


def extremes(values: Any) -> Any:
    """Return the smallest and the largest element; both are NaN where one is."""
    return torch.stack(torch.aminmax(values.float()))
