"""The preprocessing of an ImageNet benchmark, with Pillow and with OpenCV."""

import cv2
import numpy as np
from PIL import Image

MEAN = np.array([123.675, 116.28, 103.53], np.float32)
STD = np.array([58.395, 57.12, 57.375], np.float32)


def pillow(path):
    """Short side to 256, bilinear."""
    image = Image.open(path).convert("RGB")
    return cropped(np.asarray(image.resize(size(*image.size), Image.Resampling.BILINEAR)))


def opencv(path):
    """Short side to 256, by areas."""
    image = cv2.cvtColor(cv2.imread(path), cv2.COLOR_BGR2RGB)
    rows, columns = image.shape[:2]
    return cropped(cv2.resize(image, size(columns, rows), interpolation=cv2.INTER_AREA))


def size(width, height):
    """Columns and rows after the resize."""
    short = min(width, height)
    return int(256 * width / short), int(256 * height / short)


def cropped(pixels):
    """The middle 224 by 224, normalized."""
    top, left = ((side - 224) // 2 for side in pixels.shape[:2])
    pixels = pixels[top : top + 224, left : left + 224].astype(np.float32)
    return ((pixels - MEAN) / STD).transpose(2, 0, 1)
