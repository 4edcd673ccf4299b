"""Networks that no ONNX file leads to: their runtime shows its layers, matched by their values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from onnx import helper

from simulator.contract import Array
from simulator.errors import ModelError, one_line
from simulator.model.points import Graph, Point
from simulator.pipeline.network import Feeds, Network, inference
from simulator.pipeline.runtimes import RuntimePool
from simulator.pipeline.stack import Stack
from simulator.profile.implementations import Choice

ALIKE = 0.95
"""The least cosine of two tensors that are taken for the same layer's."""
LEAST = 16
"""Elements that a tensor needs to be known by its values."""
COMPARED = 2**15
"""Elements of a tensor at most by which counterparts are looked for."""
_LAST = {3: (2, 0, 1), 2: (1, 0)}
"""Axes that bring the last one, of channels, before those of a map; without axes of size 1."""
View = tuple[tuple[int, ...], tuple[int, ...]]
"""The axes of size above 1 in another order, and the shape after that."""


@dataclass(frozen=True)
class Opaque:
    """A network as its runtime shows it.

    Attributes:
        choice: the runtime.
        run: from the network's input, by the runtime's names, to all tensors.
        inputs: the runtime's names.
        points: the tensors, with the shapes of their counterparts.
        views: how a tensor takes the form of its counterpart.
    """

    choice: Choice
    run: Callable[[Feeds], Feeds]
    inputs: tuple[str, ...]
    points: Mapping[str, Point]
    views: Mapping[str, View]

    @property
    def name(self) -> str:
        """The name of the runtime."""
        return self.choice.backend.name

    @property
    def graph(self) -> Graph:
        """A graph of which nothing is known."""
        return Graph(helper.make_model(helper.make_graph([], "unknown", [], [])))

    @contextmanager
    def reading(self, names: Sequence[str]) -> Iterator[Callable[[Feeds], Feeds]]:
        """Return what runs the network and returns these tensors."""

        def run(sample: Feeds) -> Feeds:
            found = self.run({name: sample[name] for name in self.inputs})
            return {name: viewed(found[name], self.views.get(name)) for name in names}

        yield run


def opaque(stack: Stack, runtimes: RuntimePool, sample: Sequence[Array]) -> Opaque:
    """Open the network of a stack by its runtime's own means.

    Args:
        stack: its runtime shows its layers.
        runtimes: where it is open.
        sample: the inputs, in the order of the model card.

    Raises:
        ModelError: the runtime does not show its layers, or cannot run.
    """
    infer = inference(stack)
    lease, inputs = runtimes.of(infer.choice, infer.artifact), tuple(infer.inputs.values())

    def run(feeds: Feeds) -> Feeds:
        try:
            with lease() as runtime:
                return runtime.inner(feeds)
        except Exception as error:  # a runtime may raise anything
            raise ModelError(
                f"{stack.profile.name}: its layers are out of reach: {one_line(error)}"
            ) from error

    found = run(dict(zip(inputs, sample, strict=True)))
    points = {name: Point(name, name, name, "", value.shape) for name, value in found.items()}
    return Opaque(infer.choice, run, inputs, points, {})


def paired(
    train: Network | Opaque, deploy: Network | Opaque, one: Feeds, other: Feeds
) -> tuple[Network | Opaque, Network | Opaque, list[tuple[Point, Point]]]:
    """Match the layers of two networks of which one or both are opaque, by one sample.

    A tensor of the one is that of the other whose values have the largest cosine, at least
    :data:`ALIKE`, in its own order of axes or with channels last.

    Returns:
        Both networks, an opaque one with tensors in the form of their counterparts, and the pairs.
    """
    values = []
    for network, sample in ((train, one), (deploy, other)):
        names = [point.read for point in network.points.values() if point.operator != "Input"]
        with network.reading(names) as run:
            made = run(sample)
            values.append({name: made[name] for name in names})
    found = alike(*values)
    if isinstance(deploy, Opaque):
        views = {b: (order, values[0][a].shape) for a, b, order in found}
        deploy = _formed(deploy, views)
    elif isinstance(train, Opaque):
        back = {a: (np.argsort(order), values[1][b].shape) for a, b, order in found}
        train = _formed(train, {a: (tuple(map(int, at)), to) for a, (at, to) in back.items()})
    sides = [{point.read: point for point in side.points.values()} for side in (train, deploy)]
    pairs = {b: (sides[0][a], sides[1][b]) for a, b, _ in found}
    order = {point.read: at for at, point in enumerate(deploy.points.values())}
    return train, deploy, [pairs[name] for name in sorted(pairs, key=lambda name: order[name])]


def _formed(network: Opaque, views: Mapping[str, View]) -> Opaque:
    points = {
        name: replace(point, shape=views[name][1]) if name in views else point
        for name, point in network.points.items()
    }
    return replace(network, views=views, points=points)


def alike(train: Feeds, deploy: Feeds) -> list[tuple[str, str, tuple[int, ...]]]:
    """Return the tensors that are most alike: both names, and the order of axes of the second."""
    found = []
    mine = {name: squeezed(value) for name, value in train.items() if value.size >= LEAST}
    for b, value in deploy.items():
        other = squeezed(value)
        for a, own in mine.items():
            if own.size != other.size:
                continue
            for order in _orders(own.shape, other.shape):
                cosine = _cosine(own, other.transpose(order))
                if cosine >= ALIKE:
                    found.append((cosine, a, b, order))
    places = [{name: at for at, name in enumerate(side)} for side in (train, deploy)]
    shares = [{name: at / max(len(side), 1) for name, at in place.items()}
              for side, place in zip((train, deploy), places, strict=True)]  # fmt: skip
    chosen: dict[str, tuple[str, tuple[int, ...]]] = {}
    taken = set[str]()
    for _, a, b, order in sorted(
        found, key=lambda one: (-round(one[0], 6), abs(shares[0][one[1]] - shares[1][one[2]]))
    ):
        if a not in taken and b not in chosen:
            chosen[b] = a, order
            taken.add(a)
    return [(a, b, order) for b, (a, order) in chosen.items()]


def squeezed(value: Array) -> Array:
    """Return an array without its axes of size 1."""
    return value.reshape([size for size in value.shape if size != 1])


def viewed(value: Array, view: View | None) -> Array:
    """Return a tensor in the form of its counterpart."""
    return value if view is None else squeezed(value).transpose(view[0]).reshape(view[1])


def _orders(own: tuple[int, ...], other: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return the orders of axes that bring one shape to another: as it is, channels moved."""
    same = tuple(range(len(other)))
    last = _LAST.get(len(other), same)
    back = tuple(int(at) for at in np.argsort(last))
    return [one for one in dict.fromkeys((same, last, back))
            if tuple(other[at] for at in one) == own]  # fmt: skip


def _cosine(one: Array, other: Array) -> float:
    step = max(one.size // COMPARED, 1)
    a = np.ascontiguousarray(one).reshape(-1)[::step].astype(np.float64)
    b = np.ascontiguousarray(other).reshape(-1)[::step].astype(np.float64)
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return 0.0
    norm = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / norm if norm else 0.0
