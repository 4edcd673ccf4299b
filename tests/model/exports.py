"""Networks in the form of Ultralytics' exports, whose answers are written down in them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tiny
from onnx import helper

from simulator.experiments.common import chosen
from simulator.experiments.session import Session, Variant

NAMES = {0: "person", 1: "traffic light", 2: "cat"}
KEYS = {
    "description": "Ultralytics YOLOv8n model trained on coco8.yaml", "author": "Ultralytics",
    "date": "2026-11-24T03:40:38.000000", "version": "8.3.0",
    "license": "AGPL-3.0 License (https://ultralytics.com/license)",
    "docs": "https://docs.ultralytics.com", "stride": 32, "task": "detect", "batch": 1,
    "imgsz": [64, 64], "names": NAMES, "args": {"batch": 1, "half": False, "dynamic": False},
    "channels": 3, "end2end": False,
}  # fmt: skip
"""``self.metadata`` of ultralytics/engine/exporter.py; the exporter writes each as ``str``."""


def constant(outputs, metadata, shape=(1, 3, 64, 64), last=None):
    """A network that gives the same numbers for every image: (outputs) by name."""
    zero = [
        helper.make_node("ReduceMean", ["images"], ["mean"], keepdims=0),
        helper.make_node("Mul", ["mean", "zero"], ["nothing"]),
    ]
    nodes = [helper.make_node("Add", [f"{name}_", "nothing"], [name]) for name in outputs]
    constants = {"zero": np.float32(0)} | {f"{n}_": np.float32(a) for n, a in outputs.items()}
    shapes = {name: np.shape(array) for name, array in outputs.items()}
    proto = tiny.model([*zero, *nodes], {"images": list(shape)}, shapes, constants)
    for key, value in metadata.items():
        proto.metadata_props.add(key=key, value=str(value))
    return proto


def rows(count, width, *found):
    """(1, count, width) of zeros, with the rows of *found* among them."""
    made = np.zeros((1, count, width), np.float32)
    for place, row in found:
        made[0, place] = row
    return made


def write(folder: Path, proto, name="net.onnx") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(proto.SerializeToString())
    return folder / name


def images(folder: Path) -> Path:
    """A folder with one image of 64 x 64 and one of 128 x 96 pixels, (rows x columns)."""
    folder.mkdir(parents=True)
    for name, size in (("square", (64, 64)), ("tall", (128, 96))):
        (folder / f"{name}.png").write_bytes(tiny.encoded(tiny.picture((9, 99, 199), size), "png"))
    return folder


def found(model, folder, least):
    """What Pillow and ONNX Runtime find in two images, and the first note of the run.

    By image (box, score, class), with a score above *least*.
    """
    with Session.open(model, images(folder), None, 0, 1, None, None) as session:
        own = chosen("pillow_fp32", [])
        stack = session.stack(Variant("train", own, {"train": own, "deploy": own}))
        done = session.run(session.plan([stack]))
        answers = {
            item.name: [
                (box, round(score, 5), number)
                for box, score, number in zip(
                    np.reshape(row["boxes"], (-1, 4)).tolist(), row["scores"], row["classes"],
                    strict=True,
                )
                if score > least
            ]
            for item, row in zip(done.items, done.records("train"), strict=True)
        }  # fmt: skip
        return answers, session.notes[0]
