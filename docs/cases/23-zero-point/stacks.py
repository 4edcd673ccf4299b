"""A normalized image, and its bytes with scale and zero point, of which one is forgotten."""

import cv2
import numpy as np

MEAN = np.array([123.675, 116.28, 103.53], np.float32)
STD = np.array([58.395, 57.12, 57.375], np.float32)
SCALE, ZERO = np.float32(0.0187), 114


def train(path):
    """(x - mean) / std."""
    pixels = cv2.resize(cv2.imread(path)[..., ::-1], (224, 224)).astype(np.float32)
    return (pixels - MEAN) / STD


def right(path):
    """(q - zero point) * scale."""
    return (quantized(path).astype(np.float32) - ZERO) * SCALE


def deploy(path):
    """Q * scale."""
    return quantized(path).astype(np.float32) * SCALE


def quantized(path):
    """What the driver of the board makes."""
    return np.clip(np.rint(train(path) / SCALE) + ZERO, 0, 255).astype(np.uint8)
