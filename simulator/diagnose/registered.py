"""Front ends that place images elsewhere or resize them otherwise, named without a search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from simulator.conditions.image_files import decoding
from simulator.contract import Array
from simulator.contract.recipe import Chain
from simulator.data.folder import Item
from simulator.diagnose.finding import Certainty, Difference, Finding, Part
from simulator.diagnose.inputs import name_inputs
from simulator.diagnose.levels import levels_of, of_training, planes
from simulator.diagnose.normalization import Numbers
from simulator.diagnose.pixels import ROUNDED
from simulator.diagnose.placing import KERNELS, SAME, Placing, difference, placing, sampled
from simulator.experiments.session import Session
from simulator.identify.affine import affine
from simulator.identify.columns import resolved
from simulator.identify.experiment import BASE
from simulator.identify.solve import ORDERS
from simulator.modalities.image.card import ImageCard
from simulator.modalities.image.steps import Decode
from simulator.pipeline.plan import Arm, plan
from simulator.profile.load import load

_POINTS = 20_000
_KERNEL = 0.02
"""A kernel is the right one where it leaves less than this share of the spread: rounding."""
_IMAGES = 2
"""Images that are registered: their places follow one rule."""


@dataclass(frozen=True, slots=True)
class Registered:
    """Where both front ends place the images."""

    train: Placing
    deploy: Placing
    findings: list[Finding]

    def shown(self, searched: Sequence[Finding]) -> list[Finding]:
        """Return what a search found, and of a geometry what each side sees of the images."""
        placed = self.findings[0] if self.train.apart(self.deploy) > SAME else None
        return [
            replace(one, evidence=(*placed.evidence[:-1], *one.evidence), code=placed.code)
            if placed and any(key.startswith("geometry.") for key in one.change)
            else one
            for one in searched
        ]

    def geometries(self, session: Session) -> tuple[set[str], set[str]]:
        """Return the options of :func:`simulator.identify.columns.geometries` that place so."""
        card = session.card.spec
        assert isinstance(card, ImageCard)
        known = resolved(load(BASE), card)
        one, two = (
            {name for name, (_, geometry) in known.items() if side.like(geometry)}
            for side in (self.train, self.deploy)
        )
        return one, two


def registered(
    session: Session, items: Sequence[Item], train: Sequence[Array], deploy: Sequence[Array]
) -> Registered | None:
    """Register images in both inputs, and name what differs; None where they are not found.

    Args:
        session: the model and the images.
        items: the images.
        train: what the network got of each, of the card's shape.
        deploy: likewise.
    """
    card = session.card.spec
    assert isinstance(card, ImageCard)
    items = items[:_IMAGES]
    right = of_training([planes(one, card) for one in train], card)
    step = 1 if card.input.order == "rgb" else -1
    images = [one[..., ::step] for one in _decoded(session, items)]
    sides = [
        [levels_of(planes(one, card), right) for one in some[:_IMAGES]] for some in (train, deploy)
    ]
    ours, theirs = (placing(images, some) for some in sides)
    if ours is None or theirs is None:
        return None
    fitted = [_kernel(images, *pair) for pair in ((ours, sides[0]), (theirs, sides[1]))]
    kernels = [name for name, _ in fitted]
    names = []
    if ours.turned != theirs.turned:
        code = "turn the image back: apply the file's EXIF orientation, once"
        names.append(Difference(theirs.turned, code))
    if ours.apart(theirs) > SAME and (
        ours.told != theirs.told or max(map(abs, ours.beside(theirs))) > SAME
    ):
        names.append(difference(ours, theirs, [item.name for item in items]))
    known = all(left < _KERNEL for _, left in fitted)
    if known and kernels[0] != kernels[1] and not theirs.as_it_is:
        text = f"{kernels[1]} in place of {kernels[0]}"
        names.append(Difference(text, f"resize with {kernels[0]}"))
    if not names:
        return Registered(ours, theirs, [])
    made = [
        sampled(image, place, theirs.network, kernels[1])
        for image, place in zip(images, theirs.places, strict=True)
    ]
    return Registered(ours, theirs, _findings(names, made, deploy[:_IMAGES], theirs, right, card))


def _findings(
    names: Sequence[Difference],
    made: Sequence[Array],
    deploy: Sequence[Array],
    theirs: Placing,
    right: Numbers,
    card: ImageCard,
) -> list[Finding]:
    """The names, and those of what else was done to the pixels that the deployment must have."""
    mean, std = right.mean[:, None, None], right.std[:, None, None]
    back = [np.ascontiguousarray(ORDERS[theirs.turned](planes(one, card))) for one in deploy]
    tensors = [np.asarray((one - mean) / std, np.float32) for one in made]
    if card.input.layout != "NCHW":
        tensors, back = ([one.transpose(1, 2, 0) for one in some] for some in (tensors, back))
    more = name_inputs(tensors, back, card, right)
    gap = max(
        float(np.nanmax(np.abs(levels_of(planes(two, card), right) - one)))
        for one, two in zip(made, back, strict=True)
    )
    if gap <= ROUNDED:
        more = []
    elif more:
        gap = max((one.left or 0.0) for one in more) * float(right.std.min())
    sure = gap <= ROUNDED or any(one.certainty.sure for one in more)
    certainty = Certainty.ROUNDING if sure else Certainty.NEAREST
    left = gap / float(right.std.min())
    told = f"the image so placed and resized is the input, within {gap:.2g} levels"
    return [
        *(one.finding(certainty, left, told) for one in names),
        *(replace(one, certainty=certainty) for one in more),
    ]


def _kernel(images: Sequence[Array], where: Placing, levels: Sequence[Array]) -> tuple[str, float]:
    """The kernel that leaves least of the inputs, and the share that it leaves."""
    back = [ORDERS[where.turned](one) for one in levels]

    def left(kernel: str) -> float:
        made = [
            sampled(image, place, where.network, kernel)
            for image, place in zip(images, where.places, strict=True)
        ]
        return affine(back, made, _POINTS).share

    shares = {name: left(name) for name in KERNELS}
    return min(shares.items(), key=lambda one: one[1])


def _decoded(session: Session, items: Sequence[Item]) -> list[Array]:
    """The images of files, (H, W, 3) R, G, B, as stored."""
    opened = session.executor.open(
        plan({Arm("decoded"): Chain((Decode(decoding(), planes=False),))})
    )
    found = []
    for item in items:
        (frame,) = opened.walk(session.executor.context(item)).answers()
        found.append(np.asarray(frame.rgb))
    return found


def unnamed(
    train: Sequence[Array], deploy: Sequence[Array], card: ImageCard, found: bool
) -> Finding:
    """Return what a difference looks like that has no name.

    Args:
        train: what the network got of each image.
        deploy: likewise.
        card: of the model.
        found: whether the images were found in both.
    """
    right = of_training([planes(one, card) for one in train], card)
    sides = [[levels_of(planes(one, card), right) for one in some] for some in (train, deploy)]
    where = (
        "the same part of the image, at the same size"
        if found
        else "the image was not found in one of the inputs"
    )
    left = max(float(np.abs(a - b).max()) for a, b in zip(train, deploy, strict=True))
    return Finding(Part.FRONT_END, f"{where}; {looks(*sides)}", (), Certainty.NONE, left)


_GRAY = np.array([0.299, 0.587, 0.114])[:, None, None]
_FRAME = 0.08
"""Width of the border, as a share of a side."""


def looks(levels: Sequence[Array], other: Sequence[Array]) -> str:
    """Say how far levels are apart, where, and in what the pictures differ.

    Args:
        levels: of the training, each (3, H, W).
        other: the deployment's.
    """
    gaps = [np.abs(two - one).max(axis=0) for one, two in zip(levels, other, strict=True)]
    apart = np.concatenate([np.abs(b - a).ravel() for a, b in zip(levels, other, strict=True)])
    parts = [f"mean {apart.mean():.3g} levels apart, at most {apart.max():.3g}, {_where(gaps)}"]
    edges = np.mean([_edged(one, gap) for one, gap in zip(levels, gaps, strict=True)])
    if edges > 4:
        parts.append("most along edges")
    moved = float(np.mean([(b - a).mean() for a, b in zip(levels, other, strict=True)]))
    if abs(moved) > 0.4 * apart.mean():
        parts.append(f"{'brighter' if moved > 0 else 'darker'} by {abs(moved):.3g} levels")
    if _in_colors(levels, other):
        parts.append("in colors and not in brightness (another chroma sampling?)")
    fine = [_fine(two) / max(_fine(one), 1e-9) for one, two in zip(levels, other, strict=True)]
    if (ratio := float(np.mean(fine))) < 0.85:
        parts.append("smoother")
    elif ratio > 1.15:
        parts.append("sharper, or noisier")
    return ", ".join(parts)


def _in_colors(levels: Sequence[Array], other: Sequence[Array]) -> bool:
    """Whether luma is about the same, and only differences of channels are not."""
    gaps = [two - one for one, two in zip(levels, other, strict=True)]
    bright = np.mean([np.abs((one * _GRAY).sum(axis=0)).mean() for one in gaps])
    return bool(3 * bright < np.mean([np.abs(one).mean() for one in gaps]))


def _where(gaps: Sequence[Array]) -> str:
    found = []
    for gap in gaps:
        rows, columns = (max(1, round(_FRAME * side)) for side in gap.shape)
        inner = gap[rows:-rows, columns:-columns]
        border = (gap.sum() - inner.sum()) / (gap.size - inner.size)
        found.append((border / max(float(inner.mean()), 1e-9), float((gap > 1).mean())))
    if min(one for one, _ in found) > 3:
        return "mostly at the borders"
    share = float(np.mean([one for _, one in found]))
    return "everywhere" if share > 0.5 else f"in {100 * share:.2g} % of the pixels"


def _slopes(picture: Array) -> Array:
    plane = picture.mean(axis=0)
    return np.asarray(np.hypot(*np.gradient(plane)))


def _edged(picture: Array, gap: Array) -> float:
    """How much farther apart pixels at edges are than in flat parts."""
    slopes = _slopes(picture)
    steep, flat = (slopes > np.quantile(slopes, 0.9)), (slopes <= np.quantile(slopes, 0.5))
    return float(gap[steep].mean() / max(gap[flat].mean(), 1e-3))


def _fine(picture: Array) -> float:
    """The root mean square of a picture's curvature."""
    plane = picture.mean(axis=0)
    rough = (
        4 * plane[1:-1, 1:-1] - plane[:-2, 1:-1] - plane[2:, 1:-1] - plane[1:-1, :-2]
        - plane[1:-1, 2:]
    )  # fmt: skip
    return float(np.sqrt((rough * rough).mean()))
