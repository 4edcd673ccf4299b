"""A detector's letterbox in training, and what nvinfer makes of its frames."""

import cv2
import numpy as np

SIZE = 416


def train(path):
    """Ultralytics' letterbox: in the middle, on gray 114."""
    return boxed(cv2.imread(path), 114, centered=True)


def squashed(path):
    """maintain-aspect-ratio=0."""
    return tensor(cv2.resize(cv2.imread(path), (SIZE, SIZE)))


def padded(path):
    """maintain-aspect-ratio=1, symmetric-padding=0: black on the right and below."""
    return boxed(cv2.imread(path), 0, centered=False)


def boxed(image, value, centered):
    """The long side fits; the rest is one gray level."""
    scale = SIZE / max(image.shape[:2])
    rows, columns = (int(side * scale) for side in image.shape[:2])
    out = np.full((SIZE, SIZE, 3), value, np.uint8)
    top, left = ((SIZE - rows) // 2, (SIZE - columns) // 2) if centered else (0, 0)
    out[top : top + rows, left : left + columns] = cv2.resize(image, (columns, rows))
    return tensor(out)


def tensor(pixels):
    """YOLOX takes BGR, 0 to 255."""
    return pixels.astype(np.float32).transpose(2, 0, 1)
