"""Feature maps of a network at the first node that an axis of its graph changes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from simulator.contract import U8, Array, Stage
from simulator.contract.recipe import Apply, Chain, Recipe, Runtimes
from simulator.errors import ModelError
from simulator.experiments.session import Session
from simulator.modalities.image.shown import WINDOW
from simulator.model.artifact import Artifact
from simulator.model.card import Card
from simulator.model.passes.graph import edit
from simulator.model.passes.rewrite import graph_pass, rewrite
from simulator.model.rewritten import pinned
from simulator.pipeline.float_runtime import in_fp32
from simulator.pipeline.stack import Stack
from simulator.pipeline.walk import Walk
from simulator.profile.graph import Graph
from simulator.profile.implementations import Choice

AXES = ("pooling", "upsample")
ONE_SIDE = (213, 94, 0)
"""RGB color where only one map has a value; from the palette of Okabe and Ito (2008)."""


@dataclass(frozen=True, eq=False)
class Maps(Recipe):
    """Runs a graph up to some of its nodes.

    Attributes:
        choice: the runtime, in FP32.
        artifact: the graph.
        input: the name of its input.
        outputs: the names of the nodes' outputs.
    """

    choice: Choice
    artifact: Artifact
    input: str
    outputs: tuple[str, ...]
    stage = "maps"
    timed = False

    def identity(self) -> Any:
        """Return the graph and the runtime."""
        return ["maps", self.artifact.key, self.choice.identity(), list(self.outputs)]

    def open(self, runtimes: Runtimes) -> Apply:
        """Open the graph on first use."""
        lease = runtimes.of(self.choice, self.artifact)

        def apply(tensor: Array, _: Any) -> dict[str, Array]:
            with lease() as runtime:
                found: dict[str, Array] = runtime.run({self.input: tensor})
            return found

        return apply


@dataclass(frozen=True, slots=True)
class Pair:
    """A graph of the training stack, and the same with one axis taken from the deployment stack.

    Attributes:
        axis: ``pooling`` or ``upsample``.
        by: the backend that runs both, in FP32.
        outputs: for each output a readable label of its node: the first node that the axis
            changes, and the last node that gives a map, if that is another one.
        sides: both graphs.
    """

    axis: str
    by: str
    outputs: Mapping[str, str]
    sides: tuple[Maps, Maps]

    def asides(self, train: Chain, prefix: str) -> dict[str, Chain]:
        """Return the chains to the maps, by their names in the plan."""
        return {
            f"{prefix}{self.axis} maps {number}": Chain((*train.recipes, side))
            for number, side in enumerate(self.sides)
        }

    def see(self, walk: Walk, prefix: str) -> Iterator[tuple[str, Array, Array]]:
        """Yield each node's label with both maps of one sample, (C, H, W) float64.

        Raises:
            ModelError: an output is not of shape (1, C, H, W).
        """
        before, after = (walk.aside(f"{prefix}{self.axis} maps {number}") for number in (0, 1))
        for name, label in self.outputs.items():
            pair = before[name], after[name]
            if any(out.ndim != 4 or len(out) != 1 for out in pair):
                raise ModelError(f"{label} gives shape {pair[0].shape}, which is not an image")
            yield label, *(out[0].astype(np.float64) for out in pair)


@contextmanager
def opened(session: Session, stacks: Sequence[Stack], axis: str) -> Iterator[Pair | None]:
    """Open both graphs, cut after the last map; None where the axis changes no node of this model.

    Raises:
        UserError: the graphs cannot be made, or no runtime of the stacks opens them.
    """
    graphs = [stack.profile.spec.graph for stack in stacks]
    path, card = session.source.path, session.card
    first = _first(path, card, axis, graphs)
    if first is None:
        yield None
        return
    train = graphs[0]
    mixed = train.model_copy(update={axis: getattr(graphs[1], axis)})
    models = [_rewritten(path, card, graph) for graph in (train, mixed)]
    outputs = _outputs(models, first)
    choice = in_fp32([stack.choices[Stage.RUNTIME] for stack in stacks], "feature maps")
    with tempfile.TemporaryDirectory(prefix="simulate-maps-") as folder:
        sides = []
        for number, model in enumerate(models):
            file = Path(folder) / f"{number}.onnx"
            onnx.save(edit.until(model, outputs), str(file))
            artifact = Artifact(file, f"maps {file}", "onnx")
            with session.builder.runtimes.of(choice, artifact)():
                pass  # a graph that cannot be opened fails here, before the first sample
            sides.append(Maps(choice, artifact, session.source.input, tuple(outputs)))
        yield Pair(axis, choice.backend.name, outputs, (sides[0], sides[1]))


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


def _first(path: Path, card: Card, axis: str, graphs: Sequence[Graph]) -> str | None:
    """The output of the first node that is not the same in both graphs."""
    apply = graph_pass(axis).apply
    train, deploy = (apply(pinned(card, path), getattr(graph, axis)).after for graph in graphs)
    return next((name for name, seen in train.items() if seen.effect != deploy[name].effect), None)


def _rewritten(path: Path, card: Card, graph: Graph) -> onnx.ModelProto:
    model = pinned(card, path)
    rewrite(model, graph)
    return model


def _outputs(models: Sequence[onnx.ModelProto], first: str) -> dict[str, str]:
    """The first node and the last one whose output is a map in both models, by their outputs."""
    train, mixed = (edit.shapes_of(model) for model in models)
    labels = {node.output[0]: edit.label(node) for node in models[0].graph.node}
    if first not in labels:
        raise ModelError(f"another rewrite has replaced the node that gives {first!r}")
    later = list(labels)[list(labels).index(first) :]
    seen = [name for name in later if _is_map(train.get(name)) and _is_map(mixed.get(name))]
    return {name: labels[name] for name in (first, *seen[-1:])}


def _is_map(shape: Sequence[int] | None) -> bool:
    return shape is not None and len(shape) == 4 and shape[0] == 1 and min(shape[2:]) > 1
