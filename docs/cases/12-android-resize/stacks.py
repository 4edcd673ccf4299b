"""An image is squashed to 224 x 224 by Pillow, and by an operator that reads two pixels a side."""

import cv2
import numpy as np
from PIL import Image

MEAN = np.array([0.485, 0.456, 0.406], np.float32)
STD = np.array([0.229, 0.224, 0.225], np.float32)


def train(path):
    """Resize with Pillow, which reads every pixel below the kernel."""
    image = Image.open(path).convert("RGB").resize((224, 224), Image.Resampling.BILINEAR)
    return normalized(np.array(image))


def deploy(path):
    """Resize as the phone does; OpenCV's bilinear stands in for it."""
    pixels = np.array(Image.open(path).convert("RGB"))
    return normalized(cv2.resize(pixels, (224, 224), interpolation=cv2.INTER_LINEAR))


def normalized(pixels):
    """(x / 255 - mean) / std."""
    return (pixels.astype(np.float32) / 255 - MEAN) / STD
