"""What was done to pixels that lie where the training's do, beyond scale and offset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from simulator.contract import Array
from simulator.diagnose import colors, curve, filters, jpeg, per_image, rows
from simulator.diagnose.finding import Certainty, Difference, Finding
from simulator.diagnose.levels import levels_of
from simulator.diagnose.normalization import Numbers
from simulator.identify.affine import grid
from simulator.modalities.image.card import ImageCard

ROUNDED = 1.6
"""Levels that are rounding: pixels that were rounded to bytes more than once."""


def name_pixels(
    levels: Sequence[Array], after: Sequence[Array], right: Numbers, card: ImageCard
) -> list[Finding]:
    """Name what was done to pixels; nothing where no single thing explains it.

    Args:
        levels: of the training, each (3, H, W), in the order of the tensor's channels.
        after: the deployment's tensors, each (3, H, W).
        right: the training's normalization.
        card: of the model.
    """
    other = [levels_of(one, right) for one in after]
    nearest: list[Finding] = []
    for names, left, rounding in _tried(levels, other, after, right, card):
        told = f"that leaves {left:.2g} levels at most"
        certainty = Certainty.ROUNDING if left <= rounding else Certainty.NEAREST
        if not left:
            certainty, told = Certainty.EXACT, "that leaves nothing"
        units = left / float(right.std.min())
        found = [one.finding(certainty, units, told) for one in names]
        if certainty.sure:
            return found
        nearest = nearest or found
    return nearest


def _tried(
    levels: Sequence[Array],
    other: Sequence[Array],
    after: Sequence[Array],
    right: Numbers,
    card: ImageCard,
) -> Iterator[tuple[list[Difference], float, float]]:
    """Yield names, the levels that they leave, and how many are rounding."""
    channels = card.input.order.upper()
    bent = curve.named(levels, other)
    if bent is not None:
        plain = bent.name.startswith("levels go through")
        names = [
            (plain and _quantized(levels, other, after, right)) or Difference(bent.name, bent.code)
        ]
        if bent.order != (0, 1, 2):
            got = "".join(channels[at] for at in bent.order)
            swapped = bent.order == (2, 1, 0)
            name = "channels are swapped" if swapped else f"channels are in order {got}"
            change: dict[str, object] = {"color.order": card.input.order}
            names.insert(0, Difference(name, f"give the network {channels}", change))
        yield names, bent.left, ROUNDED
        return
    back = curve.named(other, levels)
    if back is not None and back.order == (0, 1, 2):
        text = f"missing here, and done in training: {back.name}"
        yield [Difference(text, "do to the levels what training does")], back.left, ROUNDED
        return
    step = 1 if card.input.order == "rgb" else -1
    space = colors.space_named([one[::step] for one in levels], [one[::step] for one in other])
    if space is not None:
        yield [Difference(space[0], "convert the image to RGB")], space[1], ROUNDED
    compressed = jpeg.named([one[::step] for one in levels], [one[::step] for one in other])
    if compressed is not None:
        yield [compressed[0]], compressed[1], np.inf  # its steps are the rounding
    for one in (
        rows.named(levels, other),
        per_image.named(levels, other, after),
        filters.named(levels, other),
    ):
        if one is not None:
            yield [one[0]], one[1], ROUNDED
    filtered = filters.named([one[::-1] for one in levels], other)
    if filtered is not None:
        swap: dict[str, object] = {"color.order": card.input.order}
        named = Difference("channels are swapped", f"give the network {channels}", swap)
        yield [named, filtered[0]], filtered[1], ROUNDED


def _quantized(
    levels: Sequence[Array], other: Sequence[Array], after: Sequence[Array], right: Numbers
) -> Difference | None:
    """A grid of few values, with its scale."""
    x, y, values = (
        np.concatenate([one.reshape(3, -1).T.astype(np.float64) for one in some])
        for some in (levels, other, after)
    )
    step = grid(values[np.isfinite(values).all(axis=1)])
    if not step or np.allclose(step * right.std, 1, rtol=1e-3):
        return None
    inside = (values > np.nanmin(values)) & (values < np.nanmax(values)) & np.isfinite(x)
    gain = float(np.polyfit(x[inside], y[inside], 1)[0])
    wrong = f", and values are times {gain:.3g}: its scale is wrong" if abs(gain - 1) > 0.03 else ""
    text = f"input is quantized: steps of {step:.4g}{wrong}"
    return Difference(text, "give the network float32, or the scale that its input has")
