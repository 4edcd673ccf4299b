"""Run two networks from the same inputs, compare all layers, and explain those that go wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from simulator.contract import Array
from simulator.contract.model import shape_words
from simulator.diagnose.finding import Finding
from simulator.diagnose.layers.comparison import Comparison
from simulator.diagnose.layers.opaque import Opaque, opaque
from simulator.diagnose.layers.reasons import reasons
from simulator.diagnose.layers.rounding import INPUT
from simulator.diagnose.layers.suspects import cases, merged, only_as_output, suspects
from simulator.diagnose.layers.weights import DIFFER
from simulator.errors import ModelError, one_line
from simulator.experiments.session import Session
from simulator.modalities.modality import Feed
from simulator.model.passes.graph import edit
from simulator.model.points import Graph
from simulator.pipeline.network import Feeds, Network, inference, network_of, of_size
from simulator.pipeline.stack import Stack
from simulator.results.layers import LayerFigures, LayersFigures

MANY = 3
"""Layers with other weights that are no accident of one."""
EXAMINED = 16
"""Layers at most whose reason is looked for, those with the largest error of their own first."""
BOUNDS = {
    "fp32": (1e-4, "ten times what other orders of summation give in FP32"),
    "fp16": (1e-2, "what rounding to the 11 bits of FP16 gives after hundreds of layers"),
    "bf16": (5e-2, "what rounding to the 8 bits of BF16 gives after some layers"),
    "int8": (5e-2, "three times what rounding a layer's weights, input and output to 8 bits gives "
                   "where values are normal and the range is four standard deviations"),
}  # fmt: skip
"""By what the deployment stack computes in: the relative error that is looked at, and why.

Source:
    A step of 8 standard deviations / 255 has a rounding error of 8 / 255 / sqrt(12) = 0.9 %.
"""


@dataclass(frozen=True, slots=True)
class Layers:
    """Where two networks part.

    Attributes:
        figures: every layer.
        findings: why, the worst layer first; those of one name are one.
    """

    figures: LayersFigures
    findings: tuple[Finding, ...]


def part(
    train: Stack,
    deploy: Stack,
    tensors: Sequence[Array | Mapping[str, Array]],
    session: Session,
    bound: float | None = None,
) -> Layers:
    """Compare two networks layer by layer.

    A runtime that opens ONNX files, or what is made of one, gets the file with its inner tensors as
    outputs, and once more cut at every layer, with the training stack's values. Another runtime
    shows its layers itself, where it can.

    Args:
        train: the stack that is right.
        deploy: the other one.
        tensors: inputs of the network, at least one: an array, or all inputs by their names on the
            model card.
        session: of the model.
        bound: relative error above which a layer is looked at; by default by what *deploy*
            computes in.

    Raises:
        ModelError: the layers of a stack are out of reach, or none has a counterpart.
    """
    if not tensors:
        raise ModelError("layers are compared on input tensors, and there is none")
    order = list(session.source.inputs)
    stacks, given = _in_one_size((train, deploy), [_ordered(one, order) for one in tensors])
    sides = [
        network_of(stack, _feeds(session, given))
        or opaque(stack, session.builder.runtimes, given[0])
        for stack in stacks
    ]
    samples = [(_named(one, order, sides[0]), _named(one, order, sides[1])) for one in given]
    compared = Comparison(sides[0], sides[1], samples)
    if len(given) < len(tensors):
        size = shape_words(given[0][0].shape)
        compared.notes.append(
            f"compared on the {len(given)} of {len(tensors)} inputs of {size}: a size has an engine"
        )
    usual, why = _bound_of(deploy, compared.deploy.graph)
    limit, why = (usual, why) if bound is None else (bound, "as asked")
    rows = compared.rows()
    if unreal := only_as_output(compared, rows):
        compared.notes.append(
            f"{len(unreal)} tensors are infinite as outputs of FP16 only: {compared.deploy.name} "
            "computes what follows from them with more bits"
        )
    looked = suspects(compared, rows, limit, unreal)
    found: dict[str, list[Finding]] = {}
    for case in cases(compared, deploy.profile, looked[:EXAMINED], limit) if looked else ():
        name = case.own.tensor
        try:
            found[name] = reasons(case)
        except Exception as error:  # a runtime may raise anything
            compared.notes.append(f"{case.layer} was not examined: {one_line(error)}")
            continue
        named = [one.name for one in found[name]] or ["no known reason"]
        rows[name] = rows[name].model_copy(update={"reasons": named})
    every = [one for each in found.values() for one in each]
    told = _retrained([one for one in every if not one.name.startswith(INPUT)], len(found))
    inner = [
        sum(point.operator != "Input" for point in side.points.values())
        for side in (compared.train, compared.deploy)
    ]
    both = sum(b.operator != "Input" for _, b in compared.pairs)
    first = next(
        (row for name, row in rows.items() if name not in unreal and _parts(row, limit)), None
    )
    return Layers(
        LayersFigures(
            train=compared.train.name,
            deploy=compared.deploy.name,
            samples=len(samples),
            bound=limit,
            why=why,
            first=first.layer if first else None,
            rows=list(rows.values()),
            unmatched=inner[0] - both,
            extra=inner[1] - both,
            suspects=len(looked),
            examined=min(len(looked), EXAMINED),
            notes=compared.notes,
        ),
        merged(told or every),
    )


def _in_one_size(
    stacks: Sequence[Stack], given: Sequence[list[Array]]
) -> tuple[Sequence[Stack], Sequence[list[Array]]]:
    """Return two stacks with one engine each, and the inputs that it takes, as many as can be.

    Raises:
        ModelError: no size of these inputs has an engine on both sides.
    """
    if not any(inference(stack).sized for stack in stacks):
        return stacks, given
    for shape, _ in Counter(one[0].shape for one in given).most_common():
        sides = [found for stack in stacks if (found := of_size(stack, shape))]
        if len(sides) == len(stacks):
            return sides, [one for one in given if one[0].shape == shape]
    raise ModelError("the two stacks have engines for no common size of the inputs")


def _feeds(session: Session, given: Sequence[list[Array]]) -> list[Feed]:
    """The inputs of the networks, in the size of these where all have one."""
    feeds = [*session.card.feeds]
    if len({one[0].shape for one in given}) > 1 or len(feeds) != len(given[0]):
        return feeds
    return [replace(feed, shape=one.shape) for feed, one in zip(feeds, given[0], strict=True)]


def _bound_of(stack: Stack, graph: Graph) -> tuple[float, str]:
    """Return the error above which a layer is looked at, and why."""
    rounds = edit.rounded(graph.model)
    kinds = {kind.name for kind in graph.kinds.values()}
    compute = stack.effective.compute or stack.profile.spec.precision.compute
    asked = "int8" if rounds or compute == "int8" else compute
    asked = "fp16" if asked == "fp32" and "float16" in kinds else asked
    return BOUNDS.get(asked, BOUNDS["fp16"])


def _retrained(found: Sequence[Finding], examined: int) -> list[Finding]:
    """Say that most of the weights are others as that of the whole network."""
    count = sum(one.name == DIFFER for one in found)
    if count < MANY or 2 * count < examined:
        return [*found]
    name = f"the weights differ in {count} of {examined} layers looked at: it was trained again"
    return [replace(one, name=name) if one.name == DIFFER else one for one in found]


def _parts(row: LayerFigures, limit: float) -> bool:
    """Whether the networks have parted at a layer."""
    error = row.accumulated
    return error is None or error.not_finite > 0 or (error.rms or 0.0) > limit


def _ordered(given: Array | Mapping[str, Array], order: Sequence[str]) -> list[Array]:
    """Return the inputs in the order of the model card's file."""
    if isinstance(given, np.ndarray):
        return [given]
    return [given[name] for name in order] if set(given) == set(order) else list(given.values())


def _named(values: Sequence[Array], order: Sequence[str], side: Network | Opaque) -> Feeds:
    """Return the inputs by the names that a network has for them; where it has others, in order."""
    if len(values) != len(side.inputs):
        named = ", ".join(side.inputs)
        raise ModelError(
            f"{side.name} takes {len(side.inputs)} inputs ({named}), got {len(values)}"
        )
    names = order if set(order) == set(side.inputs) else side.inputs
    return dict(zip(names, values, strict=True))
