"""The network's outputs, and a softmax behind the one that the network already has."""

import os
from functools import cache
from pathlib import Path

import cv2
import numpy as np
import onnxruntime

MEAN = np.array([123.675, 116.28, 103.53], np.float32)
STD = np.array([58.395, 57.12, 57.375], np.float32)


def train(path):
    """The softmax of the logits."""
    return softmax(logits(path))


def deploy(path):
    """One more, since the application has its own."""
    return softmax(train(path))


def softmax(values):
    """Along the classes."""
    powers = np.exp(values - values.max())
    return powers / powers.sum()


def logits(path):
    """Of the network."""
    pixels = (cv2.resize(cv2.imread(path)[..., ::-1], (224, 224)) - MEAN) / STD
    session = opened()
    return session.run(None, {session.get_inputs()[0].name: pixels.transpose(2, 0, 1)[None]})[0]


@cache
def opened():
    """The network."""
    return onnxruntime.InferenceSession(Path(os.environ["DATA"]) / "models" / "mobilenet_v2.onnx")
