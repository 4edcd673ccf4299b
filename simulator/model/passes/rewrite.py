"""The phase ``graph``: every rewrite of a graph, in the order in which they are applied."""

from __future__ import annotations

from collections.abc import Mapping

import onnx

from simulator.contract.passes import PASSES, Fitting, GraphPass, Wanted
from simulator.errors import ModelError
from simulator.model.passes.graph import edit
from simulator.model.passes.graph.change import Change
from simulator.profile.graph import Graph


def requested(asked: Graph) -> dict[str, GraphPass]:
    """Return the passes that a profile requests by axis, in their order; no other is imported."""
    fields = type(asked).model_fields.items()
    names = [name for name, field in fields if getattr(asked, name) != field.get_default()]
    found = sorted(map(graph_pass, names), key=lambda one: (one.order, one.name))
    return {one.name: one for one in found}


def graph_pass(axis: str) -> GraphPass:
    """Return the pass of an axis of the section ``graph``."""
    found = PASSES[axis]
    assert isinstance(found, GraphPass)
    return found


def wanted(asked: Graph) -> dict[str, Wanted]:
    """Return by axis the samples that requested rewrites are fitted to."""
    found = {
        name: graph_pass.wanted(getattr(asked, name))
        for name, graph_pass in requested(asked).items()
    }
    return {name: samples for name, samples in found.items() if samples}


def rewrite(
    model: onnx.ModelProto, asked: Graph, fittings: Mapping[str, Fitting] | None = None
) -> list[Change]:
    """Apply the rewrites that a profile requests, in place.

    Args:
        model: an ONNX model.
        asked: the section ``graph``.
        fittings: by axis; a rewrite that is fitted and has none here only tells what it would do.

    Returns:
        The report of each requested rewrite.

    Raises:
        ModelError: the model would become invalid; the message names the node.
    """
    passes, given = requested(asked), fittings or {}
    changes = [
        graph_pass.change(model, getattr(asked, axis), given.get(axis))
        for axis, graph_pass in passes.items()
    ]
    if any(change.rewritten for change in changes):
        try:
            edit.infer(model)
        except edit.Misfit as error:
            raise ModelError(f"{', '.join(passes)}: the model becomes invalid: {error}") from None
    return changes
