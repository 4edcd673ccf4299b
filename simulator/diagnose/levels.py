"""Tensors of two stacks as the levels of pixels, and a difference with its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from simulator.contract import Array
from simulator.diagnose.normalization import Numbers
from simulator.modalities.image.card import ImageCard

WHOLE = 0.01
"""Levels within which a pixel is a whole level."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference with its name.

    Attributes:
        name: what it is called.
        code: what to write in code, in words.
        change: fields of a profile that undo it, by dotted key.
        evidence: sentences that show it.
    """

    name: str
    code: str = ""
    change: Mapping[str, object] = field(default_factory=dict)
    evidence: tuple[str, ...] = ()


def of_card(card: ImageCard) -> Numbers:
    """Return a card's normalization."""
    scale = 255 / card.input.top
    return Numbers(np.array(card.input.mean) * scale, np.array(card.input.std) * scale)


def bits_of(tensor: Array) -> tuple[object, ...]:
    """Return what two tensors of equal bits have in common."""
    return tensor.dtype.str, tensor.shape, np.ascontiguousarray(tensor).tobytes()


def planes(tensor: Array, card: ImageCard) -> Array:
    """Return a tensor of one image, with or without its batch, as (3, H, W)."""
    one = tensor[0] if tensor.ndim == 4 else tensor
    return one if card.input.layout == "NCHW" else one.transpose(2, 0, 1)


def levels_of(tensor: Array, right: Numbers) -> Array:
    """Return the pixels, (3, H, W) on 0-255, of which a tensor was made; whole ones exactly."""
    mean, std = right.mean[:, None, None], right.std[:, None, None]
    levels = tensor.astype(np.float64) * std + mean
    whole = np.rint(levels)
    return whole if np.abs(levels - whole).max() < WHOLE else np.asarray(levels)
