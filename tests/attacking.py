"""A classifier whose gradient can be worked out by hand, and attacks on it."""

import io

import numpy as np
import pytest
import tiny
from PIL import Image

from simulator.conditions.condition import Disturbance, under
from simulator.contract.encoded import inspect
from simulator.contract.recipe import Context
from simulator.model.card import Card
from simulator.model.onnxfile import check

torch = pytest.importorskip("torch")


class Colors(torch.nn.Module):
    def __init__(self, factor=1.0):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return x.mean((2, 3)) * self.factor


def with_program(folder, factor=1.0, **fields):
    """The card of the tiny classifier with its torch.export program."""
    folder.mkdir()
    exported = torch.export.export(Colors(factor), (torch.zeros(1, 3, 32, 32),))
    torch.export.save(exported, str(folder / "model.pt2"))
    return tiny.card(folder, torch_export="model.pt2", **fields)


def bound(text, place):
    card = Card(place)
    return under(text).bound(card, check(card)).condition


def attacked(condition, pixels, truth=0, name="a.png", trial=0):
    """The result for a picture, as the file that every stack gets."""
    source = inspect(name, tiny.encoded(pixels, "png"))
    apply = Disturbance(condition, trial).open(None)
    return apply(source, Context(name, source, truth))


def pixels_of(encoded):
    return np.asarray(Image.open(io.BytesIO(encoded.data)).convert("RGB"))
