"""JPEG and PNG files written by hand, with the samples that an exact decoder returns."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from simulator.contract import U8
from simulator.contract.png import written

F64 = NDArray[np.float64]
png = written
STEP = 8
"""Every coefficient is a multiple of it; a flat block of level L has a DC of L - 128."""

_ZIGZAG = sorted(
    product(range(8), range(8)), key=lambda at: (sum(at), at[0] if sum(at) % 2 else at[1])
)
_ROWS = np.array([at[0] for at in _ZIGZAG])
_COLUMNS = np.array([at[1] for at in _ZIGZAG])
_WAVES = np.array(
    [
        [(0.125 if not k else 0.25) ** 0.5 * np.cos((2 * n + 1) * k * np.pi / 16) for n in range(8)]
        for k in range(8)
    ]
)
# Huffman codes of equal length: valid and simple (T.81 annex C).
_AC = [0x00, 0xF0, *(run << 4 | size for run in range(16) for size in range(1, 11))]
_AC_CODES = {symbol: f"{index:08b}" for index, symbol in enumerate(_AC)}


@dataclass(frozen=True, slots=True)
class Jpeg:
    """A baseline JPEG.

    Attributes:
        data: the bytes of the file.
        planes: the inverse DCT of its coefficients in float64, clipped to 0-255 but not rounded:
            Y, or Y, Cb and Cr, each in its own size.
    """

    data: bytes
    planes: tuple[F64, ...]


def picture(height: int, width: int, seed: int = 0) -> U8:
    """A smooth colorful picture, (H, W, 3)."""
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    waves = [
        127.5 + 110 * np.sin((x + 5 * seed) / (9 + 3 * c) + c) * np.cos(y / (13 - 2 * c) - c)
        for c in range(3)
    ]
    return np.asarray(np.rint(np.stack(waves, axis=-1)).astype(np.uint8))


def jpeg(
    samples: U8, subsampling: tuple[int, int] = (1, 1), orientation: int | None = None
) -> Jpeg:
    """Write a JPEG.

    Args:
        samples: (H, W) gray, or (H, W, 3) Y, Cb, Cr; chroma is the mean of what it covers.
        subsampling: luma samples per chroma sample, (vertical, horizontal).
        orientation: of EXIF; None for no EXIF.

    Source:
        ITU-T T.81 annexes A (order of blocks), B (markers), F (entropy coding); T.871 (JFIF).
    """
    height, width = samples.shape[:2]
    v, h = subsampling if samples.ndim == 3 else (1, 1)
    planes = [samples] if samples.ndim == 2 else [samples[..., c] for c in range(3)]
    factors = [(v, h), *((1, 1) for _ in planes[1:])]
    rows, columns = -(-height // (8 * v)), -(-width // (8 * h))  # of minimum coded units
    blocks, exact = [], []
    for plane, (fv, fh) in zip(planes, factors, strict=True):
        size = (8 * fv * rows, 8 * fh * columns)
        coefficients, decoded = _transformed(_fitted(plane, (v // fv, h // fh), size))
        blocks.append(coefficients)
        exact.append(decoded[: -(-height * fv // v), : -(-width * fh // h)])
    scan = _scan(blocks, factors, rows, columns)
    components = b"".join(bytes((n + 1, fh << 4 | fv, 0)) for n, (fv, fh) in enumerate(factors))
    count = bytes((len(planes),))
    parts = [
        b"\xff\xd8",
        segment(0xE0, b"JFIF\0" + bytes((1, 1, 0, 0, 1, 0, 1, 0, 0))),
        _exif(orientation) if orientation else b"",
        segment(0xDB, bytes((0, *[STEP] * 64))),
        segment(0xC0, struct.pack(">BHH", 8, height, width) + count + components),
        segment(0xC4, bytes((0, *(12 if n == 4 else 0 for n in range(1, 17)), *range(12)))),
        segment(0xC4, bytes((16, *(len(_AC) if n == 8 else 0 for n in range(1, 17)), *_AC))),
        segment(0xDA, count + bytes(x for n in range(len(planes)) for x in (n + 1, 0))
                 + bytes((0, 63, 0))),
        scan,
        b"\xff\xd9",
    ]  # fmt: skip
    return Jpeg(b"".join(parts), tuple(exact))


def _fitted(plane: U8, factor: tuple[int, int], size: tuple[int, int]) -> F64:
    """Average over *factor*, and repeat the last row and column up to *size*."""
    pad = [(0, n * f - have) for n, f, have in zip(size, factor, plane.shape, strict=True)]
    full = np.pad(plane.astype(np.float64), pad, mode="edge")
    v, h = factor
    return np.asarray(full.reshape(size[0], v, size[1], h).mean(axis=(1, 3)))


def _transformed(plane: F64) -> tuple[NDArray[np.int64], F64]:
    """The quantized coefficients, (rows, columns, 8, 8), and what they decode to."""
    rows, columns = plane.shape[0] // 8, plane.shape[1] // 8
    blocks = plane.reshape(rows, 8, columns, 8).swapaxes(1, 2) - 128
    coefficients = np.rint(_WAVES @ blocks @ _WAVES.T / STEP).astype(np.int64)
    decoded = _WAVES.T @ (coefficients * STEP) @ _WAVES + 128
    return coefficients, decoded.swapaxes(1, 2).reshape(plane.shape).clip(0, 255)


def _scan(
    blocks: Sequence[NDArray[np.int64]], factors: Sequence[tuple[int, int]], rows: int, columns: int
) -> bytes:
    bits, before = [], [0] * len(blocks)
    for row, column in product(range(rows), range(columns)):
        for n, (v, h) in enumerate(factors):
            for down, right in product(range(v), range(h)):
                block = blocks[n][row * v + down, column * h + right][_ROWS, _COLUMNS]
                bits.append(_coded(block, before[n]))
                before[n] = int(block[0])
    text = "".join(bits)
    text += "1" * (-len(text) % 8)
    return int(text, 2).to_bytes(len(text) // 8, "big").replace(b"\xff", b"\xff\0")


def _coded(block: NDArray[np.int64], before: int) -> str:
    """One block as bits: the DC's difference, then runs of zeros and what ends them."""
    size, bits = _amplitude(int(block[0]) - before)
    out, last = [f"{size:04b}{bits}"], 0
    for at in np.flatnonzero(block[1:]) + 1:
        run = int(at) - last - 1
        out += [_AC_CODES[0xF0]] * (run // 16)
        size, bits = _amplitude(int(block[at]))
        out.append(_AC_CODES[(run % 16) << 4 | size] + bits)
        last = int(at)
    return "".join(out) + ("" if last == 63 else _AC_CODES[0x00])


def _amplitude(value: int) -> tuple[int, str]:
    size = abs(value).bit_length()
    low = value if value > 0 else value + (1 << size) - 1
    return size, f"{low:0{size}b}" if size else ""


def segment(marker: int, body: bytes) -> bytes:
    """Return a segment of a JPEG."""
    return struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body


def _exif(orientation: int) -> bytes:
    entry = struct.pack("<HHIHH", 0x0112, 3, 1, orientation, 0)
    tiff = b"II*\0" + struct.pack("<IH", 8, 1) + entry + bytes(4)
    return segment(0xE1, b"Exif\0\0" + tiff)
