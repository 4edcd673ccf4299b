"""The ONNX models of the conformance suite as torch.export programs.

Their operators alone, with the attributes that the suite uses: no converter for other models.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
import torch.nn.functional as F  # noqa: N812  its usual name
from onnx import numpy_helper

_Module: Any = torch.nn.Module


class Program(_Module):  # type: ignore[misc]
    """An ONNX graph, one PyTorch function a node."""

    def __init__(self, graph: Any) -> None:
        super().__init__()
        self.nodes = graph.node
        self.constants: dict[str, Any] = {}
        for tensor in graph.initializer:
            value = np.array(numpy_helper.to_array(tensor))
            if value.ndim == 0 or tensor.name in ("scales", "to"):
                self.constants[tensor.name] = value.tolist()
            else:
                self.register_buffer(f"constant_{tensor.name}", torch.from_numpy(value))

    def forward(self, x: Any) -> Any:
        """Return the graph's output."""
        values: dict[str, Any] = {"": None, **self.constants, **dict(self._weights()), "x": x}
        for node in self.nodes:
            attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
            inputs = [values[name] for name in node.input]
            values[node.output[0]] = OPERATORS[node.op_type](*inputs, **attributes)
        return values["y"]

    def _weights(self) -> Iterator[tuple[str, Any]]:
        return ((name.removeprefix("constant_"), value) for name, value in self.named_buffers())


def _conv(x: Any, w: Any, b: Any = None, pads: Any = (0,), group: int = 1, strides: Any = 1) -> Any:
    return F.conv2d(x, w, b, stride=strides, padding=pads[0], groups=group)


def _max_pool(x: Any, kernel_shape: Any, strides: Any, pads: Any) -> Any:
    return F.max_pool2d(x, kernel_shape, strides, pads[0])


def _average_pool(x: Any, kernel_shape: Any, strides: Any, pads: Any) -> Any:
    return F.avg_pool2d(x, kernel_shape, strides, pads[0], count_include_pad=False)


def _softmax(x: Any, axis: Any) -> Any:
    return F.softmax(x, axis)


def _resize(x: Any, _: Any, scales: Any, mode: Any, **how: Any) -> Any:
    bilinear: dict[str, Any] = {"mode": "bilinear", "align_corners": False}
    return F.interpolate(x, scale_factor=scales[2:], **(bilinear if mode == b"linear" else {}))


OPERATORS: dict[str, Any] = {
    "Add": torch.add,
    "AveragePool": _average_pool,
    "BatchNormalization": lambda x, s, b, m, v, epsilon: F.batch_norm(x, m, v, s, b, eps=epsilon),
    "Clip": torch.clamp,
    "Concat": lambda *x, axis: torch.cat(x, axis),
    "Conv": _conv,
    "ConvTranspose": lambda x, w, strides: F.conv_transpose2d(x, w, stride=strides),
    "Erf": torch.erf,
    "Flatten": lambda x: torch.flatten(x, 1),
    "Gemm": lambda x, w, b, **_: F.linear(x, w, b),
    "GlobalAveragePool": lambda x: x.mean((2, 3), keepdim=True),
    "HardSwish": F.hardswish,
    "LayerNormalization": lambda x, w, b, axis, epsilon: F.layer_norm(x, w.shape, w, b, epsilon),
    "MatMul": torch.matmul,
    "MaxPool": _max_pool,
    "Mul": torch.mul,
    "Relu": torch.relu,
    "Reshape": lambda x, to: x.reshape(to),
    "Resize": _resize,
    "Sigmoid": torch.sigmoid,
    "Softmax": _softmax,
    "Transpose": lambda x, perm: x.permute(perm),
}


def save(source: Path, target: Path) -> None:
    """Write a ``torch.export`` program that computes what an ONNX file of the suite computes."""
    graph = onnx.load(str(source)).graph
    shape = [d.dim_value for d in graph.input[0].type.tensor_type.shape.dim]
    program = torch.export.export(Program(graph).eval(), (torch.zeros(shape),))
    torch.export.save(program, str(target))
