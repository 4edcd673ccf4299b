"""Least squares between a tensor and pixels: scale, offset and channels, and what they leave.

A normalization is affine, whatever its numbers: ``tensor[c] = sum_k M[c, k] pixel[k] + b[c]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from simulator.contract import Array

ULPS = 4
"""Units in the last place of the largest value, within which tensors are equal but for rounding."""
_FEWEST = 200
"""Pixels that must be left without the clipped ones."""
_SAMPLE = 12_000
"""Pixels at most that :func:`share` looks at."""
_ALONE = 1.5
"""Times as much, squared, as a mixture of channels leaves one channel may leave to be named."""
_BETTER = 0.9
"""Leaving out clipped values must leave less than this share of the residual."""


@dataclass(frozen=True, slots=True, eq=False)
class Affine:
    """How a tensor is made of pixels, per channel or by a matrix, and what that leaves.

    Attributes:
        matrix: (3, 3) float64; row c makes channel c of the tensor.
        offset: (3,) float64, in the tensor's units.
        largest: largest absolute residual, in the tensor's units.
        mean: mean absolute residual.
        share: root mean square of the residual by that of the tensor's deviations from its means:
            0 where all is explained, 1 where nothing is.
        size: largest absolute value of the tensor.
        error: standard error of *matrix*, of its row, as a share of the row.
        step: smallest gap of the values where all lie on one grid of at most 256, else 0.
        left_out: share of values that were left out since they are clipped.
    """

    matrix: Array
    offset: Array
    largest: float
    mean: float
    share: float
    size: float
    error: float
    step: float = 0.0
    left_out: float = 0.0

    @property
    def order(self) -> tuple[int, int, int] | None:
        """The pixel's channel that each of the tensor's is made of; None: of several."""
        picked = np.abs(self.matrix).argmax(axis=1)
        alone = np.count_nonzero(self.matrix, axis=1) <= 1
        return (int(picked[0]), int(picked[1]), int(picked[2])) if alone.all() else None

    @property
    def gain(self) -> Array:
        """(3,): the tensor's units for a level of a pixel; of a matrix, the sum of the row."""
        return np.asarray(self.matrix.sum(axis=1))

    @property
    def std(self) -> Array:
        """(3,): pixel levels for one unit of the tensor: who normalized divided by it."""
        with np.errstate(divide="ignore"):
            return np.asarray(1 / self.gain)

    @property
    def zero(self) -> Array:
        """(3,): the pixel level that becomes 0: who normalized subtracted it."""
        return np.asarray(-self.offset * self.std)

    @property
    def rounding(self) -> float:
        """The largest residual that rounding explains, of float32 or to a grid."""
        return max(0.6 * self.step, ULPS * float(np.spacing(np.float32(self.size))))

    @property
    def exact(self) -> bool:
        """Whether nothing but rounding is left."""
        return self.largest <= self.rounding

    @property
    def levels(self) -> float:
        """The largest residual, in pixel levels."""
        gain = float(np.abs(self.gain).max())
        return self.largest / gain if gain else np.inf


NONE = Affine(np.zeros((3, 3)), np.zeros(3), np.inf, np.inf, np.inf, 0.0, np.inf)
"""No fit: nothing was left to be fitted."""


def affine(
    tensors: Sequence[Array], pixels: Sequence[Array], points: int | None = None, mixed: bool = True
) -> Affine:
    """Fit tensors to pixels, each channel to one of the pixel's where that explains as much.

    Args:
        tensors: each (3, H, W); NaN is left out, and so are the ends of a range to which values
            were clipped, where they do not fit.
        pixels: each (3, H, W).
        points: at most so many pixels are used; None: all.
        mixed: whether a channel may be of several of the pixels'.
    """
    y, x = (_columns(some, points) for some in (tensors, pixels))
    seen = np.isfinite(y).all(axis=1) & np.isfinite(x).all(axis=1)
    y, x = y[seen], x[seen]
    found = _fitted(y, x, mixed)
    if found.exact or not len(y):
        return found
    ends = ((y == y.min(axis=0)) | (y == y.max(axis=0))).any(axis=1)
    if ends.mean() < 0.001 or (~ends).sum() < _FEWEST:
        return found
    inside = _fitted(y[~ends], x[~ends], mixed)
    beyond = y[ends] - (x[ends] @ inside.matrix.T + inside.offset)
    low = (y[ends] == y.min(axis=0)) & (beyond > 0)
    clipped = low | ((y[ends] == y.max(axis=0)) & (beyond < 0))
    if (np.abs(beyond)[~clipped] > 2 * inside.largest + inside.rounding).any():
        return found
    if inside.share >= _BETTER * found.share:
        return found
    return replace(inside, left_out=float(ends.mean()))


def share(tensor: Array, pixels: Array) -> float:
    """Return what least squares leave of a tensor's deviations from its means: 0 nothing, 1 all.

    Args:
        tensor: of one image, with its three channels on any axis.
        pixels: of the same shape, or anything affine of them.
    """
    y, x = (_sampled(one) for one in (tensor, pixels))
    y, x = y - y.mean(axis=1, keepdims=True), x - x.mean(axis=1, keepdims=True)
    total, cross, inner = float((y * y).sum()), y @ x.T, x @ x.T
    inner[np.diag_indices(len(inner))] += 1e-9 * (np.trace(inner) or 1.0)
    explained = float((cross * np.linalg.solve(inner, cross.T).T).sum())
    return float(np.sqrt(max(0.0, 1 - explained / total))) if total else 1.0


def _sampled(one: Array) -> Array:
    """Rows of channels, (3, n), of some pixels; of a plane one row."""
    channels = [at for at, size in enumerate(one.shape) if size == 3]
    axis = channels[-1 if one.shape[-1] == 3 else 0] if channels else None
    rows = one.reshape(1, -1) if axis is None else np.moveaxis(one, axis, 0).reshape(3, -1)
    return rows[:, :: 1 + rows.shape[1] // _SAMPLE].astype(np.float64)


def _columns(images: Sequence[Array], points: int | None) -> Array:
    """(N, 3) float64: some or all of the images' pixels."""
    some = [np.asarray(one).reshape(3, -1) for one in images]
    step = 1 if points is None else max(1, sum(one.shape[1] for one in some) // points)
    step += step % 2 == 0  # of an even step, some images would give few columns only
    return np.concatenate([one[:, ::step].T.astype(np.float64) for one in some])


def _fitted(y: Array, x: Array, mixed: bool) -> Affine:
    """Least squares, centered so that no figure is lost."""
    if not len(y):
        return NONE
    size = float(np.abs(y).max())
    my, mx = y.mean(axis=0), x.mean(axis=0)
    dy, dx = y - my, x - mx
    total, cross, inner = (dy * dy).sum(axis=0), dy.T @ dx, dx.T @ dx
    own = np.maximum(np.diag(inner), 1e-30)
    alone = np.maximum(total[:, None] - cross**2 / own, 0)  # (3, 3): what one channel leaves
    whole = np.linalg.lstsq(inner, cross.T, rcond=1e-12)[0].T
    rest = ((dy - dx @ whole.T) ** 2).sum(axis=0)
    matrix = whole.copy()
    for c in range(3):
        picked = c if alone[c, c] <= 1.01 * alone[c].min() else int(alone[c].argmin())
        one = np.zeros(3)
        one[picked] = cross[c, picked] / own[picked]
        left = dy[:, c] - dx[:, picked] * one[picked]
        fine = np.abs(left).max() <= ULPS * np.spacing(np.float32(size))
        if fine or not mixed or (left * left).sum() <= _ALONE * rest[c]:
            matrix[c] = one
    offset = my - matrix @ mx
    left = np.abs(y - (x @ matrix.T + offset))
    largest = float(left.max())
    root = np.sqrt((left * left).mean(axis=0))
    spread = np.sqrt(total / len(y))
    return Affine(
        matrix, offset, largest, float(left.mean()),
        float(np.sqrt((root**2).sum() / max((spread**2).sum(), 1e-300))), size,
        float((root / np.maximum(spread, 1e-300)).max() / np.sqrt(min(len(y), 256))),
        grid(y) if largest > ULPS * np.spacing(np.float32(size)) else 0.0,
    )  # fmt: skip


def grid(y: Array) -> float:
    """The gap between the values where all lie on one grid of at most 256; else 0."""
    if np.unique(y[:1000]).size > 256 or (values := np.unique(y)).size not in range(3, 257):
        return 0.0
    gap = float(np.diff(values).min())
    places = (values - values[0]) / gap
    return gap if places[-1] < 256 and np.abs(places - np.rint(places)).max() < 0.01 else 0.0


def shortest(value: float, error: float) -> float:
    """Return the number with the fewest digits that is as near to a value as its error."""
    if not np.isfinite(value):
        return float(value)
    if abs(value) <= error:
        return 0.0
    for digits in range(17):
        rounded = float(f"{value:.{digits}e}")
        if abs(rounded - value) <= error:
            return rounded
    return float(value)
