"""A network small enough to be worked out by hand, its card, and images for it."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import yaml
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

COLORS = {"red": (220, 30, 40), "green": (30, 220, 40), "blue": (40, 30, 220)}
SPEC: dict[str, Any] = {
    "schema": 1,
    "name": "colors",
    "task": "classification",
    "model": "model.onnx",
    "input": {
        "height": 32, "width": 32, "layout": "NCHW", "order": "rgb", "top": 255,
        "mean": [127.0, 127.0, 127.0], "std": [64.0, 64.0, 64.0],
    },
    "geometry": {"kind": "squash"},
    "output": {"kind": "logits"},
    "labels": "labels.txt",
}  # fmt: skip


def model(nodes, inputs=None, outputs=None, constants=None, opset=17, domains=()):
    """An ONNX model; *inputs* and *outputs* are name → shape, float32."""
    values = [
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
            for name, shape in ports.items()
        ]
        for ports in (inputs or {"x": [1, 3, 32, 32]}, outputs or {"y": [1, 3]})
    ]
    arrays = [numpy_helper.from_array(a, name) for name, a in (constants or {}).items()]
    graph = helper.make_graph(nodes, "tiny", *values, arrays)
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def classifier(size=32, **options):
    """The mean of each channel is the logit of its colour: pool, flatten, times one."""
    nodes = [
        helper.make_node("GlobalAveragePool", ["x"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["flat"]),
        helper.make_node("Gemm", ["flat", "w"], ["y"], name="fc"),
    ]
    weights = {"w": np.eye(3, dtype=np.float32)}
    return model(nodes, {"x": [1, 3, size, size]}, constants=weights, **options)


def pooled(kind="MaxPool", **options):
    """A pool before a Relu and the classifier."""
    options = {"kernel_shape": [3, 3], "strides": [2, 2]} | options
    nodes = [
        helper.make_node(kind, ["x"], ["p"], name="pool", **options),
        helper.make_node("Relu", ["p"], ["r"], name="last"),
        helper.make_node("GlobalAveragePool", ["r"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["flat"]),
        helper.make_node("Gemm", ["flat", "w"], ["y"]),
    ]
    return model(nodes, constants={"w": np.eye(3, dtype=np.float32)})


def card(folder: Path, proto: onnx.ModelProto | None = None, **fields: Any) -> Path:
    """Write a model, its labels and its card; *fields* replace those of the card."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes((proto or classifier()).SerializeToString())
    (folder / "labels.txt").write_text("red\ngreen\nblue\n")
    spec = {k: v for k, v in {**SPEC, **fields}.items() if v is not None}
    path = folder / "card.yaml"
    path.write_text(yaml.safe_dump(spec, sort_keys=False))
    return path


def picture(color, size=(40, 48), seed=0):
    """A noisy image of one colour, (rows, columns, 3)."""
    noise = np.random.default_rng(seed).integers(-20, 21, (*size, 3))
    return np.clip(np.array(color) + noise, 0, 255).astype(np.uint8)


def encoded(image, format="jpeg", **options) -> bytes:
    """The bytes of a file."""
    buffer = io.BytesIO()
    (image if isinstance(image, Image.Image) else Image.fromarray(image)).save(
        buffer, format, **options
    )
    return buffer.getvalue()


def data(folder: Path, each: int = 2) -> Path:
    """Class folders with *each* JPEGs of each colour."""
    for name, color in COLORS.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        for number in range(each):
            file = folder / name / f"{name}{number}.jpg"
            file.write_bytes(encoded(picture(color, seed=number), quality=90))
    return folder
