"""Two sets of constants behind one detector: code that gives boxes by itself."""

import os
from functools import cache
from pathlib import Path

import cv2
import numpy as np
import onnxruntime

SIZE = 416


def train(path):
    """Darknet's: NMS at 0.45, threshold 0.25."""
    return detected(path, 0.45, 0.25)


def deploy(path):
    """The DeepStream sample's: NMS at 0.3, threshold 0.7."""
    return detected(path, 0.3, 0.7)


def detected(path, iou, threshold):
    """Rows of x1, y1, x2, y2, score, class, in pixels of the image."""
    image = cv2.imread(path)
    scale = SIZE / max(image.shape[:2])
    height, width = (int(side * scale) for side in image.shape[:2])
    square = np.full((SIZE, SIZE, 3), 114, np.float32)
    square[:height, :width] = cv2.resize(image, (width, height))
    (feed,) = opened().get_inputs()
    found = opened().run(None, {feed.name: square.transpose(2, 0, 1)[None]})[0][0]
    cells = np.concatenate([grid(stride) for stride in (8, 16, 32)])
    centers, sizes = (found[:, :2] + cells[:, :2]) * cells[:, 2:], np.exp(found[:, 2:4])
    sizes *= cells[:, 2:]
    scores = found[:, 4:5] * found[:, 5:]
    classes, best = scores.argmax(axis=1), scores.max(axis=1)
    boxes = np.concatenate([centers - sizes / 2, sizes], axis=1) / scale
    lists = boxes.tolist(), best.tolist(), classes.tolist()
    kept = np.asarray(cv2.dnn.NMSBoxesBatched(*lists, threshold, iou), int)
    boxes[:, 2:] += boxes[:, :2]
    return np.column_stack([boxes, best, classes])[kept]


def grid(stride):
    """Column, row and stride of each cell."""
    rows, columns = np.mgrid[: SIZE // stride, : SIZE // stride]
    return np.stack([columns, rows, np.full_like(rows, stride)], axis=-1).reshape(-1, 3)


@cache
def opened():
    """The network."""
    return onnxruntime.InferenceSession(Path(os.environ["DATA"]) / "models" / "yolox_nano_416.onnx")
