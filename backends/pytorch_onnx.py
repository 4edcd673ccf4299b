"""ONNX files in PyTorch, by onnx2torch: gradients, adaptation, and ``torch.export`` programs."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, ClassVar

from backends.pytorch_adapter import OFFERS as ADAPTERS
from backends.pytorch_adapter import WORDS
from backends.pytorch_converters import onnx2torch, plain, registered, straight, torch
from backends.pytorch_gradients import TorchGradients
from backends.quiet import quiet
from simulator.contract import Backend, Exporter, MissingLibrary, ModelError, Offer, Stage

ROUNDING = ("QuantizeLinear", "Round")


class OnnxGradients(TorchGradients):
    """An ONNX file as a ``torch.fx.GraphModule``."""

    takes: ClassVar[str] = "onnx"

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
            raise _refused(artifact, error) from error


class OnnxToProgram(Exporter):
    """``onnx2torch.convert`` and ``torch.export.export``, with fixed shapes and a batch of 1.

    Layers keep the names of the ONNX nodes. The program is held against ONNX Runtime.
    """

    takes: ClassVar[str] = "onnx"
    gives: ClassVar[str] = "torch_export"

    def export(self, source: Path, target: Path) -> None:
        """Convert an ``.onnx`` file to a program."""
        from backends import pytorch_onnx_export

        data = source.read_bytes()
        try:
            with quiet():
                program = pytorch_onnx_export.exported(data)
                made = io.BytesIO()  # of a file, its name would be in it
                torch.export.save(program, made)
        except MissingLibrary:
            raise
        except Exception as error:  # a converter may raise anything
            raise _refused(source, error) from error
        pytorch_onnx_export.hold(program, data, source)
        target.write_bytes(made.getvalue())


def _refused(source: Path, error: Exception) -> ModelError:
    why = f"{type(error).__name__}: {str(error).strip()}".splitlines()[0]
    return ModelError(
        f"{source}: onnx2torch cannot convert it: {why[:300]}; name a torch.export program of it "
        "in the card, torch_export: FILE.pt2"
    )


_SOURCE = "https://github.com/ENOT-AutoDL/onnx2torch"

BACKEND = Backend(
    name="onnx2torch",
    summary="onnx2torch: ONNX files as PyTorch programs, for gradients, and adapting to samples",
    library=onnx2torch,
    companions=(torch,),
    offers=(
        Offer(Stage.GRADIENT, {"format": ("onnx",)}, OnnxGradients, source=_SOURCE),
        Offer(Stage.EXPORT, {}, OnnxToProgram, source=_SOURCE),
        *ADAPTERS,
    ),
    fields=WORDS,
)
