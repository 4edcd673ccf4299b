"""Samples of the example vendor's modality, worked out on paper, with a model and its card.

The network gives 0.5 + 0.5 * x[0], and x is the reading divided by 2. In signed bytes the reading
0.802 becomes 51 / 128, so the wear 0.7005 becomes 0.6992 and its grade 1 instead of 2.
"""

import json

import numpy as np
import onnx
import tiny
import yaml
from onnx import helper

READINGS = {"new": -1.9, "edge": 0.802, "run_in": 0.0, "worn": 1.9}
GRADES = {"new": 0, "edge": 2, "run_in": 1, "worn": 2}
CARD = {
    "schema": 1, "name": "bearings", "task": "acme_wear", "model": "model.onnx",
    "input": {"kind": "vector", "length": 4, "full_scale": 2.0},
    "output": {"limits": [0.3, 0.7]},
}  # fmt: skip
DATA = {
    "schema": 1, "name": "bearings", "task": "acme_wear", "format": "table",
    "files": "readings", "grades": "grades.csv",
}  # fmt: skip


def model():
    """One linear layer, and a Relu that none of the four samples reaches."""
    weights = {"w": np.zeros((4, 1), np.float32), "b": np.array([0.5], np.float32)}
    weights["w"][0] = 0.5
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["product"]),
        helper.make_node("Add", ["product", "b"], ["wear"]),
        helper.make_node("Relu", ["wear"], ["y"]),
    ]
    return tiny.model(nodes, {"x": ["n", 4]}, {"y": ["n", 1]}, weights)


def plan(folder):
    """The same network without the Relu, as a plan of Acme's compiler."""
    path = folder / "bearings.plan"
    path.write_text(json.dumps({"weights": [[0.5], [0], [0], [0]], "bias": [0.5]}))
    return path


def write(folder):
    """Write ``card.yaml`` with its model, and a folder of data; return both paths.

    The folder has a ``data.yaml``, and a ``drive.yaml`` of the same samples in the vendor's source.
    """
    readings = folder / "data" / "readings"
    readings.mkdir(parents=True)
    for name, value in READINGS.items():
        np.save(readings / f"{name}.npy", np.array([value, 1, 1, 1], np.float32))
    rows = "".join(f"{name}.npy,{grade}\n" for name, grade in GRADES.items())
    (folder / "data" / "grades.csv").write_text(rows)
    (folder / "data" / "data.yaml").write_text(yaml.safe_dump(DATA))
    drive = {one.stem: np.load(one) for one in readings.iterdir()}
    np.savez(folder / "data" / "drive.npz", **drive)
    packed = DATA | {"files": "drive.npz"}
    (folder / "data" / "drive.yaml").write_text(yaml.safe_dump(packed))
    onnx.save(model(), folder / "model.onnx")
    (folder / "card.yaml").write_text(yaml.safe_dump(CARD))
    return folder / "card.yaml", folder / "data"
