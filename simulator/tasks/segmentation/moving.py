"""Masks that follow their image into the network's input."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simulator.contract import U8
from simulator.data.masks import IGNORE
from simulator.modalities.image.geometry import Placement
from simulator.modalities.image.orientation import stored, undoing


def placed(mask: U8, placement: Placement) -> U8:
    """Return a mask as its image lies in the network's input, by nearest neighbor.

    Args:
        mask: (H, W) of the image as it is stored.
        placement: where the image lies.

    Returns:
        Of the network's size; :data:`IGNORE` where the input is padding.
    """
    turned = stored(mask, undoing(placement.orientation))
    rows, inside_rows = _sources(
        placement.network_height, placement.top, placement.rows, placement.height
    )
    columns, inside_columns = _sources(
        placement.network_width, placement.left, placement.columns, placement.width
    )
    found = turned[placement.cut.top + rows[:, None], placement.cut.left + columns]
    inside = inside_rows[:, None] & inside_columns
    return np.where(inside, found, np.uint8(IGNORE))


def _sources(
    network: int, start: int, resized: int, side: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """For each row of the network's input the row of the image, and whether it has any."""
    at = np.arange(network) - start
    rows = (2 * at + 1) * side // (2 * resized)
    return np.clip(rows, 0, side - 1), (at >= 0) & (at < resized)
