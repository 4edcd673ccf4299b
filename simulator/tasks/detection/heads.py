"""From a head's numbers to boxes in the network's pixels."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.tasks.detection.declared import (
    AnchorHead,
    BoxHead,
    CenterSize,
    Distances,
    FinalHead,
    GridHead,
    RegionHead,
)
from simulator.tasks.detection.grids import Size, lattice
from simulator.tasks.detection.ports import Numbers
from simulator.tasks.detection.settings import Settings

TYPES = {"fp32": np.float32, "fp16": np.float16}


def boxes(
    numbers: Numbers,
    rows: NDArray[np.intp],
    settings: Settings,
    proposals: Numbers | None = None,
) -> Numbers:
    """Decode boxes, every step in the settings' precision.

    Args:
        numbers: (n, 4 or 4 * bins) of the wanted boxes, as the model gave them.
        rows: (n,) which rows of the head they are.
        settings: the card's and the profile's choices.
        proposals: of regions, (N, 4) x1, y1, x2, y2 of all rows in network pixels.

    Returns:
        (n, 4) x1, y1, x2, y2 in network pixels, float32 or float16; not clipped; infinite or NaN
        where a value was too large for the precision.
    """
    head = settings.head
    numbers = numbers.astype(TYPES[settings.precision])
    if isinstance(head, AnchorHead):
        around = anchors(head, settings.size, settings.precision)[rows]
        return from_deltas(numbers, around, settings)
    if isinstance(head, RegionHead):
        assert proposals is not None
        around = proposals.astype(numbers.dtype)[rows]
        return from_deltas(numbers, around, settings)
    if isinstance(head, GridHead):
        cell, stride, anchor = _places(head, settings.size, settings.precision)
        place = cell[rows], stride[rows], anchor[rows]
        if isinstance(head.encoding, Distances):
            return _from_distances(numbers, head.encoding, *place[:2], settings)
        return _from_cells(numbers, head.encoding, *place, settings)
    return _from_format(numbers, head, settings)


def from_deltas(deltas: Numbers, anchors: Numbers, settings: Settings) -> Numbers:
    """Move and scale anchors.

    With a = ``anchor_offset`` and c = ``corner_offset``: the anchor is x2 - x1 + a wide around
    x1 + width / 2; the box is from center - width / 2 to center + width / 2 - c. Both 0: R-CNN,
    torchvision ``BoxCoder.decode_single``; both 1: SysNoise's listing (``ALIGNED_FLAG.offset``;
    United-Perception ``offset2bbox``).

    Args:
        deltas: (n, 4) dx, dy, dw, dh, or in the order of the card.
        anchors: (n, 4) x1, y1, x2, y2 of the same type.
        settings: of a head with deltas.
    """
    head = settings.head
    assert isinstance(head, AnchorHead | RegionHead)
    code, kind = head.deltas, deltas.dtype
    if code.order == "yxhw":
        deltas = deltas[:, [1, 0, 3, 2]]
    if code.weights is not None:
        deltas = deltas / _in_order(code.weights, code.order, kind)
    else:
        stds, means = (_in_order(x, code.order, kind) for x in (code.stds, code.means))
        deltas = deltas * stds + means
    size = anchors[:, 2:] - anchors[:, :2] + settings.anchor_offset
    center = anchors[:, :2] + size * 0.5
    return _corners(
        deltas[:, :2] * size + center,
        _exp(deltas[:, 2:], settings) * size,
        settings.corner_offset,
    )


def of_class(numbers: Numbers, labels: NDArray[np.int64], head: RegionHead) -> Numbers:
    """Return the (n, 4) deltas that rows have for their classes, (n,)."""
    if head.class_boxes == "one":
        return numbers
    first = head.class_boxes == "scores" and head.score.background == "first"
    each: Numbers = numbers.reshape(len(numbers), -1, 4)[np.arange(len(labels)), labels + first]
    return each


def _from_cells(
    t: Numbers, code: CenterSize, cell: Numbers, stride: Numbers, anchor: Numbers, s: Settings
) -> Numbers:
    """YOLO's way: the center from the cell, the size from the stride, an anchor or the image."""
    own, size = code.center, code.size
    center = (cell + own.shift + _activate(t[:, :2], own.activation, s) * own.gain) * stride
    units: dict[str, Numbers] = {
        "pixel": np.ones(2, t.dtype),
        "stride": stride,
        "anchor": anchor,
        "image": np.array(s.size[::-1], t.dtype),
    }
    raw = _activate(t[:, 2:], size.activation, s) * size.gain
    return _corners(center, raw**size.power * units[size.unit], s.corner_offset)


def _from_distances(
    t: Numbers, code: Distances, cell: Numbers, stride: Numbers, s: Settings
) -> Numbers:
    """FCOS's way: how far left, up, right and down of a point the sides are."""
    if code.activation == "distribution":
        assert code.bins is not None
        powers = t.reshape(len(t), 4, code.bins)
        powers = np.exp(powers - powers.max(axis=2, keepdims=True))
        far = (powers / powers.sum(axis=2, keepdims=True)) @ np.arange(code.bins, dtype=t.dtype)
    else:
        far = _activate(t, code.activation, s)
    if code.unit == "stride":
        far = far * np.tile(stride, 2)
    point = (cell + code.shift) * stride
    return np.concatenate([point - far[:, :2], point + far[:, 2:] - s.corner_offset], axis=1)


def _from_format(numbers: Numbers, head: BoxHead | FinalHead, s: Settings) -> Numbers:
    """Boxes that the model has decoded."""
    if head.format == "yxyx":
        numbers = numbers[:, [1, 0, 3, 2]]
    start = np.zeros(4, numbers.dtype)
    if head.unit == "resized":
        assert s.inside is not None
        top, left, rows, columns = s.inside
        numbers = numbers * np.array((columns, rows) * 2, numbers.dtype)
        start = np.array((left, top) * 2, numbers.dtype)
    elif head.unit == "image":
        numbers = numbers * np.array(s.size[::-1] * 2, numbers.dtype)
    first, second = numbers[:, :2], numbers[:, 2:]
    if head.format == "cxcywh":
        numbers = _corners(first, second, s.corner_offset)
    elif head.format == "xywh":
        numbers = np.concatenate([first, first + second - s.corner_offset], axis=1)
    return numbers + start if start.any() else numbers


def _corners(center: Numbers, size: Numbers, offset: int) -> Numbers:
    half = size * 0.5
    return np.concatenate([center - half, center + half - offset], axis=1)


def _exp(values: Numbers, settings: Settings) -> Numbers:
    clamp = settings.exp_clamp
    return np.exp(values if clamp is None else np.minimum(values, clamp))


def _activate(values: Numbers, activation: str, settings: Settings) -> Numbers:
    if activation == "exp":
        return _exp(values, settings)
    if activation == "sigmoid":
        return 1 / (1 + np.exp(-values))
    if activation == "tanh":
        return np.tanh(values)
    return np.maximum(values, 0) if activation == "relu" else values


def _in_order(values: Any, order: str, kind: np.dtype[Any]) -> Numbers:
    """The card's four numbers as x, y, w, h."""
    own = np.array(values, kind)
    return own if order == "xywh" else own[[1, 0, 3, 2]]


@lru_cache(maxsize=8)
def anchors(head: AnchorHead, network: Size, precision: str) -> Numbers:
    """(N, 4) x1, y1, x2, y2 of all anchors."""
    where = lattice(head, network)
    center = (where.cell + head.center) * where.stride
    around = np.concatenate([center + where.low, center + where.high], axis=1)
    return around.astype(TYPES[precision])


@lru_cache(maxsize=8)
def _places(head: GridHead, network: Size, precision: str) -> tuple[Numbers, Numbers, Numbers]:
    """(N, 2) each: cell, stride and anchor size, as x and y."""
    where = lattice(head, network)
    kind = TYPES[precision]
    return (
        where.cell.astype(kind),
        where.stride.astype(kind),
        (where.high - where.low).astype(kind),
    )
