"""The header of a GGUF file, read to its end before a library believes what it says.

The library makes room for as many values as a file names, whatever the file holds.

Source:
    https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from simulator.files import LARGE, open_file

_VALUES = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q",
           12: "d"}  # fmt: skip
"""Values by their type, as ``struct`` names them; the others are texts and arrays."""
_TEXT, _ARRAY = 8, 9
_SHORTEST_FIELD, _SHORTEST_TENSOR = 13, 24
_SIDES = 4
_TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 9: "Q8_1",
    10: "Q2_K", 11: "Q3_K", 12: "Q4_K", 13: "Q5_K", 14: "Q6_K", 15: "Q8_K", 16: "IQ2_XXS",
    17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S",
    23: "IQ4_XS", 24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64", 29: "IQ1_M", 30: "BF16",
    34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Header:
    """What a GGUF file says of itself.

    Attributes:
        fields: its metadata as text by name; of an array how many values it has.
        matrices: the types of its tensors of two and more sides, one for each.
    """

    fields: Mapping[str, str]
    matrices: list[str] = field(default_factory=list)


def read(path: Path) -> Header:
    """Read the header of a file; what names more than the file has is refused.

    Raises:
        ValueError: it does, or it is no GGUF file of version 2 or 3.
        OSError: it cannot be read.
    """
    with open_file(path, LARGE) as file:
        magic, version = file.read(4), _number(file, 4)
        if magic != b"GGUF" or version not in (2, 3):
            raise ValueError(f"it does not begin as one of version 2 or 3: {magic!r}, {version}")
        size = os.fstat(file.fileno()).st_size
        tensors, fields = _number(file, 8), _number(file, 8)
        if tensors * _SHORTEST_TENSOR + fields * _SHORTEST_FIELD > size:
            raise ValueError(f"{tensors:,} tensors and {fields:,} fields in {size:,} bytes")
        header = Header({_text(file, size): _value(file, size) for _ in range(fields)})
        for _ in range(tensors):
            _text(file, size)
            sides = _number(file, 4)
            if sides > _SIDES:
                raise ValueError(f"a tensor of {sides:,} sides")
            _taken(file, size, 8 * sides)
            kind = _number(file, 4)
            _number(file, 8)
            if sides > 1:
                header.matrices.append(_TYPES.get(kind, f"type {kind}"))
    return header


def _number(file: IO[bytes], width: int) -> int:
    data = file.read(width)
    if len(data) < width:
        raise ValueError("it ends inside of its header")
    return int.from_bytes(data, "little")


def _taken(file: IO[bytes], size: int, count: int) -> bytes:
    """Read bytes; ValueError where the file has fewer."""
    if count > size - file.tell():
        raise ValueError(f"a field of {count:,} bytes in a file of {size:,}")
    return file.read(count)


def _text(file: IO[bytes], size: int) -> str:
    return _taken(file, size, _number(file, 8)).decode("utf-8", "replace")


def _value(file: IO[bytes], size: int) -> str:
    kind = _number(file, 4)
    if kind in _VALUES:
        form = f"<{_VALUES[kind]}"
        return str(struct.unpack(form, _taken(file, size, struct.calcsize(form)))[0])
    if kind == _TEXT:
        return _text(file, size)
    if kind != _ARRAY:
        raise ValueError(f"a field of type {kind}")
    inner, count = _number(file, 4), _number(file, 8)
    if inner in _VALUES:
        _taken(file, size, count * struct.calcsize(f"<{_VALUES[inner]}"))
    elif inner == _TEXT and count * 8 <= size:
        for _ in range(count):
            _taken(file, size, _number(file, 8))
    else:
        raise ValueError(f"an array of {count:,} values of type {inner}")
    return f"{count:,} values"
