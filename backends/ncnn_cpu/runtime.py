"""ncnn on the CPU, converted from ONNX by pnnx."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from backends.ncnn_cpu.converter import FILES, convert, pnnx
from backends.onnx_ports import distance, load_ports, read_onnx
from simulator.contract import (
    Array,
    AtLeast,
    Backend,
    Effective,
    Library,
    ModelError,
    Offer,
    Port,
    Runtime,
    Stage,
)

ncnn = Library("ncnn", distribution="ncnn", extra="ncnn")

_FLAGS = {
    "fp16": ("use_fp16_packed", "use_fp16_storage", "use_fp16_arithmetic"),
    "bf16": ("use_bf16_packed", "use_bf16_storage"),
}
_HEAVY = re.compile("Convolution|Deconvolution|InnerProduct|MatMul|Gemm")


TOLERANCE = 1e-2
"""Allowed difference from the ONNX file, relative to the largest output."""


class NcnnRuntime(Runtime):
    """``ncnn.Net``, from the ``.param`` and ``.bin`` that ``pnnx fp16=0`` writes.

    ``fp16`` is ncnn's default, ``bf16`` its BF16 storage, and ``fp32`` switches both off. The flags
    are requests; each layer reports which it supports (on x86 no convolution supports FP16). ncnn
    has no batch dimension, so models have a batch of one; opening a model runs it on zeros.
    Winograd, sgemm and packed layouts stay on, as by default. Each call has its own extractor.

    Source:
        https://github.com/Tencent/ncnn/blob/master/src/net.cpp, ``convert_layout``.
    """

    fixed_shapes: ClassVar[bool] = True
    compiled_by: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def compile(cls, source: Path, folder: Path, options: Mapping[str, Any]) -> None:
        """Convert an ONNX file, and compare the result with ONNX's reference evaluator.

        Raises:
            ModelError: it cannot be converted, or the result computes something else, because pnnx
                confuses some axes (for example of a Softmax over channels).
        """
        convert(source, folder)
        runtime = cls(folder, {"threads": 1, "compute": "fp32"})
        off = distance(source, runtime.run)
        runtime.close()
        if off > TOLERANCE:
            kinds = ", ".join(sorted({node.op_type for node in read_onnx(source).graph.node}))
            raise ModelError(
                f"ncnn's converter changes what {source} computes ({kinds}): {off:.0%} off on "
                "random numbers"
            )

    def _open(self, artifact: Path) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
        self._net = ncnn.Net()
        self._net.opt.num_threads = self.options["threads"]
        self._net.opt.use_vulkan_compute = False
        for kind, flags in _FLAGS.items():
            for flag in flags:
                setattr(self._net.opt, flag, kind == self.options["compute"])
        param, weights = (str(artifact / name) for name in FILES)
        if self._net.load_param(param) or self._net.load_model(weights):
            raise ModelError(f"ncnn cannot load what pnnx made: {artifact}")
        self.inputs, self.outputs = load_ports(artifact)
        self._run({p.name: np.zeros([n or 0 for n in p.shape], p.dtype) for p in self.inputs})
        return self.inputs, self.outputs

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        with self._net.create_extractor() as extractor:
            for index, port in enumerate(self.inputs):
                image = np.ascontiguousarray(feeds[port.name][0])  # Mat reads its memory directly
                extractor.input(f"in{index}", ncnn.Mat(image).clone())
            found = {}
            for index, port in enumerate(self.outputs):
                failed, value = extractor.extract(f"out{index}")
                if failed:
                    raise RuntimeError(f"ncnn could not compute {port.name!r}; out of memory?")
                shape, array = [size or 0 for size in port.shape], np.array(value)
                if array.size != math.prod(shape):
                    raise ModelError(
                        f"ncnn gives {array.shape} for {port.name!r}, but the ONNX file says "
                        f"{port.shape}; a matrix product with the batch as its rows (a Gemm "
                        "without transB) is not converted"
                    )
                found[port.name] = array.reshape(shape)
            return found

    def effective(self, feeds: Mapping[str, Array]) -> Effective:
        """Ask every layer which storage it supports; ncnn's own rule gives the used type."""
        option = self._net.opt
        heavy = Counter[str]()
        for layer in self._net.layers():
            if _HEAVY.match(layer.type):
                halves = option.use_fp16_storage and layer.support_fp16_storage
                brains = option.use_bf16_storage and layer.support_bf16_storage
                heavy["fp16" if halves else "bf16" if brains else "fp32"] += 1
        return Effective(
            products=heavy,
            options={"device": "cpu", "threads": option.num_threads},
            details={
                "layers": dict(sorted(Counter(x.type for x in self._net.layers()).items())),
                "flags": {flag: getattr(option, flag) for fs in _FLAGS.values() for flag in fs},
            },
        )

    def _close(self) -> None:
        self._net.clear()
        del self._net


BACKEND = Backend(
    name="ncnn",
    summary="ncnn on the CPU, converted by pnnx: FP32, its default (FP16 where it can), BF16",
    library=ncnn,
    companions=(pnnx,),
    offers=(
        Offer(
            Stage.RUNTIME,
            {
                "device": ("cpu",),
                "threads": AtLeast(1),
                "storage": ("fp32",),
                "compute": ("fp32", "fp16", "bf16"),
            },
            NcnnRuntime,
            source="https://github.com/Tencent/ncnn/wiki",
        ),
    ),
)
