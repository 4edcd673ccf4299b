"""A rectangular letterbox, to a multiple of 32, and a square one: inputs, and boxes."""

import os
from functools import cache
from pathlib import Path

import cv2
import numpy as np
import onnx
import onnxruntime

SIZE = 416


def train(path):
    """As little padding as a multiple of 32 needs."""
    return boxed(path, square=False)[0]


def deploy(path):
    """The square that the network was exported with."""
    return boxed(path, square=True)[0]


def train_boxes(path):
    """The same network, which takes any size in training."""
    return detected(path, square=False)


def deploy_boxes(path):
    """The exported one."""
    return detected(path, square=True)


def boxed(path, square):
    """The image in the middle of gray 114; its top and left, and its scale."""
    image = cv2.imread(path)
    scale = SIZE / max(image.shape[:2])
    rows, columns = (int(side * scale) for side in image.shape[:2])
    height, width = (SIZE if square else -(-side // 32) * 32 for side in (rows, columns))
    top, left = (height - rows) // 2, (width - columns) // 2
    out = np.full((height, width, 3), 114, np.uint8)
    out[top : top + rows, left : left + columns] = cv2.resize(image, (columns, rows))
    return out.astype(np.float32).transpose(2, 0, 1), top, left, scale


def detected(path, square):
    """Rows of x1, y1, x2, y2, score, class, in pixels of the image."""
    tensor, top, left, scale = boxed(path, square)
    found = opened().run(None, {opened().get_inputs()[0].name: tensor[None]})[0][0]
    cells = np.concatenate([grid(tensor.shape, stride) for stride in (8, 16, 32)])
    sizes = np.exp(found[:, 2:4]) * cells[:, 2:]
    corners = (found[:, :2] + cells[:, :2]) * cells[:, 2:] - sizes / 2 - (left, top)
    boxes = np.concatenate([corners, sizes], axis=1) / scale
    scores = found[:, 4:5] * found[:, 5:]
    classes, best = scores.argmax(axis=1), scores.max(axis=1)
    lists = boxes.tolist(), best.tolist(), classes.tolist()
    kept = np.asarray(cv2.dnn.NMSBoxesBatched(*lists, 0.3, 0.65), int)
    boxes[:, 2:] += boxes[:, :2]
    return np.column_stack([boxes, best, classes])[kept]


def grid(shape, stride):
    """Column, row and stride of each cell."""
    rows, columns = np.mgrid[: shape[1] // stride, : shape[2] // stride]
    return np.stack([columns, rows, np.full_like(rows, stride)], axis=-1).reshape(-1, 3)


@cache
def opened():
    """The network, for inputs of any height and width."""
    model = onnx.load(Path(os.environ["DATA"]) / "models" / "yolox_nano_416.onnx")
    for side, name in zip(model.graph.input[0].type.tensor_type.shape.dim[2:], "hw", strict=True):
        side.dim_param = name
    del model.graph.value_info[:]
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_param = "cells"
    return onnxruntime.InferenceSession(model.SerializeToString())
