"""What a Core ML model says of itself: its inputs, images among them, and its metadata.

Its messages are those of :mod:`simulator.importers.coreml`.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from simulator.contract.description import Description, Operators, Preprocessing, Value
from simulator.errors import ModelError
from simulator.files import LARGE, read_file
from simulator.importers import coreml
from simulator.importers.protobuf_file import BrokenFileError

_ARRAYS = {65568: "float32", 65600: "float64", 131104: "int32", 65552: "float16"}


def describe(path: Path) -> Description:
    """Read the description, the metadata, and the preprocessing of a network.

    Raises:
        ModelError: it is no such file, or a damaged one.
    """
    try:
        model = coreml.model_of(read_file(path, LARGE))
    except BrokenFileError as error:
        raise ModelError(f"{path}: not a Core ML model, or a damaged one: {error}") from error
    kind, network = coreml.network_of(model)
    said = model.description
    layers = [one for layer in getattr(network, "layers", []) for one in _layer(layer)]
    about = said.metadata
    return Description(
        tuple(_value(one) for one in said.input),
        tuple(_value(one) for one in said.output),
        tuple(Operators(name, count, "", "") for name, count in Counter(layers).most_common()),
        preprocessing=_preprocessing(model),
        metadata={
            "specification": str(model.specificationVersion),
            "kind": coreml.KINDS.get(kind, ""),
            "short description": about.shortDescription[:4096],
            "version": about.versionString[:4096],
            "author": about.author[:4096],
            "license": about.license[:4096],
            **{one.key[:4096]: one.value[:4096] for one in about.userDefined},
        },
        unread="" if layers else "layers and types of an ML program are not read",
    )


def _layer(layer: Any) -> list[str]:
    return [field.name for field, _ in layer.ListFields()] or ["layer"]


def _value(feature: Any) -> Value:
    if feature.type.HasField("imageType"):
        image = feature.type.imageType
        channels = 1 if "gray" in coreml.COLORS.get(image.colorSpace, "") else 3
        return Value(feature.name, "uint8", (image.height, image.width, channels))
    array = feature.type.multiArrayType
    return Value(feature.name, _ARRAYS.get(array.dataType, ""), tuple(array.shape))


def _preprocessing(model: Any) -> Preprocessing | None:
    """Core ML takes an image, orders its channels, multiplies by a scale and adds a bias."""
    steps = []
    for one in model.description.input:
        if one.type.HasField("imageType"):
            color = coreml.COLORS.get(one.type.imageType.colorSpace, "unknown colors")
            steps.append(f"an image in {color}")
            found = coreml.arithmetic_of(model, one)
            if found.refused:
                steps.append(found.refused)
            elif found.where:
                steps.append(f"x * {found.scale:.7g} + {list(found.bias)} (red, green, blue)")
    return Preprocessing(tuple(steps), refused="takes an image of Core ML") if steps else None
