"""What an attack did to one image, kept inside of the file that every stack gets.

A private text chunk of a PNG, or a comment of a JPEG; decoders skip it. So the record goes wherever
the file goes.
"""

from __future__ import annotations

import json
import struct
from dataclasses import asdict, dataclass

from simulator.contract import png
from simulator.errors import SampleError

_KIND, _KEYWORD = b"tEXt", b"simulator-attack"
_COMMENT = b"\xff\xfe"
_FIRST = len(png.SIGNATURE) + 25
"""Where the chunk after IHDR begins."""


@dataclass(frozen=True, slots=True)
class Attacked:
    """One attacked image, as the attacked model itself answers it.

    Attributes:
        clean: its class before the attack, from the reference's pixels.
        exact: its class for the attack's result in float.
        rounded: its class for the result in whole levels, which every stack gets.
        length: how far the result in float is from the clean pixels, in the attack's norm.
        rounded_length: how far the rounded result is.
    """

    clean: int
    exact: int
    rounded: int
    length: float
    rounded_length: float


def with_record(file: bytes, found: Attacked) -> bytes:
    """Return a PNG or JPEG file with a record in it."""
    content = _KEYWORD + b"\0" + json.dumps(asdict(found)).encode()
    if not file.startswith(png.SIGNATURE):
        first = _after_jfif(file)
        segment = _COMMENT + struct.pack(">H", len(content) + 2) + content
        return file[:first] + segment + file[first:]
    return file[:_FIRST] + png.chunk(_KIND, content) + file[_FIRST:]


def record_of(file: bytes) -> Attacked:
    """Return the record of a file.

    Raises:
        SampleError: it has none.
    """
    start = _KEYWORD + b"\0"
    if not file.startswith(png.SIGNATURE):
        first = _after_jfif(file)
        size = int.from_bytes(file[first + 2 : first + 4], "big")
        contents = [file[first + 4 : first + 2 + size]]
    else:
        contents = [bytes(chunk.content) for chunk in png.chunks(file) if chunk.kind == _KIND]
    for content in contents:
        if content.startswith(start):
            return Attacked(**json.loads(content[len(start) :]))
    raise SampleError("the file has no record of an attack")


def _after_jfif(file: bytes) -> int:
    """Where the segment after a JPEG's first one begins, which is JFIF's."""
    return 4 + int.from_bytes(file[4:6], "big")
