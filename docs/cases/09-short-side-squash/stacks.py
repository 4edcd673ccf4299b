"""A classifier's transform in training, and in a deployment that was written beside it."""

import numpy as np
from PIL import Image

MEAN = np.array([0.485, 0.456, 0.406], np.float32)
STD = np.array([0.229, 0.224, 0.225], np.float32)


def train(path):
    """Resize(256) and CenterCrop(224)."""
    image = Image.open(path).convert("RGB")
    width, height = (int(256 * side / min(image.size)) for side in image.size)
    image = image.resize((width, height), Image.Resampling.BILINEAR)
    left, top = (round((side - 224) / 2) for side in image.size)
    return normalized(image.crop((left, top, left + 224, top + 224)))


def deploy(path):
    """The whole image to 224 by 224."""
    image = Image.open(path).convert("RGB")
    return normalized(image.resize((224, 224), Image.Resampling.BILINEAR))


def normalized(image):
    """(3, 224, 224) float32."""
    return ((np.asarray(image, np.float32) / 255 - MEAN) / STD).transpose(2, 0, 1)
