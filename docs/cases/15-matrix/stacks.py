"""A camera's luma and chroma become RGB by the matrix that the stream names, and by another."""

import numpy as np
from PIL import Image

MEAN = np.array([0.485, 0.456, 0.406], np.float32)
STD = np.array([0.229, 0.224, 0.225], np.float32)
BT601, BT709 = (0.299, 0.114), (0.2126, 0.0722)


def train(path):
    """BT.601, as the stream says."""
    return normalized(rgb(frame(path), *BT601))


def deploy(path):
    """BT.709, as is usual for large pictures."""
    return normalized(rgb(frame(path), *BT709))


def frame(path):
    """What the camera sends: bytes of luma and chroma, BT.601, limited range."""
    image = Image.open(path).convert("RGB").resize((224, 224), Image.Resampling.BILINEAR)
    red, green, blue = np.moveaxis(np.array(image, np.float64), 2, 0)
    kr, kb = BT601
    luma = kr * red + (1 - kr - kb) * green + kb * blue
    u, v = (blue - luma) / (2 - 2 * kb), (red - luma) / (2 - 2 * kr)
    planes = 16 + luma * 219 / 255, 128 + u * 224 / 255, 128 + v * 224 / 255
    return [np.rint(plane) for plane in planes]


def rgb(planes, kr, kb):
    """From limited range to bytes."""
    luma = (planes[0] - 16) * 255 / 219
    u, v = ((plane - 128) * 255 / 224 for plane in planes[1:])
    red, blue = luma + (2 - 2 * kr) * v, luma + (2 - 2 * kb) * u
    green = (luma - kr * red - kb * blue) / (1 - kr - kb)
    return np.clip(np.rint(np.stack([red, green, blue], 2)), 0, 255)


def normalized(pixels):
    """(x / 255 - mean) / std."""
    return (pixels.astype(np.float32) / 255 - MEAN) / STD
