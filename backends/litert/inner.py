"""A ``.tflite`` file that gives what is between its operators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from backends.litert.probe import flatbuffers, schema


def save(source: Path, target: Path) -> None:
    """Write a file again, with every floating-point or quantized tensor as an output.

    Args:
        source: a ``.tflite`` file; its first subgraph is changed.
        target: where the other file goes.
    """
    data = source.read_bytes()
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(data, 0))
    for buffer in model.buffers:
        if buffer.offset > 1:  # behind the model, where a file may be larger than 2 GB
            buffer.data = np.frombuffer(data, np.uint8, buffer.size, buffer.offset)
            buffer.offset = buffer.size = 0
    graph = model.subgraphs[0]
    made = dict.fromkeys(int(at) for one in graph.operators for at in one.outputs)
    graph.outputs = list(dict.fromkeys(at for at in made if _is_read(graph.tensors[at])))
    model.signatureDefs = []
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    target.write_bytes(builder.Output())


def _is_read(tensor: Any) -> bool:
    """Whether a tensor is of floats, or of integers with one scale."""
    scale = getattr(tensor.quantization, "scale", None)
    kinds = schema.TensorType
    whole = tensor.type in (kinds.INT8, kinds.UINT8, kinds.INT16)
    return tensor.type == kinds.FLOAT32 or (whole and scale is not None and len(scale) == 1)
