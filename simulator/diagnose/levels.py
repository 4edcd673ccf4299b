"""Tensors of two stacks as the levels of pixels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simulator.contract import Array
from simulator.diagnose.normalization import Numbers
from simulator.experiments.conventions import CONVENTIONS
from simulator.modalities.image.card import ImageCard

WHOLE = 0.01
"""Levels within which a pixel is a whole level."""


def of_card(card: ImageCard) -> Numbers:
    """Return a card's normalization."""
    scale = 255 / card.input.top
    return Numbers(np.array(card.input.mean) * scale, np.array(card.input.std) * scale)


def of_training(tensors: Sequence[Array], card: ImageCard) -> Numbers:
    """Return the normalization of which tensors are whole levels; the card's where none is.

    The card's is tried first, then what is usual: code need not do what the card says.

    Args:
        tensors: of the training, each (3, H, W).
        card: of the model.
    """
    own = of_card(card)
    usual = [Numbers(*(255 / one.top * np.array(n) for n in (one.mean, one.std)))
             for one in CONVENTIONS]  # fmt: skip
    return next((one for one in (own, *usual) if _whole(tensors, one)), own)


def _whole(tensors: Sequence[Array], numbers: Numbers) -> bool:
    levels = [levels_of(one, numbers) for one in tensors]
    return all(
        np.array_equal(one, np.rint(one)) and one.min() >= 0 and one.max() <= 255 for one in levels
    )


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


def pixels_of(*sides: Sequence[Array]) -> tuple[Array, ...]:
    """Return the pixels of each side's images, each (3, H, W), as (n, 3), where all are finite."""
    flat = [np.concatenate([one.reshape(3, -1).T for one in some]) for some in sides]
    there = np.all([np.isfinite(one).all(axis=1) for one in flat], axis=0)
    return tuple(one[there] for one in flat)
