"""Zero-shot classes: both towers against plain loops, and Transformers' own CLIP and SigLIP."""

import json

import numpy as np
import onnx
import pytest
import tiny
import tiny_towers
from one_stack import outputs
from tiny_towers import PROFILE

from simulator import cli, explain
from simulator.errors import ModelError, UserError
from simulator.model import towers
from simulator.model.card import Card
from simulator.pipeline.inference import Infer, Join


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return tiny.data(tmp_path_factory.mktemp("colors"))


@pytest.mark.parametrize(
    ("prompts", "changes", "expected"),
    [
        ({}, (), {}),
        ({"template": "{}", "scale": 3, "bias": -2}, (), {"templates": ["{}"], "scale": 3,
                                                         "bias": -2}),
        ({}, ("prompts.template=a {}",), {"templates": ["a {}"]}),
        ({}, ("tokenize.special_tokens=false",), {"ends": False}),
        ({}, ("feeds.batch=single",), {}),
        ({}, ("feeds.pad_to=6", "feeds.padding_side=left"), {}),
    ],
    ids=["templates", "bias", "profile", "no ends", "single", "padded"],
)  # fmt: skip
def test_scores_are_those_of_plain_loops(tmp_path, data, prompts, changes, expected):
    card = tiny_towers.card(tmp_path, **prompts)
    before, stack, found = outputs(str(card), str(data), PROFILE, *changes)
    color = before.outputs["image_embeds"][0].astype(float)
    (scores,) = found.values()

    assert "between" in stack.chain.stages()
    assert scores[0] == pytest.approx(tiny_towers.logits(color, **expected), rel=1e-5)


def test_a_sigmoid_gives_each_class_a_probability_of_its_own(tmp_path, data):
    card = tiny_towers.card(tmp_path, kind="sigmoid", bias=-9)
    before, _, found = outputs(str(card), str(data), PROFILE)
    (scores,) = found.values()
    answer = Card(card).task.decode(found, None, None)
    expected = 1 / (1 + np.exp(-tiny_towers.logits(before.outputs["image_embeds"][0], bias=-9)))

    assert answer.scores == pytest.approx(expected, rel=1e-5)
    assert answer.prediction == scores[0].argmax()


def test_padding_that_the_tower_sees_is_told_from_the_template(tmp_path, data):
    """The mask hides what is padded; a stack that ignores it adds ``<s>`` to short prompts."""
    card = tiny_towers.card(tmp_path)
    deploy = ["prompts.template=a {}", "feeds.pad_to=6"]
    run = explain(
        PROFILE, PROFILE, model=card, data=data, out=tmp_path / "run",
        overrides=[f"deploy.{one}" for one in deploy],
    )  # fmt: skip

    assert run.summary["null"] == ["feeds"] and "prompts" in run.summary["axes"]


def test_the_second_tower_may_stay_in_fp32(tmp_path, data):
    """As where vectors of classes are made on a server, and the image tower runs on a device."""
    card, keys = str(tiny_towers.card(tmp_path)), {}
    cast = ("precision.storage=fp16", "precision.cast={backend: onnxconverter}")
    for name, changes in {
        "fp32": (), "fp16": cast, "mixed": (*cast, "precision.second=fp32"),
    }.items():  # fmt: skip
        recipes = outputs(card, str(data), PROFILE, *changes)[1].chain.recipes
        infer = next(one for one in recipes if isinstance(one, Infer))
        join = next(one for one in recipes if isinstance(one, Join))
        keys[name] = infer.artifact.key, join.infer.artifact.key

    assert keys["mixed"] == (keys["fp16"][0], keys["fp32"][1])
    assert keys["fp16"][1] != keys["fp32"][1]


@pytest.mark.parametrize(("kind", "bias"), [("logits", 0), ("sigmoid", -2)])
def test_one_file_of_both_towers_is_cut_in_two(tmp_path, data, kind, bias):
    """As Optimum lays them out: the file in ``onnx/``, its vocabulary one folder up."""
    tiny_towers.card(tmp_path)
    (tmp_path / "onnx").mkdir()
    onnx.save(tiny_towers.both(7, bias), tmp_path / "onnx" / "model.onnx")
    texts = {"text_config": {"max_position_embeddings": 8}}
    processor = {
        "image_processor_type": "CLIPImageProcessor", "do_resize": True, "resample": 3,
        "size": {"shortest_edge": 32}, "crop_size": {"height": 32, "width": 32},
        "do_normalize": True, "image_mean": [0, 0, 0], "image_std": [1, 1, 1],
    }  # fmt: skip
    for name, content in {
        "config": texts, "preprocessor_config": processor, "tokenizer_config": {"pad_token": "<s>"},
    }.items():  # fmt: skip
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    both, made = tmp_path / "onnx" / "model.onnx", tmp_path / "cut" / "model.yaml"
    new = ["model", "new", str(both), "-o", str(made.parent), "--set", "labels=labels.txt"]
    assert cli.main(new) == 0
    (tmp_path / "cut" / "labels.txt").write_text("red\ngreen\nblue\n")
    before, _, found = outputs(str(made), str(data), PROFILE)
    (scores,) = found.values()
    expected = tiny_towers.logits(
        before.outputs["image_embeds"][0], ["a photo of a {}."], scale=7, bias=bias
    )
    spec = Card(made).written

    assert spec.output["kind"] == kind and spec.geometry.short_side == 32
    assert scores[0] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("missing", "why"),
    [
        ("tokenizer", "it cannot be cut into towers: tokenizer.json is missing beside it"),
        ("config", "towers: text_config.max_position_embeddings of config.json is missing"),
    ],
)
def test_a_file_of_both_towers_needs_what_lies_beside_it(tmp_path, missing, why):
    tiny_towers.card(tmp_path)
    onnx.save(tiny_towers.both(7, 0), tmp_path / "both.onnx")
    (tmp_path / "config.json").write_text('{"text_config": {"max_position_embeddings": 8}}')
    (tmp_path / f"{missing}.json").unlink()
    with pytest.raises(ModelError, match=why):
        towers.write(tmp_path / "both.onnx", tmp_path / "cut")
    assert not (tmp_path / "cut").exists(), "so that one can try again"


@pytest.mark.parametrize(
    ("card", "prompts", "profile", "changes", "why"),
    [
        ({"labels": "none.txt"}, {}, PROFILE, (), "labels: there is no file"),
        ({"labels": None}, {}, PROFILE, (), "labels: prompts need a file of class names"),
        ({"second": None}, {}, PROFILE, (), "needs the files of a second network"),
        ({}, {"template": "a photo"}, PROFILE, (), "'a photo' has no {}"),
        ({}, {"template": "model"}, PROFILE, (), "'model' has no {}"),
        ({}, {"width": 4}, PROFILE, (), "the image's vector has 4 numbers and a text's 3"),
        ({}, {"image": "none"}, PROFILE, (), "has no output 'none'"),
        ({}, {"text": {"pooling": "last"}}, PROFILE, (), "pooling: last expects an output of rank"),
        ({}, {}, "pillow_fp32", (), "pillow_fp32: tokenize: the card's classes are prompts"),
        ({}, {}, PROFILE, ("prompts.template=a {} a a a",),
         "prompts of 'red': over-long: 7 tokens, and the network takes 6"),
        ({}, {}, PROFILE, ('prompts.template=["a {}", "red"]',), "'red' has no {}"),
    ],
    ids=lambda one: None if isinstance(one, str) else "",
)  # fmt: skip
def test_what_does_not_fit_is_one_line(tmp_path, data, card, prompts, profile, changes, why):
    made = tiny_towers.change(tiny_towers.card(tmp_path, **prompts), **card)
    with pytest.raises(UserError) as error:
        outputs(str(made), str(data), profile, *changes)

    assert why in str(error.value) and "\n" not in str(error.value)
