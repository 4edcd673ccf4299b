"""Why a layer goes wrong; each reason is shown by undoing it, or by a figure of the tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import onnx

from simulator.contract import Array
from simulator.diagnose.finding import Finding
from simulator.diagnose.layers.case import BETTER, Case, percent, replaced, rounding_of
from simulator.diagnose.layers.kernels import kernel
from simulator.diagnose.layers.rounding import INPUT, ranges, together
from simulator.diagnose.layers.weights import weights
from simulator.model.passes.graph import edit

FITS = 0.05
"""The largest error with an activation that shows that it was missing."""
FP16_MAX = 65504.0
"""The largest finite number of IEEE 754 binary16."""
FP16_NORMAL = 2.0**-14
"""The smallest normal one; below it bits are lost."""
_NAMES = {
    "ceil_mode": "a pool rounds its size otherwise",
    "coordinate_transformation_mode": "a resize takes its samples from other places",
    "count_include_pad": "an average counts the padding",
    "cubic_coeff_a": "a resize has another cubic kernel",
    "epsilon": "a normalization has another epsilon",
    "mode": "a resize interpolates otherwise",
    "nearest_mode": "a resize rounds its coordinates otherwise",
}
"""What engineers say of an attribute; of others the attribute is named."""
_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "Relu": lambda v: np.maximum(v, 0),
    "Relu6": lambda v: np.clip(v, 0, 6),
    "Sigmoid": lambda v: 1 / (1 + np.exp(-v)),
    "Tanh": np.tanh,
    "HardSwish": lambda v: v * np.clip(v / 6 + 0.5, 0, 1),
    "SiLU": lambda v: v / (1 + np.exp(-v)),
}  # fmt: skip
Reason = Callable[[Case], Iterator[Finding]]


def reasons(case: Case) -> list[Finding]:
    """Return what explains a layer's error, the surest first; nothing where none is known."""
    every: tuple[Reason, ...] = (
        attributes, operator, activation, half, kernel, weights, ranges, shift, together,
    )  # fmt: skip
    for reason in every if case.model.graph.node else (activation, half, shift):
        if found := list(reason(case)):
            return found
    return []


def attributes(case: Case) -> Iterator[Finding]:
    """Another attribute of the same operator: with training's value the error is gone."""
    kinds = {node.op_type for node in case.before}
    for kind in sorted(kinds):
        mine = [node for node in case.before if node.op_type == kind]
        theirs = [node for node in case.model.graph.node if node.op_type == kind]
        if len(mine) != len(theirs) or not mine:
            continue
        other = {
            name: (a, b)
            for one, two in zip(mine, theirs, strict=True)
            for name, (a, b) in differing(case.model, one, two).items()
        }
        if not other:
            continue
        model = case.copy()
        changed = [node for node in model.graph.node if node.op_type == kind]
        for one, two in zip(mine, changed, strict=True):
            edit.set_attributes(
                two, **{name: edit.attributes(one).get(name) for name in differing(model, one, two)}
            )
        left = case.tried(edit.inferred(model))
        if case.explained(left) and np.isfinite(left):
            name = next((_NAMES[one] for one in other if one in _NAMES), f"{kind} has another "
                        f"{' and '.join(other)}")  # fmt: skip
            told = "; ".join(
                f"{n} is {b} and not {a}, as in training" for n, (a, b) in other.items()
            )
            fixed = ", ".join(f"{n}: {a}" for n, (a, _) in other.items())
            yield case.finding(
                name, f"{told}; with {fixed} its error goes from {percent(case.error)} to "
                f"{percent(left)}", left=left,
                code=f"export the file with {fixed} in {case.layer}",
            )  # fmt: skip


def differing(
    model: onnx.ModelProto, one: onnx.NodeProto, other: onnx.NodeProto
) -> dict[str, tuple[object, object]]:
    """Return the attributes of two nodes that differ; where one is not set, ONNX's default."""
    usual: dict[str, object] = {}
    if one.domain in ("", "ai.onnx"):
        schema = onnx.defs.get_schema(one.op_type, edit.opset(model), "")
        for name, known in schema.attributes.items():
            if known.default_value.type:
                value = onnx.helper.get_attribute_value(known.default_value)
                usual[name] = value.decode() if isinstance(value, bytes) else value
    mine, theirs = usual | edit.attributes(one), usual | edit.attributes(other)
    return {
        name: (mine.get(name), theirs.get(name))
        for name in {**mine, **theirs}
        if mine.get(name) != theirs.get(name)
    }


def operator(case: Case) -> Iterator[Finding]:
    """Another operator in the same place: with training's the error is gone."""
    if len(case.before) != 1 or len(case.model.graph.node) != 1:
        return
    mine, model = case.before[0], case.copy()
    theirs = model.graph.node[0]
    if mine.op_type == theirs.op_type or mine.input[0] in case.train.constants:
        return
    was = theirs.op_type
    known = {name: case.train.constants.get(name) for name in mine.input[1:] if name}
    if any(value is None for value in known.values()):
        return
    for name, value in known.items():
        if value is not None:
            replaced(model, name, value)
    theirs.op_type, theirs.domain = mine.op_type, mine.domain
    theirs.input[:] = [theirs.input[0], *mine.input[1:]]
    theirs.ClearField("attribute")
    theirs.attribute.extend(mine.attribute)
    left = case.tried(edit.inferred(model))
    if case.explained(left):
        ends = [float(v) for v in known.values() if v is not None and v.size == 1]
        right = "Relu6" if mine.op_type == "Clip" and ends == [0, 6] else mine.op_type
        yield case.finding(
            f"{was} is in place of {right}",
            f"with {right} the error goes from {percent(case.error)} to {percent(left)}",
            left=left,
            code=f"export the file with {right} there",
        )


def activation(case: Case) -> Iterator[Finding]:
    """An activation that one of the two lacks, or another one."""
    if case.given.shape != case.wanted.shape:
        return
    given, wanted = case.given.astype(np.float64), case.wanted.astype(np.float64)
    if not np.isfinite(given).all():
        return
    for name, function in _ACTIVATIONS.items():
        with np.errstate(over="ignore", invalid="ignore"):
            missing = _far(function(given), wanted)
            added = _far(function(wanted), given)
        for left, whose, what, cure in (
            (missing, "its own", f"the activation {name} is missing", f"apply {name}"),
            (added, "training's", f"an activation {name} is added", f"take {name} away"),
        ):
            if left <= min(0.1 * case.whole, FITS):
                told = f"error goes from {percent(case.whole)} to {percent(left)}"
                told = f"with {name} on {whose} values the {told}"
                yield case.finding(what, told, left=left, code=f"{cure} after these layers")
                return


def _far(values: Array, right: Array) -> float:
    size = np.sqrt(np.mean(right * right))
    return float(np.sqrt(np.mean((values - right) ** 2)) / size) if size else np.inf


def half(case: Case) -> Iterator[Finding]:
    """Values that FP16 cannot hold."""
    if case.given.shape != case.wanted.shape:
        return
    top = float(np.abs(case.wanted.astype(np.float64)).max(initial=0))
    above = np.abs(case.wanted.astype(np.float64)) > FP16_MAX
    lost = above & (~np.isfinite(case.given) | (np.abs(case.given) == FP16_MAX))
    change, code = case.keep("values above 65,504, the largest of FP16")
    if lost.any():
        yield case.finding(
            "FP16 overflow",
            f"{lost.sum():,} of {lost.size:,} values are above 65,504, the largest number of FP16 "
            f"(training has {top:,.6g}); the deployment stack has "
            f"{'infinity' if not np.isfinite(case.given).all() else '65,504'} there",
            change=change,
            code=code,
        )
        return
    if not np.isfinite(case.given).all():
        for name, value in case.fed.items():
            reach = float(np.abs(value.astype(np.float64)).max(initial=0))
            if reach > FP16_MAX:
                yield case.finding(f"{INPUT}{name!r} overflows in FP16", f"it reaches {reach:,.6g}")
                return
        if case.deploy.graph.kinds.get(case.own.tensor) == np.float16:
            count = np.count_nonzero(~np.isfinite(case.given))
            yield case.finding(
                "FP16 overflow",
                f"{count:,} values are not finite, though training's reach {top:,.6g} only: a sum "
                "inside of the layer passes 65,504, the largest number of FP16",
                change=change,
                code=code,
            )
        return
    small = (np.abs(case.wanted) < FP16_NORMAL) & (case.wanted != 0)
    halved = case.wanted.astype(np.float16).astype(np.float64)
    if small.any() and abs(_far(halved, case.wanted.astype(np.float64)) - case.whole) < (
        0.2 * case.whole
    ):
        zeros = np.count_nonzero(small & (case.given == 0))
        change, code = case.keep("values below the smallest normal number of FP16")
        yield case.finding(
            "FP16 underflow",
            f"{np.count_nonzero(small):,} of {small.size:,} values are below 6.1e-5, the smallest "
            f"normal number of FP16; {zeros:,} of them become 0",
            change=change,
            code=code,
        )


def shift(case: Case) -> Iterator[Finding]:
    """All values are off by one number: a zero point, or a bias, that one of the two ignores."""
    if case.given.shape != case.wanted.shape or not np.isfinite(case.given).all():
        return
    off = case.given.astype(np.float64) - case.wanted
    mean = float(off.mean())
    left = _far(case.given - mean, case.wanted.astype(np.float64))
    if abs(mean) < 2 * off.std() or left > BETTER * case.whole:
        return
    steps = {point.tensor: point for point in case.deploy.graph.points.values()}
    for name in (case.own.tensor, *case.fed):
        known = rounding_of(case.deploy.graph, steps[name]) if name in steps else None
        if known and abs(abs(mean) / known.step) >= 1 and _whole(mean / known.step, known.zero):
            yield case.finding(
                "a zero point is ignored",
                f"all values are off by {mean:.4g}, {mean / known.step:+.1f} steps of {name!r} "
                f"({known.step:.4g}, zero point {known.zero})",
                left=left,
                code=f"subtract the zero point {known.zero} of {name!r}",
            )
            return
    yield case.finding(
        "all values are shifted",
        f"by {mean:.4g}; without that its error goes from {percent(case.whole)} to {percent(left)}",
        left=left,
    )


def _whole(steps: float, zero: int) -> bool:
    """Whether a shift is that of a zero point, or of bytes taken with another sign."""
    return any(abs(abs(steps) - size) < 1 for size in {abs(zero), 128} - {0})
