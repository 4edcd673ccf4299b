"""The activation axis: approximations that NPUs compute instead of the exact functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx

from simulator.contract import Array
from simulator.contract.passes import GraphPass
from simulator.errors import ModelError
from simulator.model.passes.graph import edit
from simulator.model.passes.graph.change import Change, Seen
from simulator.model.passes.graph.patterns import gelus, swishes
from simulator.profile.graph import Activation, Table

AXIS, NODES = "activation", "Gelu, Sigmoid, Swish, Exp or Softmax"
Function = Callable[[Array], Array]


def apply(model: onnx.ModelProto, asked: Activation) -> Change:
    """Replace activations by the requested approximations, in place.

    This changes Gelu and its expanded forms, Sigmoid (also inside x * sigmoid(x)), Swish, Exp and
    Softmax. The replacements use only elementary ONNX operators, so every runtime can compute them.

    Args:
        model: an ONNX model of opset 9 or later, 13 for BF16.
        asked: the profile's section.

    Raises:
        ModelError: the model is too old.

    Source:
        GELU: arXiv 1606.08415, and torch.nn.GELU(approximate="tanh"). Hard-sigmoid and
        hard-swish: arXiv 1905.02244, section 5.2. Tables: NVDLA's SDP interpolates linearly in
        257 entries (nvdla.org, Unit Description); TensorFlow Lite's INT8 kernels look 256
        entries up (tensorflow/lite/kernels/internal, LUTPopulate).
    """
    forms = gelus(model)
    gates = swishes(model)
    dtypes = edit.dtypes_of(model)
    before, after = {}, {}
    made: dict[str, list[onnx.NodeProto]] = {}
    for node in model.graph.node:
        name = node.output[0] if node.output else ""
        kind = "Gelu" if name in forms else "Swish" if name in gates else node.op_type
        if kind not in ("Gelu", "Sigmoid", "Swish", "Exp", "Softmax") or node.domain:
            continue
        was = forms[name][1] if kind == "Gelu" else "exact"
        now = _now(kind, asked, was)
        before[name], after[name] = (Seen(kind, s, s) for s in (was, now))
        if now != was:
            given = forms[name][0] if kind == "Gelu" else node.input[0]
            dtype = dtypes.get(given, np.dtype(np.float32))
            build = edit.Builder(model, "activation", name, dtype)
            _write(build, kind, given, node, asked)
            made[name] = build.nodes
    if made:
        edit.need_opset(model, 13 if asked.softmax == "bf16" else 9, "graph.activation")
        edit.splice(model, made)
    return Change(AXIS, NODES, before, after)


def _now(kind: str, asked: Activation, was: str) -> str:
    """Return the new setting of a node of a kind, for messages."""
    sigmoid = {"keep": "exact", "table": f"by {asked.table}", "hard": "hard"}[asked.sigmoid]
    exp = f"by {asked.table}" if asked.exp == "table" else "exact"
    softmax = exp if asked.softmax == "keep" else f"{asked.softmax}, exp {exp}"
    return {
        "Gelu": was if asked.gelu == "keep" else asked.gelu,
        "Sigmoid": sigmoid,
        "Swish": "hard" if asked.swish == "hard" else sigmoid,
        "Exp": exp,
        "Softmax": softmax,
    }[kind]


def _write(
    build: edit.Builder, kind: str, given: str, node: onnx.NodeProto, asked: Activation
) -> None:
    if kind == "Gelu":
        _gelu(build, given, asked.gelu)
    elif kind == "Softmax":
        _softmax(build, given, node, asked)
    elif kind == "Exp":
        _table(build, given, np.exp, asked.table, last=True)
    elif node.op_type == "Swish":
        alpha = build.constant(edit.attributes(node).get("alpha", 1.0))
        gate = _sigmoid(build, build("Mul", given, alpha), kind, asked)
        build("Mul", given, gate, last=True)
    else:
        _sigmoid(build, given, kind, asked, last=True)


def _gelu(build: edit.Builder, given: str, form: str) -> None:
    if form == "erf":
        bent = build("Erf", build("Mul", given, build.constant(0.5**0.5)))
    else:
        cube = build("Mul", build("Mul", given, given), given)
        inner = build("Add", given, build("Mul", cube, build.constant(0.044715)))
        bent = build("Tanh", build("Mul", inner, build.constant((2 / np.pi) ** 0.5)))
    half = build("Mul", given, build.constant(0.5))
    build("Mul", half, build("Add", bent, build.constant(1)), last=True)


def _sigmoid(
    build: edit.Builder, given: str, kind: str, asked: Activation, last: bool = False
) -> str:
    if asked.sigmoid == "hard" or (kind == "Swish" and asked.swish == "hard"):
        return build("HardSigmoid", given, alpha=1 / 6, beta=0.5, last=last)
    return _table(build, given, _logistic, asked.table, last)


def _logistic(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def _table(
    build: edit.Builder, given: str, of: Function, table: Table | None, last: bool = False
) -> str:
    """Replace a function by a table; outside the table the value at its end is used."""
    assert table is not None
    points = np.linspace(-table.limit, table.limit, table.entries)
    values, end = of(points), table.entries - 1
    scale = build.constant(end / (2 * table.limit))
    place = build("Mul", build("Add", given, build.constant(table.limit)), scale)
    place = build("Min", build("Max", place, build.constant(0)), build.constant(end))
    if table.interpolation == "nearest":
        index = build("Floor", build("Add", place, build.constant(0.5)))
        return build("Gather", build.constant(values), _index(build, index), last=last)
    whole = build("Min", build("Floor", place), build.constant(end - 1))
    index = _index(build, whole)
    low = build("Gather", build.constant(values[:-1]), index)
    rise = build("Gather", build.constant(np.diff(values)), index)
    return build("Add", low, build("Mul", rise, build("Sub", place, whole)), last=last)


def _index(build: edit.Builder, value: str) -> str:
    return build("Cast", value, to=onnx.TensorProto.INT64)


def _softmax(build: edit.Builder, given: str, node: onnx.NodeProto, asked: Activation) -> None:
    """Write exp(x - max) divided by its sum; each of the four steps is rounded to the type."""

    def step(value: str, last: bool = False) -> str:
        if asked.softmax == "keep":
            return build("Identity", value, last=True) if last else value
        return build.rounded(value, asked.softmax, last)

    axes = _axes(build.model, node)
    given = step(given)
    less = step(build("Sub", given, build.reduced("ReduceMax", given, axes)))
    if asked.exp == "table":
        power = step(_table(build, less, np.exp, asked.table))
    else:
        power = step(build("Exp", less))
    total = step(build.reduced("ReduceSum", power, axes))
    step(build("Div", power, total), last=True)


def _axes(model: onnx.ModelProto, node: onnx.NodeProto) -> Sequence[int]:
    """Return the axes that a Softmax sums over: one; before opset 13, that one and all after it."""
    values = edit.attributes(node)
    if edit.opset(model) >= 13:
        return [values.get("axis", -1)]
    shape = edit.shapes_of(model).get(node.input[0])
    if shape is None:
        raise ModelError(f"softmax: the input of {edit.label(node)} has an unknown rank")
    first = values.get("axis", 1)
    return list(range(first % len(shape), len(shape)))


PASS = GraphPass(AXIS, 300, Activation, Activation(), apply)
