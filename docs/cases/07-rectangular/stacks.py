"""A rectangular letterbox, to a multiple of 32, and a square one."""

import cv2
import numpy as np

SIZE = 416


def train(path):
    """As little padding as a multiple of 32 needs."""
    return boxed(path, square=False)


def deploy(path):
    """The square that the network was exported with."""
    return boxed(path, square=True)


def boxed(path, square):
    """The image in the middle of gray 114."""
    image = cv2.imread(path)
    scale = SIZE / max(image.shape[:2])
    rows, columns = (round(side * scale) for side in image.shape[:2])
    height, width = (SIZE if square else -(-side // 32) * 32 for side in (rows, columns))
    top, left = (height - rows) // 2, (width - columns) // 2
    out = np.full((height, width, 3), 114, np.uint8)
    out[top : top + rows, left : left + columns] = cv2.resize(image, (columns, rows))
    return out.astype(np.float32).transpose(2, 0, 1)
