"""Resize(256), CenterCrop(224), Normalize: on an image of Pillow, and on a tensor."""

import numpy as np
import torch
from PIL import Image
from torch.nn.functional import interpolate

MEAN = torch.tensor([0.485, 0.456, 0.406])[:, None, None]
STD = torch.tensor([0.229, 0.224, 0.225])[:, None, None]


def train(path):
    """Resize the image."""
    image = Image.open(path).convert("RGB")
    return finish(tensor(image.resize(size(*image.size), Image.Resampling.BILINEAR)))


def deploy(path):
    """Make a tensor first, and resize that."""
    image = Image.open(path).convert("RGB")
    width, height = size(*image.size)
    return finish(interpolate(tensor(image)[None], (height, width), mode="bilinear")[0])


def size(width, height):
    """The short side becomes 256."""
    short = min(width, height)
    return int(256 * width / short), int(256 * height / short)


def tensor(image):
    """As ToTensor does it."""
    return torch.from_numpy(np.array(image)).permute(2, 0, 1).float() / 255


def finish(pixels):
    """CenterCrop(224) and Normalize."""
    top, left = (round((side - 224) / 2) for side in pixels.shape[1:])
    return (pixels[:, top : top + 224, left : left + 224] - MEAN) / STD
