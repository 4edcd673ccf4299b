"""Spatter: drops of water, or mud, on the lens."""

from __future__ import annotations

import numpy as np

from simulator.conditions.corruptions.corruption import corruption
from simulator.conditions.corruptions.edges import blurred, chamfer, edges, equalized, filtered
from simulator.conditions.corruptions.filters import Floats, gaussian
from simulator.conditions.image_condition import cut
from simulator.contract import U8

WATER, MUD = (175, 238, 238), (63, 42, 20)
_EMBOSS = np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]])


@corruption(
    "drops of water (1 to 3) or mud (4, 5) on the lens",
    (
        (0.65, 0.3, 4, 0.69, 0.6, 0),
        (0.65, 0.3, 3, 0.68, 0.6, 0),
        (0.65, 0.3, 2, 0.68, 0.5, 0),
        (0.65, 0.3, 1, 0.65, 1.5, 1),
        (0.67, 0.4, 1, 0.65, 1.5, 1),
    ),
    has_chance=True,
)
def spatter(rgb: U8, level: tuple[float, ...], rng: np.random.Generator) -> U8:
    """Draw drops of water or mud; an image on which none falls stays as it is.

    A level is what the original calls ``c``: mean and deviation of the noise, the sigma that makes
    drops of it, the least value of a drop, the water's strength or the sigma of the mud's edge, and
    whether it is mud.

    Source:
        ``spatter`` of https://github.com/hendrycks/robustness; OpenCV's part: :mod:`.edges`.
    """
    mean, deviation, sigma, least, strength, mud = level
    image = rgb.astype(np.float32) / np.float32(255)
    drops = gaussian(rng.normal(size=rgb.shape[:2], loc=mean, scale=deviation), sigma)
    drops[drops < least] = 0
    if mud:
        cover = gaussian((drops > least).astype(np.float32), strength)
        cover[cover < 0.8] = 0
        image *= 1 - cover[..., None]
        return cut(image + cover[..., None] * _of(MUD))
    wet = _wet(np.minimum(drops * 255, 255).astype(np.uint8))
    if not wet.max():
        return rgb.copy()
    wet /= wet.max()
    wet *= np.float32(strength)
    return cut(image + wet[..., None] * _of(WATER).astype(np.float32))


def _wet(drops: U8) -> Floats:
    """Return (H, W) float32: how a drop shines, most at its edges."""
    near = np.minimum(chamfer(edges(drops, 50, 150)), np.float32(20))
    shine = filtered(equalized(blurred(near).astype(np.uint8)), _EMBOSS)
    return np.asarray(drops * np.rint(blurred(shine)))


def _of(color: tuple[int, int, int]) -> Floats:
    return np.array([one / 255.0 for one in color])
