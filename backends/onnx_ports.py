"""Tools for runtimes that convert ONNX files: inputs and outputs, node names, comparison."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from simulator.contract import Array, ModelError, Port, Unsupported

Ports = tuple[Port, ...]
FILE = "ports.json"


def read_onnx(source: Path) -> Any:
    """Load a model with its external data, and infer shapes as far as possible.

    Raises:
        ModelError: the file is not an ONNX model.
    """
    import onnx
    from google.protobuf.message import DecodeError

    try:
        model = onnx.load(str(source))
        return onnx.shape_inference.infer_shapes(model) if model.graph.node else model
    except (DecodeError, ValueError, OSError) as error:
        raise ModelError(f"{source}: not an ONNX model: {str(error).splitlines()[0]}") from error


def ports(model: Any) -> tuple[Ports, Ports]:
    """Return the inputs and outputs of an ``onnx.ModelProto``; constants are not inputs."""
    constants = {tensor.name for tensor in model.graph.initializer}
    inputs = (value for value in model.graph.input if value.name not in constants)
    return tuple(map(_port, inputs)), tuple(map(_port, model.graph.output))


def _port(value: Any) -> Port:
    import onnx

    tensor = value.type.tensor_type
    shape = tuple(d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim)
    dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))
    return Port(value.name, dtype, shape)


def check_fixed(where: Iterable[Port], runtime: str) -> None:
    """Refuse free dimensions, for a runtime that does not support them.

    Raises:
        Unsupported: the message names the first such input or output.
    """
    for port in where:
        if None in port.shape:
            shape = "x".join("?" if size is None else str(size) for size in port.shape)
            raise Unsupported(
                f"{runtime} has no dynamic shapes, but {port.name!r} is {shape}; export the model "
                "with fixed sizes (onnx.tools.update_model_dims)"
            )


def name_nodes(model: Any, kinds: Iterable[str]) -> str:
    """Return operators, each with a node of the model that uses it: ``Det (node 'd')``."""
    words = []
    for kind in dict.fromkeys(kinds):
        nodes = [node.name for node in model.graph.node if node.op_type == kind and node.name]
        words.append(f"{kind} (node {nodes[0]!r})" if nodes else kind)
    return ", ".join(words)


def distance(source: Path, run: Callable[[dict[str, Array]], Mapping[str, Array]]) -> float:
    """Return the difference between a converted model and its ONNX file on random inputs.

    Args:
        source: the ONNX file; all sizes are fixed.
        run: runs the converted model.

    Returns:
        The largest difference, relative to the largest output of ``onnx.reference``; 0 if that does
        not implement an operator.
    """
    from onnx.reference import ReferenceEvaluator

    model, rng = read_onnx(source), np.random.default_rng(0)
    feeds = {
        port.name: rng.standard_normal([size or 1 for size in port.shape]).astype(port.dtype)
        for port in ports(model)[0]
    }
    try:
        wanted = ReferenceEvaluator(model).run(None, feeds)
    except (NotImplementedError, RuntimeError):
        return 0.0
    got = run(feeds).values()
    return max(
        float(np.abs(a - b).max() / max(float(np.abs(b).max()), 1e-6))
        for a, b in zip(got, wanted, strict=True)
    )


def run_tool(
    command: Sequence[str], work: Path, env: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Run a converter in a folder as a child process, where a crash does no harm.

    Returns:
        Its exit code, and everything that it printed.
    """
    done = subprocess.run(
        command, cwd=work, env=env, capture_output=True, text=True, errors="replace", check=False
    )
    return done.returncode, f"{done.stdout}\n{done.stderr}"


def save_ports(folder: Path, *sides: Ports) -> None:
    """Write inputs and outputs to a file in the folder of a compiled model."""
    rows = [[[p.name, p.dtype.name, p.shape] for p in side] for side in sides]
    (folder / FILE).write_text(json.dumps(rows))


def load_ports(folder: Path) -> tuple[Ports, Ports]:
    """Read the inputs and outputs that `save_ports` wrote."""
    inputs, outputs = json.loads((folder / FILE).read_text())
    return _ports(inputs), _ports(outputs)


def _ports(rows: list[Any]) -> Ports:
    return tuple(Port(name, np.dtype(dtype), tuple(shape)) for name, dtype, shape in rows)
