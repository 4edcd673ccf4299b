"""One layer that goes wrong: its graph by itself, what it gets, and what it should give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import onnx
from onnx import numpy_helper

from simulator.contract import Array
from simulator.diagnose.finding import Certainty, Finding, Part
from simulator.diagnose.layers.errors import relative, worst_channel
from simulator.errors import UserError, shortened
from simulator.model.passes.graph import edit
from simulator.model.points import Graph, Point
from simulator.pipeline.network import Network
from simulator.profile.profile import Profile

BETTER = 0.5
"""An error that falls to this share of itself by one change is explained by it."""
EXACT, NEAR = 0.0, 1e-5


@dataclass(frozen=True, slots=True)
class Rounding:
    """How QuantizeLinear rounds a tensor with one scale."""

    step: float
    low: float
    high: float
    zero: int

    def __call__(self, values: Array) -> Array:
        """Return the rounded values, float64."""
        found: Array = np.clip(np.rint(values / self.step) * self.step, self.low, self.high)
        return found


@dataclass(frozen=True)
class Case:
    """A layer of the deployment stack with the values of the training stack.

    Attributes:
        train: the training stack's graph.
        deploy: the deployment stack's network.
        profile: the deployment stack's.
        point: the tensor in the training stack.
        own: the same in the deployment stack.
        before: the training stack's nodes that make it of the compared tensors before it.
        model: the deployment stack's layer by itself; its one output is compared.
        fed: its inputs, by name.
        wanted: the training stack's values.
        given: what the layer makes of its inputs.
        bound: of errors, above which a layer is looked at.
        peer: the training stack's network, where it runs ONNX files.
    """

    train: Graph
    deploy: Network
    profile: Profile
    point: Point
    own: Point
    before: tuple[onnx.NodeProto, ...]
    model: onnx.ModelProto
    fed: Mapping[str, Array]
    wanted: Array
    given: Array
    bound: float = 0.0
    peer: Network | None = None

    @property
    def layer(self) -> str:
        """The layer in words."""
        named = self.own if self.own.operator else self.point
        return f"{named.operator} {shortened(named.layer)!r}".strip()

    @cached_property
    def error(self) -> float:
        """Its error, by root mean square."""
        return self.far(self.given)

    def far(self, values: Array) -> float:
        """Return the error of values in place of the layer's.

        Where the error of the whole is below the bound, that of the worst channel is looked at.
        """
        measure = relative if self.whole > self.bound else worst_channel
        return measure(values, self.wanted)

    def run(self, model: onnx.ModelProto, network: Network | None = None) -> Array:
        """Run a variant of the layer on the same values."""
        (found,) = (network or self.deploy).run(model, [self.fed])
        return next(iter(found.values()))

    def tried(self, model: onnx.ModelProto, network: Network | None = None) -> float:
        """Return the error of a variant; infinite where it cannot be run."""
        try:
            return self.far(self.run(model, network))
        except (UserError, ValueError, RuntimeError):
            return np.inf

    def copy(self) -> onnx.ModelProto:
        """Return the layer's model, to be changed."""
        made = onnx.ModelProto()
        made.CopyFrom(self.model)
        return made

    @property
    def whole(self) -> float:
        """The error of the whole layer, also where that of a channel is looked at."""
        return relative(self.given, self.wanted)

    def unrounded(self, model: onnx.ModelProto, rounds: bool) -> float:
        """Return the error of a variant that ends before the layer's output is rounded.

        Args:
            model: the variant; its output has the name of the layer's.
            rounds: whether the output is rounded after that, here. Else it is clipped only: many
                files have an activation as the range of the rounding behind it.
        """
        back = {made: name for name, made in edit.rounded(self.model).items()}
        (end,) = (value.name for value in self.model.graph.output)
        try:
            found = self.run(edit.until(model, [back.get(end, end)])).astype(np.float64)
        except (UserError, ValueError, RuntimeError):
            return np.inf
        known = self.rounding
        if known:
            found = known(found) if rounds else np.clip(found, known.low, known.high)
        return self.far(found)

    def explained(self, left: float) -> bool:
        """Whether a change that leaves this error explains the layer's."""
        return left <= BETTER * self.error

    def finding(
        self,
        name: str,
        *evidence: str,
        left: float | None = None,
        change: Mapping[str, object] | None = None,
        code: str = "",
    ) -> Finding:
        """Return a finding about this layer."""
        where = "" if self.whole > self.bound else ", in its worst channel"
        sure = Certainty.NEAREST
        if left is not None and left <= NEAR:
            sure = Certainty.EXACT if left == EXACT else Certainty.ROUNDING
        return Finding(
            Part.NETWORK, name, tuple(f"{self.layer}{where}: {line}" for line in evidence),
            sure, left, change or {}, code,
        )  # fmt: skip

    def keep(self, why: str) -> tuple[dict[str, object], str]:
        """Return what keeps the layer in floating point: fields of the profile, and words."""
        precision = self.profile.spec.precision
        words = "keep these layers in floating point when the file is made"
        for section in ("quantizer", "cast"):
            found = getattr(precision, section)
            if found is not None:
                old = found.keep
                nodes = [*(old.nodes if old else ()), self.point.layer]
                kinds = list(old.op_types if old else ())
                kept = {"nodes": nodes, "op_types": kinds, "reason": why}
                return {f"precision.{section}.keep": kept}, f"{words} (precision.{section}.keep)"
        return {}, words

    def quantizer(self, **fields: object) -> dict[str, object]:
        """Return fields of the profile's quantizer; none where it has no quantizer."""
        if self.profile.spec.precision.quantizer is None:
            return {}
        return {f"precision.quantizer.{name}": value for name, value in fields.items()}

    @cached_property
    def rounding(self) -> Rounding | None:
        """How the layer's output is rounded; None where it is not, or with several scales."""
        return rounding_of(self.deploy.graph, self.own)


def rounding_of(graph: Graph, point: Point) -> Rounding | None:
    """Return how a point is rounded; None where it is not, or not with one stored scale."""
    if point.read == point.tensor:
        return None
    scale, *zeros = graph.makers[graph.makers[point.read].input[0]].input[1:]
    step = graph.constants.get(scale)
    zero = graph.constants.get(zeros[0]) if zeros and zeros[0] else np.zeros((), np.uint8)
    if step is None or zero is None or step.size != 1 or zero.dtype.kind not in "iu":
        return None
    ends, at = np.iinfo(zero.dtype), int(zero.reshape(-1)[0])
    size = float(step.reshape(-1)[0])
    return Rounding(size, (ends.min - at) * size, (ends.max - at) * size, at)


def replaced(model: onnx.ModelProto, name: str, value: Array) -> None:
    """Let a stored tensor take the place of one that is stored or computed, in place."""
    for node in list(model.graph.node):
        if name in node.output:
            model.graph.node.remove(node)
    for tensor in list(model.graph.initializer):
        if tensor.name == name:
            model.graph.initializer.remove(tensor)
    model.graph.initializer.append(numpy_helper.from_array(value, name))


def percent(share: float) -> str:
    """Return an error in percent."""
    return f"{100 * share:.3g} %" if np.isfinite(share) else "not comparable"
