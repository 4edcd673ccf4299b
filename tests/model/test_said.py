"""What a card says where a profile leaves it to the model."""

from pathlib import Path

import pytest
import tiny_tasks
import yaml
from shared_data import shared

from simulator.model.card import Card
from simulator.model.said import described
from simulator.profile.implementations import choose
from simulator.profile.load import load
from simulator.report.axis_words import said

CARDS = Path(__file__).parents[1] / "cards"


def words(profile, axis, card):
    own = described(profile, choose(profile), axis, card)
    return said(own.values, own.card)


@pytest.fixture
def card(tmp_path):
    """A detector's card with a letterbox and three odd values."""
    path = tiny_tasks.card(tmp_path)
    written = yaml.safe_load(path.read_text())
    written["geometry"] = {"kind": "letterbox", "rounding": "floor", "value": 114}
    written["output"]["nms"]["iou_threshold"] = 0.65
    written["output"]["box_rounding"] = {"mode": "ceil", "at": "image"}
    written["input"] |= {"order": "bgr", "mean": [1, 2, 3]}
    path.write_text(yaml.safe_dump(written))
    return Card(path)


@pytest.mark.parametrize(
    ("axis", "expected"),
    [
        ("nms", "iou threshold 0.65"),
        ("box_rounding", "mode ceil, at image"),
        ("box_precision", "fp32"),
        ("geometry", "letterbox, rounding torchvision, position center, 114"),
        ("color", "order bgr"),
        ("normalize", "mean 1.0 / 2.0 / 3.0"),
    ],
)
def test_the_card_s_value_stands_in_place_of_model(card, axis, expected):
    """The rounding is the profile's own; greedy NMS has no sigma, and no card says one."""
    told = words(load("pillow_fp32"), axis, card)
    assert expected in told
    assert "the model's" not in told.replace("sigma the model's", "")


def test_what_the_profile_says_stays(card, tmp_path):
    mine = {"schema": 1, "name": "mine", "summary": "", "extends": "pillow_fp32",
            "postprocess": {"nms": {"iou_threshold": 0.45}},
            "geometry": {"kind": "squash", "rounding": None}}  # fmt: skip
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(mine))
    profile = load(str(tmp_path / "mine.yaml"))
    assert "iou threshold 0.45" in words(profile, "nms", card)
    assert words(profile, "geometry", card) == "squash"


def test_thresholds_of_single_classes_are_spelled_out(card):
    written = yaml.safe_load(card.path.read_text())
    written["output"]["nms"]["classes"] = {2: {"iou_threshold": 0.3}}
    card.path.write_text(yaml.safe_dump(written))
    told = words(load("pillow_fp32"), "nms", Card(card.path))
    assert "iou threshold 0.3" in told.partition("iou threshold 0.65")[2]
    assert "classes" not in told


def test_what_the_card_does_not_say_is_the_model_s(card):
    """A detector's card has no mask."""
    assert words(load("pillow_fp32"), "argmax", card) == "the model's"


@pytest.mark.parametrize(
    ("axis", "expected"),
    [
        ("mel", "scale slaney, norm slaney, triangles hertz, fmin 0.0, fmax 4000.0"),
        ("stft", "window hann, window symmetry periodic, scaling none, frames whole, power 2"),
        ("log", "ln, floor add, 1e-06, top db none"),
    ],
)
def test_sounds_were_trained_so(axis, expected):
    shared("audio")
    assert expected in words(load("librosa_fp32"), axis, Card(CARDS / "digits.yaml"))
