"""Gradients of ONNX files: onnx2torch turns them into modules, PyTorch's autograd goes back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from backends.pytorch_converters import onnx2torch, plain, registered, straight, torch
from backends.pytorch_gradients import TorchGradients
from simulator.contract import Backend, MissingLibrary, ModelError, Offer, Stage

ROUNDING = ("QuantizeLinear", "Round")


class OnnxGradients(TorchGradients):
    """An ONNX file as a ``torch.fx.GraphModule``."""

    def _read(self, artifact: Path) -> Any:
        import onnx

        registered()
        try:
            model = onnx.load(str(artifact))
            self.rounds = any(node.op_type in ROUNDING for node in model.graph.node)
            return straight(onnx2torch.convert(plain(model))).eval()
        except MissingLibrary:
            raise
        except Exception as error:  # a converter may raise anything
            why = f"{type(error).__name__}: {str(error).strip()}".splitlines()[0]
            raise ModelError(
                f"{artifact}: onnx2torch cannot convert it: {why[:300]}; name a torch.export "
                "program of it in the card, torch_export: FILE.pt2"
            ) from error


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
