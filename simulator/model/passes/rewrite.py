"""The phase ``graph``: every rewrite of a graph, in the order in which they are applied."""

from __future__ import annotations

import onnx

from simulator.contract.passes import PASSES, GraphPass
from simulator.errors import ModelError
from simulator.model.passes.graph import edit
from simulator.model.passes.graph.change import Change
from simulator.profile.graph import Graph


def rewrites() -> dict[str, GraphPass]:
    """Return the passes of this phase by axis, in their order."""
    found = [one for one in PASSES if isinstance(one, GraphPass)]
    return {one.name: one for one in sorted(found, key=lambda one: (one.order, one.name))}


def rewrite(model: onnx.ModelProto, asked: Graph) -> list[Change]:
    """Apply the rewrites that a profile requests, in place.

    Returns:
        The report of each requested rewrite.

    Raises:
        ModelError: the model would become invalid; the message names the node.
    """
    passes = rewrites()
    wanted = {name: getattr(asked, name, one.keep) for name, one in passes.items()}
    axes = [name for name, one in passes.items() if wanted[name] != one.keep]
    changes = [passes[axis].apply(model, wanted[axis]) for axis in axes]
    if any(change.rewritten for change in changes):
        try:
            edit.infer(model)
        except edit.Misfit as error:
            raise ModelError(f"{', '.join(axes)}: the model becomes invalid: {error}") from None
    return changes
