"""YOLOX-Nano's boxes, and the same without those that touch the border of the picture."""

import os
from functools import cache
from pathlib import Path

import cv2
import numpy as np
import onnxruntime

SIZE = 416


def train(path):
    """Rows of x1, y1, x2, y2, score, class."""
    image = cv2.imread(path)
    height, width = image.shape[:2]
    scale = min(SIZE / height, SIZE / width)
    rows = decoded(framed(image, scale))
    rows[:, :4] /= scale
    return rows


def deploy(path):
    """As where crop-objects-to-roi-boundary is 0: what reaches over the border is dropped."""
    rows = train(path)
    height, width = cv2.imread(path).shape[:2]
    inside = (rows[:, :2] >= 0).all(axis=1) & (rows[:, 2] <= width) & (rows[:, 3] <= height)
    return rows[inside]


def framed(image, scale):
    """The network's input: the image at the top left of a gray square."""
    height, width = (int(side * scale) for side in image.shape[:2])
    square = np.full((SIZE, SIZE, 3), 114, np.float32)
    square[:height, :width] = cv2.resize(image, (width, height))
    return square.transpose(2, 0, 1)[None]


def decoded(tensor):
    """Boxes of the square, the best ones of each class alone."""
    session = opened()
    found = session.run(None, {session.get_inputs()[0].name: tensor})[0][0]
    cells, strides = grid()
    centers, sizes = (found[:, :2] + cells) * strides, np.exp(found[:, 2:4]) * strides
    scores = found[:, 4:5] * found[:, 5:]
    classes, best = scores.argmax(axis=1), scores.max(axis=1)
    boxes = np.concatenate([centers - sizes / 2, sizes], axis=1)
    kept = cv2.dnn.NMSBoxesBatched(boxes.tolist(), best.tolist(), classes.tolist(), 0.3, 0.65)
    boxes[:, 2:] += boxes[:, :2]
    return np.column_stack([boxes, best, classes])[np.asarray(kept, int)]


def grid():
    """The cell of each row, and its stride."""
    cells, strides = [], []
    for stride in (8, 16, 32):
        side = SIZE // stride
        rows, columns = np.mgrid[:side, :side]
        cells.append(np.stack([columns.ravel(), rows.ravel()], axis=1))
        strides.append(np.full((side * side, 1), stride))
    return np.concatenate(cells), np.concatenate(strides)


@cache
def opened():
    """The network."""
    return onnxruntime.InferenceSession(Path(os.environ["DATA"]) / "models" / "yolox_nano_416.onnx")
