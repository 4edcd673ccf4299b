"""JPEG XL: a codestream, alone or in boxes.

The orientation is the codestream's; where that says none, the EXIF box's.

Source:
    ISO/IEC 18181-1, annex D (headers); 18181-2 (boxes).
"""

from __future__ import annotations

from simulator.contract.image_formats import Header, ImageFormat, exif_orientation
from simulator.contract.image_formats.boxes import boxes
from simulator.errors import SampleError

_BOXED = b"\0\0\0\x0cJXL \r\n\x87\n"
_STREAM = b"\xff\x0a"
_PARTS = (b"jxlc", b"jxlp")
_RATIOS = ((1, 1), (12, 10), (4, 3), (3, 2), (16, 9), (5, 4), (2, 1))
_SIZES = (9, 13, 18, 30)


class _Bits:
    """Reads numbers, lowest bit first."""

    def __init__(self, data: bytes) -> None:
        self._left = int.from_bytes(data, "little")

    def take(self, count: int) -> int:
        value = self._left & (1 << count) - 1
        self._left >>= count
        return value


def _header(data: bytes) -> Header:
    stream, exif = data, b""
    if data[:12] == _BOXED:
        found = [(kind, data[at:end]) for kind, at, end in boxes(data)]
        parts = (part[4:] if kind == b"jxlp" else part for kind, part in found if kind in _PARTS)
        stream = b"".join(parts)
        exif = next((part for kind, part in found if kind == b"Exif"), b"")
    if stream[:2] != _STREAM or len(stream) < 16:
        raise SampleError("the JPEG XL has no codestream, or it is truncated")
    bits = _Bits(stream[2:16])
    small = bits.take(1)
    height = _side(bits, small)
    ratio = bits.take(3)
    over, under = _RATIOS[ratio - 1] if ratio else (0, 1)
    width = height * over // under if ratio else _side(bits, small)
    plain = bits.take(1)
    turn = bits.take(3) + 1 if not plain and bits.take(1) else 1
    return Header(width, height, orientation=turn if turn > 1 else _of_exif(exif))


def _of_exif(box: bytes) -> int:
    """Its first four bytes say how far EXIF is; pillow-jxl-plugin 1.3 leaves them out."""
    if box[:2] in (b"II", b"MM"):
        return exif_orientation(box)
    return exif_orientation(box[4 + int.from_bytes(box[:4], "big") :])


def _side(bits: _Bits, small: int) -> int:
    if small:
        return (bits.take(5) + 1) * 8
    return bits.take(_SIZES[bits.take(2)]) + 1


FORMAT = ImageFormat(
    "jxl", (".jxl",), lambda data: data[:2] == _STREAM or data[:12] == _BOXED, _header
)
