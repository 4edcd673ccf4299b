"""The samples and model with which the conformance suite tests the modality ``image``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import helper

from simulator.modalities.specimen import Specimen
from simulator.testing import files, models

CARD = """\
schema: 1
name: colors
task: classification
model: model.onnx
input:
  {height: 32, width: 32, layout: NCHW, order: rgb, top: 255,
   mean: [127.0, 127.0, 127.0], std: [64.0, 64.0, 64.0]}
geometry: {kind: squash}
output: {kind: logits}
"""


def write(folder: Path) -> Specimen:
    """Write a JPEG, a PNG, and a classifier whose logits are the means of the channels."""
    jpeg, png = folder / "one.jpg", folder / "other.png"
    jpeg.write_bytes(files.jpeg(files.picture(40, 48)).data)
    png.write_bytes(files.png(files.picture(39, 47, seed=1)))
    nodes = [
        helper.make_node("GlobalAveragePool", ["x"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["flat"]),
        helper.make_node("Gemm", ["flat", "w"], ["y"]),
    ]
    weights = {"w": np.eye(3, dtype=np.float32)}
    model = models.model("colors", nodes, {"x": [1, 3, 32, 32]}, {"y": [1, 3]}, weights)
    onnx.save(model, folder / "model.onnx")
    (folder / "card.yaml").write_text(CARD)
    return Specimen((jpeg, png), folder / "card.yaml", "pillow_bilinear_fp32")
