"""The phase ``graph``: every rewrite of a graph, in the order in which they are applied."""

from __future__ import annotations

from collections.abc import Mapping

import onnx

from simulator.contract.passes import PASSES, Fitting, GraphPass, Wanted
from simulator.errors import ModelError
from simulator.model.passes.graph import edit
from simulator.model.passes.graph.change import Change
from simulator.profile.graph import Graph


def rewrites() -> dict[str, GraphPass]:
    """Return the passes of this phase by axis, in their order."""
    found = [one for one in PASSES if isinstance(one, GraphPass)]
    return {one.name: one for one in sorted(found, key=lambda one: (one.order, one.name))}


def wanted(asked: Graph) -> dict[str, Wanted]:
    """Return by axis the samples that requested rewrites are fitted to."""
    found = {name: one.wanted(getattr(asked, name, one.keep)) for name, one in rewrites().items()}
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
    passes = rewrites()
    values = {name: getattr(asked, name, one.keep) for name, one in passes.items()}
    axes = [name for name, one in passes.items() if values[name] != one.keep]
    given = fittings or {}
    changes = [passes[axis].change(model, values[axis], given.get(axis)) for axis in axes]
    if any(change.rewritten for change in changes):
        try:
            edit.infer(model)
        except edit.Misfit as error:
            raise ModelError(f"{', '.join(axes)}: the model becomes invalid: {error}") from None
    return changes
