"""From pixels to the network's numbers."""

import numpy as np
import pytest
import tiny

from simulator.modalities.image.front_end import front_end
from simulator.modalities.image.steps import normalize
from simulator.model.card import Card
from simulator.profile.implementations import choose
from simulator.profile.load import load


def test_normalize_by_hand():
    """(10 - 4) / 2 = 3, (20 - 8) / 4 = 3, (30 - 6) / 8 = 3; BGR takes the last one first."""
    rgb = np.array([[[10, 20, 30], [4, 8, 6]]], np.uint8)
    mean, std = np.float32([4, 8, 6]), np.float32([2, 4, 8])

    nchw = normalize(rgb, mean, std, "divide", "NCHW")
    nhwc = normalize(rgb, mean, std, "divide", "NHWC")
    bgr = normalize(rgb[..., ::-1], mean[::-1], std[::-1], "divide", "NCHW")

    assert nchw.shape == (1, 3, 1, 2) and nhwc.shape == (1, 1, 2, 3)
    assert (nchw[0, :, 0, 0] == 3).all() and (nchw[0, :, 0, 1] == 0).all()
    np.testing.assert_array_equal(nhwc.transpose(0, 3, 1, 2), nchw)
    np.testing.assert_array_equal(bgr, nchw[:, ::-1])
    assert nchw.dtype == nhwc.dtype == np.float32


@pytest.mark.parametrize("mean", [[0.0, 0.0, 0.0], [0.0, 1.0, 2.0]])
def test_a_mean_of_zero_is_a_mean(tmp_path, mean):
    """Only a std must not be zero; a network that takes pixels / 255 has mean 0."""
    spec = {**tiny.SPEC["input"], "mean": mean, "std": [255.0, 255.0, 255.0]}
    profile = load("pillow_fp32")

    recipes = front_end(profile, choose(profile), Card(tiny.card(tmp_path, input=spec)).spec)

    assert recipes[-1].stage == "normalize"
    assert recipes[-1].mean == tuple(mean)


@pytest.mark.parametrize(("top", "order"), [(1, "unit_divide"), (255, "divide")])
def test_a_cards_numbers_are_used_on_its_own_scale(tmp_path, top, order):
    """The card promises (pixel * top / 255 - mean) / std; nothing is divided by 255 for top 255."""
    spec = {**tiny.SPEC["input"], "top": top}
    profile = load("pillow_fp32")

    recipes = front_end(profile, choose(profile), Card(tiny.card(tmp_path, input=spec)).spec)

    assert recipes[-1].arithmetic == order
