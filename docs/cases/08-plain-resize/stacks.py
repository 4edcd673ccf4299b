"""A detector's letterbox, and a plain resize to the square."""

import cv2
import numpy as np

SIZE = 416


def train(path):
    """The image in the middle of gray 114."""
    image = cv2.imread(path)
    scale = SIZE / max(image.shape[:2])
    rows, columns = (int(side * scale) for side in image.shape[:2])
    top, left = (SIZE - rows) // 2, (SIZE - columns) // 2
    out = np.full((SIZE, SIZE, 3), 114, np.uint8)
    out[top : top + rows, left : left + columns] = cv2.resize(image, (columns, rows))
    return out.astype(np.float32).transpose(2, 0, 1)


def deploy(path):
    """cv2.resize to the network's size."""
    return cv2.resize(cv2.imread(path), (SIZE, SIZE)).astype(np.float32).transpose(2, 0, 1)
