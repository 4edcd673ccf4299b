"""The ONNX file of a learned codec: checks, and a session of ONNX Runtime."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError

from backends.ort.library import ort, plainly, session_options
from simulator.contract import ModelError, Options, Unsupported

LARGEST = 2**30
"""Bytes of a codec at most."""
STRIDES = range(1, 257)
_FLOAT = "tensor(float)"
_Port = tuple[str, str, list[int | str | None]]
"""Name, type and shape."""


def opened(options: Options) -> tuple[Any, int]:
    """Open a codec.

    Its input is (1, 3, H, W) float32, R, G, B from 0 to 1, for any multiples H and W of its stride,
    which the file's metadata says (``stride``). Its first output is the same again, after analysis,
    rounding and synthesis; a second one may give the rounded integers, in any shape.

    Args:
        options: the path ``codec``, ``threads`` and ``graph_optimization_level``.

    Returns:
        An ``onnxruntime.InferenceSession``, and the stride.

    Raises:
        ModelError: the file is no such codec; the message says in one line why.
    """
    path = Path(options["codec"])
    data = _content(path)
    stride = _checked(path, data)
    asked = session_options(options["threads"], options["graph_optimization_level"])
    try:
        with plainly():
            where = {"providers": ["CPUExecutionProvider"], "enable_fallback": 0}
            session = ort.InferenceSession(data, asked, **where)
            inputs, outputs = (
                [(port.name, port.type, port.shape) for port in ports]
                for ports in (session.get_inputs(), session.get_outputs())
            )
    except Unsupported as error:
        raise ModelError(f"{path}: no codec: {_line(error)}") from error
    _check_ports(path, inputs, outputs)
    return session, stride


def _content(path: Path) -> bytes:
    try:
        if path.stat().st_size > LARGEST:
            raise ModelError(f"{path}: no codec: more than {LARGEST:,} bytes")
        return path.read_bytes()
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror or error}") from error


def _checked(path: Path, data: bytes) -> int:
    """Return the stride of a codec whose data is all in its file."""
    try:
        model = onnx.load_model_from_string(data)
    except (DecodeError, ValueError) as error:
        raise ModelError(f"{path}: no ONNX file: {_line(error)}") from error
    if any(tensor.data_location == tensor.EXTERNAL for tensor in _tensors(model)):
        raise ModelError(f"{path}: keeps data in other files; a codec must be one file")
    said = {metadata_prop.key: metadata_prop.value for metadata_prop in model.metadata_props}.get(
        "stride", ""
    )
    if not (said.isascii() and said.isdigit() and len(said) < 4 and int(said) in STRIDES):
        raise ModelError(
            f"{path}: its metadata must have a stride from 1 to {STRIDES[-1]}, got "
            f"{said[:40]!r}; write it with onnx.helper.set_model_props(model, {{'stride': '8'}})"
        )
    return int(said)


def _tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Yield every constant, also of functions and of the bodies of If and Loop."""
    yield from _constants(model.graph)
    for function in model.functions:
        for node in function.node:
            yield from _of_node(node)


def _constants(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    for node in graph.node:
        yield from _of_node(node)


def _of_node(node: onnx.NodeProto) -> Iterator[onnx.TensorProto]:
    for attribute in node.attribute:
        yield from (attribute.t, *attribute.tensors)
        for sparse in (attribute.sparse_tensor, *attribute.sparse_tensors):
            yield from (sparse.values, sparse.indices)
        for graph in (attribute.g, *attribute.graphs):
            yield from _constants(graph)


def _check_ports(path: Path, inputs: Sequence[_Port], outputs: Sequence[_Port]) -> None:
    if len(inputs) != 1 or not outputs:
        raise ModelError(f"{path}: a codec has one input; got {len(inputs)}")
    for what, (_, kind, shape) in (("input", inputs[0]), ("first output", outputs[0])):
        if kind != _FLOAT or len(shape) != 4:
            raise ModelError(
                f"{path}: its {what} must be {_FLOAT} of 4 dimensions, got {kind} of {len(shape)}"
            )
    shape = inputs[0][2]
    batch, channels, *sides = shape
    fixed = any(isinstance(side, int) for side in sides)
    if fixed or channels != 3 or (isinstance(batch, int) and batch != 1):
        told = " x ".join(str(one) if isinstance(one, int) else "any" for one in shape)
        raise ModelError(f"{path}: its input must be 1 x 3 x any x any, got {told}")


def _line(error: BaseException) -> str:
    text = " ".join(str(error).split())[:300] or type(error).__name__
    return "".join(one if one.isprintable() else "?" for one in text)
