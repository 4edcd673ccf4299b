"""A letterbox, as the demo in Python has it, and the plain resize of the demo on the board."""

import cv2
import numpy as np

SIZE = 416


def train(path):
    """The image keeps its shape; the rest is gray."""
    image = cv2.imread(path)
    scale = min(SIZE / side for side in image.shape[:2])
    height, width = (int(side * scale) for side in image.shape[:2])
    framed = np.full((SIZE, SIZE, 3), 114, np.uint8)
    framed[:height, :width] = cv2.resize(image, (width, height))
    return framed.astype(np.float32)


def deploy(path):
    """The image fills the square."""
    return cv2.resize(cv2.imread(path), (SIZE, SIZE)).astype(np.float32)
