"""Models, images, stacks and logs of the golden runs, on which every processor agrees.

Images are PNG files whose sides are powers of two, and are resized by two. A pixel less 127, by 64,
is a float32 with few digits; so are the weights, and so is every sum of them, in any order.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import tiny
import tiny_tasks
import yaml
from onnx import helper
from PIL import Image

NAMES = tuple(tiny.COLORS)
EXACT = {
    "schema": 1, "name": "exact", "summary": "sums in any order", "extends": "pillow_fp32",
    "normalize": {"arithmetic": "divide"},
    "resize": {"backend": "pillow", "interpolation": "bilinear", "domain": "rgb"},
    "runtime": {
        "backend": "onnx_reference", "device": "cpu", "threads": 1,
        "graph_optimization_level": None,
    },
}  # fmt: skip
NV12 = {
    "format": "nv12", "source": "encode", "odd_size": "keep",
    "encode": {"backend": "sysnoise", "chroma_downsampling": "average"},
    "convert": {"backend": "sysnoise", "chroma_upsampling": "nearest"},
}  # fmt: skip
CAMERA = {
    "schema": 1, "name": "camera", "summary": "NV12, and no pixel between two",
    "extends": "exact.yaml", "color": NV12,
    "resize": {"backend": "pillow", "interpolation": "nearest", "domain": "rgb"},
}  # fmt: skip
BOARD = {
    "schema": 1, "name": "board", "summary": "what a board said", "extends": "exact.yaml",
    "runtime": {
        "backend": "recorded", "recording": "recording.yaml", "graph_optimization_level": None,
    },
}  # fmt: skip
SUITE = {
    "schema": 1, "name": "some", "summary": "an option or two of an axis", "train": "exact.yaml",
    "columns": {
        "decode": {"opencv": {"decode.backend": "opencv"}},
        "resize": {
            "nearest": {"resize": "pil-nearest"},
            "upper-left": {"resize": "opencv-nearest"},
        },
        "color": {"nv12": {"color": NV12}, "bgr": {"color.order": "bgr"}},
        "ceil_mode": {"ceil": {"graph.pooling.ceil_mode": "ceil"}},
    },
    "combined": {"resize": "pil-nearest", "color": NV12},
}  # fmt: skip
NEAREST = {"mode": "nearest", "coordinate_transformation_mode": "half_pixel"}
TASK_COLUMNS = {
    "detection": {
        "offset": {"corners": {"postprocess.box_offset.corners": 1}},
        "nms": {"strict": {"postprocess.nms.score_threshold": 0.9}},
    },
    "segmentation": {
        "upsample": {"nearest": {"postprocess.logits_upsample": NEAREST}},
        "argmax": {"before": {"postprocess.argmax": "before"}},
    },
}
RULES = [
    {"fail_on": "flip_rate > 50%", "because": "half of the answers must stay"},
    {"fail_on": "delta.top1 < -20%", "because": "one in five", "deploy": ["camera"]},
]
SIZED = (
    {"kind": "rect_letterbox", "long_side": 64, "multiple_of": 16, "value": 110},
    {"kind": "keep_ratio", "shortest": 48, "longest": 64, "multiple_of": 16, "value": 110},
    {"kind": "native", "multiple_of": 32, "value": "zero"},
)
SIDE = 64
SCENES = (
    (("red", 0, 0, 32), ("blue", 64, 32, 32)),
    (("green", 32, 96, 32), ("red", 88, 8, 32)),
    (("blue", 96, 96, 32), ("red", 0, 64, 32), ("green", 64, 0, 32)),
    (("green", 0, 0, 64), ("blue", 72, 64, 32)),
    (),
)
"""Squares (color, left, top, side) in images of 128 x 128; every other pixel of the second is
missing where a network that takes the nearest pixel looks."""


def write(root: Path) -> None:
    """Write all inputs into a folder."""
    root.mkdir(parents=True, exist_ok=True)
    for document in (EXACT, CAMERA, BOARD):
        _yaml(root / f"{document['name']}.yaml", document)
    _yaml(root / "some.yaml", SUITE)
    for task, columns in TASK_COLUMNS.items():
        some = {"decode", "resize", "color"}
        kept = {name: options for name, options in SUITE["columns"].items() if name in some}
        _yaml(root / f"some-{task}.yaml", SUITE | {"columns": kept | columns, "combined": None})
    tiny.card(root / "colors")
    tiny.card(root / "pools", _pools(), name="pools")
    for task in TASK_COLUMNS:
        tiny_tasks.card(root / task, task)
        _scenes(root / f"{task}-data", task)
    for geometry in SIZED:
        tiny_tasks.free_card(root / geometry["kind"], geometry)
    _scenes(
        root / "sizes-data", "detection", ((128, 128), (96, 128), (128, 96), (128, 64), (64, 96))
    )
    _images(root / "data")
    _images(root / "broken")
    (root / "broken" / "blue" / "half.png").write_bytes(tiny.encoded(_image(0, 0), "png")[:99])
    _recording(root)
    _log(root, "train", 4_000_000)
    _log(root, "deploy", 3_000_000)
    audit = {
        "schema": 1, "name": "colors", "summary": "May it be shipped?", "train": "exact.yaml",
        "deploy": {
            "camera": "camera.yaml",
            "bgr": {"profile": "exact.yaml", "set": {"color.order": "bgr"}},
        },
        "models": {"colors": {"card": "colors/card.yaml"}, "pools": {"card": "pools/card.yaml"}},
        "data": "data", "limit": 10, "seed": 2, "rules": RULES,
    }  # fmt: skip
    _yaml(root / "audit.yaml", audit)


def images(folder: Path) -> list[str]:
    """Return the names of a folder's images, as records have them."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.png"))


def _yaml(path: Path, document: dict[str, Any]) -> None:
    kept = {key: value for key, value in document.items() if value is not None}
    path.write_text(yaml.safe_dump(kept, sort_keys=False))


def _pools() -> Any:
    """The colors of the brightest pixels: 15 x 15 of them, 16 x 16 with ceil mode."""
    nodes = [
        helper.make_node("MaxPool", ["x"], ["bright"], kernel_shape=[3, 3], strides=[2, 2]),
        helper.make_node("ReduceSum", ["bright", "sides"], ["flat"], keepdims=0),
        helper.make_node("Gemm", ["flat", "w"], ["y"], name="fc"),
    ]
    weights = np.eye(3, dtype=np.float32) / 256
    return tiny.model(nodes, constants={"w": weights, "sides": np.array([2, 3])})


def _grain(rows: int, columns: int, seed: int) -> np.ndarray:
    """A pattern of -20 to 20 without a random generator, whose stream a version may change."""
    row, column, channel = np.ogrid[:rows, :columns, :3]
    return (row * row * 7 + column * 11 + row * column * 3 + channel * 5 + seed * 13) % 41 - 20


def _image(color: int, number: int) -> np.ndarray:
    """An image of one color, in which another one takes every second row, column, or both."""
    rows, columns = SIDE, SIDE * (1 + number % 2)
    own, other = (np.array(tiny.COLORS[NAMES[(color + step) % 3]]) for step in (0, 1))
    pixels = np.broadcast_to(own, (rows, columns, 3)).copy()
    if number == 1:
        pixels[1::2, 1::2] = other
    elif number == 2:
        pixels[::2, ::2] = other
    elif number == 3:
        pixels[:, 1::2] = np.clip(other * 1.15, 0, 255)
        pixels[:4] = own
    return np.clip(pixels + _grain(rows, columns, color + 3 * number), 0, 255).astype(np.uint8)


def _images(folder: Path) -> None:
    for color, name in enumerate(NAMES):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for number in range(4):
            file = folder / name / f"{name}{number}.png"
            file.write_bytes(tiny.encoded(_image(color, number), "png"))


def _scenes(folder: Path, task: str, sizes: tuple[tuple[int, int], ...] = ((128, 128),)) -> None:
    """Write the scenes in turn in these sizes, what of them is whole, and a data card."""
    (folder / "images").mkdir(parents=True)
    (folder / "masks").mkdir()
    listed, annotations = [], []
    for number, scene in enumerate(SCENES):
        rows, columns = size = sizes[number % len(sizes)]
        squares = [one for one in scene if one[1] + one[3] <= columns and one[2] + one[3] <= rows]
        pixels = tiny_tasks.picture(*squares, size=size).astype(np.int64)
        if number == 1:
            pixels[1::2, 1::2] = tiny_tasks.GRAY
        pixels = np.clip(pixels + _grain(*size, number), 0, 255).astype(np.uint8)
        file = f"{number}.png"
        (folder / "images" / file).write_bytes(tiny.encoded(pixels, "png"))
        listed.append({"id": number, "file_name": file, "width": columns, "height": rows})
        mask = np.full(size, 255, np.uint8)
        for color, left, top, side in squares:
            kind = NAMES.index(color)
            mask[top : top + side, left : left + side] = kind
            annotations.append(
                {"id": len(annotations) + 1, "image_id": number, "category_id": kind + 1,
                 "bbox": [left, top, side, side], "area": side * side, "iscrowd": 0}
            )  # fmt: skip
        Image.fromarray(mask).save(folder / "masks" / file)
    categories = [{"id": number, "name": name} for number, name in enumerate(NAMES, 1)]
    document = {"images": listed, "annotations": annotations, "categories": categories}
    (folder / "boxes.json").write_text(json.dumps(document))
    (folder / "classes.txt").write_text("\n".join(NAMES) + "\n")
    card: dict[str, Any] = {"schema": 1, "name": "squares", "task": task, "images": "images"}
    if task == "detection":
        card |= {"format": "coco", "annotations": "boxes.json"}
    else:
        card |= {"format": "index_masks", "annotations": "masks", "classes": "classes.txt",
                 "ignore": 255}  # fmt: skip
    _yaml(folder / "data.yaml", card)


def _recording(root: Path) -> None:
    """What a board said: every fourth image is taken for the next color."""
    names = images(root / "data")
    dump, times = {}, ["image,decode_ns,infer_ns"]
    for number, name in enumerate(names):
        logits = np.zeros((1, 3), np.float32)
        logits[0, (NAMES.index(name.split("/")[0]) + (number % 4 == 3)) % 3] = 5
        dump[name] = logits
        times.append(f"{name},{1_000_000 + number},{5_000_000 + 1000 * number}")
    np.savez(root / "dump.npz", **dump)
    (root / "latency.csv").write_text("\n".join(times) + "\n")
    model = hashlib.sha256((root / "colors" / "model.onnx").read_bytes()).hexdigest()
    manifest = {
        "schema": 1, "name": "board", "device": "Board 7", "kind": "outputs", "file": "dump.npz",
        "match": "name", "latency": "latency.csv", "model": model,
    }  # fmt: skip
    (root / "recording.yaml").write_text(json.dumps(manifest))


def _log(root: Path, side: str, least: int) -> None:
    """A device's log of five rounds, of which the fourth is slow."""
    lines = ["image,round,decode_ns,infer_ns"]
    for turn in range(5):
        for number, name in enumerate(images(root / "data")):
            spent = least + (number * 7919 + turn * 104_729) % 1009 * 4000 + (turn == 3) * 2_000_000
            lines.append(f"{name},{turn},{500_000 + number},{spent}")
    (root / f"log_{side}.csv").write_text("\n".join(lines) + "\n")
