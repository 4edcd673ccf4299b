"""A photograph is turned as its EXIF orientation says, or taken as it is stored."""

import numpy as np
from PIL import Image, ImageOps

MEAN = np.array([0.485, 0.456, 0.406], np.float32)
STD = np.array([0.229, 0.224, 0.225], np.float32)


def train(path):
    """One file: the loader turns it."""
    return normalized(ImageOps.exif_transpose(Image.open(path)))


def deploy(path):
    """A list of files: nobody does."""
    return normalized(Image.open(path))


def normalized(image):
    """Squash to 224 x 224, (x / 255 - mean) / std."""
    pixels = image.convert("RGB").resize((224, 224), Image.Resampling.BILINEAR)
    return (np.asarray(pixels, np.float32) / 255 - MEAN) / STD
