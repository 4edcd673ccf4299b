"""What a Core ML model says of itself: its inputs, images among them, and its metadata.

Sources: apple/coremltools, ``mlmodel/format/Model.proto``, ``FeatureTypes.proto``,
``NeuralNetwork.proto``; Protocol Buffers documentation, "Encoding".
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from simulator.contract.description import Description, Operators, Preprocessing, Value
from simulator.errors import ModelError
from simulator.files import LARGE, read_file

Fields = dict[int, list[int | bytes]]
_COLORS = {10: "gray", 20: "rgb", 30: "bgr", 40: "gray float16"}
_ARRAYS = {65568: "float32", 65600: "float64", 131104: "int32", 65552: "float16"}
_KINDS = {500: "neural network", 502: "ML program", 403: "classifier of a neural network",
          303: "regressor of a neural network", 202: "pipeline"}  # fmt: skip
_MODELS = (500, 403, 303)
_LAYERS = {100: "convolution", 120: "pooling", 130: "activation", 140: "innerProduct",
           150: "embedding", 160: "batchnorm", 165: "mvn", 170: "l2normalize", 175: "softmax",
           180: "lrn", 190: "crop", 200: "padding", 210: "upsample", 211: "resizeBilinear",
           212: "cropResize", 220: "unary", 230: "add", 231: "multiply", 240: "average",
           245: "scale", 250: "bias", 300: "reshape", 301: "flatten", 310: "permute",
           320: "concat", 330: "split"}  # fmt: skip


def describe(path: Path) -> Description:
    """Read the description, the metadata, and the preprocessing of a neural network.

    Raises:
        ModelError: it is no such file, or a damaged one.
    """
    model = _fields(path, read_file(path, LARGE))
    kind = next((words for number, words in _KINDS.items() if number in model), "")
    if 2 not in model or 1 not in model:
        raise ModelError(f"{path}: not a Core ML model: it has no description")
    said = _inner(path, model, 2)
    inputs = [_value(path, one) for one in said.get(1, []) if isinstance(one, bytes)]
    outputs = [_value(path, one) for one in said.get(10, []) if isinstance(one, bytes)]
    about = _inner(path, said, 100)
    names = {1: "short description", 2: "version", 3: "author", 4: "license"}
    own = [_fields(path, one) for one in about.get(100, []) if isinstance(one, bytes)]
    network = next((_inner(path, model, one) for one in _MODELS if one in model), {})
    counted = Counter(_layer(path, one) for one in network.get(1, []) if isinstance(one, bytes))
    return Description(
        tuple(value for value, _ in inputs),
        tuple(value for value, _ in outputs),
        tuple(Operators(name, count, "", "") for name, count in counted.most_common()),
        preprocessing=_preprocessing(path, network, [words for _, words in inputs if words]),
        metadata={
            "specification": str(model[1][0]),
            "kind": kind,
            **{name: _text(about, number) for number, name in names.items()},
            **{_text(one, 1): _text(one, 2) for one in own},
        },
        unread="" if network else "layers and types of an ML program are not read",
    )


def _value(path: Path, raw: bytes) -> tuple[Value, str]:
    """An input or output, and in words which image it takes; empty: none."""
    one = _fields(path, raw)
    kind, name = _inner(path, one, 3), _text(one, 1)
    if 4 in kind:
        image = _inner(path, kind, 4)
        width, height = _number(image, 1), _number(image, 2)
        color = _COLORS.get(_number(image, 3), "unknown colors")
        return Value(name, "uint8", (height, width, 1 if "gray" in color else 3)), color
    array = _inner(path, kind, 5)
    shape: list[int | None] = []
    for packed in array.get(1, []):
        shape += list(_varints(packed)) if isinstance(packed, bytes) else [packed]
    return Value(name, _ARRAYS.get(_number(array, 2), ""), tuple(shape)), ""


def _preprocessing(path: Path, network: Fields, images: list[str]) -> Preprocessing | None:
    """Core ML takes an image, orders its channels, multiplies by a scale and adds a bias."""
    steps = [f"an image in {color}" for color in images]
    for raw in network.get(2, []):
        one = _fields(path, raw) if isinstance(raw, bytes) else {}
        if 10 in one:
            scaler = _inner(path, one, 10)
            scale = _float(scaler, 10) or 1.0
            bias = [_float(scaler, field) for field in (22, 21, 20)]
            steps.append(f"x * {scale:.7g} + {bias} (red, green, blue)")
        elif 11 in one:
            steps.append("a mean image is taken away")
    return Preprocessing(tuple(steps), refused="takes an image of Core ML") if steps else None


def _layer(path: Path, raw: bytes) -> str:
    numbers = [number for number in _fields(path, raw) if number >= 100]
    return next((_LAYERS.get(one, f"layer {one}") for one in numbers), "layer")


def _inner(path: Path, fields: Fields, number: int) -> Fields:
    raw = next((one for one in fields.get(number, []) if isinstance(one, bytes)), b"")
    return _fields(path, raw)


def _text(fields: Fields, number: int) -> str:
    raw = next((one for one in fields.get(number, []) if isinstance(one, bytes)), b"")
    return raw[:4096].decode("utf-8", "replace")


def _number(fields: Fields, number: int) -> int:
    return next((one for one in fields.get(number, []) if isinstance(one, int)), 0)


def _float(fields: Fields, number: int) -> float:
    raw = struct.pack("<I", _number(fields, number) & 0xFFFFFFFF)
    return float(struct.unpack("<f", raw)[0])


def _varints(raw: bytes) -> Iterator[int]:
    value = shift = 0
    for byte in raw:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield value
            value = shift = 0


def _fields(path: Path, raw: bytes) -> Fields:
    """Part a message into the values of its fields: whole numbers and bytes, in order."""
    found: Fields = {}
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while at < len(raw) and shift < 70:
            byte = raw[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
        raise ModelError(f"{path}: a damaged Core ML model: a number does not end")

    while at < len(raw):
        tag = varint()
        if tag & 7 == 0:
            value: int | bytes = varint()
        else:
            size = {1: 8, 5: 4}.get(tag & 7)
            if tag & 7 == 2:
                size = varint()
            if size is None or at + size > len(raw):
                raise ModelError(f"{path}: a damaged Core ML model: a field does not end")
            value = raw[at : at + size]
            at += size
            if tag & 7 == 5:
                value = int.from_bytes(value, "little")
        found.setdefault(tag >> 3, []).append(value)
    return found
