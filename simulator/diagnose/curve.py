"""A curve between levels: the deployment's level is a function of the training's, not affine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from simulator.contract import Array
from simulator.contract.raw import light_of, srgb
from simulator.diagnose.levels import pixels_of

_SHOWN = (32, 64, 128, 192, 224)
_ONE = 1.02
"""Levels that a formula may leave: what rounding or cutting to whole levels does."""
_FEWEST = 16
"""Levels that must be seen for a curve."""
_POWERS = (2.2, 1.8, 2.4, 2.0, 1 / 2.2, 1 / 1.8, 1 / 2.4, 0.5)


@dataclass(frozen=True, slots=True)
class Curve:
    """A curve with its name.

    Attributes:
        name: what it is called.
        code: what to write, in words.
        order: of which of the training's channels each is a function.
        left: levels that it leaves, at most.
    """

    name: str
    code: str
    order: tuple[int, ...]
    left: float


def named(levels: Sequence[Array], other: Sequence[Array]) -> Curve | None:
    """Name a curve, the same of every image.

    Args:
        levels: of the training, each (3, H, W), whole levels of 0-255; NaN is left out.
        other: what they became, on the scale of the training's numbers.

    Returns:
        None where the levels are not whole, or a level becomes different ones.
    """
    x, y = pixels_of(levels, other)
    if not len(x) or (x != np.rint(x)).any() or x.min() < 0 or x.max() > 255:
        return None
    index = x.astype(np.intp)
    for order in sorted(
        permutations(range(3)), key=lambda some: some not in ((0, 1, 2), (2, 1, 0))
    ):
        tables = [_table(index[:, k], y[:, c]) for c, k in enumerate(order)]
        if any(one is None for one in tables):
            continue
        means = np.array([one[0] for one in tables if one])
        spread = max(one[1] for one in tables if one)
        if np.isfinite(means).sum() < _FEWEST:
            return None
        return _called(means, order, spread)
    return None


def _table(index: Array, values: Array) -> tuple[Array, float] | None:
    """What each level becomes, NaN where it is not seen, and how unlike that is at most."""
    low, high = np.full(256, np.inf), np.full(256, -np.inf)
    np.minimum.at(low, index, values)
    np.maximum.at(high, index, values)
    seen = high >= low
    spread = float((high - low)[seen].max())
    with np.errstate(invalid="ignore"):  # inf - inf, where a level is not seen
        return (np.where(seen, (low + high) / 2, np.nan), spread) if spread <= 1 else None


def _called(means: Array, order: tuple[int, ...], spread: float) -> Curve:
    keep = "leave the levels as they are decoded"
    for name, code, made in _formulas(means):
        gap = float(np.nanmax(np.abs(made - means)))
        if gap <= _ONE:
            return Curve(name, code or keep, order, max(gap, spread))
    shown = ", ".join(f"{n} becomes {means[1, n]:.3g}" for n in _SHOWN if np.isfinite(means[1, n]))
    return Curve(f"levels go through a curve: {shown}", keep, order, spread)


def _formulas(means: Array) -> Iterator[tuple[str, str, Array]]:
    """Yield curves that have a name, (3, 256) or alike for all channels."""
    v = np.arange(256.0)
    unit = v / 255
    for name, made in LIGHT.items():
        yield name, "", 255 * made(unit)
    for power in (*_POWERS, _power(means)):
        yield f"gamma: levels to the power of {power:.3g}", "", 255 * unit**power
    for threshold in range(1, 255):
        if abs(means[1, threshold] - 255 + threshold) <= _ONE:
            name = "levels are inverted above a threshold (solarized)"
            yield name, "", np.where(v < threshold, v, 255 - v)
            break
    yield from _bits(means)
    by = float(np.nanmedian((means - v) % 256))
    wrapped = v + by - 256 * (np.arange(256) + by >= 255.5)
    text = f"levels wrap around at 256: {by:.0f} is added in uint8"
    yield text, "compute in int or float, and clip", wrapped


def _bits(means: Array) -> Iterator[tuple[str, str, Array]]:
    """Yield levels of fewer bits, cut or with the highest bits repeated."""
    v = np.arange(256)
    known = {(5, 6, 5): "RGB565", (5, 5, 5): "RGB555"}
    for bits in (*known, *((n,) * 3 for n in range(1, 8))):
        low = [8 - n for n in bits]
        cut = np.array([v >> k << k for k in low], float)
        repeated = np.array([np.rint((v >> k) * 255 / (255 >> k)) for k in low])
        name = f"levels of {bits[0]} bits (posterized)"
        if bits in known:
            name = f"colors of {', '.join(map(str, bits))} bits ({known[bits]})"
        for made in (cut, repeated):
            yield name, "keep 8 bits a channel", made


def _power(means: Array) -> float:
    """The power that fits best."""
    table = np.broadcast_to(np.arange(256.0), means.shape)
    inner = np.isfinite(means) & (table > 8) & (table < 248) & (means > 0.5) & (means < 254.5)
    if inner.sum() < _FEWEST:
        return 1.0
    across, up = np.log(table[inner] / 255), np.log(means[inner] / 255)
    return float((across * up).sum() / (across * across).sum())


LIGHT: Mapping[str, Callable[[Array], Array]] = {
    "gamma: linear light in place of sRGB": light_of,
    "gamma: linear light taken for sRGB, and encoded again": srgb,
}
"""The transfer function of sRGB and its inverse, of 0 to 1."""
