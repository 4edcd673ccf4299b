"""Image files for the tests, built in memory with Pillow and by hand; the same every time."""

from __future__ import annotations

import contextlib
import io
import struct
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from PIL import Image

from simulator.contract import U8, Array


def picture(height: int, width: int, channels: int = 3, seed: int = 0) -> U8:
    """A smooth colourful texture with some noise: (H, W), or (H, W, C) for C above 1."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    waves = [
        127.5 + 100 * np.sin(x / (7 + 3 * c) + c) * np.cos(y / (11 - 2 * c) - c)
        for c in range(channels)
    ]
    noisy = np.stack(waves, axis=-1) + rng.normal(0, 8, (height, width, channels))
    out = np.clip(np.rint(noisy), 0, 255).astype(np.uint8)
    return out[..., 0] if channels == 1 else out


def jpeg(array: Array, mode: str | None = None, **options: Any) -> bytes:
    """A JPEG of (H, W) gray, (H, W, 3) RGB or (H, W, 4) CMYK samples."""
    return _save(Image.fromarray(array, mode), "jpeg", **{"quality": 90, **options})


def rotated(array: U8, orientation: int, format: str = "jpeg") -> bytes:
    """A JPEG or PNG whose EXIF says *orientation* (1-8)."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"quality": 90} if format == "jpeg" else {}
    return _save(Image.fromarray(array), format, exif=exif.tobytes(), **options)


def png(array: U8, **options: Any) -> bytes:
    """A PNG of (H, W), (H, W, 2), (H, W, 3) or (H, W, 4) samples."""
    return _save(Image.fromarray(array), "png", **options)


def raw_png(samples: Array, color: int, bits: int, *chunks: bytes) -> bytes:
    """A PNG written by hand: *samples* are (H, W) or (H, W, C), 16 bits big-endian on disk."""
    height, width = samples.shape[:2]
    rows = samples.astype(">u2" if bits == 16 else ">u1").reshape(height, -1)
    packed = b"".join(b"\0" + row.tobytes() for row in rows)
    header = struct.pack(">IIBBBBB", width, height, bits, color, 0, 0, 0)
    body = (chunk(b"IHDR", header), *chunks, chunk(b"IDAT", zlib.compress(packed)))
    return b"\x89PNG\r\n\x1a\n" + b"".join(body) + chunk(b"IEND", b"")


def chunk(kind: bytes, data: bytes) -> bytes:
    """One PNG chunk with its length and CRC."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def resealed(data: bytes) -> bytes:
    """A damaged PNG with right checksums again, so that the damage reaches the libraries."""
    out, at = data[:8], 8
    while at + 12 <= len(data):
        (length,) = struct.unpack_from(">I", data, at)
        out += chunk(data[at + 4 : at + 8], data[at + 8 : at + 8 + length])
        at += 12 + length
    return out


def ycbcr(data: bytes) -> U8:
    """The (H, W, 3) Y, Cb, Cr that libjpeg decodes to before it makes RGB."""
    with Image.open(io.BytesIO(data)) as opened:
        opened.draft("YCbCr", opened.size)
        return np.asarray(opened)


def quiet(call: Callable[[], object], expected: type[Exception]) -> None:
    """Call, letting one kind of error pass."""
    with contextlib.suppress(expected):
        call()


def _save(image: Image.Image, format: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, format, **options)
    return file.getvalue()
