"""Faults in ONNX graphs: only what follows a site runs again, with the hit tensor as an input."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import ClassVar

import numpy as np
import onnx
from onnx import helper
from onnx.numpy_helper import to_array

from backends.onnx_cut import FED_AS, Cut, Shape, cut, rest, varying, with_outputs
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

    def stored(self, site: Site) -> Array:
        """Return the values of a stored tensor."""
        tensor = self._tensors[site]
        if tensor not in self._stored:
            raise ValueError(f"the {site.target} of {site.layer!r} are not stored")
        return np.array(self._value(tensor))

    def at(self, site: Site) -> Suffix:
        """Make a model of what follows a site, and open it."""
        tensor = self._tensors.get(site)
        if tensor is None:
            raise ValueError(f"{self.artifact.name} has no {site.target} of {site.layer!r}")
        found = cut(self._model.graph, tensor)
        run = None
        if found.nodes:
            layers = self._layers & (found.made | {tensor})
            watched = sorted(needed(self._model.graph, found, layers, self._types))
            looks = list(taps(watched, self._types))
            run = self._runner(rest(self._model, found, self._types, looks))
        values = self._value(tensor) if tensor in self._stored else None
        return CutSuffix(site, found, run, values, self._ends)

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
    """What follows one tensor.

    Args:
        site: where the faults are.
        found: the cut at its tensor.
        run: runs its model; None if nothing follows.
        stored: the values of a stored tensor; None for one that the trace has.
        ends: the network's outputs.
    """

    def __init__(
        self, site: Site, found: Cut, run: Run | None, stored: Array | None, ends: list[str]
    ) -> None:
        self._looked = site.target is Target.NEURONS
        self._cut, self._run, self._stored, self._ends = found, run, stored, ends
        self._source: Array | None = None
        self._values = np.empty(0)

    def run(self, trace: Trace, faults: Sequence[BitFault] = ()) -> Faulty:
        """Disturb a copy of the tensor, run what follows, and restore the copy."""
        source = trace[self._cut.start] if self._stored is None else self._stored
        if source is not self._source:
            self._source, self._values = source, np.array(source, order="C")
        values = self._values
        try:
            changes = tuple(disturb(values, one.index, one.bit, one.kind) for one in faults)
            made = self._rest(trace, values)
            own = {self._cut.start: values.copy()} if self._cut.start in self._ends else {}
        finally:
            for one in faults:
                place = slice(one.index, one.index + 1)
                values.reshape(-1)[place] = source.reshape(-1)[place]
        outputs = {name: {**own, **made}.get(name, trace[name]) for name in self._ends}
        finite = bool(np.isfinite(made.get(FINITE, 0.0)))
        if self._looked:
            finite = finite and all(isfinite(after) for _, after in changes)
        return Faulty(outputs, finite, changes)

    def close(self) -> None:
        """Drop the runtime's model and the copy of the tensor."""
        self._run, self._source, self._values = None, None, np.empty(0)

    def _rest(self, trace: Trace, values: Array) -> Mapping[str, Array]:
        if self._run is None:
            return {}
        first = values.astype(FED_AS.get(values.dtype.name, values.dtype), copy=False)
        got = self._run([first, *(trace[name] for name in self._cut.crossing)])
        return dict(zip((*self._cut.outputs, FINITE), got, strict=False))
