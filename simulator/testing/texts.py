"""Runtimes that keep what a text was: a cache of keys and values."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper
from onnx.numpy_helper import from_array

from simulator.contract import Array, Runtime
from simulator.testing.subject import Subject, expect, refused
from simulator.testing.workshop import refusing

IDS = np.array([[3, 1, 4, 1, 5, 9], [2, 7, 1, 8, 2, 8]], np.int64)
MASK = np.array([[1, 1, 1, 1, 1, 1], [0, 1, 1, 1, 1, 1]], np.int64)
FORGOTTEN = 2
"""The place that the mask no longer has when the last two are fed."""


def a_text_goes_on(subject: Subject) -> None:
    """With ``stateful`` a text in pieces is the whole; a new one is empty, a gap is refused.

    The network has a cache in Optimum's names, and gives the sum of all ids that its mask has.
    """
    if not subject.options.get("stateful"):
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "sums.onnx")
        onnx.save(_sums(), path)
        with refusing(f"{subject.backend.name} cannot open a network with a cache"):
            runtime = subject.make(path)
        try:
            expect(runtime.is_stateful, "stateful was asked for, and it keeps nothing")
            _goes_on(runtime)
        finally:
            runtime.close()


def _goes_on(runtime: Runtime) -> None:
    whole = (IDS * MASK).cumsum(1)
    for number, ends in enumerate(((6,), (2, 3, 6), (1, 6))):
        found, begin = [], 0
        for end in ends:
            found.append(_fed(runtime, begin, end, MASK[:, :end]))
            begin = end
        got = np.concatenate(found, axis=1)
        expect(np.array_equal(got, whole), f"text {number} in pieces: {whole} expected, got {got}")
    _fed(runtime, 0, 4, MASK[:, :4])
    shorter = MASK.copy()
    shorter[:, FORGOTTEN] = 0
    got, want = _fed(runtime, 4, 6, shorter), (IDS * shorter).cumsum(1)[:, 4:]
    expect(np.array_equal(got, want), f"a place forgotten: {want} expected, got {got}")
    for what, begin, end in (("a gap of a place", 3, 5), ("no beginning", 5, 6)):
        _fed(runtime, 0, 2, MASK[:, :2])
        refused(what, _fed, runtime, begin, end, MASK[:, :end])


def _fed(runtime: Runtime, begin: int, end: int, mask: Array) -> Array:
    feeds = {"input_ids": IDS[:, begin:end], "attention_mask": mask}
    found: Array = runtime.run(feeds)["logits"][..., 0]
    return found


def _sums() -> onnx.ModelProto:
    """A network whose cache holds ids, (batch, 1, places, 1), once as keys and once as values."""
    nodes = [
        helper.make_node("Cast", ["input_ids"], ["own"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["own", "outer"], ["new"]),
        helper.make_node("Cast", ["attention_mask"], ["there"], to=TensorProto.FLOAT),
        helper.make_node("Shape", ["input_ids"], ["shape"]),
        helper.make_node("Gather", ["shape", "one"], ["count"]),
        helper.make_node("Neg", ["count"], ["from"]),
    ]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", axis])
        for name, axis in (("input_ids", "new"), ("attention_mask", "all"))
    ]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", "new", 1])]
    for word in ("key", "value"):
        past, present = f"past_key_values.0.{word}", f"present.0.{word}"
        nodes += [
            helper.make_node("Concat", [past, "new"], [present], axis=2),
            helper.make_node("Squeeze", [present, "outer"], [f"{word}.flat"]),
            helper.make_node("Mul", [f"{word}.flat", "there"], [f"{word}.seen"]),
            helper.make_node("CumSum", [f"{word}.seen", "one"], [f"{word}.sum"]),
        ]
        for name, axis, ports in ((past, "past", inputs), (present, "all", outputs)):
            shape: list[str | int | None] = ["batch", 1, axis, 1]
            ports.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
    nodes += [
        helper.make_node("Min", ["key.sum", "value.sum"], ["sum"]),
        helper.make_node("Slice", ["sum", "from", "end", "one"], ["last"]),
        helper.make_node("Unsqueeze", ["last", "inner"], ["logits"]),
    ]
    numbers = {"outer": [1, 3], "inner": [2], "one": [1], "end": [2**31 - 1]}
    stored = [from_array(np.array(value, np.int64), name) for name, value in numbers.items()]
    graph = helper.make_graph(nodes, "sums", inputs, outputs, stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
