"""Pictures of two colors in folders of their names, and a classifier that can learn them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import helper

from simulator.testing import files, image_specimen, models

COLORS = {"blue": (40, 30, 220), "red": (220, 30, 40)}
EACH = 8


def write(folder: Path) -> dict[str, str]:
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
    (folder / "card.yaml").write_text(f"{image_specimen.CARD}labels: labels.txt\n", "utf-8")
    return {"model": str(folder / "card.yaml"), "data": str(folder / "data")}
