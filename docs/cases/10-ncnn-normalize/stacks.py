"""Normalize([.5], [.5]) on [0, 1], and ncnn's substract_mean_normalize with other numbers."""

import ncnn
import numpy as np
from PIL import Image

SIZE = 224


def train(path):
    """(x / 255 - 0.5) / 0.5."""
    return ((pixels(path).astype(np.float32) / 255 - 0.5) / 0.5).transpose(2, 0, 1)


def forgotten(path):
    """Mat::from_pixels alone."""
    return np.array(mat(path))


def of_0_to_1(path):
    """The numbers of [0, 1], of pixels that are 0 to 255."""
    found = mat(path)
    found.substract_mean_normalize([0.5] * 3, [1 / 0.5] * 3)
    return np.array(found)


def mat(path):
    """The same pixels as an image of ncnn."""
    return ncnn.Mat.from_pixels(pixels(path), ncnn.Mat.PixelType.PIXEL_RGB, SIZE, SIZE)


def pixels(path):
    """(224, 224, 3) uint8."""
    return np.asarray(Image.open(path).convert("RGB").resize((SIZE, SIZE)))
