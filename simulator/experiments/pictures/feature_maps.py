"""Feature maps of a network that an axis changes: of its graph, its precision, its runtime."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from simulator.contract import U8, Array, Stage
from simulator.contract.recipe import Apply, Chain, Recipe, Runtimes
from simulator.errors import ModelError, UserError
from simulator.experiments.alone import NETWORK, groups_of
from simulator.experiments.pictures.pictures import ShownPair
from simulator.experiments.session import Variant
from simulator.experiments.summary import SIDES
from simulator.modalities.image.shown import WINDOW
from simulator.model.artifact import Artifact
from simulator.model.passes.graph import edit
from simulator.model.passes.rewrite import graph_pass
from simulator.model.points import Graph, Point, in_order, matched, with_points
from simulator.model.rewritten import pinned
from simulator.pipeline.float_runtime import by_names
from simulator.pipeline.network import Network, inference, network_of
from simulator.pipeline.stack import Stack
from simulator.pipeline.walk import Walk
from simulator.profile.axes import swap
from simulator.profile.implementations import Choice
from simulator.profile.modality import graph_axes

_NO_LAYERS = ("Input", "Reshape", "Transpose")
ONE_SIDE = (213, 94, 0)
"""RGB color where only one map has a value; from the palette of Okabe and Ito (2008)."""


@dataclass(frozen=True, eq=False)
class Maps(Recipe):
    """Runs a network up to some of its tensors.

    Attributes:
        choice: the runtime.
        artifact: the file.
        input: the name of its input.
        kind: the type of its input.
        outputs: the names of the tensors.
    """

    choice: Choice
    artifact: Artifact
    input: str
    kind: str
    outputs: tuple[str, ...]
    stage = "maps"
    timed = False

    def identity(self) -> Any:
        """Return the file and the runtime."""
        return ["maps", self.artifact.key, self.choice.identity(), list(self.outputs)]

    def open(self, runtimes: Runtimes) -> Apply:
        """Open the file on first use."""
        lease = runtimes.of(self.choice, self.artifact)

        def apply(tensor: Array, _: Any) -> list[Array]:
            with lease() as runtime:
                run = by_names(runtime, [self.input], self.outputs)
                found = run({self.input: np.ascontiguousarray(tensor, self.kind)})
            return [found[name] for name in self.outputs]

        return apply


@dataclass(frozen=True, slots=True)
class Pair:
    """The training stack's network, and the same with an axis taken from the deployment stack.

    Attributes:
        axis: its name; of axes that are swapped together, joined by ``+``.
        by: the runtimes that run both.
        labels: of the nodes whose outputs are compared: the first map behind the change, and the
            last map of the network, if that is another one.
        sides: both networks.
    """

    axis: str
    by: str
    labels: tuple[str, ...]
    sides: tuple[Maps, Maps]

    def asides(self, train: Chain, prefix: str) -> dict[str, Chain]:
        """Return the chains to the maps, by their names in the plan."""
        return {
            f"{prefix}{self.axis} maps {number}": replace(train, recipes=(*train.recipes, side))
            for number, side in enumerate(self.sides)
        }

    def see(self, walk: Walk, prefix: str) -> Iterator[tuple[str, Array, Array]]:
        """Yield each node's label with both maps of one sample, (C, H, W) float64.

        Raises:
            ModelError: an output is not of shape (1, C, H, W).
        """
        before, after = (walk.aside(f"{prefix}{self.axis} maps {number}") for number in (0, 1))
        for label, *pair in zip(self.labels, before, after, strict=True):
            if any(out.ndim != 4 or len(out) != 1 for out in pair):
                raise ModelError(f"{label} gives shape {pair[0].shape}, which is not an image")
            one, other = (out[0].astype(np.float64) for out in pair)
            yield label, one, other


def axis_groups(pair: ShownPair) -> Iterator[list[str]]:
    """Yield the differing axes of the network; none where a stack has none that runs here.

    Precision and runtime are one where they cannot be swapped alone, or nothing is made for it.
    """
    try:
        for stack in pair.stacks:
            inference(stack)
    except ModelError:
        return
    network = (*graph_axes(), *NETWORK)
    own = [axis for axis in pair.differing if axis in network]
    for group in groups_of(own):
        whole = len(group) > 1 and (pair.quick or not _alone(pair, group))
        yield from [group] if whole else ([axis] for axis in group)


def _alone(pair: ShownPair, group: Sequence[str]) -> bool:
    """Whether a stack can be described with each axis of a group alone."""
    try:
        for axis in group:
            swap(pair.stacks[0].profile, pair.stacks[1].profile, [axis])
    except UserError:
        return False
    return True


@contextmanager
def opened(pair: ShownPair, axes: Sequence[str]) -> Iterator[Pair | None]:
    """Open both networks, cut after the last map; None where the axis changes no node of this one.

    Raises:
        UserError: a network cannot be made, or shows no inner tensors.
    """
    first = _first(pair, axes[0]) if axes[0] in graph_axes() else ""
    if first is None:
        yield None
        return
    sides = [_network(pair, stack) for stack in (pair.stacks[0], _mixed(pair, axes))]
    shown = _shown(sides[0].graph, sides[1].graph, first)
    if not shown:
        raise ModelError("no map of one network has a counterpart in the other")
    with tempfile.TemporaryDirectory(prefix="simulate-maps-") as folder:
        made = []
        for number, side in enumerate(sides):
            file = Path(folder) / f"{number}.onnx"
            names = tuple(points[number].read for points in shown)
            onnx.save(with_points(side.graph, names), str(file))
            artifact = Artifact(file, f"maps {file}", "onnx")
            with pair.session.builder.runtimes.of(side.choice, artifact)():
                pass  # what cannot be opened fails here, before the first sample
            (name,) = side.inputs
            kind = str(side.graph.kinds.get(name, np.dtype(np.float32)))
            made.append(Maps(side.choice, artifact, name, kind, names))
        by = " and ".join(dict.fromkeys(side.name for side in sides))
        labels = tuple(edit.label(sides[0].graph.makers[point.tensor]) for point, _ in shown)
        yield Pair("+".join(axes), by, labels, (made[0], made[1]))


def _mixed(pair: ShownPair, axes: Sequence[str]) -> Stack:
    """The training stack with some axes of the deployment stack.

    That is the deployment stack's network where no other axis of the network differs.
    """
    train, deploy = pair.stacks
    network = {axis for axis in pair.differing if axis in (*graph_axes(), *NETWORK)}
    if network <= {*axes}:
        return deploy
    if pair.quick and {*axes} & {*NETWORK}:
        raise UserError("no stack with it alone is made with --quick")
    mixed = swap(train.profile, deploy.profile, axes)
    both = {side: (one.profile, one.choices) for side, one in zip(SIDES, pair.stacks, strict=True)}
    return pair.session.stack(Variant(f"train with {' '.join(axes)}", mixed, both))


def _network(pair: ShownPair, stack: Stack) -> Network:
    if inference(stack).sized:  # of an adapting stack there is none at all
        raise ModelError(f"{stack.choices[Stage.RUNTIME].backend.name} has an engine for each size")
    found = network_of(stack, pair.session.card.feeds)
    if found is None or found.exporter or found.choice.offer.make.compiled_by is not None:
        name = stack.artifact.format if found is None else found.name
        raise ModelError(f"{name} shows no inner tensors here; simulate diagnose may")
    return found


def _first(pair: ShownPair, axis: str) -> str | None:
    """The output of the first node that is not the same in both graphs."""
    path, card, apply = pair.session.source.path, pair.session.card, graph_pass(axis).apply
    graphs = [stack.profile.spec.graph for stack in pair.stacks]
    train, deploy = (apply(pinned(card, path), getattr(graph, axis)).after for graph in graphs)
    return next((name for name, seen in train.items() if seen.effect != deploy[name].effect), None)


def _shown(train: Graph, deploy: Graph, first: str) -> list[tuple[Point, Point]]:
    """The first map at or behind a tensor that both graphs have, and the last one."""
    pairs = matched(train, deploy)
    if not any(_is_map(a) and _is_map(b) for a, b in pairs):
        pairs = in_order(train, deploy)
    order = {name: at for at, name in enumerate(train.points)}
    start = order.get(first, 0)
    maps = [
        (one, other)
        for one, other in sorted(pairs, key=lambda both: order[both[0].tensor])
        if order[one.tensor] >= start and _is_map(one) and _is_map(other)
    ]
    return maps[:1] + (maps[-1:] if len(maps) > 1 else [])


def _is_map(point: Point) -> bool:
    shape = point.shape
    whole = len(shape) == 4 and shape[0] == 1 and 1 not in shape[2:]
    return whole and point.operator not in _NO_LAYERS


def compared(before: Array, after: Array) -> tuple[dict[str, Any], dict[str, U8]]:
    """Compare two maps in the rows and columns that both have, counted from the top left.

    Args:
        before: (C, H, W) float64.
        after: (C, H', W') float64, with the same number of channels.

    Returns:
        Two mappings. The numbers: ``train_size`` and ``deploy_size`` (rows, columns); ``window``,
        the rows and columns that the pictures show, None where they show all; ``low`` and
        ``high``, the values shown black and white in ``train`` and ``deploy``; ``peak``, the value
        shown white in ``difference``; over all channels ``values_changed`` (share, 0 to 1),
        ``mean`` and ``max`` absolute difference. The pictures, uint8: ``train`` and ``deploy``,
        the gray mean over the channels; ``difference``, the gray mean absolute difference, with
        the color :data:`ONE_SIDE` where only one map has a value.

    Raises:
        ModelError: the numbers of channels differ.
    """
    if len(before) != len(after):
        raise ModelError(f"the maps have {len(before)} and {len(after)} channels")
    rows, columns = (min(a, b) for a, b in zip(before.shape[1:], after.shape[1:], strict=True))
    levels = np.abs(before[:, :rows, :columns] - after[:, :rows, :columns])
    means = [side.mean(axis=0) for side in (before, after)]
    low, high = min(m.min() for m in means), max(m.max() for m in means)
    whole = tuple(max(a, b) for a, b in zip(before.shape[1:], after.shape[1:], strict=True))
    painted = np.full((*whole, 3), ONE_SIDE, np.uint8)
    difference = levels.mean(axis=0)
    peak = float(difference.max())
    painted[:rows, :columns] = _gray(difference, 0.0, peak)[..., None]
    pictures = {"train": _gray(means[0], low, high), "deploy": _gray(means[1], low, high)}
    pictures["difference"] = painted if whole != (rows, columns) else painted[..., 0]
    origin = _origin(whole, whole != (rows, columns))
    shown = {
        name: picture[origin[0] : origin[0] + WINDOW, origin[1] : origin[1] + WINDOW]
        for name, picture in pictures.items()
    }
    numbers = {
        "train_size": list(before.shape[1:]),
        "deploy_size": list(after.shape[1:]),
        "window": list(shown["difference"].shape[:2]) if max(whole) > WINDOW else None,
        "low": float(low),
        "high": float(high),
        "peak": peak,
        "values_changed": float(np.mean(levels > 0)),
        "mean": float(levels.mean()),
        "max": float(levels.max()),
    }
    return numbers, shown


def _gray(values: Array, low: float, high: float) -> U8:
    span = high - low
    found: U8 = np.rint((values - low) * (255 / span if span > 0 else 0.0)).astype(np.uint8)
    return found


def _origin(size: Sequence[int], at_the_end: bool) -> tuple[int, int]:
    """First row and column of the window: at the lower right if *at_the_end*, else centred."""
    rows, columns = (max(side - WINDOW, 0) // (1 if at_the_end else 2) for side in size)
    return rows, columns
