"""PNG files by their chunks, and those that kill OpenCV."""

import io
import struct
import zlib

import numpy as np
from PIL import Image


def animation(mode="RGB", frames=3, size=(7, 5), **how):
    """An APNG as Pillow writes it: after the first frame only what changed."""
    pictures = []
    for at in range(frames):
        pixels = np.zeros((size[1], size[0], 3), np.uint8)
        pixels[at : at + 2, at : at + 2] = 200 + at
        pictures.append(Image.fromarray(pixels).convert(mode))
    buffer = io.BytesIO()
    pictures[0].save(buffer, "PNG", save_all=True, append_images=pictures[1:], **how)
    return buffer.getvalue()


def split(data):
    found, at = [], 8
    while at < len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        found.append((kind, data[at + 8 : at + 8 + length]))
        at += 12 + length
    return found


def joined(chunks):
    """A PNG of these chunks, every checksum right."""
    bodies = [(kind + content, len(content)) for kind, content in chunks]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", length) + body + struct.pack(">I", zlib.crc32(body))
        for body, length in bodies
    )


def renamed(kind, to, which=0):
    """The animation with another type in one of the chunks of a type."""
    found = split(animation(default_image=True))
    at = [number for number, (own, _) in enumerate(found) if own == kind][which]
    found[at] = (to, found[at][1])
    return joined(found)


HOSTILE = {
    "data of a frame, one bit of its type": renamed(b"fdAT", b"FdAT"),
    "no letter in the type": renamed(b"fdAT", b"\xffdAT"),
    "the reserved bit": renamed(b"fdAT", b"fdaT"),
    "head of a frame is another chunk": renamed(b"fcTL", b"gcTL", 1),
    "head of a frame is a transparency": renamed(b"fcTL", b"tRNS", 1),
}
"""Each of these kills OpenCV 5."""


def _bad_filter():
    found = split(animation(default_image=True))
    at = next(number for number, (kind, _) in enumerate(found) if kind == b"fdAT")
    number, rows = found[at][1][:4], zlib.decompress(found[at][1][4:])
    found[at] = b"fdAT", number + zlib.compress(bytes([9]) + rows[1:])
    return joined(found)


BAD_FILTER = _bad_filter()
"""Chunks in order; but the first row of the first frame names a filter that does not exist.

OpenCV 5, DALI 2.4 and nvImageCodec die of it.

Source:
    PNG specification, third edition, 9.2: filter types 0 to 4.
"""
