"""ONNX files as PyTorch modules, by onnx2torch."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch

from simulator.contract import MissingLibrary, ModelError

if TYPE_CHECKING:
    import onnx


def convert(model: onnx.ModelProto) -> torch.nn.Module:
    """Return the network in evaluation mode; the submodule of each node has its name.

    Args:
        model: its nodes have names of letters and digits.

    Raises:
        ModelError: onnx2torch lacks an operator of the model.
        MissingLibrary: onnx2torch is not installed.
    """
    with _torchvision():
        try:
            import onnx2torch
        except ImportError as error:
            raise MissingLibrary(
                f"onnx2torch is needed, but it does not load: {_short(error)}; "
                "try: pip install 'pipeline-simulator[quantize]'"
            ) from error
        try:
            made: torch.nn.Module = onnx2torch.convert(model)
        except (NotImplementedError, ValueError, RuntimeError, AttributeError, KeyError) as error:
            raise ModelError(
                f"onnx2torch cannot convert the model: {_short(error)}; export it again at opset "
                "13 to 17, from operators that onnx2torch has"
            ) from error
    return made.eval()


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


@contextmanager
def _torchvision() -> Iterator[None]:
    """Stand in for torchvision where it is missing: onnx2torch imports it for NMS and RoiAlign."""
    if importlib.util.find_spec("torchvision") is not None:
        yield
        return
    package, operators = ModuleType("torchvision"), ModuleType("torchvision.ops")
    for name in ("nms", "roi_align", "box_convert"):
        setattr(operators, name, None)
    stand_ins: dict[str, Any] = {"torchvision": package, "torchvision.ops": operators}
    for name, module in stand_ins.items():
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
    stand_ins["torchvision"].ops = operators
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for name in stand_ins:
            sys.modules.pop(name, None)
