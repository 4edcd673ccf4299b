"""ONNX Runtime under the names of its packages: for CPUs, and for NVIDIA's GPUs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from simulator.contract import Library, Unsupported

FOR_GPUS = ("onnxruntime-gpu",)

ort = Library("onnxruntime", distribution="onnxruntime", extra="onnxruntime", others=FOR_GPUS)
quantization = Library(
    "onnxruntime.quantization", distribution="onnxruntime", extra="onnxruntime", others=FOR_GPUS
)

LEVELS = {
    "disable_all": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "layout": "ORT_ENABLE_LAYOUT",
    "all": "ORT_ENABLE_ALL",
}


@contextmanager
def plainly() -> Iterator[None]:
    """Remove source lines and C++ signatures from ONNX Runtime's messages."""
    try:
        yield
    except Exception as error:
        said = str(error).partition(" : FAIL : ")[2] or str(error)
        raise Unsupported(re.sub(r"/onnxruntime_src/\S+ .*?\) (?=[A-Z])", "", said)) from error
