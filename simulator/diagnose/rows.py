"""Rows, columns and bytes that are in another place: fields, late buffers, borders."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simulator.contract import Array
from simulator.diagnose.finding import Difference

_EXACT = 0.02
"""Levels that a copy of a pixel is apart."""
_MOST = 0.9
"""Share of the rows that a rule must hold for; those at the ends may have nothing to copy."""


def named(levels: Sequence[Array], other: Sequence[Array]) -> tuple[Difference, float] | None:
    """Name rows, columns or elements that were copied from other places.

    Args:
        levels: of the training, each (3, H, W).
        other: the deployment's, on the scale of the training's numbers.
    """
    if any(not np.isfinite(one).all() for one in (*levels, *other)):
        return None
    for what, axis in (("row", 1), ("column", 2)):
        if (
            text := _moved(
                [np.moveaxis(one, axis, 0) for one in levels],
                [np.moveaxis(one, axis, 0) for one in other],
                what,
            )
        ) is not None:
            return Difference(text, f"copy every {what} once, in order"), 0.0
    return _late(levels, other) or _border(levels, other)


def _moved(levels: Sequence[Array], other: Sequence[Array], what: str) -> str | None:
    """What happened to the order of rows; None where they are no copies of the training's."""
    flat = [[one.reshape(len(one), -1) for one in some] for some in (levels, other)]
    x, y = (np.concatenate(some, axis=1) for some in flat)
    some = slice(None, None, max(1, x.shape[1] // 2000))
    far = (x[:, some] ** 2).sum(1) - 2 * y[:, some] @ x[:, some].T
    source = far.argmin(axis=1)
    copied = np.abs(y - x[source]).max(axis=1) < _EXACT
    if copied.mean() < _MOST or np.array_equal(source, np.arange(len(x))):
        return None
    at = np.arange(len(x))
    for text, rule in (
        (f"each two {what}s are exchanged", at ^ 1),
        (f"every second {what} is repeated: one field of an interlaced picture", at & ~1),
        (f"every second {what} is repeated: one field of an interlaced picture", at | 1),
    ):
        if (source == rule)[copied].mean() > _MOST:
            return text
    if len(set((source - at)[copied] % len(x))) == 1:
        return None  # a shift
    shown = ", ".join(map(str, source[:6]))
    return f"{what}s are copied from others: the first ones are {shown}, counted from 0"


def _late(levels: Sequence[Array], other: Sequence[Array]) -> tuple[Difference, float] | None:
    """A buffer that begins some elements too early or too late."""
    for unit, axes in (("bytes of interleaved pixels", (1, 2, 0)), ("elements", (0, 1, 2))):
        x, y = ([one.transpose(axes).ravel() for one in some] for some in (levels, other))
        a, b = (one[0] - one[0].mean() for one in (x, y))
        peak = np.fft.irfft(np.fft.rfft(b) * np.conj(np.fft.rfft(a)), a.size)
        by = int(peak.argmax())
        by -= a.size * (by > a.size // 2)
        if by % levels[0].shape[2] == 0 or abs(by) > a.size // 4:  # whole rows: a shift
            continue
        inner = slice(max(0, by), a.size + min(0, by))
        from_ = slice(max(0, -by), a.size + min(0, -by))
        gap = max(
            float(np.abs(two[inner] - one[from_]).max()) for one, two in zip(x, y, strict=True)
        )
        if gap < _EXACT:
            way = "late" if by > 0 else "early"
            text = f"the buffer is filled {abs(by):,} {unit} too {way}"
            return Difference(text, "look at offsets and headers of the buffer"), gap
    return None


def _border(levels: Sequence[Array], other: Sequence[Array]) -> tuple[Difference, float] | None:
    """A frame of one level around pixels that are equal."""
    same = np.all([np.abs(a - b).max(axis=0) < _EXACT for a, b in zip(levels, other, strict=True)],
                  axis=0)  # fmt: skip
    rows, columns = (np.flatnonzero(same.mean(axis=axis) > 0.3) for axis in (1, 0))
    if not rows.size or not columns.size or same.all():
        return None
    inside = np.zeros_like(same)
    inside[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1] = True
    if not same[inside].all():
        return None
    values = np.concatenate([one[:, ~inside] for one in other], axis=1)
    height, width = same.shape
    cut = f"{rows[0]}, {height - 1 - rows[-1]}, {columns[0]} and {width - 1 - columns[-1]} pixels"
    what = "is overwritten"
    if np.ptp(values, axis=1).max() < _EXACT:
        what = f"has one level ({', '.join(f'{v:.3g}' for v in values[:, 0] + 0.0)})"
    text = f"a border of {cut} at the top, below, left and right {what}; inside all is equal"
    return Difference(text, "fill the whole input"), 0.0
