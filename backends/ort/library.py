"""ONNX Runtime under the names of its packages: for CPUs, and for NVIDIA's GPUs."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from simulator.contract import Library, Port, Unsupported

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


_DTYPES = {
    "tensor(float)": "f4", "tensor(float16)": "f2", "tensor(double)": "f8", "tensor(bool)": "?",
    "tensor(uint8)": "u1", "tensor(uint16)": "u2", "tensor(uint32)": "u4", "tensor(uint64)": "u8",
    "tensor(int8)": "i1", "tensor(int16)": "i2", "tensor(int32)": "i4", "tensor(int64)": "i8",
}  # fmt: skip


def session_options(threads: int, level: str = "all") -> Any:
    """Return the options of a session that runs one node at a time and logs nothing.

    Args:
        threads: of a node.
        level: which graph optimizations are applied, a key of :data:`LEVELS`.
    """
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, LEVELS[level])
    options.log_severity_level = 4
    return options


def session_ports(
    session: Any, supported: Collection[str] = _DTYPES
) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
    """Return a session's inputs and outputs.

    Args:
        session: an ``onnxruntime.InferenceSession``.
        supported: the types that they may have, by ONNX Runtime's names.

    Raises:
        Unsupported: one has another type.
    """
    sides = (session.get_inputs(), session.get_outputs())
    inputs, outputs = (tuple(_port(node, supported) for node in nodes) for nodes in sides)
    return inputs, outputs


def _port(node: Any, supported: Collection[str]) -> Port:
    if node.type not in supported:
        raise Unsupported(f"{node.name!r} is {node.type}; supported: {', '.join(supported)}")
    shape = tuple(d if isinstance(d, int) else None for d in node.shape)
    return Port(node.name, np.dtype(_DTYPES[node.type]), shape)


_NOISE = r"^\[ONNXRuntimeError\] : \d+ : \w+ : |Load model from .*? failed: ?"
"""Before the reason: its class, and the file, which our own message names."""
_NODE = r'This is an invalid model\. In Node, \("([^"]*)", (\w+).*? , Error '
"""A node with all that it takes and gives; its name and operator are kept."""


@contextmanager
def plainly() -> Iterator[None]:
    """Remove source lines and C++ signatures from ONNX Runtime's messages."""
    try:
        yield
    except Exception as error:
        said = re.sub(_NODE, r"node \1, \2: ", re.sub(_NOISE, "", str(error)))
        raise Unsupported(re.sub(r"/onnxruntime_src/\S+ .*?\) (?=[A-Z])", "", said)) from error
