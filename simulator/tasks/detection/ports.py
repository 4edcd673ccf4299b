"""A detector's outputs: the shapes that its card promises, and their numbers as rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.errors import ModelError, unknown
from simulator.tasks.detection.card import HeadOutput
from simulator.tasks.detection.declared import (
    AnswerTensor,
    BoxHead,
    Dense,
    Distances,
    GridHead,
    Head,
    RegionHead,
    Rows,
    Tensor,
)
from simulator.tasks.detection.grids import Size, cells, counts
from simulator.tasks.finite import check_finite

Numbers = NDArray[Any]
_WORDS = {"boxes": "of the box"}


@dataclass(frozen=True, slots=True)
class Port:
    """One output that the card promises.

    Attributes:
        name: of the output.
        layout: ``rows``, ``columns``, ``maps`` or ``maps_last``.
        rows: how many boxes it has; None where only the model knows.
        width: how many numbers it has for each box.
        grid: (rows, columns, anchors of a cell) where it has one grid; of any size, zeros.
        why: how these numbers follow from the card, for messages.
        blocks: where a cell's numbers are column by column: for each column how many there are,
            and whether the cell's anchors share them.
    """

    name: str
    layout: str
    rows: int | None
    width: int
    grid: tuple[int, int, int] | None
    why: str
    blocks: tuple[tuple[int, bool], ...] = ()

    def shape(self) -> tuple[Any, ...]:
        """Return the shape that is expected."""
        if self.grid and self.layout.startswith("maps"):
            high, wide, each = self.grid
            depth = each * self.width
            if self.blocks:
                depth = sum(width if shared else each * width for width, shared in self.blocks)
            sides = (high or None, wide or None)
            return (1, depth, *sides) if self.layout == "maps" else (1, *sides, depth)
        rows = "N" if self.rows is None else self.rows
        return (1, rows, self.width) if self.layout == "rows" else (1, self.width, rows)

    def check(self, got: Sequence[int | None]) -> None:
        """Refuse another shape; None is a dimension that is not known yet.

        Raises:
            ModelError: naming the output, the expected shape and the shape that came.
        """
        if not self._fits(tuple(got)):
            shown = ", ".join("?" if d is None else str(d) for d in got)
            expected = ", ".join(map(str, self.shape()))
            raise ModelError(
                f"output {self.name!r}: expected ({expected}), {self.why}; got ({shown});"
                " the card's output section or its labels are of another model"
            )

    def _fits(self, got: tuple[int | None, ...]) -> bool:
        if self.layout.startswith("maps"):
            expected = self.shape()
            return len(got) == 4 and all(map(_same, got, expected))
        if self.width == 1 and _product(got, self.rows):
            return True
        if len(got) < 2:
            return False
        if self.layout == "columns":
            return (
                _same(got[-2], self.width) and _same(got[-1], self.rows) and _product(got[:-2], 1)
            )
        batch, rows = ((1,), got[:-1]) if len(got) == 2 else (got[:1], got[1:-1])
        return _same(batch[0], 1) and _same(got[-1], self.width) and _product(rows, self.rows)

    def read(self, array: Numbers, order: str) -> Numbers:
        """Return the (N, width) numbers of an array of the right shape."""
        if self.grid and self.layout.startswith("maps"):
            high, wide, each = self.grid
            if self.blocks:
                parts = self._by_column(array, high, wide, each)
            elif self.layout == "maps":
                parts = array.reshape(each, self.width, high, wide).transpose(2, 3, 0, 1)
            else:
                parts = array.reshape(high, wide, each, self.width)
            if order == "anchors_cells":
                parts = parts.transpose(2, 0, 1, 3)
            return parts.reshape(-1, self.width)
        if self.layout == "columns":
            return array.reshape(self.width, -1).T
        return array.reshape(-1, self.width)

    def _by_column(self, array: Numbers, high: int, wide: int, each: int) -> Numbers:
        """(H, W, anchors, width) of a cell whose numbers are column by column."""
        cells = array.reshape(array.shape[1:])
        if self.layout == "maps":
            cells = cells.transpose(1, 2, 0)
        parts, start = [], 0
        for width, shared in self.blocks:
            count = 1 if shared else each
            block = cells[..., start : start + count * width].reshape(high, wide, count, width)
            parts.append(np.broadcast_to(block, (high, wide, each, width)))
            start += count * width
        return np.concatenate(parts, axis=-1)


def check(
    output: HeadOutput,
    ports: Mapping[str, Sequence[int | str | None]],
    network: Size | None,
    classes: int,
) -> None:
    """Refuse a model whose outputs are not those of its card.

    Args:
        output: the card.
        ports: the shape of each of the model's outputs; None, 0, a name or a negative number
            for a dimension that is known only when the model runs.
        network: rows and columns of the network's input; None where images differ.
        classes: how many labels there are.

    Raises:
        ModelError: an output is missing, or of another shape: which, expected and got.
    """
    for port in (port for group in promised(output.head, network, classes) for port in group):
        if port.name not in ports:
            raise ModelError(unknown("output", port.name, ports))
        port.check([d if isinstance(d, int) and d > 0 else None for d in ports[port.name]])


def gather(
    outputs: Mapping[str, Numbers], head: Head, network: Size, classes: int
) -> dict[str, Numbers]:
    """Return each kind of column, by its name in the card, as (N, width) numbers.

    Raises:
        ModelError: an output is missing, or is not of the shape or type that the card promises.
        NotFinite: one has NaN or an infinity in it.
    """
    columns: dict[str, Numbers] = {}
    order = head.order if isinstance(head, Dense) else "cells_anchors"
    tensors: tuple[Tensor | AnswerTensor, ...] = head.outputs
    for tensor, group in zip(tensors, promised(head, network, classes), strict=True):
        parts = [port.read(_numbers(outputs, port), order) for port in group]
        rows = parts[0] if len(parts) == 1 else np.concatenate(parts)
        start = 0
        for column in tensor.columns:
            width = _width(head, column, classes)
            columns[column] = rows[:, start : start + width]
            start += width
    columns.pop("ignored", None)
    lengths = {column: len(rows) for column, rows in columns.items() if column != "count"}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{length} {column}" for column, length in lengths.items())
        raise ModelError(f"the model's outputs do not fit each other: {told}")
    return columns


@lru_cache(maxsize=32)
def promised(head: Head, network: Size | None, classes: int) -> tuple[tuple[Port, ...], ...]:
    """Return the outputs of each entry of the card's ``outputs``."""
    tensors: tuple[Tensor | AnswerTensor, ...] = head.outputs
    return tuple(tuple(_ports(head, tensor, network, classes)) for tensor in tensors)


def _ports(
    head: Head, tensor: Tensor | AnswerTensor, network: Size | None, classes: int
) -> list[Port]:
    widths = [_width(head, column, classes) for column in tensor.columns]
    width = sum(widths)
    told = zip(widths, (_WORDS.get(c, c) for c in tensor.columns), strict=True)
    why = " + ".join(f"{w} {word}" for w, word in told)
    blocks: tuple[tuple[int, bool], ...] = ()
    if isinstance(tensor, Tensor) and tensor.shared:
        why += f", {' and '.join(tensor.shared)} once a cell"
        blocks = tuple((w, c in tensor.shared) for w, c in zip(widths, tensor.columns, strict=True))
    if isinstance(tensor, Tensor) and tensor.ignored:
        width += tensor.ignored
        why += f" + {tensor.ignored} ignored"
    if not isinstance(head, Dense):
        layout = head.layout if isinstance(head, BoxHead) else "rows"
        rows = 1 if tensor.columns == ("count",) else None
        return [Port(name, layout, rows, width, None, why) for name in tensor.names]
    if network is None and isinstance(head.cells, str):
        grids_of = counts(head) if len(tensor.names) == len(counts(head)) else [0]
        return [
            Port(name, head.layout, None, width, (0, 0, each) if each else None, why, blocks)
            for name, each in zip(tensor.names, grids_of, strict=True)
        ]
    grids = [
        (*size, each)
        for size, each in zip(cells(head, network or (0, 0)), counts(head), strict=True)
    ]
    if len(tensor.names) < len(grids):
        total = sum(map(math.prod, grids))
        levels = " + ".join("x".join(map(str, grid)) for grid in grids)
        why = f"{total} boxes ({levels}), each {why}"
        return [Port(tensor.names[0], head.layout, total, width, None, why)]
    return [
        Port(
            name,
            head.layout,
            math.prod(g),
            width,
            g,
            f"{'x'.join(map(str, g))} boxes, each {why}",
            blocks,
        )
        for name, g in zip(tensor.names, grids, strict=True)
    ]


def _width(head: Head, column: str, classes: int) -> int:
    """How many numbers a box has in a kind of column."""
    if column == "boxes":
        encoding = head.encoding if isinstance(head, GridHead) else None
        if isinstance(head, RegionHead):
            background = head.class_boxes == "scores"
            return 4 * (1 if head.class_boxes == "one" else classes + background)
        return 4 * (encoding.bins or 1) if isinstance(encoding, Distances) else 4
    if column == "scores" and isinstance(head, Rows):
        return classes + (head.score.background != "none")
    return 1


def _numbers(outputs: Mapping[str, Numbers], port: Port) -> Numbers:
    if port.name not in outputs:
        raise ModelError(unknown("output", port.name, outputs))
    array = outputs[port.name]
    if array.dtype.kind in "cOSUMm":
        raise ModelError(f"output {port.name!r}: expected numbers, got {array.dtype}")
    port.check(array.shape)
    check_finite(array, f" in output {port.name!r}")
    return array


def _same(got: int | None, expected: int | None) -> bool:
    return got is None or expected is None or got == expected


def _product(dimensions: Sequence[int | None], expected: int | None) -> bool:
    """Whether these dimensions may hold that many rows."""
    if expected is None:
        return True
    known = math.prod(d for d in dimensions if d is not None)
    if None in dimensions:
        return known > 0 and expected % known == 0
    return known == expected
