"""Every rewrite of a graph, in the order in which they are applied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx

from simulator.errors import ModelError
from simulator.model.graph import (
    accumulation,
    activation,
    batchnorm,
    edit,
    layout,
    pooling,
    upsample,
)
from simulator.model.graph.change import Change
from simulator.profile.graph import Graph

REWRITES: dict[str, Callable[[onnx.ModelProto, Any], Change]] = {
    "pooling": pooling.apply,
    "upsample": upsample.apply,
    "activation": activation.apply,
    "batchnorm": batchnorm.apply,
    "accumulation": accumulation.apply,
    "layout": layout.apply,
}
"""By axis; pooling first, as it changes the sizes that the others see."""
KEEP = Graph()


def rewrite(model: onnx.ModelProto, asked: Graph) -> list[Change]:
    """Apply what a profile asks for, in place.

    Returns:
        What each rewrite that was asked for did.

    Raises:
        ModelError: the model does not stay valid; the message names the node.
    """
    axes = [axis for axis in REWRITES if getattr(asked, axis) != getattr(KEEP, axis)]
    changes = [REWRITES[axis](model, getattr(asked, axis)) for axis in axes]
    if any(change.rewritten for change in changes):
        try:
            edit.infer(model)
        except edit.Misfit as error:
            raise ModelError(f"{', '.join(axes)}: the model does not stay valid: {error}") from None
    return changes
