"""A transform written with Pillow, and its port to OpenCV."""

import cv2
import numpy as np
from PIL import Image

MEAN = np.array([0.485, 0.456, 0.406], np.float32)
STD = np.array([0.229, 0.224, 0.225], np.float32)


def train(path):
    """Resize((224, 224)), ToTensor and Normalize of an image of Pillow."""
    image = Image.open(path).convert("RGB").resize((224, 224), Image.Resampling.BILINEAR)
    return normalized(np.asarray(image))


def deploy(path):
    """cv::imread and cv::resize."""
    return normalized(cv2.resize(cv2.imread(path), (224, 224)))


def normalized(pixels):
    """(3, 224, 224) float32."""
    return ((pixels.astype(np.float32) / 255 - MEAN) / STD).transpose(2, 0, 1)
