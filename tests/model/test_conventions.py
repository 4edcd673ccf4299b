"""Which convention of pixels a network was trained with, by labelled samples."""

from __future__ import annotations

import numpy as np
import pytest
import tiny
from onnx import helper

from simulator import cli, compare
from simulator.model.card import Card
from simulator.model.draft import unfinished


def network(weights):
    """The mean of each channel, times (3, classes) weights."""
    nodes = [
        helper.make_node("GlobalAveragePool", ["x"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["flat"]),
        helper.make_node("Gemm", ["flat", "w"], ["y"]),
    ]
    w = np.array(weights, np.float32)
    return tiny.model(nodes, outputs={"y": [1, w.shape[1]]}, constants={"w": w})


CAFFE = network([[0, 0, 1, 2], [0, 1, 0, 2], [1, 0, 0, 2]])
"""Red, green, blue from BGR, and a fourth class of twice the sum, which is below 0 only where a
mean is taken away: of red, (40 - 104) + (30 - 117) + (220 - 123) = -54, and 97 for red itself."""


@pytest.fixture
def numbered(tmp_path):
    """Ten images of each of three colours, in folders named by class."""
    data = tiny.data(tmp_path / "data", each=10)
    for number, name in enumerate(tiny.COLORS):
        (data / name).rename(data / str(number))
    return data


def test_the_convention_that_answers_right_leaves_no_question(tmp_path, cache, numbered, capsys):
    tiny.card(tmp_path / "net", CAFFE)
    model = tmp_path / "net" / "model.onnx"

    assert cli.main(["model", "new", str(model), "--data", str(numbered)]) == 0

    said = capsys.readouterr().out
    assert said.startswith("tried, top-1 of 30 images: Caffe's BGR without its mean 100.00%; ")
    card = Card(model.with_suffix(".yaml"), draft=True)
    given = card.spec.input
    assert (given.order, given.top, given.mean) == ("bgr", 255, [104.0, 117.0, 123.0])
    assert [told.partition(":")[0] for told in card.todo.values()] == ["kind"]
    text = card.path.read_text()
    assert "bgr                   # Caffe's BGR without its mean 100.00%, top-1 of 30" in text


def test_conventions_that_are_equally_right_leave_the_question(tmp_path, cache, numbered):
    """The strongest channel is the same on every scale, but not in every order."""
    tiny.card(tmp_path / "net")
    model = tmp_path / "net" / "model.onnx"

    assert cli.main(["model", "new", str(model), "--data", str(numbered)]) == 0

    left = unfinished(model.with_suffix(".yaml").read_text()).values()
    assert [told.partition(":")[0] for told in left] == ["order", "kind"]
    assert any("top-1 of 30 images: too few to tell them apart" in told for told in left)
    assert Card(model.with_suffix(".yaml"), draft=True).spec.input.order == "rgb"


def test_a_card_that_answers_at_random_is_told_what_is_right(tmp_path, cache, numbered, capsys):
    card = tiny.card(tmp_path / "net", CAFFE, labels=None)

    assert cli.main(["model", "check", str(card), "--data", str(numbered), "--limit", "12"]) == 1

    said = capsys.readouterr().out
    assert "tried, top-1 of 12 images: Caffe's BGR without its mean 100.00%" in said


def test_class_folders_name_the_classes_in_alphabetical_order(tmp_path, cache, capsys):
    """As torchvision's ImageFolder: blue, green, red; the network's scores are in that order."""
    tiny.card(tmp_path / "net", network([[0, 0, 1], [0, 1, 0], [1, 0, 0]]))
    model, data = tmp_path / "net" / "model.onnx", tiny.data(tmp_path / "data")

    assert cli.main(["model", "new", str(model), "--data", str(data)]) == 0

    assert "ImageNet's mean and std 100.00%" in capsys.readouterr().out
    card = Card(model.with_suffix(".yaml"), draft=True)
    assert card.labels.names == ("blue", "green", "red")


def test_a_run_of_the_file_itself_takes_the_class_folders_too(tmp_path, cache):
    tiny.card(tmp_path / "net", network([[0, 0, 1], [0, 1, 0], [1, 0, 0]]))

    result = compare(
        train="pillow_fp32", deploy="opencv_fp32", model=tmp_path / "net" / "model.onnx",
        data=tiny.data(tmp_path / "data"), out=tmp_path / "run",
    )  # fmt: skip

    assert result.summary["train"]["metric"]["top1"] == 1
    told = result.summary["warnings"][0].text
    assert "the classes are the folders of data, in alphabetical order" in told


def test_a_command_that_leaves_no_run_says_first_what_is_assumed(tmp_path, cache, numbered, capsys):
    tiny.card(tmp_path / "net")
    options = ["--model", str(tmp_path / "net" / "model.onnx"), "--data", str(numbered)]

    code = cli.main(
        ["sensitivity", "--profile", "ort_int8", "--goal", "flip_rate < 50%", *options,
         "--out", str(tmp_path / "keep")]
    )  # fmt: skip

    assert code == 0
    assert capsys.readouterr().err.startswith("note no model card is given; no file says")
