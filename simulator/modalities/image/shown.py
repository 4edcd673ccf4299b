"""Turns images and tensors into 8-bit pictures for the report."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.contract import U8, Array

LONGEST = 320
"""The largest longer side of a thumbnail, in pixels: the width that the report gives it."""
WINDOW = 320
"""Rows and columns that are shown of a larger tensor; it is cut, never resampled."""


def levels(tensor: Array, card: Any, mean_std: tuple[Array, Array]) -> NDArray[np.float64]:
    """Return (H, W, 3) RGB levels on 0-255 of a network's input.

    Args:
        tensor: with a batch of 1.
        card: the ``input`` section of the model card.
        mean_std: (3,) on 0-255, of the normalization that is undone.
    """
    rows = tensor[0].transpose(1, 2, 0) if card.layout == "NCHW" else tensor[0]
    mean, std = mean_std
    found: NDArray[np.float64] = rows.astype(np.float64) * std + mean
    return found if card.order == "rgb" else found[..., ::-1]


def thumbnail(rgb: U8, longest: int = LONGEST) -> tuple[U8, int]:
    """Shrink a picture by an integer factor.

    Args:
        rgb: (H, W, 3) uint8.
        longest: the largest longer side of the result, in pixels.

    Returns:
        The picture, each pixel the rounded mean of factor x factor pixels (fewer at the right and
        lower edge), and the factor, 1 where nothing was shrunk.
    """
    factor = -(-max(rgb.shape[:2]) // longest)
    if factor == 1:
        return rgb, 1
    rows, columns = (np.arange(0, side, factor) for side in rgb.shape[:2])
    sums = np.add.reduceat(np.add.reduceat(rgb, rows, 0, np.uint32), columns, 1)
    down, across = (
        np.diff(np.append(starts, side))
        for starts, side in zip((rows, columns), rgb.shape[:2], strict=True)
    )
    found: U8 = np.rint(sums / np.outer(down, across)[..., None]).astype(np.uint8)
    return found, factor


def eight_bits(levels: NDArray[np.float64]) -> tuple[U8, int, int]:
    """Round to whole levels of 0 to 255.

    Args:
        levels: of any shape.

    Returns:
        The uint8 levels; how many values were clipped; how many were not finite and became 0.
    """
    lost = ~np.isfinite(levels)
    whole = np.rint(np.where(lost, 0.0, levels))
    clipped = int(np.count_nonzero((whole < 0) | (whole > 255)))
    return np.clip(whole, 0, 255).astype(np.uint8), clipped, int(np.count_nonzero(lost))


def of_input(tensor: Array, card: Any, mean_std: tuple[Array, Array]) -> U8:
    """Return (H, W, 3) levels of a network's input, clipped; see :func:`levels`."""
    return eight_bits(levels(tensor, card, mean_std))[0]


def window(pixels: U8) -> U8:
    """Return the middle of a picture, at most :data:`WINDOW` rows and columns."""
    rows, columns = (
        slice((side - min(side, WINDOW)) // 2, (side - min(side, WINDOW)) // 2 + WINDOW)
        for side in pixels.shape[:2]
    )
    return pixels[rows, columns]
