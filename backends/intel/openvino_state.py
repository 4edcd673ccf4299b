"""KV caches that OpenVINO keeps as variables of a model, in the names of Optimum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from backends.intel.libraries import ov, transformations
from simulator.contract import Array

PAST, PRESENT, BEAMS = "past_key_values.", "present.", "beam_idx"
"""``beam_idx`` says which row each row goes on: here always its own."""


def keep(model: Any) -> None:
    """Make the past inputs and present outputs of a model, if any, its variables."""
    names = (name for port in model.inputs for name in port.get_names())
    pairs = {name: PRESENT + name.removeprefix(PAST) for name in names if name.startswith(PAST)}
    if pairs:
        transformations.apply_make_stateful_transformation(model, pairs)


def follow(request: Any, seen: int, feeds: Mapping[str, Array]) -> tuple[int, dict[str, Array]]:
    """Empty the variables where a text begins; refuse one that does not follow.

    Args:
        request: has the variables.
        seen: the places that they have.
        feeds: ``input_ids``, and ``attention_mask`` of the whole text.

    Returns:
        The places that they have then, and further inputs.

    Raises:
        ValueError: the mask goes on elsewhere.
    """
    rows, new = feeds["input_ids"].shape
    whole = feeds["attention_mask"].shape[1]
    begin = whole - new
    if not begin:
        request.reset_state()
        for variable in request.query_state():
            kept = variable.state
            first, *others = kept.get_shape()
            if not first:  # the model does not say of how many rows it is
                variable.state = ov.Tensor(kept.get_element_type(), ov.Shape([rows, *others]))
    elif begin != seen:
        raise ValueError(
            f"positions do not follow: {seen} places are kept, and the mask goes on behind {begin}"
        )
    names = {name for port in request.model_inputs for name in port.get_names()}
    return whole, {BEAMS: np.arange(rows, dtype=np.int32)} if BEAMS in names else {}
