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


RGB, BGR, GRAY = 20, 30, 10


def described(color: int = RGB) -> bytes:
    """The description of a model that takes an image of 32 x 24."""
    image = field(4, field(1, 24) + field(2, 32) + field(3, color))
    array = field(5, field(1, varint(1) + varint(3)) + field(2, 65568))
    said = field(1, field(1, "image") + field(3, image))
    said += field(10, field(1, "scores") + field(3, array))
    said += field(
        100, field(2, "1.2") + field(3, "nobody") + field(100, field(1, "k") + field(2, "v"))
    )
    return field(1, 4) + field(2, said)


def classifier(color: int = RGB, number: int = 500) -> bytes:
    """A convolution of an image, scaled by 1/64 with a bias for each channel."""
    scaler = field(10, 1 / 64) + field(20, -3.0) + field(21, -2.0) + field(22, -1.0)
    layer = field(1, "c") + field(2, "image") + field(3, "scores") + field(100, field(1, 3))
    network = field(1, layer) + field(2, field(1, "image") + field(10, scaler))
    return described(color) + field(number, network)


def pipeline() -> bytes:
    """The same as the first network of a pipeline."""
    return described() + field(202, field(1, classifier()))


def program(color: int = RGB) -> bytes:
    """An ML program that begins as coremltools begins it: times 1/64, then a bias as float16."""

    def entry(name: str, value: bytes) -> bytes:
        return field(1, name) + field(2, value)

    def operation(kind: str, output: str, *fields: bytes) -> bytes:
        return field(3, field(1, kind) + b"".join(fields) + field(3, field(1, output)))

    def constant(name: str, tensor: bytes) -> bytes:
        value = field(3, field(1, tensor))
        return operation("const", name, field(5, entry("val", value)))

    def binary(kind: str, output: str, x: str, y: str) -> bytes:
        names = (("x", x), ("y", y))
        return operation(kind, output, *(
            field(2, entry(key, field(1, field(1, name)))) for key, name in names
        ))  # fmt: skip

    bias = struct.pack("<3e", -1.0, -2.0, -3.0)
    operations = (
        constant("s", field(1, field(1, struct.pack("<f", 1 / 64))))
        + binary("mul", "image__scaled__", "image", "s")
        + constant("b", field(7, field(1, bias)))
        + binary("add", "image__biased__", "image__scaled__", "b")
    )
    block = field(3, entry("CoreML5", operations))
    return described(color) + field(502, field(2, entry("main", block)))
