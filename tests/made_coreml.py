"""A Core ML model in bytes, written field by field by Apple's Model.proto."""

from __future__ import annotations

import struct


def varint(number: int) -> bytes:
    """A whole number, seven bits a byte."""
    low, rest = number & 127, number >> 7
    return bytes([low | 128]) + varint(rest) if rest else bytes([low])


def field(number: int, value: int | float | bytes | str) -> bytes:
    """A field: a whole number, a float of four bytes, or what has a length."""
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    raw = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(raw)) + raw


def classifier() -> bytes:
    """A convolution of an RGB image of 32 x 24, scaled by 1/64 with a bias for each channel."""
    image = field(4, field(1, 24) + field(2, 32) + field(3, 20))
    array = field(5, field(1, varint(1) + varint(3)) + field(2, 65568))
    said = field(1, field(1, "image") + field(3, image))
    said += field(10, field(1, "scores") + field(3, array))
    said += field(
        100, field(2, "1.2") + field(3, "nobody") + field(100, field(1, "k") + field(2, "v"))
    )
    scaler = field(10, 1 / 64) + field(20, -3.0) + field(21, -2.0) + field(22, -1.0)
    layer = field(1, "c") + field(2, "image") + field(3, "scores") + field(100, field(1, 3))
    network = field(1, layer) + field(2, field(1, "image") + field(10, scaler))
    return field(1, 4) + field(2, said) + field(500, network)
