"""Core ML: the image that a ``.mlmodel`` or ``.mlpackage`` takes, and its scale and bias.

Sources, of apple/coremltools: ``mlmodel/format/Model.proto``, ``FeatureTypes.proto``,
``NeuralNetwork.proto`` (``NeuralNetworkPreprocessing``), ``MIL.proto``; ``coremltools/converters/
mil/frontend/…/image_input_preprocess`` (an ML program begins with ``NAME__scaled__`` and
``NAME__biased__``); its guide, "Image Input and Output" (scale * x + bias of each channel).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from simulator.errors import ProfileError
from simulator.importers import protobuf_file, values
from simulator.importers.draft import Draft, Order
from simulator.importers.importer import ConfigFile, Importer
from simulator.importers.protobuf_file import Schema

COLORS = {10: "gray", 20: "rgb", 30: "bgr", 40: "gray float16"}
KINDS = {"neuralNetwork": "neural network", "mlProgram": "ML program",
         "neuralNetworkClassifier": "classifier of a neural network",
         "neuralNetworkRegressor": "regressor of a neural network", "pipeline": "pipeline",
         "pipelineClassifier": "pipeline", "pipelineRegressor": "pipeline"}  # fmt: skip
LAYERS = {100: "convolution", 120: "pooling", 130: "activation", 140: "innerProduct",
          150: "embedding", 160: "batchnorm", 165: "mvn", 170: "l2normalize", 175: "softmax",
          180: "lrn", 190: "crop", 200: "padding", 210: "upsample", 211: "resizeBilinear",
          212: "cropResize", 220: "unary", 230: "add", 231: "multiply", 240: "average",
          245: "scale", 250: "bias", 300: "reshape", 301: "flatten", 310: "permute",
          320: "concat", 330: "split"}  # fmt: skip
_BIAS = ("redBias", "greenBias", "blueBias")
_SCHEMA: Schema = {
    "Model": {
        "specificationVersion": (1, "int32"), "description": (2, "Description"),
        "pipelineClassifier": (200, "Around"), "pipelineRegressor": (201, "Around"),
        "pipeline": (202, "Pipeline"), "neuralNetworkRegressor": (303, "Network"),
        "neuralNetworkClassifier": (403, "Network"), "neuralNetwork": (500, "Network"),
        "mlProgram": (502, "Program"),
    },
    "Around": {"pipeline": (1, "Pipeline")},
    "Pipeline": {"models": (1, "*Model")},
    "Description": {"input": (1, "*Feature"), "output": (10, "*Feature"),
                    "metadata": (100, "Metadata")},
    "Metadata": {"shortDescription": (1, "string"), "versionString": (2, "string"),
                 "author": (3, "string"), "license": (4, "string"), "userDefined": (100, "*Text")},
    "Text": {"key": (1, "string"), "value": (2, "string")},
    "Feature": {"name": (1, "string"), "type": (3, "Type")},
    "Type": {"imageType": (4, "Image"), "multiArrayType": (5, "Array")},
    "Image": {"width": (1, "int64"), "height": (2, "int64"), "colorSpace": (3, "int32"),
              "enumeratedSizes": (21, "Nothing"), "imageSizeRange": (31, "Nothing")},
    "Array": {"shape": (1, "*int64"), "dataType": (2, "int32")},
    "Network": {"layers": (1, "*Layer"), "preprocessing": (2, "*Preprocessing")},
    "Layer": {name: (number, "Nothing") for number, name in LAYERS.items()},
    "Preprocessing": {"featureName": (1, "string"), "scaler": (10, "Scaler"),
                      "meanImage": (11, "Nothing")},
    "Scaler": {"channelScale": (10, "float"), "blueBias": (20, "float"),
               "greenBias": (21, "float"), "redBias": (22, "float"), "grayBias": (30, "float")},
    "Program": {"functions": (2, "*Function")},
    "Function": {"key": (1, "string"), "value": (2, "Blocks")},
    "Blocks": {"blocks": (3, "*Block")},
    "Block": {"key": (1, "string"), "value": (2, "Operations")},
    "Operations": {"operations": (3, "*Operation")},
    "Operation": {"type": (1, "string"), "inputs": (2, "*Input"), "outputs": (3, "*Named"),
                  "attributes": (5, "*Attribute")},
    "Named": {"name": (1, "string")},
    "Input": {"key": (1, "string"), "value": (2, "Argument")},
    "Argument": {"arguments": (1, "*Binding")},
    "Binding": {"name": (1, "string"), "value": (2, "Value")},
    "Attribute": {"key": (1, "string"), "value": (2, "Value")},
    "Value": {"immediate": (3, "Immediate")},
    "Immediate": {"tensor": (1, "Tensor")},
    "Tensor": {"floats": (1, "Floats"), "bytes": (7, "Bytes")},
    "Floats": {"values": (1, "*float")},
    "Bytes": {"values": (1, "bytes")},
    "Nothing": {},
}  # fmt: skip
_ORDER: Order = ("multiply_add", "coremltools' ImageType: scale * x + bias of each channel")


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """What Core ML does with the pixels of an image: scale * x + bias.

    Attributes:
        scale: of all channels.
        bias: of red, green and blue.
        where: it is written; empty: nothing is done.
        refused: what is done beside it, in words; empty: nothing.
    """

    scale: float = 1.0
    bias: tuple[float, ...] = (0.0, 0.0, 0.0)
    where: str = ""
    refused: str = ""


def model_of(raw: bytes) -> Any:
    """Return the message of a file.

    Raises:
        BrokenFileError: it is no Core ML model.
    """
    model = protobuf_file.parse("coreml", _SCHEMA, raw)
    if not model.HasField("description") or not model.specificationVersion:
        raise protobuf_file.BrokenFileError("it has no description")
    return model


def network_of(model: Any) -> tuple[str, Any]:
    """Return the field that holds the network, the first one of a pipeline, and what it holds."""
    kind = next((one for one in KINDS if model.HasField(one)), "")
    held: Any = getattr(model, kind) if kind else None
    if not kind.startswith("pipeline"):
        return kind, held
    inner = held.pipeline if kind != "pipeline" else held
    return network_of(inner.models[0]) if inner.models else (kind, None)


def arithmetic_of(model: Any, feature: Any) -> Arithmetic:
    """Return what is done with the image of an input."""
    kind, network = network_of(model)
    name = feature.name
    if kind == "mlProgram":
        turned = COLORS.get(feature.type.imageType.colorSpace) == "bgr"
        return _of_program(network, name, turned)
    found = [one for one in getattr(network, "preprocessing", []) if one.featureName in ("", name)]
    if any(one.HasField("meanImage") for one in found):
        return Arithmetic(refused="a mean image is taken away")
    scaler = next((one.scaler for one in found if one.HasField("scaler")), None)
    if scaler is None:
        return Arithmetic()
    bias = tuple(getattr(scaler, one) for one in _BIAS)
    return Arithmetic(scaler.channelScale or 1.0, bias, "NeuralNetworkPreprocessing.scaler")


def _of_program(program: Any, name: str, turned: bool) -> Arithmetic:
    """Follow ``NAME__scaled__`` and ``NAME__biased__``; the bias is in the order of the tensor."""
    operations = {
        one.outputs[0].name: one
        for function in program.functions
        for block in function.value.blocks
        for one in block.value.operations
        if one.outputs
    }
    made: dict[str, list[float]] = {"mul": [1.0], "add": [0.0]}
    where = ""
    for output, one in operations.items():
        for end, kind in (("scaled", "mul"), ("biased", "add")):
            if output.startswith(f"{name}__{end}__") and one.type == kind:
                where = f"{name}__{end}__ of the program"
                made[kind] = [x for held in one.inputs for x in _numbers(held, operations)]
    scale, bias = made["mul"], made["add"]
    if len(scale) != 1 or len(bias) not in (1, 3):
        return Arithmetic(refused=f"{where} has other numbers than one scale and a bias")
    bias = bias * (3 // len(bias))
    return Arithmetic(scale[0], tuple(bias[::-1] if turned else bias), where)


def _numbers(argument: Any, constants: dict[str, Any]) -> list[float]:
    """Return the numbers of an argument that is a constant."""
    made: list[float] = []
    for binding in argument.value.arguments:
        held = constants.get(binding.name)
        attributes = held.attributes if held is not None and held.type == "const" else []
        for value in [binding.value, *(one.value for one in attributes if one.key == "val")]:
            tensor = value.immediate.tensor
            raw = tensor.bytes.values
            made += [*tensor.floats.values, *map(float, np.frombuffer(raw, "<f2"))]
    return made


class CoreMl(Importer):
    """The image type of a model's input."""

    name = tool = "coreml"
    about = "a Core ML .mlmodel or .mlpackage with an image as its input"
    base = "coreml_vision_fp16"

    def recognises(self, file: ConfigFile) -> bool:
        """Whether it has the suffix of a model."""
        return file.path.suffix == ".mlmodel"

    def read(self, file: ConfigFile, draft: Draft, stack: int) -> None:
        """Take size, order of the channels, scale and bias."""
        try:
            model = model_of(file.whole(2**31 - 1))
        except protobuf_file.BrokenFileError as error:
            why = f"not a Core ML model: {values.plain(str(error))}"
            raise ProfileError([f"{file.path}: {why}"]) from error
        images = [one for one in model.description.input if one.type.HasField("imageType")]
        said = _problem(model, images)
        if said:
            draft.problems.append(f"{file.path}: {said}")
            return
        _write(draft, images[0], arithmetic_of(model, images[0]))


def _problem(model: Any, images: list[Any]) -> str:
    """Why the input is no color image of one size; empty if it is."""
    if len(images) != 1:
        names = values.show(", ".join(one.name for one in images or model.description.input))
        return (f"{len(images)} inputs are images (inputs: {names}), and one is expected: with "
                "an array the application prepares it; give its code as a stack")  # fmt: skip
    image, name = images[0].type.imageType, values.show(images[0].name)
    if COLORS.get(image.colorSpace) not in ("rgb", "bgr"):
        return f"{name}: a gray image; a profile's images are in color"
    if not all(0 < side <= values.PIXELS for side in (image.width, image.height)):
        return f"{name}: {image.height}x{image.width}: one size expected"
    found = arithmetic_of(model, images[0])
    numbers = found.scale, *found.bias
    if not found.refused and not (all(map(math.isfinite, numbers)) and found.scale > 0):
        return f"{name}: scale * x + bias with {values.show(numbers)}: a scale above 0 expected"
    return f"{name}: {found.refused}; no profile has that" if found.refused else ""


def _write(draft: Draft, feature: Any, found: Arithmetic) -> None:
    image, color = feature.type.imageType, COLORS[feature.type.imageType.colorSpace]
    origin = f"from coreml: {values.show(feature.name)}: colorSpace={image.colorSpace}"
    draft.color("Core ML is given images in color", color, f"{origin} ({color})")
    std = values.reciprocal(values.exact(found.scale))
    mean = [-values.exact(one) * std for one in found.bias]
    bias = ", ".join(f"{one:.8g}" for one in found.bias)
    said = f"scale={found.scale:.8g}, bias={bias} of red, green, blue"
    said = f"from coreml: {found.where}: {said}" if found.where else "no scale and no bias"
    order = mean if color == "rgb" else mean[::-1]
    draft.normalize(order, [std] * 3, _ORDER, lambda _: said)
    draft.network((image.height, image.width), origin)
    if image.HasField("enumeratedSizes") or image.HasField("imageSizeRange"):
        draft.aside.append("other sizes are allowed; this is the default")
    why = "the compute units choose the type"
    draft.claim("precision", "assumed", f"{why}; FP16 is {draft.base.name}'s")
    draft.aside.append("scale and bias belong to the file: the card's ONNX file is the network "
                       "without them")  # fmt: skip


COREML = CoreMl()
