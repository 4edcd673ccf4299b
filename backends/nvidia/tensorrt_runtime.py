"""TensorRT on an NVIDIA GPU: engines built from strongly typed ONNX files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from backends.nvidia.buffers import CUDA, Stream, gpu
from backends.nvidia.driver import cuda_device
from backends.nvidia.tensorrt_engine import TENSORRT, build, open_engine, products, trt
from simulator.contract import (
    Admits,
    Array,
    Backend,
    Effective,
    Environment,
    Offer,
    Options,
    Port,
    Runtime,
    Stage,
    Unsupported,
)
from simulator.files import json_before


class TensorRtRuntime(Runtime):
    """A TensorRT engine, run by ``execute_async_v3``.

    Since TensorRT 11 a network computes in the types of its ONNX file: FP16 where tensors are
    float16, INT8 between QuantizeLinear and DequantizeLinear of zero point 0. ``tf32`` lets
    FP32 products round their operands to 10 bits of mantissa. An engine works only with the GPU
    and the TensorRT version that built it.
    """

    fixed_shapes: ClassVar[bool] = True
    one_at_a_time: ClassVar[bool] = True
    batches: ClassVar[tuple[str, ...]] = ("fixed",)
    compiled_by: ClassVar[tuple[str, ...] | None] = ("tf32",)
    compiled_format: ClassVar[str] = "tensorrt_engine"

    @classmethod
    def compile_identity(cls) -> dict[str, str]:
        """Return what else an engine depends on: the GPU and the version of TensorRT."""
        return {**gpu(), "tensorrt": TENSORRT.load().__version__}

    @classmethod
    def compile(cls, source: Path, folder: Path, options: Options) -> None:
        """Write ``model.engine``, ``timing.cache``, and ``gpu.json``: where they are valid."""
        about = json.dumps(cls.compile_identity())
        engine, timings = build(source, options["tf32"], _timings(folder.parent, about))
        (folder / "model.engine").write_bytes(engine)
        (folder / "timing.cache").write_bytes(timings)
        (folder / "gpu.json").write_text(about)

    def _open(self, artifact: Path) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
        here, file = self.compile_identity(), artifact  # asks the driver before TensorRT is opened
        if artifact.is_dir():  # of an engine that was made elsewhere TensorRT says it itself
            refuse_another(artifact, here)
            file = artifact / "model.engine"
        self._stream = Stream()
        data = file.read_bytes()
        said = json_before(data)
        self._engine = open_engine(data[4 + len(said) :] if said else data)
        self._context = self._engine.create_execution_context()
        ports: dict[Any, list[Port]] = {mode: [] for mode in (_modes().INPUT, _modes().OUTPUT)}
        for index in range(self._engine.num_io_tensors):
            name = self._engine.get_tensor_name(index)
            shape = tuple(self._engine.get_tensor_shape(name))
            dtype = np.dtype(trt.nptype(self._engine.get_tensor_dtype(name)))
            self._context.set_tensor_address(name, self._stream.buffer(name, shape, dtype))
            ports[self._engine.get_tensor_mode(name)].append(Port(name, dtype, shape))
        return tuple(ports[_modes().INPUT]), tuple(ports[_modes().OUTPUT])

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        return self._stream.run(self._context.execute_async_v3, feeds)

    def effective(self, feeds: Mapping[str, Array]) -> Effective:
        """Read the engine's layers back, and time the device's work on *feeds*."""
        self.run(feeds)
        inspector = self._engine.create_engine_inspector()
        told = json.loads(inspector.get_engine_information(trt.LayerInformationFormat.JSON))
        found = products(told)
        options: dict[str, Any] = {"device": "cuda"}
        tf32 = found.pop("tf32", 0)
        if tf32 or found["fp32"]:
            options["tf32"] = tf32 > 0
            found["fp32"] += tf32
        return Effective(
            products=+found,
            options=options,
            details={
                **self.compile_identity(),
                "gpu_milliseconds": self._stream.milliseconds,
                "tf32_products": tf32,
                "layers": len(told["Layers"]),
            },
        )

    def _close(self) -> None:
        self._stream.close()
        del self._context, self._engine


def refuse_another(artifact: Path, here: Mapping[str, str]) -> None:
    """Refuse an engine that was built for another GPU or by another TensorRT.

    Raises:
        Unsupported: the engine is not for this machine; the message says what to do.
    """
    built = json.loads((artifact / "gpu.json").read_text())
    if built != dict(here):
        theirs, ours = (", ".join(f"{k} {v}" for k, v in side.items()) for side in (built, here))
        raise Unsupported(
            f"the engine {artifact} was built for {theirs}; this is {ours}: delete that folder"
        )


def _timings(others: Path, about: str) -> bytes:
    """Return the newest timing cache of the same TensorRT on the same GPU, or empty bytes."""
    found = [
        path
        for path in others.glob("[!.]*/timing.cache")
        if (path.parent / "gpu.json").read_text() == about
    ]
    return max(found, key=lambda path: path.stat().st_mtime).read_bytes() if found else b""


def _modes() -> type[trt.TensorIOMode]:
    return trt.TensorIOMode


def device() -> str:
    """Return the names of the GPU and of the TensorRT version; this asks the driver first."""
    return f"{cuda_device()}, TensorRT {TENSORRT.load().__version__}"


_RUN: dict[str, Admits] = {"device": ("cuda",), "threads": (1,), "tf32": (False, True)}

BACKEND = Backend(
    name="tensorrt",
    summary="TensorRT 11 on an NVIDIA GPU: FP32, FP16, BF16 and INT8 as the ONNX file is typed",
    library=TENSORRT,
    companions=(CUDA,),
    device=device,
    environment=Environment(
        requirements=("numpy==2.4.6", "cuda-bindings==13.5.0", "tensorrt==11.4.0.106"),
        why="TensorRT crashes its process if there is a problem with the GPU",
    ),
    offers=tuple(
        Offer(
            Stage.RUNTIME,
            {**_RUN, "storage": (kind,), "compute": (kind,)},
            TensorRtRuntime,
            source="https://docs.nvidia.com/deeplearning/tensorrt/11.4.0/",
        )
        for kind in ("fp32", "fp16", "bf16", "int8")
    ),
    fields={"tf32": "whether convolutions and matrix products may run in TF32"},
)
