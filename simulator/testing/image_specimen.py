"""Images and classifiers that things are tried with: of the modality, and two colors to learn."""

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


COLORS = {"blue": (40, 30, 220), "red": (220, 30, 40)}
EACH = 8


def colored(folder: Path) -> dict[str, str]:
    """Write model, card and pictures; return them as options."""
    draw = np.random.default_rng(0)
    for name, color in COLORS.items():
        (folder / "data" / name).mkdir(parents=True)
        for number in range(EACH):
            pixels = np.clip(draw.normal(color, 20, (40, 48, 3)), 0, 255).astype(np.uint8)
            picture = folder / "data" / name / f"{number}.jpg"
            picture.write_bytes(files.jpeg(pixels).data)
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c"], name="conv", strides=[4, 4]),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node("Conv", ["r", "w2"], ["d"], name="inner"),
        helper.make_node("GlobalAveragePool", ["d"], ["p"], name="pool"),
        helper.make_node("Flatten", ["p"], ["f"], name="flat"),
        helper.make_node("Gemm", ["f", "w3"], ["y"], name="last"),
    ]
    shapes = {"w1": (6, 3, 4, 4), "w2": (6, 6, 1, 1), "w3": (6, 2)}
    weights = {
        name: draw.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()
    }
    model = models.model("colored", nodes, {"x": ["n", 3, 32, 32]}, {"y": ["n", 2]}, weights)
    onnx.save(model, folder / "model.onnx")
    (folder / "labels.txt").write_text("".join(f"{name}\n" for name in COLORS), "utf-8")
    (folder / "card.yaml").write_text(f"{CARD}labels: labels.txt\n", "utf-8")
    return {"model": str(folder / "card.yaml"), "data": str(folder / "data")}
