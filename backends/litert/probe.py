"""A 1x1 convolution as a .tflite file, written with LiteRT's own schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from simulator.contract import Array, Library

schema = Library(
    "ai_edge_litert.schema_py_generated", distribution="ai-edge-litert", extra="litert"
)
flatbuffers = Library("flatbuffers", distribution="flatbuffers", extra="litert")


def save_conv(weights: Array, path: Path) -> None:
    """Write ``Conv2D`` with zero bias over (1, 8, 8, channels), in NHWC as LiteRT has it.

    Args:
        weights: (features, channels, 1, 1) float32.
        path: where the file goes.
    """
    features, channels = weights.shape[:2]
    data = [None, weights.transpose(0, 2, 3, 1), np.zeros(features, np.float32)]
    shapes = {
        "x": (1, 8, 8, channels), "w": (features, 1, 1, channels), "b": (features,),
        "y": (1, 8, 8, features),
    }  # fmt: skip
    buffers = {"w": 1, "b": 2}
    convolution = schema.Conv2DOptionsT()
    convolution.strideH = convolution.strideW = 1
    convolution.dilationHFactor = convolution.dilationWFactor = 1
    operator = _made(schema.OperatorT, inputs=[0, 1, 2], outputs=[3])
    operator.builtinOptionsType = schema.BuiltinOptions.Conv2DOptions
    operator.builtinOptions = convolution
    graph = _made(
        schema.SubGraphT,
        tensors=[
            _made(schema.TensorT, name=name, shape=list(shape), buffer=buffers.get(name, 0))
            for name, shape in shapes.items()
        ],
        inputs=[0],
        outputs=[3],
        operators=[operator],
    )
    code = _made(schema.OperatorCodeT, builtinCode=schema.BuiltinOperator.CONV_2D, version=1)
    code.deprecatedBuiltinCode = schema.BuiltinOperator.CONV_2D
    model = _made(
        schema.ModelT,
        version=3,
        operatorCodes=[code],
        subgraphs=[graph],
        buffers=[_made(schema.BufferT, data=_bytes(array)) for array in data],
    )
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    path.write_bytes(builder.Output())


def _made(kind: Any, **fields: Any) -> Any:
    made = kind()
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def _bytes(array: Array | None) -> Array | None:
    return None if array is None else np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)
