"""TensorRT engines: building, opening and inspecting them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simulator.contract import Library, Unsupported

TENSORRT = Library("tensorrt", distribution="tensorrt", extra="tensorrt")
__all__ = ["TENSORRT", "build", "open_engine", "products", "trt"]
if TYPE_CHECKING:
    import tensorrt as trt
else:
    trt = TENSORRT

_PRODUCTS = re.compile(r"conv|gemm|matmul|matrix.?multiply|fully.?connected", re.IGNORECASE)
_TYPES = (
    ("bf16", re.compile(r"BF16|BFloat16", re.IGNORECASE)),
    ("fp16", re.compile(r"FP16|Half", re.IGNORECASE)),
    ("fp32", re.compile(r"FP32|Float\b", re.IGNORECASE)),
    ("int8", re.compile(r"Int8", re.IGNORECASE)),
    ("fp8", re.compile(r"FP8", re.IGNORECASE)),
)


def build(source: Path, tf32: bool, timings: bytes) -> tuple[bytes, bytes]:
    """Build an engine from an ONNX file; the workspace may be as large as the GPU's memory.

    Args:
        source: the ONNX file; its types are the engine's types.
        tf32: whether FP32 products may run in TF32.
        timings: a timing cache of an earlier build on this GPU, or empty bytes.

    Returns:
        The serialized engine, and the timing cache after the build.

    Raises:
        Unsupported: TensorRT cannot read or build it; the message has its reason and the node.
    """
    log = _log()
    builder = trt.Builder(log)
    network = builder.create_network(0)
    parser = trt.OnnxParser(network, log)
    if not parser.parse_from_file(str(source)):
        raise Unsupported(f"TensorRT cannot read {source}: {parser.get_error(0)}")
    for index in range(network.num_inputs):
        port = network.get_input(index)
        if -1 in tuple(port.shape):
            raise Unsupported(f"TensorRT: {port.name!r} is {tuple(port.shape)}; fix its shape")
    config = builder.create_builder_config()
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    (config.set_flag if tf32 else config.clear_flag)(trt.BuilderFlag.TF32)
    cache = config.create_timing_cache(timings)
    config.set_timing_cache(cache, ignore_mismatch=False)
    engine = builder.build_serialized_network(network, config)
    if engine is None:
        raise Unsupported(f"TensorRT cannot build {source}: {log.said}")
    return bytes(engine), bytes(cache.serialize())


def open_engine(serialized: bytes) -> trt.ICudaEngine:
    """Open an engine.

    Raises:
        Unsupported: TensorRT refuses it; the message has its reason.
    """
    log = _log()
    engine = trt.Runtime(log).deserialize_cuda_engine(serialized)
    if engine is None:
        raise Unsupported(f"TensorRT cannot open the engine: {log.said}")
    return engine


def products(told: Mapping[str, Any]) -> Counter[str]:
    """Count an engine's convolutions and matrix products by the type of their first input.

    Args:
        told: the JSON of ``IEngineInspector.get_engine_information`` for an engine built with
            ``ProfilingVerbosity.DETAILED``. A tensor's type is in ``DataType`` since TensorRT 11,
            and was in ``Format/Datatype`` before.

    Returns:
        Counts by ``fp32``, ``tf32`` (FP32 tensors, a TF32 kernel), ``fp16``, ``bf16``, ``int8``.

    Source:
        https://docs.nvidia.com/deeplearning/tensorrt/10.16.1/inference-library/engine-tools.html
        https://docs.nvidia.com/deeplearning/tensorrt/11.4.0/api/migration/ (IEngineInspector)
    """
    found = Counter[str]()
    for layer in told["Layers"]:
        if not isinstance(layer, Mapping) or not layer.get("Inputs"):
            continue
        names = (layer.get(key, "") for key in ("LayerType", "ParameterType", "TacticName"))
        if not any(_PRODUCTS.search(name) for name in names):
            continue
        tensor = layer["Inputs"][0]
        words = next((str(v) for k, v in tensor.items() if k.lower().endswith("datatype")), "")
        kind = next((kind for kind, word in _TYPES if word.search(words)), words or "unknown")
        tactic = layer.get("TacticName", "")
        found["tf32" if kind == "fp32" and "tf32" in tactic else kind] += 1
    return found


def _log() -> Any:
    """Return a logger that keeps the last error and prints nothing."""
    base: Any = trt.ILogger

    class Log(base):  # type: ignore[misc]
        def __init__(self) -> None:
            base.__init__(self)
            self.said = "it does not say why"

        def log(self, severity: Any, message: str) -> None:
            if severity <= base.ERROR:
                self.said = " ".join(message.split())

    return Log()
