"""Boxes, of which files of AVIF, HEIC, JPEG XL and JPEG 2000 are made.

Source:
    ISO/IEC 14496-12 4.2.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from simulator.errors import SampleError


def boxes(data: bytes, at: int = 0, end: int | None = None) -> Iterator[tuple[bytes, int, int]]:
    """Yield each box of a file, or of a box: its type, where its content begins and ends.

    Raises:
        SampleError: a box is longer than what it is in.
    """
    stop = len(data) if end is None else end
    while at + 8 <= stop:
        size, kind = struct.unpack_from(">I4s", data, at)
        head = 8
        if size == 1:
            size, head = struct.unpack_from(">Q", data, at + 8)[0], 16
        elif size == 0:
            size = stop - at
        if size < head or at + size > stop:
            raise SampleError(
                f"truncated or corrupt: the box {kind.decode('latin-1')!r} ends after the file"
            )
        yield kind, at + head, at + size
        at += size
