"""EfficientNet-Lite0 as an ONNX graph, from its weights.

The nodes, their order and the folding of batch normalization into the convolutions are those of
PyTorch's exporter, so that outputs have the bits of an exported model.

Source: efficientnet_lite_pytorch 0.1.0, model.py and utils.py; onnxscript's FuseBatchNormIntoConv.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto

from backends.onnx_nodes import Nodes, port

SIDE, CLASSES = 224, 1000
EPSILON = 1e-3


class Stage(NamedTuple):
    """Blocks of one kind: how often, kernel, stride of the first, and channels in and out."""

    repeats: int
    kernel: int
    stride: int
    expand: int
    takes: int
    gives: int


STAGES = (
    Stage(1, 3, 1, 1, 32, 16), Stage(2, 3, 2, 6, 16, 24), Stage(2, 5, 2, 6, 24, 40),
    Stage(3, 3, 2, 6, 40, 80), Stage(3, 5, 1, 6, 80, 112), Stage(4, 5, 2, 6, 112, 192),
    Stage(1, 3, 1, 6, 192, 320),
)  # fmt: skip


def model(weights: Mapping[str, NDArray[Any]]) -> onnx.ModelProto:
    """Return the network: ``input`` (1, 3, 224, 224) to ``logits`` (1, 1000), float32, opset 18."""
    return _Builder(weights).build()


class _Builder:
    """Adds nodes one after the other."""

    def __init__(self, weights: Mapping[str, NDArray[Any]]) -> None:
        self._weights = weights
        self._nodes = Nodes()
        self._add, self._constant = self._nodes.add, self._nodes.constant
        self._side = SIDE

    def build(self) -> onnx.ModelProto:
        """Return the whole model."""
        self._constant("zero", np.float32(0))
        self._constant("six", np.float32(6))
        value = self._relu6(self._conv("input", "_conv_stem", "_bn0", stride=2))
        number = 0
        for stage in STAGES:
            for repeat in range(stage.repeats):
                value = self._block(value, f"_blocks.{number}", stage, first=repeat == 0)
                number += 1
        value = self._relu6(self._conv(value, "_conv_head", "_bn1"))
        self._constant("sides", np.array([2, 3], np.int64))
        self._constant("row", np.array([1, -1], np.int64))
        value = self._add("ReduceMean", [value, "sides"], "mean", keepdims=1)
        value = self._add("Reshape", [value, "row"], "features", allowzero=1)
        self._constant("_fc.weight", self._weights["_fc.weight"])
        self._constant("_fc.bias", self._weights["_fc.bias"])
        self._add("Gemm", [value, "_fc.weight", "_fc.bias"], "logits", transB=1)
        taken = port("input", TensorProto.FLOAT, 1, 3, SIDE, SIDE)
        given = port("logits", TensorProto.FLOAT, 1, CLASSES)
        made = self._nodes.model("efficientnet-lite0", [taken], [given], {})
        return onnx.shape_inference.infer_shapes(made)

    def _block(self, value: str, name: str, stage: Stage, first: bool) -> str:
        stride = stage.stride if first else 1
        takes = stage.takes if first else stage.gives
        found = value
        if stage.expand != 1:
            found = self._relu6(self._conv(found, f"{name}._expand_conv", f"{name}._bn0"))
        found = self._relu6(
            self._conv(
                found, f"{name}._depthwise_conv", f"{name}._bn1", stride, takes * stage.expand
            )
        )
        found = self._conv(found, f"{name}._project_conv", f"{name}._bn2")
        if stride == 1 and takes == stage.gives:
            return self._add("Add", [found, value], f"{name}.sum")
        return found

    def _conv(self, value: str, name: str, norm: str, stride: int = 1, group: int = 1) -> str:
        """Add a convolution with TensorFlow's SAME padding and its batch normalization."""
        kernel, bias = self._folded(self._weights[f"{name}.weight"], norm)
        self._constant(f"{name}.weight", kernel)
        self._constant(f"{name}.bias", bias)
        size = kernel.shape[2]
        out = -(-self._side // stride)
        padding = max((out - 1) * stride + size - self._side, 0)
        before, after = padding // 2, padding - padding // 2
        self._side = out
        return self._add(
            "Conv",
            [value, f"{name}.weight", f"{name}.bias"],
            f"{name}.out",
            group=group,
            pads=[before, before, after, after],
            strides=[stride, stride],
            dilations=[1, 1],
            kernel_shape=[size, size],
        )

    def _folded(self, kernel: NDArray[Any], norm: str) -> tuple[NDArray[Any], NDArray[Any]]:
        gamma, beta, mean, variance = (
            self._weights[f"{norm}.{part}"]
            for part in ("weight", "bias", "running_mean", "running_var")
        )
        scale = gamma / np.sqrt(variance + np.float32(EPSILON))
        return kernel * scale[:, None, None, None], (np.float32(0) - mean) * scale + beta

    def _relu6(self, value: str) -> str:
        return self._add("Clip", [value, "zero", "six"], f"{value}.relu6")
