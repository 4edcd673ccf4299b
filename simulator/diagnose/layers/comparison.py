"""Two networks side by side: their layers matched, run from the same inputs, and measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack

from simulator.diagnose.layers.errors import Sums, relative
from simulator.diagnose.layers.graph import (
    Point,
    alone,
    fused,
    matched,
    output_of,
    with_points,
)
from simulator.diagnose.layers.network import Feeds, Network
from simulator.diagnose.layers.opaque import Opaque, paired
from simulator.errors import ModelError, one_line
from simulator.model.passes.graph import edit
from simulator.results.layers import LayerFigures

AT_ONCE = 2**25
"""Elements of a sample that are read at once; of more, the networks run several times."""
WATCHED = 400
"""Tensors at most that are made outputs to see whether that changes the answers."""
Pair = tuple[Point, Point]


class Comparison:
    """One comparison of two networks.

    Args:
        train: the network that is right.
        deploy: the other one.
        samples: what each of the two gets, by its own names.

    Attributes:
        pairs: layers of both, in the order of *deploy*'s file.
        same: those whose shapes are the same.
        reads: from the tensors of *deploy* that are in :attr:`same` to what *train* has there.
        notes: how it was measured, and what that changes.

    Raises:
        ModelError: no layer has a counterpart.
    """

    def __init__(
        self,
        train: Network | Opaque,
        deploy: Network | Opaque,
        samples: Sequence[tuple[Feeds, Feeds]],
    ) -> None:
        self.notes: list[str] = []
        by_name = isinstance(train, Network) and isinstance(deploy, Network)
        every = matched(train.graph, deploy.graph) if by_name else []
        if 2 * len(every) < min(len(train.points), len(deploy.points)):
            one, other, alike = paired(train, deploy, *samples[0])
            if len(alike) > len(every):
                train, deploy, every = one, other, alike
                self.notes.append("layers have other names in both files: matched by their values")
        self.train, self.deploy, self.samples = train, deploy, samples
        inside = fused(deploy.graph)
        self.pairs = [(a, b) for a, b in every if b.tensor not in inside]
        self.same = [(a, b) for a, b in self.pairs if a.shape == b.shape]
        self.reads = {b.tensor: a.read for a, b in self.same}
        if len(self.pairs) < len(every):
            self.notes.append(
                f"{len(every) - len(self.pairs)} tensors between a layer and its activation are "
                "left out: integer kernels compute both at once"
            )
        if not self.pairs:
            raise ModelError(
                f"no layer of {train.name}'s network has a counterpart in {deploy.name}'s: make "
                "both files of one export"
            )

    @property
    def cuts(self) -> list[Point]:
        """The tensors at which the deployment stack's graph is cut."""
        return [b for _, b in self.same]

    def rows(self) -> dict[str, LayerFigures]:
        """Run all samples; return what is known of each pair, by the tensor of *deploy*."""
        sums = {b.tensor: (Sums(), Sums()) for _, b in self.same}
        ran = set[str]()
        for some in self._parts():
            ran |= self._measured(some, sums)
        self._watched()
        return {
            b.tensor: LayerFigures(
                tensor=a.tensor,
                layer=b.layer if b.operator else a.layer,
                own=b.tensor,
                operator=b.operator or a.operator,
                shape=list(b.shape),
                accumulated=sums[b.tensor][0].error() if b.tensor in sums else None,
                alone=sums[b.tensor][1].error() if b.tensor in ran else None,
            )
            for a, b in self.pairs
        }

    def _parts(self) -> Iterator[list[Pair]]:
        """Divide the pairs, so that few elements are read at once."""
        some, size = list[Pair](), 0
        for pair in self.same:
            if some and size + pair[1].elements > AT_ONCE:
                yield some
                some, size = [], 0
            some.append(pair)
            size += pair[1].elements
        if some:
            yield some

    def _measured(
        self, some: Sequence[Pair], sums: Mapping[str, tuple[Sums, Sums]]
    ) -> set[str]:  # fmt: skip
        """Add up the errors of some layers; return those that ran by themselves."""
        points = [b for _, b in some]
        reads = dict.fromkeys(a.read for a, _ in some)
        with ExitStack() as opened:
            theirs = opened.enter_context(self.deploy.reading([b.read for b in points]))
            by_itself, taken = None, list[str]()
            if isinstance(self.deploy, Network):
                single = alone(self.deploy.graph, self.cuts, points)
                taken = [v.name for v in edit.inputs_of(single) if v.name in self.reads]
                reads |= dict.fromkeys(self.reads[name] for name in taken)
                try:
                    by_itself = opened.enter_context(self.deploy.opened(single))
                except Exception as error:  # a runtime may raise anything
                    self._without(one_line(error))
            else:
                self._without("its file is not cut")
            run = opened.enter_context(self.train.reading(list(reads)))
            for mine, own in self.samples:
                right, got = run(mine), theirs(own)
                for a, b in some:
                    sums[b.tensor][0].add(right[a.read], got[b.read])
                if by_itself is None:
                    continue
                cut = by_itself({**own, **{name: right[self.reads[name]] for name in taken}})
                for a, b in some:
                    sums[b.tensor][1].add(right[a.read], cut[output_of(b, True)])
        return set() if by_itself is None else {b.tensor for b in points}

    def _without(self, why: str) -> None:
        note = f"layers were not run by themselves: {self.deploy.name}: {why}"
        self.notes += [] if note in self.notes else [note]

    def _watched(self) -> None:
        """Note whether a network answers otherwise when its inner tensors are outputs."""
        changed = dict[str, float]()
        for at, (side, network) in enumerate((("train", self.train), ("deploy", self.deploy))):
            if not isinstance(network, Network):
                continue
            sample, reads = self.samples[0][at], [pair[at].read for pair in self.same]
            ends = [v.name for v in network.graph.model.graph.output if v.name in reads]
            if not ends:
                continue
            (whole,) = network.run(with_points(network.graph, ends), [sample])
            with network.reading([*ends, *reads][:WATCHED]) as run:
                watched = run(sample)
            changed[side] = max(relative(watched[name], whole[name]) for name in ends)
        told = " and ".join(f"{share:.2g} ({side})" for side, share in changed.items())
        if told:
            self.notes.append(
                "inner tensors are read as outputs, across which a runtime does not fuse: that "
                f"changes the answers by {told} of themselves"
            )
