"""A normalization by three deviations, and by the one scale that an image input can state."""

import cv2
import numpy as np

MEAN = np.array([0.485, 0.456, 0.406], np.float32)
STD = np.array([0.229, 0.224, 0.225], np.float32)


def train(path):
    """Three means, three deviations."""
    return (pixels(path) / 255 - MEAN) / STD


def deploy(path):
    """Scale = 1 / (255 * 0.226), bias = -mean / std."""
    return pixels(path) / (255 * np.float32(0.226)) - MEAN / STD


def pixels(path):
    """OpenCV's bilinear."""
    image = cv2.imread(path)[..., ::-1]
    return cv2.resize(image, (224, 224), interpolation=cv2.INTER_LINEAR).astype(np.float32)


def meant(path):
    """Areas are averaged."""
    image = cv2.imread(path)[..., ::-1]
    small = cv2.resize(image, (224, 224), interpolation=cv2.INTER_AREA)
    return (small.astype(np.float32) / 255 - MEAN) / STD


def written(path):
    """The third argument of cv2.resize is dst: the kernel stays bilinear."""
    image = cv2.imread(path)[..., ::-1]
    small = cv2.resize(image, (224, 224), cv2.INTER_AREA)
    return (small.astype(np.float32) / 255 - MEAN) / STD
