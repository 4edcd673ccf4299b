"""What an OpenVINO IR says of itself.

Sources: OpenVINO documentation, "Operation Specifications", "IR format", "Low precision
transformations" (FakeQuantize, compressed weights), "Preprocessing API - details".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from simulator.contract.description import (
    Beginning,
    Description,
    Scheme,
    Value,
    operators,
    precision,
    schemes,
)
from simulator.errors import ModelError, ProfileError
from simulator.files import LARGE, read_file
from simulator.importers.openvino_ir import Graph, Layer, graph_of

PRODUCTS = ("Convolution", "GroupConvolution", "ConvolutionBackpropData", "MatMul",
            "GroupConvolutionBackpropData", "DeformableConvolution")  # fmt: skip
_SUPPRESS = {"DetectionOutput", "Proposal", "MatrixNms", "MulticlassNms"}
_TYPES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "f64": "float64",
          "i4": "int4", "u4": "uint4", "i8": "int8", "u8": "uint8", "i16": "int16",
          "i32": "int32", "i64": "int64", "boolean": "bool", "nf4": "nf4", "fp32": "float32",
          "fp16": "float16", "fp64": "float64", "f8e4m3": "float8_e4m3fn",
          "f8e5m2": "float8_e5m2"}  # fmt: skip
"""NumPy's names; those of ports are written ``FP32``, those of constants ``f32``."""
_SCALED = {("f4e2m1", "f8e8m0"): "mxfp4", ("f4e2m1", "f8e4m3"): "nvfp4",
           ("f8e4m3", "f8e8m0"): "mxfp8_e4m3", ("f8e5m2", "f8e8m0"): "mxfp8_e5m2"}  # fmt: skip
"""The words of profiles for types of elements and of the scales of their blocks."""
_BEHIND = {"Convert", "Multiply", "Subtract", "Reshape", "Transpose", "FakeQuantize", "Squeeze",
           "Unsqueeze"}  # fmt: skip
"""What may stand between stored weights and their product."""
_MOVES = {"Reshape", "Transpose", "MaxPool", "Concat", "Squeeze", "Unsqueeze", "Pad", "Split",
          "Convert", "Multiply", "Subtract", "ShuffleChannels", "StridedSlice"}  # fmt: skip
"""What may stand between a quantized activation and the product that takes it."""
_FAR = 8
"""Layers that are followed back."""
_ARITHMETIC = {"Subtract": "Sub", "Add": "Add", "Multiply": "Mul", "Divide": "Div"}
_COLORS = ("NV12toRGB", "NV12toBGR", "I420toRGB", "I420toBGR")
_LAYOUTS = {"NHWC to NCHW": [0, 3, 1, 2], "NCHW to NHWC": [0, 2, 3, 1]}
_SHOWN = 60
"""Values of ``rt_info``."""


def describe(path: Path) -> Description:
    """Read the graph, and small constants of the weights beside it.

    Raises:
        ModelError: it is not an IR, or its weights are missing or too short.
    """
    try:
        graph = graph_of(path, read_file(path, LARGE).decode("utf-8", "replace"))
        return _described(graph)
    except ProfileError as error:
        raise ModelError(str(error)) from error


def _described(graph: Graph) -> Description:
    layers = graph.layers
    made = operators(
        _typed(graph, at) for at, layer in layers.items()
        if layer.kind not in ("Const", "Parameter", "Result")
    )  # fmt: skip
    stored, computed = precision(made, PRODUCTS)
    results = [graph.sources.get(at, {}).get(0, "") for at, one in layers.items()
               if one.kind == "Result"]  # fmt: skip
    found = schemes(_schemes(graph))
    return Description(
        inputs=tuple(_value(one) for one in layers.values() if one.kind == "Parameter"),
        outputs=tuple(_value(layers[at]) for at in results if at in layers),
        operators=made,
        quantization=found,
        form=_form(found),
        storage=stored,
        compute=computed,
        preprocessing=_beginning(graph).made(),
        postprocessing=tuple(dict.fromkeys(
            one.kind for one in layers.values()
            if one.kind in _SUPPRESS or one.kind.startswith("NonMaxSuppression")
        )),
        metadata=dict(list(graph.said.items())[:_SHOWN]),
    )  # fmt: skip


def _form(found: Sequence[Scheme]) -> str:
    if any(one.of == "activations" for one in found):
        return "FakeQuantize"
    return "compressed weights" if found else ""


def _kind(written: str) -> str:
    return _TYPES.get(written.lower(), written.lower())


def _value(layer: Layer) -> Value:
    dims = layer.dims[0] if layer.dims else []
    shape = tuple(None if side < 0 else side for side in dims)
    return Value(layer.names or layer.name, _kind(next(iter(layer.gives), "")), shape)


def _source(graph: Graph, at: str, port: int) -> tuple[str, Layer | None]:
    found = graph.sources.get(at, {}).get(port, "")
    return found, graph.layers.get(found)


def _typed(graph: Graph, at: str) -> tuple[str, str, str]:
    """A layer's kind, and the types of its weights and of what it takes."""
    layer = graph.layers[at]
    taken = _kind(next(iter(layer.inputs), ""))
    if layer.kind not in PRODUCTS:
        return layer.kind, "", taken
    return layer.kind, _stored(graph, at), _rounded(graph, at) or taken


def _stored(graph: Graph, at: str, port: int = 1) -> str:
    """The type in which weights are stored; of FakeQuantize the integers; empty: they are none."""
    at, source = _source(graph, at, port)
    rounded, scale = False, ""
    for _ in range(_FAR):
        if source is None or source.kind not in _BEHIND:
            break
        rounded = rounded or source.kind == "FakeQuantize"
        if source.kind == "Multiply":
            scale = _element(graph, at, 1)
        at, source = _source(graph, at, 0)
    if source is None or source.kind != "Const":
        return ""
    element = source.data.get("element_type", "")
    return "int8" if rounded else _SCALED.get((element, scale)) or _kind(element)


def _element(graph: Graph, at: str, port: int) -> str:
    """The type of a constant, through a Convert and a product with a scale of the tensor."""
    at, source = _source(graph, at, port)
    while source is not None and source.kind in ("Convert", "Multiply"):
        at, source = _source(graph, at, 0)
    return source.data.get("element_type", "") if source is not None else ""


def _rounded(graph: Graph, at: str) -> str:
    """The integers of what a product takes; empty: it takes what its port says."""
    at, source = _source(graph, at, 0)
    for _ in range(_FAR):
        if source is None:
            return ""
        if source.kind == "FakeQuantize":
            return "int8" if int(source.data.get("levels", "0") or 0) <= 256 else "int16"
        if source.kind not in _MOVES:
            return ""
        at, source = _source(graph, at, 0)
    return ""


def _schemes(graph: Graph) -> Iterator[tuple[str, str, str, bool | None]]:
    for at, layer in graph.layers.items():
        if layer.kind == "FakeQuantize":
            low, high = graph.constant(at, 1), graph.constant(at, 2)
            symmetric = None
            if low is not None and high is not None:
                symmetric = bool(abs(low + high).max() <= abs(high).max() / 64)
            of = "weights" if _stored(graph, at, 0) else "activations"
            yield of, "int8", _per(graph, at, 2), symmetric
        elif (
            layer.kind == "Convert"
            and (found := _source(graph, at, 0)[1]) is not None
            and found.kind == "Const"
        ):
            kind = _kind(found.data.get("element_type", ""))
            users = graph.users.get(at, [])
            if kind.strip("u") in ("int4", "int8") and users:
                minus = graph.layers[users[0]].kind == "Subtract"
                behind = graph.users.get(users[0], []) if minus else users
                if behind and graph.layers[behind[0]].kind == "Multiply":
                    yield "weights", kind, _per(graph, behind[0], 1), not minus


def _per(graph: Graph, at: str, port: int) -> str:
    """What has a scale of its own, by the shape of a constant."""
    _, scale = _source(graph, at, port)
    dims = [side for side in (scale.dims[0] if scale and scale.dims else []) if side != 1]
    return ("tensor", "channel")[len(dims)] if len(dims) < 2 else "block"


def _beginning(graph: Graph) -> Beginning:
    """Follow the only image from the input on."""
    begun = Beginning()
    at, *others = [at for at, layer in graph.layers.items() if layer.kind == "Parameter"]
    dims = graph.layers[at].dims
    for _ in range(0 if others or not dims or len(dims[0]) != 4 else len(graph.layers)):
        users = graph.users.get(at, [])
        layer = graph.layers.get(users[0]) if len(users) == 1 else None
        if layer is None or not _taken(begun, graph, users[0], layer):
            break
        at = users[0]
    first = [graph.layers[user].kind for user in graph.users.get(at, [])]
    if others and first and first[0] in _COLORS:  # two planes
        begun.then(first[0], f"converts {first[0].replace('to', ' to ')}")
    return begun


def _taken(begun: Beginning, graph: Graph, at: str, layer: Layer) -> bool:
    """Whether a layer is still preprocessing."""
    kind = layer.kind
    if kind == "Convert":
        to = _kind(layer.data.get("destination_type", ""))
        return begun.then(f"{_kind(next(iter(layer.inputs), ''))} to {to}")
    if kind in _COLORS:
        return begun.then(kind, f"converts {kind.replace('to', ' to ')}")
    if kind == "Interpolate":
        return begun.then("Interpolate", "resizes its input")
    return kind == "FakeQuantize" or _with_constant(begun, graph, at, kind)


def _with_constant(begun: Beginning, graph: Graph, at: str, kind: str) -> bool:
    values = graph.constant(at, 1)
    if values is None:
        return False
    numbers = values.tolist()
    if kind == "Transpose" and numbers in list(_LAYOUTS.values()):
        return begun.then(next(name for name, order in _LAYOUTS.items() if order == numbers))
    if kind == "Gather":
        return numbers == [2, 1, 0] and begun.reverse()
    return kind in _ARITHMETIC and begun.arithmetic(_ARITHMETIC[kind], numbers)
