"""The header of a GGUF file, read to its end before a library believes what it says.

The library makes room for as many values as a file names, whatever the file holds.

Source:
    https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO

_WIDTHS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Bytes of a value by its type; the others are texts and arrays."""
_TEXT, _ARRAY = 8, 9
_SHORTEST_FIELD, _SHORTEST_TENSOR = 13, 24


def check(path: Path) -> None:
    """Refuse a file whose header names more than the file has.

    Raises:
        ValueError: it does, or it is no GGUF file of version 2 or 3.
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        magic, version = file.read(4), _number(file, 4)
        if magic != b"GGUF" or version not in (2, 3):
            raise ValueError(f"it does not begin as one of version 2 or 3: {magic!r}, {version}")
        size = os.fstat(file.fileno()).st_size
        tensors, fields = _number(file, 8), _number(file, 8)
        if tensors * _SHORTEST_TENSOR + fields * _SHORTEST_FIELD > size:
            raise ValueError(f"{tensors:,} tensors and {fields:,} fields in {size:,} bytes")
        for _ in range(fields):
            _skip(file, size, _number(file, 8))
            _skip_value(file, size, _number(file, 4))


def _number(file: IO[bytes], width: int) -> int:
    data = file.read(width)
    if len(data) < width:
        raise ValueError("it ends inside of its header")
    return int.from_bytes(data, "little")


def _skip(file: IO[bytes], size: int, count: int) -> None:
    """Skip bytes; ValueError where the file has fewer."""
    if count > size - file.tell():
        raise ValueError(f"a field of {count:,} bytes in a file of {size:,}")
    file.seek(count, os.SEEK_CUR)


def _skip_value(file: IO[bytes], size: int, kind: int) -> None:
    if kind in _WIDTHS:
        _skip(file, size, _WIDTHS[kind])
    elif kind == _TEXT:
        _skip(file, size, _number(file, 8))
    elif kind == _ARRAY:
        inner, count = _number(file, 4), _number(file, 8)
        if inner in _WIDTHS:
            _skip(file, size, count * _WIDTHS[inner])
        elif inner == _TEXT and count * 8 <= size:
            for _ in range(count):
                _skip(file, size, _number(file, 8))
        else:
            raise ValueError(f"an array of {count:,} values of type {inner}")
    else:
        raise ValueError(f"a field of type {kind}")
