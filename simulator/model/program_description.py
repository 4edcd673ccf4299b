"""What a program of ``torch.export`` says of itself.

Source: torch/_export/serde/schema.py of PyTorch 2.13 (ScalarType, GraphSignature, TensorMeta).
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from simulator.contract.description import Description, Value, operators, precision
from simulator.contract.program import GRAPH, plain_program

_TYPES = {1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float16", 7: "float32",
          8: "float64", 12: "bool", 13: "bfloat16"}  # fmt: skip
PRODUCTS = ("conv1d", "conv2d", "conv3d", "conv_transpose2d", "convolution", "linear", "addmm",
            "mm", "bmm", "matmul")  # fmt: skip


def describe(path: Path) -> Description:
    """Read inputs, outputs and operators; weights are left alone.

    Raises:
        ModelError: it is no such program, or holds more than a graph and plain tensors.
    """
    with plain_program(path) as copy, zipfile.ZipFile(copy) as packed:
        (name,) = (name for name in packed.namelist() if name.endswith(GRAPH))
        said = json.loads(packed.read(name))
    graph, signature = (said["graph_module"][part] for part in ("graph", "signature"))
    tensors = graph["tensor_values"]
    made = operators(_typed(node, tensors) for node in graph["nodes"])
    stored, computed = precision(made, PRODUCTS)
    return Description(
        inputs=_values(signature["input_specs"], "user_input", tensors),
        outputs=_values(signature["output_specs"], "user_output", tensors),
        operators=made,
        storage=stored,
        compute=computed,
        metadata={"PyTorch": str(said.get("torch_version", ""))},
    )


def _values(
    specs: Sequence[Mapping[str, Any]], kind: str, tensors: Mapping[str, Any]
) -> tuple[Value, ...]:
    args = [spec[kind]["arg"].get("as_tensor") for spec in specs if kind in spec]
    return tuple(
        Value(arg["name"], _kind(tensors, arg), tuple(
            side.get("as_int") for side in tensors[arg["name"]]["sizes"]
        ))
        for arg in args if arg
    )  # fmt: skip


def _kind(tensors: Mapping[str, Any], arg: Mapping[str, str]) -> str:
    number = tensors.get(arg["name"], {}).get("dtype", 0)
    return _TYPES.get(number, f"type {number}")


def _typed(node: Mapping[str, Any], tensors: Mapping[str, Any]) -> tuple[str, str, str]:
    """An operator's name, and the types of its weights and of what it takes."""
    parts = str(node["target"]).split(".")
    name = parts[-2] if len(parts) > 1 else parts[0]
    taken = [one["arg"]["as_tensor"] for one in node["inputs"] if "as_tensor" in one["arg"]]
    kinds = [_kind(tensors, arg) for arg in taken] or [""]
    weighs = name in PRODUCTS and len(taken) > 1
    return name, kinds[1] if weighs and taken[1]["name"].startswith("p_") else "", kinds[0]
