"""Recipes: data that hashes, prints and travels."""

import pickle
import re
from functools import cache

import numpy as np
import pytest
import steps
from steps import Step, nothing

from simulator.contract import Stage
from simulator.contract.recipe import Boundary, Chain
from simulator.errors import ModelError
from simulator.modalities.image.steps import Decode, Resize
from simulator.modalities.modality import MODALITIES
from simulator.model.artifact import Artifact
from simulator.model.card import Card
from simulator.pipeline.extra import with_extras
from simulator.pipeline.inference import Infer, answering, inferred
from simulator.profile.implementations import choose, extra_stages
from simulator.profile.load import load
from simulator.profile.lookup import builtin_names


def chain_of(name, card, tmp_path, *overrides):
    """The whole chain of a profile, with a model file that nobody opens."""
    profile = load(name, overrides)
    choices, made = choose(profile), Card(card)
    front = made.modality.front_end(profile, choices, made.spec)
    front = with_extras(Chain(tuple(front)), extra_stages(profile, choices))
    artifact = Artifact(tmp_path / "model", "key", "onnx")
    infer = Infer(choices[Stage.RUNTIME], artifact, {"": "x"}, {"y": "y"})
    return Chain((*front.recipes, infer, answering(profile, made)))


@pytest.fixture(scope="module")
def card_of(tmp_path_factory):
    """The card of the specimen of a profile's modality, for waveforms where it takes these."""

    @cache
    def specimen(kind):
        return MODALITIES[kind].specimen(tmp_path_factory.mktemp(kind)).card

    def fitting(name):
        spec = load(name).spec
        card = specimen(spec.modality)
        if spec.modality != "audio" or spec.stft is not None:
            return card
        sizes = "{kind: audio, features: waveform, rate: 8000, layout: NS}"
        waveform = f"input: {sizes}\ntrained: {{normalize: {{kind: none}}}}\noutput:"
        text = re.sub(r"(?s)input:.*\noutput:", waveform, card.read_text())
        card.with_name("waveform.yaml").write_text(text)
        return card.with_name("waveform.yaml")

    return fitting


@pytest.mark.parametrize("name", builtin_names())
def test_every_step_of_every_shipped_profile_travels(name, card_of, tmp_path):
    """Whether its library is here or not: a plan is made where nothing need be installed."""
    chain = chain_of(name, card_of(name), tmp_path)

    again = pickle.loads(pickle.dumps(chain))

    assert again == chain and hash(again) == hash(chain)
    for one, other in zip(chain.recipes, again.recipes, strict=True):
        assert other.identity() == one.identity()
        assert str(other) == str(one)
        assert (other.stage, other.gives, other.timed) == (one.stage, one.gives, one.timed)


@pytest.mark.parametrize("name", builtin_names())
def test_every_chain_has_every_boundary_in_order(name, card_of, tmp_path):
    chain = chain_of(name, card_of(name), tmp_path)
    gives = [one.gives for one in chain.recipes if one.gives]

    assert gives == [Boundary.FRAME, Boundary.INPUT, Boundary.OUTPUTS, Boundary.ANSWER]


def test_what_is_done_alike_is_one_and_what_is_not_is_another(card, tmp_path):
    """Profiles that decode alike have one decoder; another interpolation is another step."""
    one, other = (chain_of("pillow_fp32", card, tmp_path).recipes for _ in range(2))
    box = chain_of("pillow_fp32", card, tmp_path, "resize=pil-box").recipes

    assert one == other and len({*one, *other}) == len(one)
    assert isinstance(one[0], Decode) and one[0] == box[0]
    assert isinstance(one[1], Resize) and one[1] != box[1]
    assert len({*one, *box}) == len(one) + 1


def test_another_model_file_is_another_inference(card, tmp_path):
    (infer,) = (r for r in chain_of("pillow_fp32", card, tmp_path).recipes if r.stage == "infer")
    moved = Infer(infer.choice, Artifact(tmp_path / "moved", "key", "onnx"), {"": "x"}, {"y": "y"})
    changed = Infer(infer.choice, Artifact(tmp_path / "model", "k2", "onnx"), {"": "x"}, {"y": "y"})

    assert moved == infer, "it is told apart by content, not by place"
    assert changed != infer


def test_recipes_of_two_kinds_are_never_equal():
    class Other(Step):
        pass

    assert Step("a", "a", nothing) == Step("a", "a", len)
    assert Step("a", "a", nothing) != Other("a", "a", nothing)
    assert Step("a", "a", nothing) != ["a", "a"]


@pytest.mark.parametrize(
    ("at", "words"), [(0, "decode pillow"), (1, "resize pillow bicubic"), (2, "geometry squash")]
)
def test_a_recipe_prints_its_stage_its_backend_and_its_options(card, tmp_path, at, words):
    assert str(chain_of("pillow_fp32", card, tmp_path).recipes[at]).startswith(words)


def test_a_recipe_without_a_backend_prints_its_words():
    assert str(steps.Step("infer", "a name", nothing)) == "infer a name"


def test_a_task_of_one_inference_refuses_several(card, tmp_path):
    (answer,) = (
        r for r in chain_of("pillow_fp32", card, tmp_path).recipes if r.gives is Boundary.ANSWER
    )
    two = inferred(tuple({"y": np.zeros((1, 3), np.float32)} for _ in range(2)))

    with pytest.raises(ModelError, match="the outputs of one inference, got 2"):
        answer.open(None)(two, None)
