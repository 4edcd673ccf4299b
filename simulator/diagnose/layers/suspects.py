"""Which layers are looked at, and what is found of them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import onnx

from simulator.diagnose.finding import Certainty, Finding
from simulator.diagnose.layers.case import Case
from simulator.diagnose.layers.comparison import Comparison, Pair
from simulator.diagnose.layers.weights import one_scale
from simulator.errors import one_line
from simulator.model.passes.graph import edit
from simulator.model.points import alone, output_of
from simulator.pipeline.network import Network
from simulator.profile.profile import Profile
from simulator.results.layers import LayerError, LayerFigures

FIRST = 1e3
"""Added to errors of whole layers, which come before those of channels."""
LOST = 0.5
"""Of a channel's own signal: with such an error of its own it says little any more."""
TOLD = 4
"""Layers of which a finding tells the figures."""
_BOUNDED = frozenset({
    "Clip", "Div", "Exp", "HardSigmoid", "Max", "Min", "Pow", "Reciprocal", "Relu", "Shape",
    "Sigmoid", "Slice", "Softmax", "Split", "Tanh", "Where",
})  # fmt: skip
"""Operators that may make a finite number of an infinite one, or leave it out."""
JUMP = 3.0
"""Where layers do not run by themselves: how often the largest error before one is looked at."""


def only_as_output(given: Comparison, rows: Mapping[str, LayerFigures]) -> set[str]:
    """Return the tensors that are infinite as outputs only: what is computed of them is not.

    A runtime may compute several operators of FP16 in FP32, and round what is an output.
    """
    fine = {
        name for name, row in rows.items() if row.accumulated and not row.accumulated.not_finite
    }
    reads, found = {b.read: b.tensor for _, b in given.pairs}, set[str]()
    for node in reversed(given.deploy.graph.model.graph.node):
        if node.op_type in _BOUNDED or (fine | found).isdisjoint(node.output):
            continue
        taken = {reads[name] for name in node.input if name in reads}
        found |= {name for name in taken - fine if rows[name].accumulated is not None}
    return found


def suspects(
    given: Comparison, rows: Mapping[str, LayerFigures], bound: float, unreal: Container[str] = ()
) -> list[Pair]:
    """Return the layers whose own error is too large, the worst first.

    Where layers did not run by themselves, those at which the error jumps.
    """
    found = list[tuple[float, Pair]]()
    unlike = {b.tensor for a, b in given.pairs if a.shape != b.shape}
    cuts, before, graph = {cut.tensor for cut in given.cuts}, 0.0, given.deploy.graph
    for pair in given.pairs:
        b = pair[1]
        nodes = graph.part(b, cuts) if unlike else []
        if not unlike.isdisjoint(name for node in nodes for name in edit.uses(node)):
            continue  # it is computed from a tensor that cannot be compared
        row = rows[b.tensor]
        error = row.alone or row.accumulated
        if error is None:
            found.append((np.inf, pair))
            continue
        apart = row.accumulated is None or row.accumulated.not_finite > 0
        if b.tensor in unreal or (error.not_finite and not apart):
            continue  # it is infinite only where the graph is cut, or where it is an output
        whole = size = _size(error)
        lost = (error.channel or 0.0) * bound / LOST if row.alone else 0.0
        if b.operator == "Concat" and lost > bound:
            whole = size = max(size, error.channel or 0.0)
        elif one_scale(graph, b):
            size = max(size, lost)
        if size > bound and (row.alone or size > JUMP * before):
            found.append((size + FIRST * (whole > bound), pair))
        before = max(before, size)
    return [pair for _, pair in sorted(found, key=lambda one: -one[0])]


def _size(error: LayerError) -> float:
    return np.inf if error.not_finite else (error.rms or 0.0)


def cases(given: Comparison, profile: Profile, some: Sequence[Pair], bound: float) -> list[Case]:
    """Return layers with their values for the first sample; none where they cannot be run."""
    mine, own = given.samples[0]
    deploy, train = given.deploy, given.train
    if not isinstance(deploy, Network):
        with train.reading([a.read for a, _ in some]) as run:
            right = run(mine)
        with deploy.reading([b.read for _, b in some]) as run:
            got = run(own)
        empty = Network(deploy.graph, deploy.choice, None)
        return [
            Case(train.graph, empty, profile, a, b, (), onnx.ModelProto(), {}, right[a.read],
                 got[b.read])
            for a, b in some
        ]  # fmt: skip
    models = [alone(deploy.graph, given.cuts, [b]) for _, b in some]
    inputs = [[value.name for value in edit.inputs_of(model)] for model in models]
    taken = [name for names in inputs for name in names if name in given.reads]
    with train.reading([*(a.read for a, _ in some), *(given.reads[n] for n in taken)]) as run:
        right = run(mine)
    fed = {**own, **{name: right[given.reads[name]] for name in taken}}
    cuts, begins = {cut.tensor for cut in given.cuts}, set(given.reads.values())
    try:
        (made,) = deploy.run(alone(deploy.graph, given.cuts, [b for _, b in some]), [fed])
    except Exception as error:  # a runtime may raise anything
        given.notes.append(f"no reason was looked for: {deploy.name}: {one_line(error)}")
        return []
    return [
        Case(
            train=train.graph,
            deploy=deploy,
            profile=profile,
            point=a,
            own=b,
            before=tuple(train.graph.part(a, begins)),
            model=model,
            fed={name: fed[name] for name in names},
            wanted=right[a.read],
            given=made[output_of(b, b.tensor in cuts)],
            bound=bound,
            peer=train if isinstance(train, Network) else None,
        )
        for (a, b), model, names in zip(some, models, inputs, strict=True)
    ]


def merged(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings of one name as one: with the evidence and the keep list of all.

    What is left is that of the first.
    """
    found: dict[str, Finding] = {}
    for one in findings:
        known = found.get(one.name)
        if known is None:
            found[one.name] = one
            continue
        found[one.name] = replace(
            known,
            evidence=(*known.evidence, *one.evidence),
            certainty=max(known.certainty, one.certainty, key=list(Certainty).index),
            change=with_nodes(known.change, one.change),
            code="; ".join(dict.fromkeys(filter(None, (known.code, one.code)))),
        )
    return tuple(map(_shortened, found.values()))


def _shortened(one: Finding) -> Finding:
    """Return a finding with the evidence of the worst layers; the others are counted."""
    more = len(one.evidence) - TOLD
    if more < 1:
        return one
    return replace(one, evidence=(*one.evidence[:TOLD], f"and {more} layers more"))


def with_nodes(
    one: Mapping[str, object], other: Mapping[str, object]
) -> Mapping[str, object]:  # fmt: skip
    """Return the changes of both; the nodes of two keep lists are in one list."""
    both = {**one, **other}
    for key in {*one} & {*other}:
        mine, theirs = one[key], other[key]
        if isinstance(mine, dict) and isinstance(theirs, dict):
            nodes = list(dict.fromkeys([*mine["nodes"], *theirs["nodes"]]))
            both[key] = {**mine, "nodes": nodes}
    return both
