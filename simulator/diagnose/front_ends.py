"""Name what differs between two front ends by searching the stack of each, and comparing them."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from pathlib import Path

import numpy as np

from simulator.contract import Array
from simulator.data.capture import Capture
from simulator.data.folder import Item
from simulator.data.recording import load_recording
from simulator.diagnose.finding import Certainty, Finding
from simulator.diagnose.levels import of_training, planes
from simulator.diagnose.stack_words import between
from simulator.experiments.session import Session
from simulator.identify.composer import Point
from simulator.identify.experiment import BASE
from simulator.identify.run import ready, recorded_only, searched
from simulator.identify.search import Found
from simulator.identify.space import Space, space
from simulator.identify.trials import Trials
from simulator.modalities.image.card import ImageCard
from simulator.pipeline.stack import ResolvedProfile

_EQUALS = 64
"""Equal stacks of a side at most that are compared with the other side's."""
_LEVEL = 0.75
"""Levels that rounding leaves at most, of pixels to whole ones where the stack found has none."""
_QUICK = 0.25
"""Share of the time for the options whose libraries are quick to import."""
_NUMBERS = {"order", "normalize"}


@dataclass(frozen=True, slots=True)
class _Side:
    """The stack that was found for one side."""

    found: Found
    trials: Trials

    def points(self) -> list[Point]:
        return list(islice(self.found.equal, _EQUALS))

    def chosen(self, point: Point) -> ResolvedProfile:
        found = self.trials.composer.chosen(point)
        assert found is not None
        return found


def named_by_search(
    session: Session,
    items: Sequence[Item],
    train: Sequence[Array],
    deploy: Sequence[Array],
    seconds: float,
    placed: tuple[Collection[str], Collection[str]] | None = None,
    whole: Space | None = None,
) -> tuple[list[Finding], int]:
    """Find the stack of each side among all that run here, and name the options that differ.

    Args:
        session: the model and the images.
        items: the images.
        train: what the network got of each, of the card's shape.
        deploy: likewise.
        seconds: for both searches together, beside the listing of the options.
        placed: the options of the axis ``geometry`` that are tried for each side; None: all.
        whole: the options to try; all that run here by default.

    Returns:
        The names, none where no stack comes near the deployment's tensors; and how many stacks were
        tried, those that were tried twice counted once.
    """
    ends = time.monotonic() + seconds
    tried = 0
    if whole is None:  # most are found without a library that is slow to import
        quick = space(BASE, session.card, "tensors", slow=False)
        found, tried = _compared(session, items, train, deploy, _QUICK * seconds, placed, quick)
        if found and found[0].certainty.sure:
            return found, tried
        whole = space(BASE, session.card, "tensors")
    left = ends - time.monotonic()
    found, again = _compared(session, items, train, deploy, left, placed, whole)
    return found, max(tried, again)


def _compared(
    session: Session,
    items: Sequence[Item],
    train: Sequence[Array],
    deploy: Sequence[Array],
    seconds: float,
    placed: tuple[Collection[str], Collection[str]] | None,
    whole: Space,
) -> tuple[list[Finding], int]:
    """The names of what differs between the nearest stacks of a space; how many were tried."""
    spec = session.card.spec
    assert isinstance(spec, ImageCard)
    begun = time.monotonic()
    own = [_narrowed(whole, some) for some in placed] if placed else [whole, whole]
    ours = _side(session, items, train, own[0], begun + seconds / 2)
    theirs = _side(session, items, deploy, own[1], begun + seconds, ours.found.best)
    tried = ours.trials.tried + theirs.trials.tried
    far = float(np.mean([np.abs(a - b).mean() for a, b in zip(train, deploy, strict=True)]))
    if max(ours.found.score.mean, theirs.found.score.mean) > far / 2:
        return [], tried
    one, two = min(
        product(ours.points(), theirs.points()), key=lambda pair: _apart(pair[0], pair[1], whole)
    )
    left = max(side.found.score.largest for side in (ours, theirs))
    levels = left * float(of_training([planes(one, spec) for one in train], spec).std.max())
    certainty = Certainty.ROUNDING if levels <= _LEVEL else Certainty.NEAREST
    if not left:
        certainty = Certainty.EXACT
    shown = tuple(
        f"the stack found for the {name} gives {_equal(side.found)}"
        for name, side in (("training", ours), ("deployment", theirs))
    )
    if certainty is Certainty.ROUNDING:
        shown += (f"that is {levels:.2g} levels of a pixel at most, which is rounding",)
    differences = between(ours.chosen(one), theirs.chosen(two), spec)
    return [each.finding(certainty, left, *shown) for each in differences], tried


def _narrowed(whole: Space, geometries: Collection[str]) -> Space:
    """A space without the other geometries."""
    kept = {name: one for name, one in whole.axes["geometry"].items() if name in geometries}
    return replace(whole, axes={**whole.axes, "geometry": kept})


def _equal(found: Found) -> str:
    score = found.score
    if found.exact and not score.largest:
        return "the same bits on all images"
    return f"a mean difference of {score.mean:.2g}, at most {score.largest:.2g}"


def _side(
    session: Session,
    items: Sequence[Item],
    tensors: Sequence[Array],
    whole: Space,
    ends: float,
    near: Point | None = None,
) -> _Side:
    with tempfile.TemporaryDirectory(prefix="side-") as folder:
        model = session.source.digest
        with Capture("side", "tensors", "a side", model, folder=folder) as capture:
            for item, tensor in zip(items, tensors, strict=True):
                capture.add(item.name, np.asarray(tensor, np.float32))
        recording = load_recording(Path(folder) / "recording.yaml")
        own, _, _ = recorded_only(session.subset(tuple(items)), recording)
        target, options = ready(own, recording, whole)
        if target.ulps:
            target = replace(target, ulps=_ulps(tensors))
        found, trials, _ = searched(own, target, options, ends, near)
    return _Side(found, trials)


def _ulps(tensors: Sequence[Array]) -> int:
    """Units in the last place that are about the levels of rounding, by what the tensors span."""
    span = min(float(np.ptp(one)) for one in tensors)
    last = max(float(np.spacing(np.abs(one).max())) for one in tensors)
    return int(_LEVEL / 255 * span / last)


def _apart(one: Point, two: Point, whole: Space) -> int:
    """On how many axes two points differ, of those that decide about pixels."""
    pairs = zip(whole.axes, one, two, strict=False)
    return sum(a != b for axis, a, b in pairs if axis not in _NUMBERS)
