"""The suite's ONNX models as torch.export programs: an exporter for the runtimes that take them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import torch
import torch.nn.functional as F  # noqa: N812  its usual name
from onnx import numpy_helper

from simulator.contract import Backend, Exporter, Library, Offer, Stage


class Program(torch.nn.Module):
    """An ONNX graph, one PyTorch function a node."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        super().__init__()
        self.nodes, self.constants = graph.node, {}
        for tensor in graph.initializer:
            value = np.array(numpy_helper.to_array(tensor))
            if value.ndim == 0 or tensor.name in ("scales", "to"):
                self.constants[tensor.name] = value.tolist()
            else:
                self.register_buffer(f"constant_{tensor.name}", torch.from_numpy(value))

    def forward(self, x):
        values = {"": None, **self.constants, **dict(self._weights()), "x": x}
        for node in self.nodes:
            attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
            inputs = [values[name] for name in node.input]
            values[node.output[0]] = OPERATORS[node.op_type](*inputs, **attributes)
        return values["y"]

    def _weights(self):
        return ((name.removeprefix("constant_"), value) for name, value in self.named_buffers())


def conv(x, w, b=None, pads=(0,), group=1, strides=1):
    return F.conv2d(x, w, b, stride=strides, padding=pads[0], groups=group)


def max_pool(x, kernel_shape, strides, pads):
    return F.max_pool2d(x, kernel_shape, strides, pads[0])


def average_pool(x, kernel_shape, strides, pads):
    return F.avg_pool2d(x, kernel_shape, strides, pads[0], count_include_pad=False)


def softmax(x, axis):
    return F.softmax(x, axis)


def resize(x, _, scales, mode, **how):
    bilinear = {"mode": "bilinear", "align_corners": False}
    return F.interpolate(x, scale_factor=scales[2:], **(bilinear if mode == b"linear" else {}))


OPERATORS = {
    "Add": torch.add,
    "AveragePool": average_pool,
    "BatchNormalization": lambda x, s, b, m, v, epsilon: F.batch_norm(x, m, v, s, b, eps=epsilon),
    "Clip": torch.clamp,
    "Concat": lambda *x, axis: torch.cat(x, axis),
    "Conv": conv,
    "ConvTranspose": lambda x, w, strides: F.conv_transpose2d(x, w, stride=strides),
    "Erf": torch.erf,
    "Flatten": lambda x: torch.flatten(x, 1),
    "Gemm": lambda x, w, b, **_: F.linear(x, w, b),
    "GlobalAveragePool": lambda x: x.mean((2, 3), keepdim=True),
    "HardSwish": F.hardswish,
    "LayerNormalization": lambda x, w, b, axis, epsilon: F.layer_norm(x, w.shape, w, b, epsilon),
    "MatMul": torch.matmul,
    "MaxPool": max_pool,
    "Mul": torch.mul,
    "Relu": torch.relu,
    "Reshape": lambda x, to: x.reshape(to),
    "Resize": resize,
    "Sigmoid": torch.sigmoid,
    "Softmax": softmax,
    "Transpose": lambda x, perm: x.permute(perm),
}


class TorchExporter(Exporter):
    """Writes a torch.export program that computes what an ONNX file of the suite computes."""

    takes, gives = "onnx", "torch_export"

    def export(self, source: Path, target: Path) -> None:
        graph = onnx.load(str(source)).graph
        shape = [d.dim_value for d in graph.input[0].type.tensor_type.shape.dim]
        program = torch.export.export(Program(graph).eval(), (torch.zeros(shape),))
        torch.export.save(program, str(target))


BACKEND = Backend(
    name="torch_programs",
    summary="the suite's ONNX models as torch.export programs",
    library=Library("torch", distribution="torch", extra="pytorch"),
    offers=(Offer(Stage.EXPORT, {}, TorchExporter),),
)
