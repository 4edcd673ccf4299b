"""The card's ONNX file with changes of its graph, in the cache."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx

from simulator.contract.passes import PASSES, Fitting
from simulator.errors import ModelError
from simulator.model.card import Card
from simulator.model.onnxfile import ModelFile, load
from simulator.model.passes.graph.change import difference
from simulator.model.passes.graph.edit import pin
from simulator.model.passes.rewrite import graph_pass, rewrite, wanted
from simulator.model.store import NOTES, Artifact, about, cached, digest, entry, makers
from simulator.profile.graph import Graph
from simulator.profile.profile import Profile


def rewritten(
    card: Card, given: Artifact, profile: Profile, fittings: Mapping[str, Fitting]
) -> Artifact:
    """Return the file with the rewrites of the graph that a profile asks for.

    Raises:
        ModelError: a rewrite does not fit the model, or is fitted and has nothing to be fitted to.
    """
    asked = profile.spec.graph
    differs = asked.model_dump(exclude_defaults=True)
    if not differs:
        return given
    if given.format != "onnx":
        axis = next(iter(differs))
        raise ModelError(
            f"{profile.where(('graph', axis))}: graph.{axis}: rewrites change the ONNX file, "
            "but this runtime does not read it; use keep"
        )
    others = [PASSES.package(axis) for axis in differs if not PASSES.is_ours(axis)]
    parts = ["graph", differs, *others]
    if wanted(asked):
        return _fitted(card, given, asked, fittings, parts)
    model = pinned(card, given.path)
    changes = rewrite(model, asked)
    alone = card.is_first and card.second is None
    notes = tuple(f"{change.axis}: {change}" for change in changes if change.found or alone)
    if not any(change.rewritten for change in changes):
        return replace(given, notes=notes)
    return changed(card, given, parts, lambda: model, *notes)


def _fitted(
    card: Card, given: Artifact, asked: Graph, fittings: Mapping[str, Fitting], parts: list[Any]
) -> Artifact:
    """Rewrite a model with constants that are fitted to samples, or find the result."""
    axes = list(wanted(asked))
    if missing := [axis for axis in axes if axis not in fittings]:
        raise ModelError(f"graph.{missing[0]} needs calibration inputs")

    def make(draft: Path) -> None:
        model = pinned(card, given.path)
        changes = rewrite(model, asked, fittings)
        onnx.save(model, str(draft / "model.onnx"))
        notes = [f"{change.axis}: {change}" for change in changes]
        notes += [remark for axis in axes for remark in fittings[axis].remarks.values()]
        (draft / NOTES).write_text(json.dumps(notes))

    whole = [given.key, *parts, _shapes(card), makers()]
    key = digest([*whole, "fitted", {axis: fittings[axis].identity for axis in axes}])
    with about(card, f"{' and '.join(f'graph.{axis}' for axis in axes)} cannot be fitted to"):
        folder = entry("artifacts", card, key, make)
    notes = json.loads((folder / NOTES).read_text())
    return Artifact(folder / "model.onnx", key, "onnx", tuple(notes))


def changed(
    card: Card, given: Artifact, parts: list[Any], make: Callable[[], onnx.ModelProto], *notes: str
) -> Artifact:
    """Return an ONNX file that was changed, or find it in the cache.

    Args:
        card: the model card.
        given: the file before.
        parts: what the change depends on besides, as JSON.
        make: returns the changed model.
        notes: the remarks of the change.
    """
    key = digest([given.key, *parts, _shapes(card), makers()])
    path = cached(card, key, "model.onnx", lambda target: onnx.save(make(), str(target)))
    return replace(given, path=path, key=key, notes=(*given.notes, *notes))


def _shapes(card: Card) -> Any:
    """Return the shapes of a card's feeds, for digests."""
    found = {feed.name: list(feed.shape) for feed in card.feeds}
    return found[None] if set(found) == {None} else found


def pinned(card: Card, path: Path) -> onnx.ModelProto:
    """Load a model with the card's input sizes; rewrites are checked at these sizes."""
    model = load(path)
    pin(model, card.feeds)
    return model


def graph_difference(
    card: Card, source: ModelFile, axis: str, train: Graph, deploy: Graph
) -> tuple[int, str]:
    """Compare one graph axis of two stacks.

    Args:
        card: the model card.
        source: the card's checked ONNX file.
        axis: ``pooling``, ``upsample`` or another graph axis.
        train: the ``graph`` section of the training stack.
        deploy: the ``graph`` section of the deployment stack.

    Returns:
        The number of nodes that compute different values, and a sentence about it, also if the
        model has no node of this axis.

    Raises:
        ModelError: a rewrite does not fit the model.
    """
    sides = [getattr(side, axis) for side in (train, deploy)]
    apply = graph_pass(axis).apply
    found = [
        difference(*(apply(pinned(one, one_source.path), side) for side in sides))
        for one, one_source in zip(card.networks, source.networks, strict=True)
    ]
    changed = [one for one in found if one[0]] or found[:1]
    return sum(count for count, _ in changed), "; ".join(words for _, words in changed)
