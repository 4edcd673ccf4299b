"""pnnx: from an ONNX file to ncnn's ``.param`` and ``.bin``."""

from __future__ import annotations

import importlib.util
import re
import shutil
import tempfile
from pathlib import Path

from backends.onnx_ports import check_fixed, name_nodes, ports, read_onnx, run_tool, save_ports
from simulator.contract import Library, MissingLibrary, ModelError, Unsupported
from simulator.contract.installing import install

pnnx = Library("pnnx", distribution="pnnx", extra="ncnn")

FILES = ("model.ncnn.param", "model.ncnn.bin")
_UNKNOWN = re.compile(r"^todo (\S+)|:(\w+)\(-?\d+\) is not a registered function/op", re.MULTILINE)


def convert(source: Path, folder: Path) -> None:
    """Convert an ONNX file with FP32 weights; pnnx's temporary files are removed.

    Raises:
        ModelError: pnnx fails, or writes operators that ncnn does not have.
        Unsupported: the model has free dimensions, or a batch other than one.
    """
    import onnx

    model = read_onnx(source)
    inputs, outputs = ports(model)
    check_fixed((*inputs, *outputs), "ncnn")
    for port in (*inputs, *outputs):
        if port.shape[:1] != (1,):
            raise Unsupported(f"ncnn has no batch dimension, but {port.name!r} is {port.shape}")
    shapes = ",".join(str(list(port.shape)).replace(" ", "") + "f32" for port in inputs)
    with tempfile.TemporaryDirectory() as work:
        onnx.save(model, str(Path(work) / "model.onnx"))
        command = [_program(), "model.onnx", f"inputshape={shapes}", "fp16=0"]
        code, said = run_tool(command, Path(work))
        if unknown := ["".join(words) for words in _UNKNOWN.findall(said)]:
            raise ModelError(f"ncnn has no operator {name_nodes(model, unknown)}: {source}")
        made = [Path(work) / name for name in FILES]
        if code or not all(file.is_file() for file in made):
            reason = [line for line in said.splitlines() if "failed" in line][-1:]
            words = " ".join("".join(reason).split())[:200] or f"exit {code}"
            raise ModelError(f"pnnx cannot convert {source}: {words}")
        for file in made:
            shutil.copyfile(file, folder / file.name)
    save_ports(folder, inputs, outputs)


def _program() -> str:
    """Return the path of pnnx without importing its package, which would import torch."""
    spec = importlib.util.find_spec("pnnx")
    if spec is None or spec.origin is None:
        raise MissingLibrary(
            f"ncnn models are made by 'pnnx', which is not installed; try: {install('ncnn')}"
        )
    return str(Path(spec.origin).with_name("pnnx"))
