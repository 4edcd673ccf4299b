"""Solve what a tensor is of pixels: in closed form, whatever its normalization is.

Of each order of the elements that a slip may give, least squares find channels, scale and offset;
what they leave says which order it is, and whether the pixels are the right ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from simulator.contract import Array
from simulator.identify.affine import NONE, Affine, affine

_POINTS = 20_000
"""Pixels on which an order of elements is tried; the best one is fitted to all."""
_WELL = 0.1
"""Share of the spread that a fit may leave where no other order of elements need be tried."""
_BETTER = 0.9
"""A later hypothesis must leave less than this share of what an earlier one leaves."""
_ROWS = 24
"""Rows that must agree on a stride."""

Undo = Callable[[Array], Array]
ORDERS: Mapping[str, Undo] = {
    "in order": lambda t: t,
    "NHWC read as NCHW": lambda t: t.reshape(*t.shape[1:], 3).transpose(2, 0, 1),
    "NCHW read as NHWC": lambda t: t.transpose(1, 2, 0).reshape(t.shape),
    "width and height exchanged": lambda t: t.reshape(3, *t.shape[:0:-1]).transpose(0, 2, 1),
    "NWHC read as NCHW": lambda t: t.reshape(*t.shape[:0:-1], 3).transpose(2, 1, 0),
    "mirrored left to right": lambda t: t[:, :, ::-1],
    "upside down": lambda t: t[:, ::-1],
    "rotated by 180 degrees": lambda t: t[:, ::-1, ::-1],
    "rotated by 90 degrees clockwise": lambda t: np.rot90(t, 1, (1, 2)),
    "rotated by 90 degrees counterclockwise": lambda t: np.rot90(t, -1, (1, 2)),
}
"""What may have happened to the order of a tensor's elements, and what undoes it."""
_INVERSE = {
    "NHWC read as NCHW": "NCHW read as NHWC",
    "NCHW read as NHWC": "NHWC read as NCHW",
    "padded rows": "dense rows",
    "dense rows": "padded rows",
}
"""Of the orders that mix channels: what does to pixels what happened to the tensor."""


@dataclass(frozen=True, slots=True)
class Solution:
    """The best relation between tensors and pixels.

    Attributes:
        order: of the elements: one of :data:`ORDERS`, ``padded rows`` or ``dense rows``.
        fit: of tensors and pixels in the same order.
        raw: whether the order was changed before the normalization, so that a channel of the tensor
            is of several of the pixels'.
        signed: whether bytes above 127 became negative: the pixels were taken for signed bytes.
        stride: elements of the buffer between the beginnings of two rows, for ``padded rows``,
            which were read as if there was no padding, and ``dense rows``, read as if there was.
        interleaved: whether these rows are of pixels, not of one channel.
    """

    order: str
    fit: Affine
    raw: bool = False
    signed: bool = False
    stride: int | None = None
    interleaved: bool = False


def solve(tensors: Sequence[Array], pixels: Sequence[Array]) -> Solution:
    """Return the relation that explains tensors best.

    Args:
        tensors: of one or more images, each (3, H, W), of any dtype.
        pixels: of the same images, each (3, H, W), on 0-255.

    Raises:
        ValueError: shapes differ, or no image is given.
    """
    if not tensors or [one.shape for one in tensors] != [one.shape for one in pixels]:
        raise ValueError(
            "a relation needs tensors and pixels of one image or more, of equal shapes"
        )
    best = Solution("in order", affine(tensors, pixels, _POINTS))
    if best.fit.share > _WELL:
        for found in _hypotheses(tensors, pixels):
            fit = affine(*alike(found, tensors, pixels), _POINTS)
            if fit.share < _BETTER * best.fit.share:
                best = replace(found, fit=fit)
            if fit.exact:
                break
    return replace(best, fit=affine(*alike(best, tensors, pixels)))


def alike(
    found: Solution, tensors: Sequence[Array], pixels: Sequence[Array]
) -> tuple[list[Array], list[Array]]:
    """Return tensors and pixels with their elements in the same order, as a solution says.

    Args:
        found: the solution.
        tensors: each (3, H, W).
        pixels: each (3, H, W).

    Returns:
        Both as (3, H, W); NaN where an element is missing.
    """
    some = [signed(one) for one in pixels] if found.signed else list(pixels)
    if found.raw:
        name = _INVERSE[found.order]
        return list(tensors), [_moved(name, found, one) for one in some]
    return [_moved(found.order, found, one) for one in tensors], some


def _moved(order: str, found: Solution, planes: Array) -> Array:
    if found.stride is None:
        return ORDERS[order](planes)
    return _rows(planes, found.stride, found.interleaved, order == "padded rows")


def signed(pixels: Array) -> Array:
    """Return pixels on 0-255 as their bytes are if they are taken for signed ones: -128 to 127."""
    return np.where(np.asarray(pixels) >= 127.5, np.asarray(pixels, np.float64) - 256, pixels)


def _hypotheses(tensors: Sequence[Array], pixels: Sequence[Array]) -> Iterator[Solution]:
    """Yield relations with another order of elements, or with signed bytes; yet without a fit."""
    shape = pixels[0].shape
    for name, undo in ORDERS.items():
        if undo(np.empty(shape, bool)).shape == shape:
            for raw, negative in product((False, True), (False, True)):
                if not raw or name in _INVERSE:
                    yield Solution(name, NONE, raw, negative)
    for interleaved, padded in product((True, False), (True, False)):
        stride = _stride(tensors[0], pixels[0], interleaved, padded)
        name = "padded rows" if padded else "dense rows"
        for raw in (True, False):
            yield Solution(name, NONE, raw, False, stride, interleaved)


def _flat(planes: Array, interleaved: bool) -> Array:
    return np.asarray(planes.transpose(1, 2, 0) if interleaved else planes, np.float64).ravel()


def _rows(tensor: Array, stride: int, interleaved: bool, padded: bool) -> Array:
    """Return a tensor with its rows where they belong, and NaN where it lacks elements."""
    (_, height, width), flat = tensor.shape, _flat(tensor, interleaved)
    count, wide = (height, 3 * width) if interleaved else (3 * height, width)
    if padded:
        at = np.arange(count)[:, None] * stride + np.arange(wide)
        found = np.where(at < flat.size, flat[np.minimum(at, flat.size - 1)], np.nan)
    else:
        found = np.full(max(count * stride, flat.size), np.nan)
        for row in range(count):
            found[row * stride : row * stride + wide] = flat[row * wide : (row + 1) * wide]
        found = found[: flat.size]
    if interleaved:
        return np.asarray(found.reshape(height, width, 3).transpose(2, 0, 1))
    return np.asarray(found.reshape(tensor.shape))


def _stride(tensor: Array, pixels: Array, interleaved: bool, padded: bool) -> int:
    """Return the stride at which rows of the one buffer are found in the other."""
    wide = pixels.shape[2] * (3 if interleaved else 1)
    shape = pixels.shape
    right, other = (
        _flat(_standard(one.reshape(3, -1)).reshape(shape), interleaved) for one in (pixels, tensor)
    )
    rows, buffer = (right, other) if padded else (other, right)
    last = max(2, min(_ROWS, buffer.size // (2 * wide) - 1))
    agrees = np.zeros(wide)
    for row in range(1, last):
        wanted = _standard(rows[row * wide : (row + 1) * wide])
        starts = row * (wide + 1 + np.arange(wide))
        inside = starts + wide <= buffer.size
        windows = np.lib.stride_tricks.sliding_window_view(buffer, wide)[starts[inside]]
        agrees[inside] += np.abs(_standard(windows) @ wanted)
    return int(wide + 1 + agrees.argmax())


def _standard(rows: Array) -> Array:
    """Return rows with mean 0 and length 1."""
    centered = rows - rows.mean(axis=-1, keepdims=True, dtype=np.float64)
    length = np.sqrt((centered * centered).sum(axis=-1, keepdims=True))
    return np.asarray(centered / np.maximum(length, 1e-30))
