"""How the network was trained: its inputs."""

import numpy as np
from PIL import Image


def preprocess(path):
    """Squash to 224 x 224, and scale to [-1, 1]."""
    image = Image.open(path).convert("RGB").resize((224, 224), Image.Resampling.BICUBIC)
    return (np.asarray(image, np.float32) - 127) / 128
