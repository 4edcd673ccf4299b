"""Rockchip RKNN: the toolkit's NPU simulator on x86, and the NPU itself through RKNNLite."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from backends.rockchip.toolkit import (
    GRANULARITY,
    METHODS,
    TOOLKIT,
    Ports,
    RknnQuantizer,
    build,
    call,
    ports,
    read,
)
from simulator.contract import (
    Admits,
    Array,
    Backend,
    Effective,
    Environment,
    Evidence,
    Library,
    Offer,
    Options,
    Runtime,
    Stage,
)

LITE = Library("rknnlite.api", distribution="rknn-toolkit-lite2", extra="rknn")
if TYPE_CHECKING:
    from rknn import api as toolkit
    from rknnlite import api as lite
else:
    lite = LITE


class RknnRuntime(Runtime):
    """RKNN-Toolkit2's simulator of a chip's NPU; it runs on one thread.

    The simulator cannot run a saved .rknn file, so the graph is built each time it is opened: FP16
    from an FP32 ONNX file; INT8 from an ONNX file with QuantizeLinear / DequantizeLinear pairs,
    whose ranges it keeps, or from the file of RKNN's own quantizer. ``optimization_level`` is 3,
    RKNN's default, and the normalization stays outside of the graph. Inputs and outputs are
    float32; in FP16 the simulator rounds weights and the output of every layer to half, the sums
    are FP32, and the graph's own input is not rounded.
    """

    fixed_shapes: ClassVar[bool] = True
    one_at_a_time: ClassVar[bool] = True
    also_takes: ClassVar[tuple[str, ...]] = (RknnQuantizer.gives,)
    _rknn: toolkit.RKNN | lite.RKNNLite

    def _open(self, artifact: Path) -> Ports:
        rknn = build(artifact, self.options)
        call(rknn.init_runtime)
        self._rknn = rknn
        return ports(artifact)

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        arrays = [feeds[port.name] for port in self.inputs]
        return self._named(self._rknn.inference(inputs=arrays, data_format=["nchw"] * len(arrays)))

    def effective(self, feeds: Mapping[str, Array]) -> Effective:
        """Return the toolkit's version; it does not report the precisions that it uses."""
        return Effective({}, {"device": "simulator"}, {"rknn-toolkit2": TOOLKIT.version})

    def _close(self) -> None:
        self._rknn.release()


class RknnLiteRuntime(RknnRuntime):
    """The NPU of the board that this process runs on, through RKNNLite.

    RKNN-Toolkit2, which must also be installed on the board, builds the .rknn file first.
    """

    compiled_by: ClassVar[tuple[str, ...] | None] = ("target_platform",)

    @classmethod
    def compile(cls, source: Path, folder: Path, options: Options) -> None:
        """Write ``model.rknn``, and ``ports.json`` with the names and shapes of its ports."""
        rknn = build(source, options)
        call(rknn.export_rknn, str(folder / "model.rknn"))
        rknn.release()
        inputs, outputs = ports(source)
        described = [[[port.name, port.shape] for port in side] for side in (inputs, outputs)]
        (folder / "ports.json").write_text(json.dumps(described))

    def _open(self, artifact: Path) -> Ports:
        npu = lite.RKNNLite()
        call(npu.load_rknn, str(artifact / "model.rknn"))
        call(npu.init_runtime, core_mask=_cores()[self.options["core_mask"]])
        self._rknn = npu
        return read(json.loads((artifact / "ports.json").read_text()))

    def effective(self, feeds: Mapping[str, Array]) -> Effective:
        """Return the versions of the NPU's driver and library."""
        return Effective({}, {"device": "npu"}, {"sdk": str(self._rknn.get_sdk_version())})


def _cores() -> dict[str, int]:
    npu = lite.RKNNLite
    return {
        "auto": npu.NPU_CORE_AUTO,
        "0": npu.NPU_CORE_0,
        "1": npu.NPU_CORE_1,
        "2": npu.NPU_CORE_2,
        "0_1": npu.NPU_CORE_0_1,
        "0_1_2": npu.NPU_CORE_0_1_2,
    }


_PLATFORMS = ("rk3562", "rk3566", "rk3568", "rk3576", "rk3588", "rv1126b")
_SIMULATOR: dict[str, Admits] = {
    "device": ("simulator",),
    "threads": (1,),
    "target_platform": _PLATFORMS,
}
_NPU: dict[str, Admits] = {
    "device": ("npu",),
    "threads": (1,),
    "target_platform": _PLATFORMS,
    "core_mask": ("auto", "0", "1", "2", "0_1", "0_1_2"),
}
_QUANTIZE: dict[str, Admits] = {
    "weights": tuple(GRANULARITY),
    "activations": ("int8",),
    "symmetric": (False,),
    "method": tuple(METHODS),
    "target_platform": _PLATFORMS,
}
_FP16: dict[str, Admits] = {"storage": ("fp32",), "compute": ("fp16",)}
_INT8: dict[str, Admits] = {"storage": ("int8",), "compute": ("int8",)}
_SOURCE = "https://github.com/airockchip/rknn-toolkit2 (doc: RKNN SDK API reference, Toolkit2)"

BACKEND = Backend(
    name="rknn",
    summary="Rockchip RKNN: its NPU simulator on x86, its quantizer, its NPU by RKNNLite",
    library=TOOLKIT,
    environment=Environment(
        requirements=(
            "numpy==1.26.4",
            "onnx==1.18.0",
            "onnxruntime==1.22.0",
            "protobuf==4.25.4",
            "scipy==1.16.3",
            "opencv-python-headless==4.11.0.86",
            "psutil==7.2.2",
            "ruamel.yaml==0.19.1",
            "tqdm==4.70.1",
            "fast-histogram==0.14",
            "setuptools==80.9.0",
            "torch==2.13.0",
        ),
        no_deps=("rknn-toolkit2==2.5.0",),
        why="rknn-toolkit2 wants numpy 1.26, onnx 1.18 and protobuf 4.25",
    ),
    offers=(
        *(
            Offer(Stage.RUNTIME, {**where, **precision}, make, evidence, _SOURCE)
            for where, make, evidence in (
                (_SIMULATOR, RknnRuntime, Evidence.VENDOR_SIMULATOR),
                (_NPU, RknnLiteRuntime, Evidence.NATIVE),
            )
            for precision in (_FP16, _INT8)
        ),
        Offer(Stage.QUANTIZE, _QUANTIZE, RknnQuantizer, Evidence.NATIVE, _SOURCE),
    ),
    fields={"target_platform": "the chip", "core_mask": "which cores of the NPU run"},
)
