"""Run two networks from the same inputs, compare all layers, and explain those that go wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np

from simulator.contract import Array
from simulator.diagnose.finding import Certainty, Finding
from simulator.diagnose.layers.case import Case
from simulator.diagnose.layers.errors import Sums, relative
from simulator.diagnose.layers.graph import (
    Point,
    alone,
    fused,
    matched,
    output_of,
    with_points,
)
from simulator.diagnose.layers.network import Feeds, Network, network_of
from simulator.diagnose.layers.reasons import reasons
from simulator.diagnose.layers.rounding import INPUT
from simulator.diagnose.layers.weights import one_scale
from simulator.errors import ModelError, one_line
from simulator.experiments.session import Session
from simulator.model.passes.graph import edit
from simulator.pipeline.stack import Stack
from simulator.results.layers import LayerError, LayerFigures, LayersFigures

AT_ONCE = 2**25
"""Elements of a sample that are read at once; of more, the networks run several times."""
EXAMINED = 8
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
FIRST = 1e3
"""Added to errors of whole layers, which come before those of channels."""
LOST = 0.5
"""Of a channel's own signal: with such an error of its own it says little any more."""
JUMP = 3.0
"""Where layers do not run by themselves: how often the largest error before one is looked at."""
WATCHED = 400
"""Tensors at most that are made outputs to see whether that changes the answers."""
Pair = tuple[Point, Point]


@dataclass(frozen=True, slots=True)
class Layers:
    """Where two networks part.

    Attributes:
        figures: every layer.
        findings: why, the worst layer first.
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

    Args:
        train: the stack that is right.
        deploy: the other one.
        tensors: inputs of the network, at least one: an array, or all inputs by their names.
        session: of the model.
        bound: relative error above which a layer is looked at; by default by what *deploy*
            computes in.

    Raises:
        ModelError: the layers of a stack are out of reach, or none has a counterpart.
    """
    one, other = network_of(train, session.card), network_of(deploy, session.card)
    if not tensors:
        raise ModelError("layers are compared on input tensors, and there is none")
    return Comparison(one, other, deploy, [_named(given, one) for given in tensors], bound).run()


def _named(given: Array | Mapping[str, Array], network: Network) -> Feeds:
    names = [value.name for value in edit.inputs_of(network.graph.model)]
    values = [given] if isinstance(given, np.ndarray) else list(given.values())
    if not isinstance(given, np.ndarray) and set(given) == set(names):
        return dict(given)
    if len(values) != len(names):
        raise ModelError(f"{len(names)} inputs expected ({', '.join(names)}), got {len(values)}")
    return dict(zip(names, values, strict=True))


class Comparison:
    """One comparison of two networks; see :func:`part`."""

    def __init__(
        self, train: Network, deploy: Network, stack: Stack, samples: Sequence[Feeds],
        bound: float | None,
    ) -> None:  # fmt: skip
        self.train, self.deploy, self.stack, self.samples = train, deploy, stack, samples
        self.bound, self.why = bound_of(stack, deploy) if bound is None else (bound, "as asked")
        inside = fused(deploy.graph)
        every = matched(train.graph, deploy.graph)
        self.pairs = [(a, b) for a, b in every if b.tensor not in inside]
        self.same = [(a, b) for a, b in self.pairs if a.shape == b.shape]
        self.cuts = [b for _, b in self.same]
        self.reads = {b.tensor: a.read for a, b in self.same}
        self.notes: list[str] = []
        if len(self.pairs) < len(every):
            self.notes.append(
                f"{len(every) - len(self.pairs)} tensors between a layer and its activation are "
                "left out: integer kernels compute both at once"
            )
        if not self.pairs:
            raise ModelError(
                f"no layer of {train.name}'s network has the name of one of {deploy.name}'s: make "
                "both files of one export"
            )
        own = [value.name for value in edit.inputs_of(deploy.graph.model)]
        mine = [value.name for value in edit.inputs_of(train.graph.model)]
        if len(own) != len(mine):
            raise ModelError(f"the networks take {len(mine)} and {len(own)} inputs")
        self.inputs = dict(zip(own, mine if set(own) != set(mine) else own, strict=True))

    def run(self) -> Layers:
        """Run all, and return the table with the findings."""
        sums = {b.tensor: (Sums(), Sums()) for _, b in self.same}
        ran = set[str]()
        for some in self._parts():
            ran |= self._measured(some, sums)
        rows = {
            b.tensor: LayerFigures(
                tensor=a.tensor,
                layer=b.layer,
                operator=b.operator,
                shape=list(b.shape),
                accumulated=sums[b.tensor][0].error() if b.tensor in sums else None,
                alone=sums[b.tensor][1].error() if b.tensor in ran else None,
            )
            for a, b in self.pairs
        }
        self._unchanged()
        suspects = self._suspects(rows)
        found: dict[str, list[Finding]] = {}
        for case in self._cases(suspects[:EXAMINED]):
            found[case.own.tensor] = own = self._explained(case)
            named = [one.name for one in own] or ["no known reason"]
            rows[case.own.tensor] = rows[case.own.tensor].model_copy(update={"reasons": named})
        known = tuple(f"{INPUT}{name!r}" for name, each in found.items() if each)
        findings = merged(
            one for each in found.values() for one in each if not one.name.startswith(known)
        )
        above = (
            row for row in rows.values() if row.accumulated is None or self._above(row.accumulated)
        )
        own, theirs = (
            sum(point.operator != "Input" for point in network.graph.points.values())
            for network in (self.train, self.deploy)
        )
        both = sum(b.operator != "Input" for _, b in self.pairs)
        first = next(above, None)
        return Layers(
            LayersFigures(
                train=self.train.name,
                deploy=self.deploy.name,
                samples=len(self.samples),
                bound=self.bound,
                why=self.why,
                first=first.layer if first else None,
                rows=list(rows.values()),
                unmatched=own - both,
                extra=theirs - both,
                suspects=len(suspects),
                examined=min(len(suspects), EXAMINED),
                notes=self.notes,
            ),
            findings,
        )

    def _above(self, error: LayerError) -> bool:
        return error.not_finite > 0 or (error.rms or 0) > self.bound

    def _parts(self) -> Iterator[list[Pair]]:
        """Divide the pairs, so that few elements are read at once."""
        some, size = list[Pair](), 0
        for pair in self.same:
            if some and size + pair[1].elements > AT_ONCE:
                yield some
                some, size = [], 0
            some.append(pair)
            size += pair[1].elements
        yield some

    def _feeds(self, sample: Feeds) -> Feeds:
        """Return a sample by the names of the deployment stack's file."""
        return {own: sample[mine] for own, mine in self.inputs.items()}

    def _measured(
        self, some: Sequence[Pair], sums: Mapping[str, tuple[Sums, Sums]]
    ) -> set[str]:  # fmt: skip
        """Add up the errors of some layers; return those that ran by themselves."""
        single = alone(self.deploy.graph, self.cuts, [b for _, b in some])
        taken = [v.name for v in edit.inputs_of(single) if v.name in self.reads]
        reads = dict.fromkeys([*(a.read for a, _ in some), *(self.reads[name] for name in taken)])
        inputs = {value.name for value in edit.inputs_of(self.train.graph.model)}
        with ExitStack() as opened:
            run = opened.enter_context(
                self.train.opened(
                    with_points(self.train.graph, [n for n in reads if n not in inputs])
                )
            )
            theirs = opened.enter_context(
                self.deploy.opened(with_points(self.deploy.graph, [b.read for _, b in some]))
            )
            try:
                by_itself = opened.enter_context(self.deploy.opened(single))
            except Exception as error:  # a runtime may raise anything
                note = f"layers were not run by themselves: {self.deploy.name}: {one_line(error)}"
                self.notes += [] if note in self.notes else [note]
                by_itself = None
            for sample in self.samples:
                right = {**sample, **run(sample)}
                fed = self._feeds(sample)
                got = theirs(fed)
                for a, b in some:
                    sums[b.tensor][0].add(right[a.read], got[b.read])
                if by_itself is None:
                    continue
                cut = by_itself({**fed, **{name: right[self.reads[name]] for name in taken}})
                for a, b in some:
                    sums[b.tensor][1].add(right[a.read], cut[output_of(b, True)])
        return set() if by_itself is None else {b.tensor for _, b in some}

    def _unchanged(self) -> None:
        """Note whether a network answers otherwise when its inner tensors are outputs."""
        fed, changed = self._feeds(self.samples[0]), dict[str, float]()
        for side, network, sample, points in (
            ("train", self.train, self.samples[0], [a for a, _ in self.same]),
            ("deploy", self.deploy, fed, [b for _, b in self.same]),
        ):
            model = network.graph.model
            ends = [v.name for v in model.graph.output if v.name in {p.read for p in points}]
            if not ends:
                continue
            (whole,) = network.run(with_points(network.graph, ends), [sample])
            some = dict.fromkeys([*ends, *(point.read for point in points)])
            names = {value.name for value in edit.inputs_of(model)}
            (watched,) = network.run(
                with_points(network.graph, [n for n in some if n not in names][:WATCHED]), [sample]
            )
            changed[side] = max(relative(watched[name], whole[name]) for name in ends)
        told = " and ".join(f"{share:.2g} ({side})" for side, share in changed.items())
        if told:
            self.notes.append(
                "inner tensors are read as outputs, across which a runtime does not fuse: that "
                f"changes the answers by {told} of themselves"
            )

    def _suspects(self, rows: Mapping[str, LayerFigures]) -> list[Pair]:
        """Return the layers whose own error is too large, the worst first."""
        found = list[tuple[float, Pair]]()
        unlike = {b.tensor for a, b in self.pairs if a.shape != b.shape}
        cuts, before = {cut.tensor for cut in self.cuts}, 0.0
        for pair in self.pairs:
            b = pair[1]
            nodes = self.deploy.graph.part(b, cuts) if unlike else []
            if not unlike.isdisjoint(name for node in nodes for name in edit.uses(node)):
                continue  # it is computed from a tensor that cannot be compared
            if b.tensor in unlike:
                found.append((np.inf, pair))
                continue
            row = rows[b.tensor]
            error = row.alone or row.accumulated
            assert error is not None  # only layers of unlike shapes have none
            size = np.inf if error.not_finite else (error.rms or 0.0)
            if row.alone and b.operator == "Concat":
                size = max(size, error.channel or 0.0)
            elif row.alone and one_scale(self.deploy.graph, b):
                size = max(size, (error.channel or 0.0) * self.bound / LOST)
            if size > self.bound and (row.alone or size > JUMP * before):
                whole = np.inf if error.not_finite else (error.rms or 0.0)
                found.append((size + FIRST * (whole > self.bound), pair))
            before = max(before, size)
        return [pair for _, pair in sorted(found, key=lambda one: -one[0])]

    def _cases(self, suspects: Sequence[Pair]) -> list[Case]:
        """Return the layers that are looked at, with their values for the first sample."""
        if not suspects:
            return []
        sample, cuts = self.samples[0], {cut.tensor for cut in self.cuts}
        models = [alone(self.deploy.graph, self.cuts, [b]) for _, b in suspects]
        inputs = [[value.name for value in edit.inputs_of(model)] for model in models]
        taken = [name for names in inputs for name in names if name in self.reads]
        wanted = dict.fromkeys([*(a.read for a, _ in suspects), *map(self.reads.get, taken)])
        names = [name for name in wanted if name and name not in sample]
        made = self.train.run(with_points(self.train.graph, names), [sample]) if names else [{}]
        right = {**sample, **made[0]}
        fed = {**self._feeds(sample), **{name: right[self.reads[name]] for name in taken}}
        try:
            whole = alone(self.deploy.graph, self.cuts, [b for _, b in suspects])
            (given,) = self.deploy.run(whole, [fed])
        except Exception as error:  # a runtime may raise anything
            self.notes.append(f"no reason was looked for: {self.deploy.name}: {one_line(error)}")
            return []
        return [
            Case(
                train=self.train.graph,
                deploy=self.deploy,
                profile=self.stack.profile,
                point=a,
                own=b,
                before=tuple(self.train.graph.part(a, set(self.reads.values()))),
                model=model,
                fed={name: fed[name] for name in names},
                wanted=right[a.read],
                given=given[output_of(b, b.tensor in cuts)],
            )
            for (a, b), model, names in zip(suspects, models, inputs, strict=True)
        ]

    def _explained(self, case: Case) -> list[Finding]:
        try:
            return reasons(case)
        except Exception as error:  # a runtime may raise anything
            self.notes.append(f"{case.layer} was not examined: {one_line(error)}")
            return []


def merged(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings of one name as one: its evidence is that of all, its keep list too."""
    found: dict[str, Finding] = {}
    for one in findings:
        known = found.get(one.name)
        if known is None:
            found[one.name] = one
            continue
        left = [value for value in (known.left, one.left) if value is not None]
        found[one.name] = replace(
            known,
            evidence=(*known.evidence, *one.evidence),
            left=max(left, default=None),
            certainty=max(known.certainty, one.certainty, key=list(Certainty).index),
            change=with_nodes(known.change, one.change),
            code="; ".join(dict.fromkeys(filter(None, (known.code, one.code)))),
        )
    return tuple(found.values())


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


def bound_of(stack: Stack, network: Network) -> tuple[float, str]:
    """Return the error above which a layer is looked at, and why."""
    rounds = edit.rounded(network.graph.model)
    kinds = {kind.name for kind in edit.dtypes_of(network.graph.model).values()}
    compute = stack.effective.compute or stack.profile.spec.precision.compute
    asked = "int8" if rounds or compute == "int8" else compute
    asked = "fp16" if asked == "fp32" and "float16" in kinds else asked
    return BOUNDS.get(asked, BOUNDS["fp16"])
