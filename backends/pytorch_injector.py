"""Faults in ``torch.export`` programs: the graph is cut at sites, and its rest runs again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from backends.pytorch_cut import PRODUCTS, attribute, depending, functional, needed, part, stored
from backends.pytorch_program import TorchProgram
from simulator.contract import Array, Unsupported
from simulator.contract.bits import WIDTHS, disturb, dtype
from simulator.contract.injection import BitFault, Faulty, Injector, Site, Suffix, Target, Trace

OUTPUT, FINITE = "output ", "all finite"
"""What a trace has besides values of nodes, whose names have no space."""


@dataclass(frozen=True, slots=True)
class Parts:
    """A graph that is cut at nodes.

    Attributes:
        first: those that depend on no other one.
        hooked: those that do.
        kept: the nodes of a trace that are needed besides them.
        before: from these to all else that their rest takes.
        after: from the first nodes and that to the network's outputs, and the taps.
    """

    first: tuple[Any, ...]
    hooked: tuple[Any, ...]
    kept: tuple[Any, ...]
    before: Any
    after: Any


class TorchInjector(Injector):
    """Runs the operators of a program one by one, in their order, as the eager runtime does.

    A layer is a convolution or a product. A trace has the network's inputs and the output of each
    layer; the operators between layers run again, once a sample.
    """

    tap = "outputs of convolutions and products, before normalization and activation"

    def _open(self, artifact: Path) -> None:
        if self.options["device"] != "cpu":
            raise Unsupported(
                f"PyTorch on {self.options['device']} is not proved to give equal bits for a part "
                "of a network; put the faults in with device: cpu"
            )
        self.runtime = TorchProgram(artifact, {**self.options, "mode": "eager"})
        self.method = (
            "PyTorch, operator by operator: weights flipped in a copy, neurons in the output of a "
            "convolution or product before its activation; only what follows runs again"
        )
        if self.options["mode"] == "compile":
            self.method += "; eager, while the runtime is compiled and differs in the last bits"
        self.module = self.runtime.module
        nodes = list(self.module.graph.nodes)
        self.given = [node for node in nodes if node.op == "placeholder"]
        self.layers = [node for node in nodes if str(node.target) in PRODUCTS]
        if not self.layers:
            raise Unsupported(f"{artifact}: this program has no convolution and no product")
        self._make_functional()
        self.results = nodes[-1].all_input_nodes
        self._trace = part(self.module, self.given, [*self.layers, *self.results], taps=True)
        self._find_sites()

    def _make_functional(self) -> None:
        """Keep kept values as they are; refuse programs that then compute something else."""
        rng = np.random.default_rng(0)
        feeds = {
            port.name: rng.standard_normal([n or 1 for n in port.shape]).astype(port.dtype)
            for port in self.runtime.inputs
        }
        before = self.runtime.run(feeds)
        if functional(self.module):
            after = self.runtime.run(feeds)
            if any(not np.array_equal(before[name], after[name]) for name in before):
                raise Unsupported(
                    f"{self.artifact}: it changes views of tensors in place; export it with "
                    "torch.export.export(...).run_decompositions({})"
                )

    def _find_sites(self) -> None:
        zeros = {p.name: np.zeros([n or 1 for n in p.shape], p.dtype) for p in self.runtime.inputs}
        trace = self.trace(zeros)
        self._nodes: dict[Site, Any] = {}
        self._parts: dict[tuple[Any, ...], Parts] = {}
        for node, port in zip(self.given, self.runtime.inputs, strict=True):
            self._add(port.name, "Input", Target.INPUT, node, trace[node.name])
        names = dict(zip(self.layers, _names(self.layers), strict=True))
        owners: dict[Any, str] = {}
        for node, layer in names.items():
            for _, found in self._stored(node):
                owners[found] = min(layer, owners.get(found, layer))
        for node, layer in names.items():
            operator = node.target._schema.name.removeprefix("aten::")
            for target, found in self._stored(node):
                if found in owners:
                    values = array(attribute(self.module, found))
                    self._add(owners.pop(found), operator, target, found, values)
            self._add(layer, operator, Target.NEURONS, node, trace[node.name])
        self.sites = tuple(self._nodes)

    def _stored(self, node: Any) -> Iterator[tuple[Target, Any]]:
        """The weights and biases of a layer; those that several share have the first name."""
        places = zip((Target.WEIGHTS, Target.BIASES), PRODUCTS[str(node.target)], strict=True)
        for target, place in places:
            if place is not None and place < len(node.args):
                found = stored(self.module, node.args[place])
                if found is not None:
                    yield target, found

    def _add(self, layer: str, operator: str, target: Target, node: Any, values: Array) -> None:
        if values.dtype.name in WIDTHS:
            site = Site(layer, operator, target, values.dtype.name, values.shape)
            self._nodes[site] = node

    def parts(self, nodes: tuple[Any, ...]) -> Parts:
        """Cut the graph at nodes; at a single one once for all suffixes."""
        found = self._parts.get(nodes) or self._cut(nodes)
        if len(nodes) == 1:
            self._parts[nodes] = found
        return found

    def _cut(self, nodes: tuple[Any, ...]) -> Parts:
        after = set[Any]().union(*map(depending, nodes))
        first = tuple(node for node in nodes if node not in after)
        hooked = tuple(node for node in nodes if node in after)
        kept = [n for n in (*self.given, *self.layers) if n not in after and n not in first]
        within = needed(self.results, set(self.module.graph.nodes) - after)
        beside = [n for n in within - after if n not in first and n.op != "get_attr"]
        used = needed(beside, kept)
        kept = [n for n in kept if n in used]
        return Parts(
            first,
            hooked,
            tuple(kept),
            part(self.module, kept, beside),
            part(self.module, [*first, *beside], self.results, taps=True, hooked=hooked),
        )

    @contextmanager
    def running(self) -> Iterator[None]:
        """Compute as the runtime does."""
        torch.set_num_threads(self.options["threads"])
        with torch.inference_mode(), self.runtime.autocast():
            yield

    def load(self, node: Any, values: Array) -> Any:
        """Return a value of a trace as the network takes it."""
        if node in self.given:
            return self.runtime.tensor(values)
        return tensor(values)

    def trace(self, feeds: Mapping[str, Array]) -> Trace:
        """Run the network once; keep its inputs, the output of each layer, and its outputs."""
        given = [np.array(feeds[port.name]) for port in self.runtime.inputs]
        with self.running():
            *made, taps = self._trace(*(self.runtime.tensor(values) for values in given))
            golden = self.faulty(made[len(self.layers) :], taps)
        kept = [*given, *(array(values) for values in made[: len(self.layers)])]
        names = [node.name for node in (*self.given, *self.layers)]
        outputs = {OUTPUT + name: values for name, values in golden.outputs.items()}
        return {**dict(zip(names, kept, strict=True)), **outputs, FINITE: np.array(golden.finite)}

    def faulty(
        self, made: Sequence[Any], taps: Any, changes: Sequence[tuple[float, float]] = ()
    ) -> Faulty:
        """Return copies of the outputs, and whether all that was tapped is finite."""
        outputs = {name: np.array(one) for name, one in self.runtime.named(made).items()}
        finite = taps is None or bool(torch.isfinite(taps).all())
        return Faulty(outputs, finite, tuple(changes))

    def golden(self, trace: Trace) -> Faulty:
        """Return what the whole network gave: the same operators on the same values."""
        outputs = {n.removeprefix(OUTPUT): a for n, a in trace.items() if n.startswith(OUTPUT)}
        return Faulty(outputs, bool(trace[FINITE]), ())

    def stored(self, site: Site) -> Array:
        """Return the values of weights or biases."""
        if site.target not in (Target.WEIGHTS, Target.BIASES):
            raise ValueError(f"the {site.target} of {site.layer!r} are not stored")
        return np.array(array(attribute(self.module, self._nodes[site])))

    def at(self, *sites: Site) -> Suffix:
        """Open the rest of the network from sites on."""
        return TorchSuffix(self, sites, tuple(self._nodes[site] for site in sites))

    def close(self) -> None:
        """Free the runtime."""
        self.runtime.close()


class TorchSuffix(Suffix):
    """The operators that depend on sites; what they need besides is computed once a sample."""

    def __init__(
        self, injector: TorchInjector, sites: Sequence[Site], nodes: tuple[Any, ...]
    ) -> None:
        self._injector, self._sites, self._nodes = injector, sites, nodes
        self._parts = injector.parts(nodes)
        self._sample: Trace | None = None
        self._beside: tuple[Any, ...] = ()
        self._values = {
            node: attribute(injector.module, node).detach().clone()
            for site, node in zip(sites, nodes, strict=True)
            if site.target in (Target.WEIGHTS, Target.BIASES)
        }

    def run(self, trace: Trace, faults: Sequence[BitFault] = ()) -> Faulty:
        """Change the elements in place, run, and put them back."""
        if not faults:
            return self._injector.golden(trace)
        injector, parts = self._injector, self._parts
        changes: dict[int, tuple[float, float]] = {}

        def hook(values: Any, number: int) -> Any:
            mine = values.clone()
            self._disturb(parts.hooked[number], mine, faults, changes, [])
            return mine

        with injector.running():
            if trace is not self._sample:
                self._load(trace)
            old: list[tuple[Any, Any]] = []
            try:
                for node in parts.first:
                    self._disturb(node, self._values[node], faults, changes, old)
                given = [
                    injector.runtime.tensor(values.numpy()) if node in injector.given else values
                    for node, values in ((node, self._values[node]) for node in parts.first)
                ]
                made = parts.after(*([hook] if parts.hooked else []), *given, *self._beside)
                told = [changes[at] for at in range(len(faults))]
                return injector.faulty(made[:-1], made[-1], told)
            finally:
                for one, before in reversed(old):
                    one.copy_(before)

    def _disturb(
        self,
        node: Any,
        values: Any,
        faults: Sequence[BitFault],
        changes: dict[int, tuple[float, float]],
        old: list[tuple[Any, Any]],
    ) -> None:
        """Put the faults of a node into its values; keep the elements that were there."""
        for at, fault in enumerate(faults):
            if self._nodes[fault.site] is node:
                one = _element(values, self._sites[fault.site], fault.index)
                old.append((one, one.clone()))
                changes[at] = _changed(one, fault)

    def _load(self, trace: Trace) -> None:
        injector = self._injector
        values = [injector.load(node, trace[node.name]) for node in self._parts.kept]
        self._beside = self._parts.before(*values)
        for site, node in zip(self._sites, self._nodes, strict=True):
            if site.target is Target.INPUT:
                self._values[node] = tensor(np.array(trace[node.name]))
            elif site.target is Target.NEURONS:
                self._values[node] = injector.load(node, trace[node.name]).clone()
        self._sample = trace

    def close(self) -> None:
        """Forget the sample."""
        self._sample, self._beside = None, ()


def _element(values: Any, site: Site, index: int) -> Any:
    """Return a view of one element, counted in the order of the axes, not of the memory."""
    if not 0 <= index < site.elements:
        raise ValueError(f"element {index} of {site.elements}")
    place = np.unravel_index(index, site.shape)
    return values[tuple(slice(int(k), int(k) + 1) for k in place)]


def _changed(one: Any, fault: BitFault) -> tuple[float, float]:
    host = np.array(array(one)).reshape(1)
    change = disturb(host, 0, fault.bit, fault.kind)
    one.copy_(tensor(host).reshape(one.shape))
    return change


def _names(layers: Sequence[Any]) -> list[str]:
    """Return the path of each layer's module where no other has it, else the node's name."""
    nodes = [node.name for node in layers]
    paths = []
    for node in layers:
        stack = list((node.meta.get("nn_module_stack") or {"": ("",)}).values())
        paths.append(stack[-1][0])
    counts = Counter([*paths, *nodes])
    return [
        path if path and counts[path] == 1 else name
        for path, name in zip(paths, nodes, strict=True)
    ]


def array(values: Any) -> Array:
    """Return a tensor as an array, with its order in memory."""
    there = values.detach().cpu()
    if there.dtype == torch.bfloat16:
        there = there.view(torch.int16)
        return np.asarray(there.numpy().view(dtype("bfloat16")))
    return np.asarray(there.numpy())


def tensor(values: Array) -> Any:
    """Return an array as a tensor that shares its memory."""
    if values.dtype == dtype("bfloat16"):
        return torch.from_numpy(values.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(values)
