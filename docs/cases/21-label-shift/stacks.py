"""A network of 1,000 classes, and the same as others train it: a background class comes first."""

import os
from functools import cache
from pathlib import Path

import cv2
import numpy as np
import onnxruntime

MEAN = np.array([123.675, 116.28, 103.53], np.float32)
STD = np.array([58.395, 57.12, 57.375], np.float32)


def train(path):
    """The logits of 1,000 classes."""
    pixels = (cv2.resize(cv2.imread(path)[..., ::-1], (224, 224)) - MEAN) / STD
    session = opened()
    return session.run(None, {session.get_inputs()[0].name: pixels.transpose(2, 0, 1)[None]})[0]


def deploy(path):
    """The logits of 1,001 classes."""
    return np.pad(train(path), ((0, 0), (1, 0)), constant_values=-9)


def best(path):
    """The best class of 1,000, and its logit."""
    return answer(train(path)[0])


def best_of_more(path):
    """The best class of 1,001."""
    return answer(deploy(path)[0])


def answer(logits):
    """A class, and its score."""
    powers = np.exp(logits - logits.max())
    return int(logits.argmax()), float(powers.max() / powers.sum())


@cache
def opened():
    """The network."""
    return onnxruntime.InferenceSession(Path(os.environ["DATA"]) / "models" / "mobilenet_v2.onnx")
