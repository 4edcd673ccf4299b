"""Two front ends told apart by a search: which libraries and options make each side's inputs.

Where no relation of values explains two inputs, their pixels differ. The search of ``simulate
identify`` finds a stack for each side, and the two stacks are compared.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import yaml

from simulator.contract import Array
from simulator.data.folder import Item
from simulator.data.recording import load_recording
from simulator.diagnose.finding import Certainty, Finding, Part
from simulator.experiments.session import Session
from simulator.identify.composer import Point
from simulator.identify.experiment import BASE
from simulator.identify.run import ready, searched
from simulator.identify.search import Found
from simulator.identify.space import space
from simulator.identify.trials import Trials
from simulator.profile.suite import Option

SECONDS = 60.0
"""After which the search for one side ends with the nearest stack so far."""
_PAIRS = 200
"""Stacks at most of each side, as near as the best, that are compared."""
_CALLED = (
    ("no antialiasing", "antialias", "false", "true"),
    ("antialiasing that training has not", "antialias", "true", "false"),
    ("EXIF is ignored", "exif", "ignore", "apply"),
    ("EXIF is applied", "exif", "apply", "ignore"),
    ("limited range is taken for full", "range", "full", "limited"),
    ("full range is taken for limited", "range", "limited", "full"),
)
_NONE = "as pillow_fp32 has it"


def name_by_search(
    session: Session, items: Sequence[Item], train: Sequence[Array], deploy: Sequence[Array]
) -> list[Finding]:
    """Name the steps in which the stacks differ that were found for two sides' inputs.

    Args:
        session: of a model that takes images.
        items: the images.
        train: what the network got of each, of the card's shape.
        deploy: likewise.

    Returns:
        A finding for each axis; none where no stack comes near, or both are the same.
    """
    session = session.subset(items)
    sides = [_searched(session, items, tensors) for tensors in (train, deploy)]
    names = sides[0][1].composer.names
    if names != sides[1][1].composer.names:
        return []
    one, two = _nearest(*(found for found, _ in sides))
    certainty, left = _certainty(sides)
    axes = [at for at in range(len(names)) if one[at] != two[at]]
    told = tuple(
        f"{word} stack: {_how(found)}"
        for word, (found, _) in zip(("training", "deployment"), sides, strict=True)
    )
    options = sides[0][1].composer.axes
    return [
        Finding(
            Part.FRONT_END,
            _called(names[at], two[at] or _NONE, one[at] or _NONE),
            told,
            certainty,
            left,
            _change(options[names[at]], one[at]),
            f"{names[at]}: do what {one[at] or _NONE} does",
        )
        for at in axes
    ]


def _called(axis: str, deploy: str, train: str) -> str:
    """What engineers call it that one option is in the place of another."""
    whole = f"{axis} is {deploy} in place of {train}"
    if axis == "order":
        return f"channels are swapped ({deploy} in place of {train})"
    for name, field, value, other in _CALLED:
        if f"{field}={value}" in deploy and f"{field}={other}" in train:
            return f"{name}: {whole}"
    return whole


def _searched(
    session: Session, items: Sequence[Item], tensors: Sequence[Array]
) -> tuple[Found, Trials]:
    """Search the stack that makes tensors."""
    session.show.say("searching for the stack that makes these inputs")
    with tempfile.TemporaryDirectory() as folder:
        np.savez(Path(folder) / "inputs.npz", **{  # type: ignore[arg-type]
            item.name: array for item, array in zip(items, tensors, strict=True)
        })  # fmt: skip
        manifest = {
            "schema": 1, "name": "inputs", "device": "this one", "kind": "tensors",
            "file": "inputs.npz", "match": "name", "model": session.source.digest,
        }  # fmt: skip
        path = Path(folder) / "recording.yaml"
        path.write_text(yaml.safe_dump(manifest), "utf-8")
        recording = load_recording(path)
        whole = space(BASE, session.card, recording.spec.kind, recording.spec.after)
        target, whole = ready(session, recording, whole)
        found, trials, _ = searched(session, target, whole, time.monotonic() + SECONDS)
        return found, trials


def _nearest(train: Found, deploy: Found) -> tuple[Point, Point]:
    """Of the stacks that are as near as the best ones, the two that differ least."""
    one, two = ([found.best, *found.equal][:_PAIRS] for found in (train, deploy))
    return min(product(one, two), key=lambda pair: sum(a != b for a, b in zip(*pair, strict=True)))


def _certainty(sides: Sequence[tuple[Found, Trials]]) -> tuple[Certainty, float | None]:
    if not all(found.exact for found, _ in sides):
        largest = max(found.score.largest for found, _ in sides)
        return Certainty.NEAREST, largest if np.isfinite(largest) else None
    rounded = any(trials.target.ulps for _, trials in sides)
    return (Certainty.ROUNDING if rounded else Certainty.EXACT), None


def _how(found: Found) -> str:
    score = found.score
    if found.exact:
        return f"found, equal on {score.equal} of {score.images} images"
    return (
        f"the nearest is equal on {score.equal} of {score.images} images, largest difference "
        + (f"{score.largest:.3g}")
    )


def _change(options: Mapping[str, Option], name: str | None) -> Mapping[str, object]:
    return dict(options[name]) if name is not None else {}
