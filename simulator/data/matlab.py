"""Fields of a table in a MATLAB file: numbers and texts, nothing else that such a file may have.

SciPy's reader believes the sizes that a file names, and a changed byte ends the process.

Source:
    MAT-File Format, Level 5 (https://www.mathworks.com/help/pdf_doc/matlab/matfile_format.pdf).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from math import prod
from typing import Literal

import numpy as np

Order = Literal["little", "big"]
_MATRIX, _COMPRESSED = 14, 15
_STRUCT, _CHARACTERS, _NUMBERS = 2, 4, range(6, 16)
_TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8",
          13: "u8"}  # fmt: skip
_TEXTS = {1: "latin-1", 2: "latin-1", 16: "utf-8", 17: "utf-16"}


def table(
    data: bytes, variable: str, fields: Sequence[str], most: int
) -> list[tuple[float | str, ...]]:
    """Return some fields of each element of a struct array.

    Args:
        data: the file.
        variable: the name of the array.
        fields: numbers and texts.
        most: bytes that the variables may have together, unpacked.

    Raises:
        ValueError: it is no such file, has no such variable or fields, or is damaged.
    """
    order: Order = "big" if data[126:128] == b"MI" else "little"
    if data[126:128] not in (b"MI", b"IM"):
        raise ValueError("not a MATLAB file of level 5")
    for kind, content in _unpacked(data[128:], order, most):
        if kind == _MATRIX:
            flags, shape, name, *rest = _elements(content, order)
            if name[1].decode("latin-1") == variable:
                count = prod(_integers(shape, order))
                return list(_rows(flags[1], count, rest, fields, order))
    raise ValueError(f"it has no variable {variable!r}")


def _unpacked(data: bytes, order: Order, most: int) -> Iterator[tuple[int, bytes]]:
    """Yield the variables of a file; ValueError where they are more than *most* bytes."""
    left = most
    for kind, content in _elements(data, order):
        if kind != _COMPRESSED:
            yield kind, content
            continue
        try:
            variable = zlib.decompressobj().decompress(content, left + 1)
        except zlib.error as error:
            raise ValueError(f"damaged: {error}") from error
        if len(variable) > left:
            raise ValueError(f"more than {most:,} bytes")
        left -= len(variable)
        yield from _elements(variable, order)


def _elements(data: bytes, order: Order) -> Iterator[tuple[int, bytes]]:
    """Yield the type and the content of each data element; of a short one they share 8 bytes."""
    at = 0
    while at < len(data):
        first, size = (int.from_bytes(data[at + i : at + i + 4], order) for i in (0, 4))
        begin = at + 8
        if first >> 16:
            first, size, begin = first & 0xFFFF, first >> 16, at + 4
        end = begin + size
        if end > len(data) or (begin == at + 4 and size > 4):
            raise ValueError(f"damaged: an element of {size:,} bytes ends beyond the file")
        yield first, data[begin:end]
        at = end if first == _COMPRESSED else -(-end // 8) * 8


def _numbers(kind: int, content: bytes, order: Order) -> list[float]:
    if kind not in _TYPES:
        raise ValueError(f"damaged: numbers of type {kind}")
    kinds = np.dtype(_TYPES[kind]).newbyteorder(order)
    if len(content) % kinds.itemsize:
        raise ValueError("damaged: a part of a number")
    found: list[float] = np.frombuffer(content, kinds).tolist()
    return found


def _integers(element: tuple[int, bytes], order: Order) -> list[int]:
    if element[0] in (7, 9):
        raise ValueError("damaged: a size that is not whole")
    return [int(number) for number in _numbers(*element, order)]


def _sort(flags: bytes, order: Order) -> int:
    """Return the class of a matrix, from its flags."""
    return int.from_bytes(flags[:4], order) & 0xFF


def _rows(
    flags: bytes, count: int, rest: Sequence[tuple[int, bytes]], fields: Sequence[str], order: Order
) -> Iterator[tuple[float | str, ...]]:
    """Yield the fields of each element: the values of all fields of the first come first."""
    if _sort(flags, order) != _STRUCT or len(rest) < 2:
        raise ValueError("it is no struct array")
    (size,), names = _integers(rest[0], order), rest[1][1]
    if size < 1 or not names:
        raise ValueError("damaged: fields without names")
    known = [
        names[at : at + size].split(b"\0")[0].decode("latin-1") for at in range(0, len(names), size)
    ]
    places = [known.index(field) for field in fields]
    values = rest[2:]
    if not 0 <= count == len(values) / len(known):
        raise ValueError(f"damaged: {len(values)} values for {count} times {len(known)} fields")
    for at in range(0, len(values), len(known)):
        yield tuple(_value(values[at + place], order) for place in places)


def _value(element: tuple[int, bytes], order: Order) -> float | str:
    """Return the number or the text of a matrix."""
    flags, _, _, (kind, content), *_ = _elements(element[1], order)
    sort = _sort(flags[1], order)
    if sort == _CHARACTERS and kind in _TEXTS:
        return content.decode(_TEXTS[kind])
    found = _numbers(kind, content, order)
    if sort == _CHARACTERS:
        return "".join(chr(int(one)) for one in found)
    if sort not in _NUMBERS or len(found) != 1:
        raise ValueError("a field is neither a number nor a text")
    return found[0]
