"""Glass blur: pixels change places behind frosted glass."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simulator.conditions.corruptions.corruption import corruption
from simulator.conditions.corruptions.filters import gaussian
from simulator.conditions.image_condition import cut, unit
from simulator.contract import U8


@corruption(
    "frosted glass: pixels are copied from their neighborhood",
    ((0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2)),
    has_chance=True,
)
def glass_blur(rgb: U8, level: tuple[float, int, int], rng: np.random.Generator) -> U8:
    """Blur, move pixels, blur; a level is sigma, the longest move and the number of rounds.

    In every round a move is drawn for every pixel that is not at the edge. The original means to
    swap two pixels, and copies one over the other (the right side of its assignment is views). So
    does this: what is published is the copy.

    Source:
        ``glass_blur`` of https://github.com/hendrycks/robustness, for any size as in
        bethgelab/imagecorruptions.
    """
    sigma, delta, rounds = level
    image = (gaussian(unit(rgb), sigma) * 255).astype(np.uint8)
    rows, columns = (max(0, side - 2 * delta) for side in rgb.shape[:2])
    moves = rng.integers(-delta, delta, size=(rounds, rows, columns, 2))
    return cut(gaussian(unit(copied(image, moves, delta)), sigma))


def copied(image: U8, moves: NDArray[np.int64], delta: int) -> U8:
    """Copy over every inner pixel the one that its move points to, one after the other.

    The order is the original's, from the last pixel to the first, so a pixel may get what another
    has just got. Whose value it ends with is found by following all the copies at once: the chain
    of a pixel is halved in every pass.

    Args:
        image: (H, W, 3) uint8.
        moves: (rounds, H - 2 delta, W - 2 delta, 2), right and down, in the order of the copies.
        delta: how many pixels at each edge stay; the last row and column of the inner ones are
            at H - delta and W - delta.
    """
    height, width = image.shape[:2]
    flat = image.reshape(height * width, -1)
    own = np.arange(height * width, dtype=np.intp)
    rows = np.arange(height - delta, delta, -1)[:, None]
    columns = np.arange(width - delta, delta, -1)
    at = (rows * width + columns).ravel()
    for one in moves.reshape(len(moves), -1, 2):
        target = at + one[:, 1] * width + one[:, 0]
        copies = np.zeros(len(own), bool)
        copies[at] = True
        later = copies[target] & (target > at)
        link, end = own.copy(), own.copy()
        link[at], end[at] = np.where(later, target, at), target
        while True:
            following = link[link]
            if np.array_equal(following, link):
                break
            link = following
        flat = flat[end[link]]
    return flat.reshape(image.shape)
