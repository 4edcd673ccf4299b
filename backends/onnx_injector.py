"""Faults in ONNX graphs: only what follows a site runs again, with the hit tensors as inputs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import ClassVar

import numpy as np
import onnx
from onnx import helper
from onnx.numpy_helper import to_array

from backends.onnx_cut import FED_AS, Cut, Shape, cut, cuts, rest, varying, with_outputs
from backends.onnx_layers import Place, places
from backends.onnx_watch import FINITE, needed, taps
from simulator.contract import (
    Array,
    BitFault,
    Faulty,
    Injector,
    Site,
    Suffix,
    Target,
    Trace,
    Unsupported,
    disturb,
)
from simulator.contract.bits import EXPONENTS, WIDTHS

Run = Callable[[Sequence[Array]], Sequence[Array]]
"""Runs a model: its inputs in order to its outputs in order; a later call leaves these alone."""


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """A tensor with faults.

    Attributes:
        tensor: its name.
        stored: its values; None where the network computes or gets them.
        looked: whether a hit element that is NaN or Inf counts as seen.
    """

    tensor: str
    stored: Array | None
    looked: bool


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A model of what follows tensors.

    Attributes:
        cut: what it is.
        runs: its starts and what crosses to its outputs and, where it is watched, the taps.
    """

    cut: Cut
    runs: Run

    def run(self, known: Mapping[str, Array]) -> Mapping[str, Array]:
        """Return its outputs by name."""
        given = [known[name] for name in self.cut.starts]
        fed = [one.astype(FED_AS.get(one.dtype.name, one.dtype), copy=False) for one in given]
        got = self.runs([*fed, *(known[name] for name in self.cut.crossing)])
        return dict(zip((*self.cut.outputs, FINITE), got, strict=False))


class CutInjector(Injector):
    """Cuts the graph that a runtime runs, and hands the rest of it to the same runtime.

    A stored tensor becomes an input of the rest, so that no copy that the runtime makes of its
    constants is missed. Neurons whose shape depends on the input's values are not sites.

    Attributes:
        fuses: see :func:`backends.onnx_layers.places`.
    """

    fuses: ClassVar[bool]

    def trace(self, feeds: Mapping[str, Array]) -> Trace:
        """Run the network once and keep the tensors that cross a cut, and the outputs."""
        if set(feeds) != set(self._inputs):
            raise ValueError(f"inputs {sorted(self._inputs)} expected, got {sorted(feeds)}")
        given = [np.array(feeds[name], order="C") for name in self._inputs]
        made = self._whole(given)
        return dict(zip((*self._inputs, *self._kept), (*given, *made), strict=True))

    def golden(self, trace: Trace) -> Faulty:
        """Return the outputs of a trace, and whether all its layers are finite."""
        layers = [trace[name] for name in self._layers if trace[name].size]
        ends = np.array([end for layer in layers for end in (layer.min(), layer.max())], np.float64)
        return Faulty({name: trace[name] for name in self._ends}, bool(np.isfinite(ends).all()), ())

    def stored(self, site: Site) -> Array:
        """Return the values of a stored tensor."""
        tensor = self._tensors[site]
        if tensor not in self._stored:
            raise ValueError(f"the {site.target} of {site.layer!r} are not stored")
        return np.array(self._value(tensor))

    def at(self, *sites: Site) -> Suffix:
        """Make a model of what follows the sites, and open it.

        A site that follows another one ends a model, and the next one begins with it.
        """
        starts = [self._start(site) for site in sites]
        parts = [self._part(one) for one in cuts(self._model.graph, [s.tensor for s in starts])]
        return CutSuffix(starts, parts, self._ends)

    def _start(self, site: Site) -> Start:
        tensor = self._tensors.get(site)
        if tensor is None:
            raise ValueError(f"{self.artifact.name} has no {site.target} of {site.layer!r}")
        stored = self._value(tensor) if tensor in self._stored else None
        return Start(tensor, stored, site.target is Target.NEURONS)

    def _part(self, found: Cut) -> Part:
        layers = self._layers.intersection(found.made.union(found.starts))
        watched = sorted(needed(self._model.graph, found, layers, self._types))
        looks = list(taps(watched, self._types))
        return Part(found, self._runner(rest(self._model, found, self._types, looks)))

    def close(self) -> None:
        """Drop the graph and the runtime's model."""
        self.__dict__.pop("_whole", None)
        self._tensors.clear()

    def _open(self, artifact: Path) -> None:
        self._model = self._read()
        graph = self._model.graph
        self._stored = {tensor.name: tensor for tensor in graph.initializer}
        self._inputs = [one.name for one in graph.input if one.name not in self._stored]
        self._ends = [one.name for one in graph.output]
        found = list(places(graph, self.fuses))
        cuts = {place.tensor: cut(graph, place.tensor) for place in found}
        wanted = [*self._ends, *(name for one in cuts.values() for name in one.crossing)]
        wanted += [place.tensor for place in found if place.target is Target.NEURONS]
        self._kept = [name for name in dict.fromkeys(wanted) if name not in self._inputs]
        more = [name for name in self._kept if name not in self._ends]
        self._whole = self._runner(with_outputs(self._model, more))
        self._types = self._typed()
        self._tensors: dict[Site, str] = dict(self._sites(found))
        self.sites = tuple(self._tensors)
        self._layers = {
            name
            for site, name in self._tensors.items()
            if site.target is Target.NEURONS and site.storage in EXPONENTS
        }.difference(self._ends)

    def _typed(self) -> dict[str, tuple[int, Shape | None]]:
        """Tell every tensor's type and, if it never changes, its shape, by a run on zeros."""
        zeros = {}
        for value in self._model.graph.input:
            if value.name in self._inputs:
                kind = value.type.tensor_type
                if not all(d.HasField("dim_value") for d in kind.shape.dim):
                    raise Unsupported(
                        f"input {value.name!r} has free dimensions; faults need fixed sizes"
                    )
                dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
                zeros[value.name] = np.zeros([d.dim_value for d in kind.shape.dim], dtype)
        free = varying(self._model.graph)
        types: dict[str, tuple[int, Shape | None]] = {
            name: (
                helper.np_dtype_to_tensor_dtype(value.dtype),
                None if name in free else value.shape,
            )
            for name, value in self.trace(zeros).items()
        }
        stored = {name: (one.data_type, tuple(one.dims)) for name, one in self._stored.items()}
        return {**types, **stored}

    def _sites(self, found: Sequence[Place]) -> Iterator[tuple[Site, str]]:
        for place in found:
            kind, shape = self._types[place.tensor]
            storage = helper.tensor_dtype_to_np_dtype(kind).name
            if shape is not None and storage in WIDTHS:
                yield Site(place.layer, place.operator, place.target, storage, shape), place.tensor

    def _value(self, name: str) -> Array:
        """Return a stored tensor."""
        return to_array(self._stored[name])

    @abstractmethod
    def _read(self) -> onnx.ModelProto:
        """Return the graph as the runtime runs it, with a batch of 1."""

    @abstractmethod
    def _runner(self, model: onnx.ModelProto) -> Run:
        """Open a model as the runtime does."""


class CutSuffix(Suffix):
    """What follows tensors.

    Args:
        starts: where the faults are, one a site.
        parts: what follows, in the order in which it runs.
        ends: the network's outputs.
    """

    def __init__(self, starts: Sequence[Start], parts: Sequence[Part], ends: list[str]) -> None:
        self._starts, self._parts, self._ends = starts, parts, ends
        self._copies: dict[str, tuple[Array, Array]] = {}

    def run(self, trace: Trace, faults: Sequence[BitFault] = ()) -> Faulty:
        """Disturb copies of the tensors, run what follows, and restore the copies."""
        known, own = {**trace, FINITE: np.zeros(())}, [start.tensor for start in self._starts]
        changes: dict[int, tuple[float, float]] = {}
        finite, hit = True, set[str]()
        try:
            for part in self._parts:
                self._disturb(hit, part.cut.starts, known, faults, changes)
                known |= part.run(known)
                finite = finite and bool(np.isfinite(known[FINITE]))
            self._disturb(hit, own, known, faults, changes)
            outputs = {
                name: known[name].copy() if name in own else known[name] for name in self._ends
            }
        finally:
            for fault in faults:
                if own[fault.site] in self._copies:
                    self._restore(own[fault.site], fault.index)
        for at, fault in enumerate(faults):
            finite = finite and (not self._starts[fault.site].looked or isfinite(changes[at][1]))
        return Faulty(outputs, finite, tuple(changes[at] for at in range(len(faults))))

    def close(self) -> None:
        """Drop the runtime's models and the copies of the tensors."""
        self._parts = ()
        self._copies.clear()

    def _disturb(
        self,
        hit: set[str],
        names: Sequence[str],
        known: dict[str, Array],
        faults: Sequence[BitFault],
        changes: dict[int, tuple[float, float]],
    ) -> None:
        """Put the faults into the starts that a part takes, if that has not been done."""
        for number, start in enumerate(self._starts):
            if start.tensor not in names or start.tensor in hit:
                continue
            hit.add(start.tensor)
            source = known[start.tensor] if start.stored is None else start.stored
            if self._copies.get(start.tensor, (None,))[0] is not source:
                self._copies[start.tensor] = source, np.array(source, order="C")
            values = known[start.tensor] = self._copies[start.tensor][1]
            for at, fault in enumerate(faults):
                if fault.site == number:
                    changes[at] = disturb(values, fault.index, fault.bit, fault.kind)

    def _restore(self, tensor: str, index: int) -> None:
        source, values = self._copies[tensor]
        place = slice(index, index + 1)
        values.reshape(-1)[place] = source.reshape(-1)[place]
