"""KV caches that OpenVINO keeps as variables of a model, in the names of Optimum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from backends.intel.libraries import opset15, transformations
from simulator.contract import Array

PAST, PRESENT, BEAMS = "past_key_values.", "present.", "beam_idx"
"""``beam_idx`` says which row each row goes on: here always its own."""
IDS, MASK = "input_ids", "attention_mask"


def keep(model: Any, fused: bool) -> None:
    """Make the past inputs and present outputs of a model, if any, its variables.

    Args:
        model: an ``ov.Model``; changed.
        fused: whether softmax(q k + mask) v becomes one operator, for which OpenVINO's CPU plugin
            has a kernel with a cache.
    """
    past = [port for port in model.inputs if _name(port).startswith(PAST)]
    if not past:
        return
    if fused:
        _fuse(model)
    _gather_beams(model, past)
    pairs = {name: PRESENT + name.removeprefix(PAST) for name in map(_name, past)}
    transformations.apply_make_stateful_transformation(model, pairs)
    _begin_empty(model)
    model.validate_nodes_and_infer_types()


def _name(port: Any) -> str:
    return next((name for name in port.get_names()), "")


def _gather_beams(model: Any, past: list[Any]) -> None:
    """Put a Gather by ``beam_idx`` behind each past input, which the plugin's fusion looks for."""
    beams = opset15.parameter([-1], np.int32, name=BEAMS)
    beams.output(0).set_names({BEAMS})
    model.add_parameters([beams])
    for port in past:
        takers = list(port.get_target_inputs())
        rows = opset15.gather(port, beams, opset15.constant(0))
        for taker in takers:
            taker.replace_source_output(rows.output(0))


def _begin_empty(model: Any) -> None:
    """Let each variable begin with no places, for as many rows as there are ids."""
    ids = opset15.shape_of(model.input(IDS), output_type="i64")
    rows = opset15.gather(ids, opset15.constant([0]), opset15.constant(0))
    for node in model.get_ops():
        if node.get_type_name() == "ReadValue":
            _, *sides = node.get_output_partial_shape(0)
            fixed = np.array([side.get_length() if side.is_static else 0 for side in sides])
            shape = opset15.concat([rows, opset15.constant(fixed)], 0)
            zero = opset15.constant(0.0, dtype=node.get_output_element_type(0))
            node.set_arguments([opset15.broadcast(zero, shape)])


def _fuse(model: Any) -> None:
    """Replace attention as :mod:`backends.language_models.llama` writes it.

    There queries are (batch, heads of keys, queries of one, places, width); the operator takes
    (batch, heads, places, width), and keys that were copied for each of their queries.
    """
    for softmax in [node for node in model.get_ordered_ops() if node.get_type_name() == "Softmax"]:
        chain = [softmax]
        for kind in ("Add", "Multiply", "MatMul"):
            chain.append(chain[-1].input_value(0).get_node())
            if chain[-1].get_type_name() != kind:
                break
        else:
            _replace(softmax, *chain[1:])


def _replace(softmax: Any, masked: Any, scaled: Any, scores: Any) -> None:
    (taker,) = softmax.output(0).get_target_inputs()
    mixed, query = taker.get_node(), scores.input_value(0)
    key = scores.input_value(1).get_node().input_value(0)
    _, heads, shared, _, width = (
        side.get_length() if side.is_static else -1 for side in query.get_partial_shape()
    )

    def flat(value: Any) -> Any:
        return opset15.reshape(value, opset15.constant([0, heads * shared, -1, width]), True)

    def copied(value: Any) -> Any:
        copies = opset15.constant([1, 1, shared, 1, 1])
        return flat(opset15.broadcast(value, copies, broadcast_spec="BIDIRECTIONAL"))

    fused = opset15.scaled_dot_product_attention(
        flat(query), copied(key), copied(mixed.input_value(1)),
        opset15.squeeze(masked.input_value(1), opset15.constant([1])),
        opset15.squeeze(scaled.input_value(1)), False,
    )  # fmt: skip
    parted = opset15.reshape(fused, opset15.constant([0, heads, shared, -1, width]), True)
    for target in mixed.output(0).get_target_inputs():
        target.replace_source_output(parted.output(0))


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
    rows, new = feeds[IDS].shape
    whole = feeds[MASK].shape[1]
    if whole == new:
        request.reset_state()
    elif whole - new != seen:
        raise ValueError(
            f"positions do not follow: {seen} places are kept, and the mask goes on behind "
            f"{whole - new}"
        )
    has_beams = any(BEAMS in port.get_names() for port in request.model_inputs)
    return whole, {BEAMS: np.arange(rows, dtype=np.int32)} if has_beams else {}
