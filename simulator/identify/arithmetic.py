"""The order of arithmetic of a recorded tensor, read from its values before anything is searched.

Of pixels of 8 bits each channel has 256 values at most, and each order of arithmetic has its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import get_args

import numpy as np

from simulator.contract import Array
from simulator.data.folder import Item
from simulator.identify.affine import ULPS
from simulator.identify.options import Fields
from simulator.identify.space import Space
from simulator.identify.target import Target
from simulator.modalities.image.card import ImageCard
from simulator.modalities.image.front_end import in_order
from simulator.modalities.image.sections import Arithmetic, image_spec
from simulator.modalities.image.steps import normalize
from simulator.profile.load import load

AXIS, KEY = "normalize", "normalize.arithmetic"
LEVELS = np.repeat(np.arange(256, dtype=np.uint8)[:, None, None], 3, axis=2)


def solved(target: Target, items: Sequence[Item], whole: Space, card: ImageCard) -> str | None:
    """Return the order of arithmetic that gives every recorded value, to the bit.

    Args:
        target: the recorded tensors.
        items: some images.
        whole: the space; its options of the normalization are tried.
        card: of the model.

    Returns:
        None where no order does, as after a resize that does not round.
    """
    axis = 1 if card.input.layout == "NCHW" else -1
    seen = [
        [np.unique(channel) for channel in np.moveaxis(target.of(item), axis, 0)] for item in items
    ]
    for mean, std, own in _numbers(whole, card):
        for name in get_args(Arithmetic):
            if in_order(name, own, card.input) != name:
                continue
            table = normalize(LEVELS, mean, std, name, "NHWC")[0, :, 0]
            if all(_within(channels, table) for channels in seen):
                return str(name)
    return None


def _within(channels: Sequence[Array], table: Array) -> bool:
    return all(
        len(values) <= len(table) and np.isin(values, table[:, at]).all()
        for at, values in enumerate(channels)
    )


def _numbers(whole: Space, card: ImageCard) -> Iterator[tuple[list[float], list[float], bool]]:
    """Yield mean and standard deviation of each option, on 0-255."""
    scale = 255 / card.input.top
    own = {"mean": card.input.mean, "std": card.input.std}
    for option in whole.axes.get(AXIS, {AXIS: {}}).values():
        written: Fields = option.get(AXIS, {})
        mean, std = (
            [one * scale for one in own[name]] if asked == "model" else list(asked)
            for name, asked in ((name, written.get(name, "model")) for name in own)
        )
        yield mean, std, not {"mean", "std"} & {k for k, v in written.items() if v != "model"}


def settled(whole: Space, arithmetic: str | None) -> Space:
    """Return a space with a normalization to solve, computed in one order where that is known."""
    if arithmetic is None:
        return replace(
            whole, axes={**whole.axes, AXIS: whole.axes.get(AXIS, {"as in the base": {}})}
        )
    if AXIS not in whole.axes and image_spec(load(whole.base)).normalize.arithmetic == arithmetic:
        return whole
    every = whole.axes.get(AXIS, {arithmetic: {}})
    options = {name: {KEY: arithmetic, **one} for name, one in every.items()}
    return replace(whole, axes={**whole.axes, AXIS: options})


def told(target: Target, arithmetic: str) -> str:
    """Say which order has the recorded bits, or how equal tensors count as equal."""
    if not target.ulps:
        return f"normalize.arithmetic: {arithmetic} has the bits of every recorded value"
    return (
        "no known order of normalization's arithmetic has the recorded bits: tensors count as "
        f"equal within {ULPS} units in the last place of their largest value"
    )
