"""Two networks side by side: their layers matched, run from the same inputs, and measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack

from simulator.contract import Array
from simulator.diagnose.layers.errors import Sums, relative
from simulator.diagnose.layers.opaque import Opaque, paired
from simulator.errors import ModelError, UserError
from simulator.model.passes.graph import edit
from simulator.model.points import Point, alone, fused, in_order, matched, output_of, with_points
from simulator.pipeline.network import Feeds, Network
from simulator.results.layers import LayerFigures

AT_ONCE = 2**25
"""Elements of a sample that are read at once; of more, the networks run several times."""
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
        few = min(len(train.points), len(deploy.points)) / 2
        if by_name and len(every) < few and (ordered := in_order(train.graph, deploy.graph)):
            every = ordered
            self.notes.append("layers have other names in both files: matched by their order")
        if len(every) < few:
            one, other, alike = paired(train, deploy, *samples[0])
            if len(alike) > len(every):
                train, deploy, every = one, other, alike
                self.notes.append("layers have other names in both files: matched by their values")
        self.train, self.deploy, self.samples = train, deploy, samples
        self._ends = {v.name for side in (train, deploy) for v in side.graph.model.graph.output}
        self._first: tuple[dict[str, Array], dict[str, Array]] = ({}, {})
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
        points, ends = [b for _, b in some], self._ends
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
                except UserError as error:
                    self._without(str(error))
            else:
                self._without(f"the file of {self.deploy.name} is not cut")
            run = opened.enter_context(self.train.reading(list(reads)))
            for at, (mine, own) in enumerate(self.samples):
                right, got = run(mine), theirs(own)
                if at == 0:
                    self._first[0].update(
                        {a.read: right[a.read] for a, _ in some if a.read in ends}
                    )
                    self._first[1].update({b.read: got[b.read] for b in points if b.read in ends})
                for a, b in some:
                    sums[b.tensor][0].add(right[a.read], got[b.read])
                if by_itself is None:
                    continue
                try:
                    cut = by_itself({**own, **{name: right[self.reads[name]] for name in taken}})
                except UserError as error:
                    self._without(str(error))
                    by_itself = None
                    continue
                for a, b in some:
                    sums[b.tensor][1].add(right[a.read], cut[output_of(b, True)])
        return set() if by_itself is None else {b.tensor for b in points}

    def _without(self, why: str) -> None:
        note = f"layers were not run by themselves: {why}"
        self.notes += [] if note in self.notes else [note]

    def _watched(self) -> None:
        """Note whether a network answers otherwise when its inner tensors are outputs."""
        changed = dict[str, float]()
        for at, (side, network) in enumerate((("train", self.train), ("deploy", self.deploy))):
            if not isinstance(network, Network):
                continue
            watched = self._first[at]
            if watched:
                (whole,) = network.run(
                    with_points(network.graph, list(watched)), [self.samples[0][at]]
                )
                changed[side] = max(relative(v, whole[name]) for name, v in watched.items())
        told = " and ".join(f"{share:.2g} ({side})" for side, share in changed.items())
        if told:
            self.notes.append(
                "inner tensors are read as outputs, across which a runtime does not fuse: that "
                f"changes the answers by {told} of themselves"
            )
