"""Slips of masks, each found by doing it to the training stack's masks and seeing equality.

A mask that was not brought back to the image, is turned or mirrored, or whose classes have other
numbers; then another resize or argmax, computed again from the training stack's outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from simulator.contract import U8
from simulator.data.masks import IGNORE
from simulator.diagnose.finding import Certainty, Finding, Part
from simulator.tasks.segmentation.card import Sampling, Settings

ALIKE = 0.9
"""The share of pixels that a mask of another size has in common with one that was resized."""
BORDERS = 0.2
"""The largest share of pixels that an interpolation between the numbers of classes changes."""
_COORDINATES = ("half_pixel", "align_corners", "asymmetric")
Named = tuple[str, str]
"""What engineers call it, and what undoes it in code."""


@dataclass(frozen=True)
class Seen:
    """One image.

    Attributes:
        train: the training stack's mask.
        deploy: the deployment's, perhaps of another size.
        again: what the training stack's outputs give with other settings, in the image's size or in
            the network's; None: not known.
    """

    train: U8
    deploy: U8
    again: Callable[[Settings, bool], U8] | None = None


def name_masks(seen: Sequence[Seen], settings: Settings | None) -> list[Finding]:
    """Name what masks have that the training stack's have not.

    Args:
        seen: every image.
        settings: of the training stack's postprocessing; None where they are not known.

    Returns:
        The differences that together give the deployment's masks; none where none is known.
    """
    for name, code, masks in _turned(seen, settings):
        same = all(a.shape == one.deploy.shape for a, one in zip(masks, seen, strict=True))
        numbers = _numbers(masks, [one.deploy for one in seen]) if same else None
        if numbers is not None:
            named = [one for one in ((name, code), numbers) if one[0]]
            return [_finding(*one, seen, Certainty.EXACT) for one in named]
    near = [*_resized(seen), *_interpolated(seen)]
    return [_finding(*one, seen, Certainty.NEAREST) for one in near[:1]]


def _turned(seen: Sequence[Seen], settings: Settings | None) -> Iterator[tuple[str, str, list[U8]]]:
    """Yield what may have happened to masks, what is simple first."""
    yield "", "", [one.train for one in seen]
    yield "rows and columns of the mask are exchanged", "transpose it", [o.train.T for o in seen]
    yield "the mask is mirrored", "turn it", [one.train[:, ::-1] for one in seen]
    yield "the mask is upside down", "turn it", [one.train[::-1] for one in seen]
    yield "the mask is turned by 180 degrees", "turn it", [one.train[::-1, ::-1] for one in seen]
    runs = [one.again for one in seen if one.again is not None]
    if settings is None or len(runs) < len(seen):
        return
    name = "the mask is not brought back to the size of the image"
    yield name, "resize it to the image, nearest", [run(settings, False) for run in runs]
    for name, code, other in _otherwise(settings):
        first = runs[0](other, True)
        if np.array_equal(first, seen[0].deploy) or len(seen) == 1:
            yield name, code, [first, *(run(other, True) for run in runs[1:])]


def _otherwise(own: Settings) -> Iterator[tuple[str, str, Settings]]:
    """Yield other settings, each with what undoes it: of the outputs, then of the mask."""
    if own.kind != "labels":
        for mode, coordinates in product(("bilinear", "nearest"), _COORDINATES):
            other = Sampling(mode, coordinates)
            if own.upsample and other != own.upsample:
                name = f"the outputs are resized {mode}, {coordinates}"
                was = f"resize them {own.upsample.mode}, {own.upsample.coordinates}"
                yield name, was, replace(own, upsample=other)
        if own.resized == "labels":
            for coordinates in _COORDINATES:
                other = Sampling("bilinear", coordinates)
                yield (
                    f"scores and not classes are resized to the image ({coordinates})",
                    "take the best class first",
                    replace(own, resized="logits", resize=other),
                )  # fmt: skip
    for coordinates in _COORDINATES:
        if own.resized == "labels" and coordinates != own.resize.coordinates:
            other = Sampling("nearest", coordinates)
            name = f"the mask is resized to the image by {coordinates}"
            yield name, f"resize it by {own.resize.coordinates}", replace(own, resize=other)


def _numbers(train: Sequence[U8], deploy: Sequence[U8]) -> Named | None:
    """What numbers the classes have; empty: their own; None: no one number for each."""
    one, two = (np.concatenate([mask.ravel() for mask in some]) for some in (train, deploy))
    if np.array_equal(one, two):
        return "", ""
    both = np.unique(one.astype(np.int64) * 256 + two)
    known = dict(zip((both // 256).tolist(), (both % 256).tolist(), strict=True))
    if len(known) < both.size:
        return None
    if len(set(known.values())) == 1 < len(known):
        return None
    steps = {b - a for a, b in known.items() if IGNORE not in (a, b)}
    gone = [a for a, b in known.items() if b == IGNORE != a]
    if gone and steps <= {0}:
        some = ", ".join(map(str, gone))
        return f"class {some} is given as {IGNORE}, which is not judged", f"give it as {some}"
    if len(steps) == 1 and not gone:
        (step,) = steps
        by = "one" if abs(step) == 1 else str(abs(step))
        return f"classes are shifted by {by}", f"class k is label k {'-+'[step < 0]} {abs(step)}"
    changed = [f"{a} is {b}" for a, b in known.items() if a != b]
    some = ", ".join(changed[:3]) + ", …" * (len(changed) > len(changed[:3]))
    return f"classes have other numbers ({some})", "use the classes of the training stack"


def _resized(seen: Sequence[Seen]) -> Iterator[Named]:
    """Whether masks are the training stack's in another size."""
    sizes = {one.deploy.shape for one in seen}
    if any(one.train.shape == one.deploy.shape or one.deploy.ndim != 2 for one in seen):
        return
    shares = []
    for one in seen:
        rows, columns = (
            ((np.arange(size) + 0.5) * whole / size).astype(int)
            for size, whole in zip(one.deploy.shape, one.train.shape, strict=True)
        )
        shares.append(float(np.mean(one.train[np.ix_(rows, columns)] == one.deploy)))
    if min(shares) > ALIKE:
        what = " x ".join(map(str, sizes.pop())) if len(sizes) == 1 else "another size"
        name = f"the mask is not brought back to the size of the image ({what})"
        yield name, "resize it to the image, nearest"


def _interpolated(seen: Sequence[Seen]) -> Iterator[Named]:
    """Whether numbers lie between those of two classes, at borders alone."""
    for one in seen:
        if one.train.shape != one.deploy.shape:
            return
    other = [one.train != one.deploy for one in seen]
    new = any(np.setdiff1d(one.deploy, one.train).size for one in seen)
    if new and max(float(mask.mean()) for mask in other) < BORDERS:
        name = "the numbers of classes are interpolated where the mask is resized"
        yield name, "resize the mask by nearest neighbor"


def _finding(name: str, code: str, seen: Sequence[Seen], certainty: Certainty) -> Finding:
    apart = sum(
        int(np.count_nonzero(one.train != one.deploy))
        if one.train.shape == one.deploy.shape else one.train.size
        for one in seen
    )  # fmt: skip
    told = f"{apart:,} of {sum(one.train.size for one in seen):,} pixels differ"
    if certainty is Certainty.EXACT:
        told = f"The training stack's masks, changed so, are the deployment's: {told} without that."
    return Finding(Part.POSTPROCESS, name, (told,), certainty, None, code=code)
