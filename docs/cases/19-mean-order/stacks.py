"""Channels are reversed, and a mean is subtracted: in the right order, and in the other."""

import cv2
import numpy as np

MEAN = np.array([123.675, 116.28, 103.53], np.float32)
STD = np.array([58.395, 57.12, 57.375], np.float32)


def train(path):
    """Reverse the channels; then numbers in the order RGB are right."""
    return (bgr(path)[..., ::-1] - MEAN) / STD


def deploy(path):
    """The same numbers, but the channels are reversed behind them."""
    return ((bgr(path) - MEAN) / STD)[..., ::-1]


def bgr(path):
    """OpenCV's order."""
    return cv2.resize(cv2.imread(path), (224, 224)).astype(np.float32)
