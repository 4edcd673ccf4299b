"""Gradients of ONNX files: onnx2torch turns them into modules, PyTorch's autograd goes back."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import onnx

from backends.pytorch_converters import onnx2torch, plain, registered, torch
from backends.pytorch_gradients import TorchGradients
from simulator.contract import Backend, MissingLibrary, ModelError, Offer, Stage


class OnnxGradients(TorchGradients):
    """An ONNX file as a ``torch.fx.GraphModule``."""

    def _read(self, artifact: Path) -> Any:
        torch.load()
        with _without_torchvision():
            onnx2torch.load()
        registered()
        try:
            model = onnx.load(str(artifact))
            self.rounds = any(node.op_type == "QuantizeLinear" for node in model.graph.node)
            return onnx2torch.convert(plain(model)).eval()
        except MissingLibrary:
            raise
        except Exception as error:  # a converter may raise anything
            why = f"{type(error).__name__}: {str(error).strip()}".splitlines()[0]
            raise ModelError(
                f"{artifact}: onnx2torch cannot convert it: {why[:300]}; name a torch.export "
                "program of it in the card, torch_export: FILE.pt2"
            ) from error


@contextmanager
def _without_torchvision() -> Iterator[None]:
    """Let onnx2torch load without torchvision, which it needs for boxes only."""
    known = {name: sys.modules.get(name) for name in ("torchvision", "torchvision.ops")}
    whole, part = ModuleType("torchvision"), ModuleType("torchvision.ops")
    whole.ops = part  # type: ignore[attr-defined]
    for name in ("nms", "roi_align", "box_convert"):
        setattr(part, name, None)
    sys.modules.update({"torchvision": whole, "torchvision.ops": part})
    try:
        yield
    finally:
        for name, module in known.items():
            sys.modules.pop(name)
            if module is not None:
                sys.modules[name] = module


BACKEND = Backend(
    name="onnx2torch",
    summary="onnx2torch: ONNX files as PyTorch modules, for the gradients of attacks",
    library=onnx2torch,
    companions=(torch,),
    offers=(
        Offer(
            Stage.GRADIENT,
            {"format": ("onnx",)},
            OnnxGradients,
            source="https://github.com/ENOT-AutoDL/onnx2torch",
        ),
    ),
)
