"""FlatBuffers, read with a bound at every step: the file is hostile input.

Source: FlatBuffers documentation, "FlatBuffer Internals". The library ``flatbuffers`` reads where
an offset points without a look at the end; every read here is inside of the bytes or refused.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

MOST = 2**16
"""Items of a vector."""
_TEXT = 4096
"""Bytes of a text."""


_TYPES = """
    float32 float16 int32 uint8 int64 string bool int16 complex64 int8 float64 complex128 uint64
    resource variant uint32 uint16 int4 bfloat16 int2 uint4
""".split()  # noqa: SIM905
"""Of the tensors of a ``.tflite`` by their numbers, as NumPy calls them."""


class Broken(ValueError):
    """The bytes are no FlatBuffer of the expected kind."""


@dataclass(frozen=True, slots=True)
class Table:
    """One table."""

    data: bytes
    at: int

    @classmethod
    def root(cls, data: bytes) -> Table:
        """Return the root table of a buffer.

        Raises:
            Broken: it has none.
        """
        return cls(data, _number(data, 0, "<I"))

    def integer(self, field: int, kind: str = "<i") -> int:
        """Return a number; *kind* is a format of :mod:`struct`."""
        place = self._place(field)
        return 0 if place is None else _number(self.data, place, kind)

    def table(self, field: int) -> Table | None:
        """Return a table that a field holds; None if it is not written."""
        place = self._place(field)
        return None if place is None else self._behind(place)

    def tables(self, field: int) -> list[Table]:
        """Return the tables of a vector."""
        start, count = self._vector(field, 4)
        return [self._behind(start + 4 * i) for i in range(count)]

    def numbers(self, field: int, kind: str) -> tuple[float, ...]:
        """Return the numbers of a vector, each of a format of :mod:`struct`."""
        size = struct.calcsize(kind)
        start, count = self._vector(field, size)
        return tuple(_number(self.data, start + size * i, kind) for i in range(count))

    def raw(self, field: int) -> bytes:
        """Return the bytes of a vector, however many."""
        start, count = self._vector(field, 1, most=len(self.data))
        return self.data[start : start + count]

    def text(self, field: int) -> str:
        """Return a text; what is not UTF-8 is replaced."""
        return self.raw(field)[:_TEXT].decode("utf-8", "replace")

    def _place(self, field: int) -> int | None:
        fields = self.at - _number(self.data, self.at, "<i")
        entry = 4 + 2 * field
        if entry + 2 > _number(self.data, fields, "<H"):
            return None
        offset = _number(self.data, fields + entry, "<H")
        return self.at + offset if offset else None

    def _behind(self, place: int) -> Table:
        return Table(self.data, place + _number(self.data, place, "<I"))

    def _vector(self, field: int, size: int, most: int = MOST) -> tuple[int, int]:
        place = self._place(field)
        if place is None:
            return 0, 0
        start = place + _number(self.data, place, "<I")
        count = _number(self.data, start, "<I")
        if count > most or start + 4 + count * size > len(self.data):
            raise Broken("a vector is longer than the file, or than is read")
        return start + 4, count


def _number(data: bytes, at: int, kind: str) -> int:
    """Return a number (for ``<f`` a float) of the bytes."""
    if at < 0 or at + struct.calcsize(kind) > len(data):
        raise Broken("an offset points outside of the file")
    found: int = struct.unpack_from(kind, data, at)[0]
    return found


def type_of(tensor: Table) -> str:
    """Return NumPy's name of the type of a tensor of a ``.tflite``."""
    kind = tensor.integer(1, "<b")
    return _TYPES[kind] if 0 <= kind < len(_TYPES) else f"type {kind}"
