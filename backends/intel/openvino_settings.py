"""Settings of OpenVINO's CPU plugin."""

from __future__ import annotations

from typing import Any

from simulator.contract import Options

CACHED = "1000"
"""Compiled kernels that are kept, each for its shapes; OpenVINO keeps 5,000, of 100 kB and more."""
_HINTS = {"fp32": "f32", "fp16": "f16", "bf16": "bf16", "int8": "f32"}


def settings(options: Options) -> dict[str, Any]:
    """Return OpenVINO's own names and values of the profile's settings."""
    return {
        "INFERENCE_PRECISION_HINT": _HINTS[options["compute"]],
        "INFERENCE_NUM_THREADS": options["threads"],
        "NUM_STREAMS": "1",
        "PERFORMANCE_HINT": "LATENCY",
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
        "CPU_RUNTIME_CACHE_CAPACITY": CACHED,
    }
