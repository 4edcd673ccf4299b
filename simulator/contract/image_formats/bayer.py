"""Bayer planes as a recording has them: packed samples, and a small JSON that says what they are.

The JSON is a file beside the samples (``0001.raw10`` and ``0001.raw10.json``), or one line before
them.

Source:
    MIPI CSI-2, "RAW10" and "RAW12"; Linux, V4L2 pixel formats SRGGB10P and SRGGB12P.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.contract.image_formats import Header, ImageFormat
from simulator.contract.raw import IDENTITY, PATTERNS, Raw, mosaic
from simulator.errors import SampleError, shortened
from simulator.files import IMAGE
from simulator.places import Where, read_sample

PACKING = {"raw10": (4, 5), "raw12": (2, 3), "raw16": (1, 2)}
"""Samples that share some bytes, and how many bytes."""
_NEEDED = {"width", "height", "pattern", "black", "white", "packing"}
_KNOWN = _NEEDED | {"stride", "white_balance", "color_matrix"}


def _with_header(path: Where, samples: bytes) -> bytes:
    """Samples behind the header that lies beside their file; without one, as they are."""
    beside = path.with_name(path.name + ".json") if isinstance(path, Path) else None
    if beside is None or not beside.is_file():
        return samples
    said = _said(read_sample(beside, IMAGE))
    return json.dumps({"packing": path.suffix[1:].lower(), **said}).encode() + b"\n" + samples


def unpacked(data: bytes) -> Raw:
    """Return the plane of a file with its header.

    Raises:
        SampleError: the header is wrong, or samples are missing.
    """
    line = _line(data)
    said, samples = _checked(line), data[len(line) + 1 :]
    shared, size = PACKING[said["packing"]]
    height, width = said["height"], said["width"]
    row = -(-width // shared) * size
    stride = said.get("stride", row)
    if stride < row or len(samples) < stride * (height - 1) + row:
        raise SampleError(
            f"{len(samples):,} bytes of samples; {height} rows of {max(stride, row)} expected"
        )
    rows = np.frombuffer(samples.ljust(stride * height, b"\0"), np.uint8)[: stride * height]
    packed = rows.reshape(height, stride)[:, :row].reshape(height, -1, size).astype(np.uint16)
    plane = _samples(packed, shared).reshape(height, -1)[:, :width]
    gains = _numbers(said, "white_balance", (1, 1, 1))
    matrix: Any = tuple(map(tuple, _numbers(said, "color_matrix", IDENTITY).tolist()))
    if gains.min() <= 0:
        raise SampleError(f"white_balance: numbers above 0 expected, got {gains.tolist()}")
    plane, balance = np.ascontiguousarray(plane), tuple(gains.tolist())
    return Raw(plane, said["pattern"], said["black"], said["white"], balance, matrix)


def _numbers(said: dict[str, Any], name: str, otherwise: Any) -> NDArray[np.float64]:
    """Finite numbers of the header, as many as there are otherwise."""
    wanted, given = np.array(otherwise), said.get(name, otherwise)
    with suppress(TypeError, ValueError):
        found = np.array(given, np.float64)
        if found.shape == wanted.shape and np.isfinite(found).all():
            return found
    raise SampleError(
        f"{name}: numbers like {wanted.tolist()} expected, got {shortened(repr(given))}"
    )


def _samples(packed: NDArray[np.uint16], shared: int) -> NDArray[np.uint16]:
    """The high bits of each sample, then one byte with the low bits of all, the first lowest."""
    if shared == 1:
        return np.asarray(packed[..., 0] | packed[..., 1] << 8, np.uint16)
    bits = 8 // shared
    low = packed[..., -1:] >> np.arange(0, 8, bits, dtype=np.uint16) & (1 << bits) - 1
    return np.asarray(packed[..., :-1] << bits | low, np.uint16)


def _said(text: bytes) -> dict[str, Any]:
    try:
        said = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SampleError(f"the header of a Bayer plane is no JSON: {error}") from None
    if not isinstance(said, dict) or (unknown := sorted(set(said) - _KNOWN)):
        what = f"has unknown {', '.join(unknown)}" if isinstance(said, dict) else "is no mapping"
        raise SampleError(f"the header of a Bayer plane {what}")
    return said


def _line(data: bytes) -> bytes:
    end = data.find(b"\n")
    return data if end < 0 else data[:end]


def _checked(line: bytes) -> dict[str, Any]:
    said = _said(line)
    if missing := sorted(_NEEDED - set(said)):
        raise SampleError(f"the header of a Bayer plane lacks {', '.join(missing)}")
    for name in ("width", "height", "black", "white", "stride"):
        if not isinstance(said.get(name, 0), int) or said.get(name, 0) < 0:
            raise SampleError(f"{name}: a whole number expected, got {said[name]!r}")
    if said["pattern"] not in PATTERNS or said["packing"] not in PACKING:
        raise SampleError(
            f"pattern {' or '.join(PATTERNS)} and packing {' or '.join(PACKING)} expected, got "
            f"{said['pattern']!r} and {said['packing']!r}"
        )
    if not said["black"] < said["white"] < 65536:
        raise SampleError(f"black {said['black']} is not below white {said['white']}")
    return said


def _header(data: bytes) -> Header:
    said = _checked(_line(data))
    return Header(said["width"], said["height"], 1, int(said["packing"][3:]))


def _example(rgb: NDArray[np.uint8]) -> bytes:
    plane = mosaic(np.tile(rgb, (2, 2, 1)), "RGGB")
    said = {"width": plane.shape[1], "height": plane.shape[0], "pattern": "RGGB", "black": 0,
            "white": 255, "packing": "raw16"}  # fmt: skip
    return json.dumps(said).encode() + b"\n" + plane.astype("<u2").tobytes()


FORMAT = ImageFormat(
    "bayer",
    tuple(f".{name}" for name in PACKING),
    lambda data: data[:1] == b"{",
    _header,
    _example,
    _with_header,
)
