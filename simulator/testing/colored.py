"""Pictures of two colors in folders of their names, and a classifier that can learn them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from simulator.testing import files, image_specimen

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
    weights = [
        numpy_helper.from_array(draw.normal(0, 0.3, shape).astype(np.float32), name)
        for name, shape in shapes.items()
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 32, 32])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2])
    graph = helper.make_graph(nodes, "colored", [x], [y], weights)
    opset = helper.make_opsetid("", 17)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=8)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    (folder / "labels.txt").write_text("".join(f"{name}\n" for name in COLORS), "utf-8")
    (folder / "card.yaml").write_text(f"{image_specimen.CARD}labels: labels.txt\n", "utf-8")
    return {"model": str(folder / "card.yaml"), "data": str(folder / "data")}
