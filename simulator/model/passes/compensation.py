"""The compensation axis: the training stack's inputs, estimated from the deployment's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx

from simulator.contract import Array
from simulator.contract.passes import Fit, Fitting, GraphPass, Wanted
from simulator.errors import ModelError
from simulator.model.passes.graph import edit
from simulator.model.passes.graph.change import Change, Seen
from simulator.model.passes.graph.patterns import Graph
from simulator.profile.graph import BothSides, Compensation

AXIS, NODES = "compensation", "single input of shape (N, channels, rows, columns)"
MOST_CHANNELS = 4
"""An image has no more; an input with more at this place has another layout."""


@dataclass(frozen=True, slots=True)
class Transform:
    """What is done to each pixel: ``matrix @ pixel + offset``.

    Attributes:
        matrix: (channels, channels) float64.
        offset: (channels,) float64.
        removed: the share of the squared difference of the two stacks' inputs that it removes.
    """

    matrix: Array
    offset: Array
    removed: float


def wanted(asked: Compensation) -> Wanted | None:
    """Return the samples that the transform is fitted to."""
    given = asked.calibration
    return Wanted(given.samples, given.source, ("train", "deploy")) if given else None


def fitted(model: onnx.ModelProto, asked: Compensation, fitting: Fitting) -> Transform | None:
    """Find the transform of least squares from the deployment's inputs to the training stack's.

    Args:
        model: with one input (N, channels, rows, columns); of another one there is no transform.
        asked: the profile's section.
        fitting: pairs of inputs, the training stack's first.

    Raises:
        ModelError: the two stacks make inputs of different shapes.
    """
    name = _input(model)
    if name is None:
        return None
    inner: Array = np.zeros(())
    cross: Array = np.zeros(())
    whole = before = 0.0
    for train, deploy in fitting.samples():
        wants, has = (_pixels(feeds[name]) for feeds in (train, deploy))
        if wants.shape != has.shape:
            raise ModelError(
                f"graph.compensation: the training stack makes inputs of {train[name].shape}, "
                f"this one of {deploy[name].shape}: nothing can be fitted"
            )
        ones = np.vstack([has, np.ones(has.shape[1])])
        inner, cross = inner + ones @ ones.T, cross + ones @ wants.T
        whole += float((wants**2).sum())
        before += float(((wants - has) ** 2).sum())
    solved = _solved(inner, cross, asked.form)
    after = whole - 2 * float((solved * cross).sum()) + float((solved * (inner @ solved)).sum())
    removed = 1 - max(after, 0.0) / before if before else 0.0
    return Transform(solved[:-1].T, solved[-1], removed)


def _pixels(values: Array) -> Array:
    return np.moveaxis(values, 1, 0).reshape(values.shape[1], -1).astype(np.float64)


def _solved(inner: Array, cross: Array, form: str) -> Array:
    """Solve the normal equations: (channels + 1, channels), the last row is the offset."""
    if form == "matrix":
        return np.linalg.lstsq(inner, cross, rcond=None)[0]
    count = cross.shape[1]
    solved = np.zeros_like(cross)
    for channel in range(count):
        at = [channel, count]
        solved[at, channel] = np.linalg.lstsq(
            inner[np.ix_(at, at)], cross[at, channel], rcond=None
        )[0]
    return solved


def apply(
    model: onnx.ModelProto, asked: Compensation, transform: Transform | None = None
) -> Change:
    """Put a 1x1 convolution in front of the network, or into its first layer, in place.

    It goes into the first layer if that is a Conv without groups, which alone reads the input,
    has constant weights, and pads nothing: the zeros of a padding would be transformed too.

    Args:
        model: an ONNX model.
        asked: the profile's section.
        transform: what was fitted; None: the model stays as it is.
    """
    name = _input(model)
    readers = [] if name is None else [n for n in model.graph.node if name in n.input]
    told = asked.model_dump_json() if asked.form != "keep" else ""
    before = {node.output[0]: Seen(node.op_type, "", "") for node in readers}
    after = {node.output[0]: Seen(node.op_type, told, told) for node in readers}
    notes: tuple[str, ...] = ()
    if transform is not None and name is not None:
        folded = len(readers) == 1 and _folded(model, readers[0], transform)
        if not folded:
            _put_before(model, name, readers, transform)
        where = "folded into" if folded else "a 1x1 convolution before"
        notes = (
            f"{where} {edit.label(readers[0])}",
            f"it removes {100 * transform.removed:.0f} % of the squared difference of the inputs",
        )
    return Change(AXIS, NODES, before, after, notes=notes)


def _input(model: onnx.ModelProto) -> str | None:
    """The name of the only input, if it can be an image with its channels first."""
    inputs = edit.inputs_of(model)
    if len(inputs) != 1:
        return None
    dims = inputs[0].type.tensor_type.shape.dim
    known = len(dims) == 4 and 1 <= dims[1].dim_value <= MOST_CHANNELS
    return inputs[0].name if known else None


def _folded(model: onnx.ModelProto, node: onnx.NodeProto, transform: Transform) -> bool:
    """Put the transform into a convolution; return whether that is exact."""
    values, constants = edit.attributes(node), Graph(model).constants
    named = [name for name in node.input[1:] if name]
    padded = any(values.get("pads", [])) or values.get("auto_pad", "NOTSET").startswith("SAME")
    known = node.op_type == "Conv" and all(name in constants for name in named)
    if not known or values.get("group", 1) != 1 or (padded and transform.offset.any()):
        return False
    weight = constants[node.input[1]]
    wide = weight.astype(np.float64)
    bias = np.einsum("oi...,i->o", wide.reshape(*wide.shape[:2], -1).sum(2), transform.offset)
    if len(named) > 1:
        bias = bias + constants[named[1]].astype(np.float64)
    build = edit.Builder(model, AXIS, node.output[0], weight.dtype)
    turned = np.einsum("oi...,ij->oj...", wide, transform.matrix)
    new = [build.constant(turned), build.constant(bias)]
    build("Conv", node.input[0], *new, last=True, **values)
    build.nodes[0].name = node.name
    edit.splice(model, {node.output[0]: build.nodes})
    return True


def _put_before(
    model: onnx.ModelProto, name: str, readers: list[onnx.NodeProto], transform: Transform
) -> None:
    kind = edit.dtypes_of(model).get(name, np.dtype(np.float32))
    build = edit.Builder(model, AXIS, name, kind)
    weights = build.constant(transform.matrix[:, :, None, None])
    made = build("Conv", name, weights, build.constant(transform.offset), kernel_shape=[1, 1])
    for node in readers:
        node.input[:] = [made if one == name else one for one in node.input]
    model.graph.node.insert(0, build.nodes[0])


EXAMPLES = tuple(
    Compensation(form=form, calibration=BothSides(samples=4, source="data"))
    for form in ("affine", "matrix")
)
PASS = GraphPass(AXIS, 0, Compensation, Compensation(), apply, EXAMPLES, fit=Fit(wanted, fitted))
