"""Chance in a condition: the same sample, condition and trial, the same draw, anywhere."""

import pytest
import steps
from steps import nothing

from simulator.conditions.condition import AppliedCondition, Condition, Disturbance
from simulator.contract.recipe import Boundary, Chain, Context, generator

# By hand, with hashlib and numpy alone:
#   seed = int.from_bytes(hashlib.blake2b("a/1.jpg\x1fnoise:3\x1f0".encode(), digest_size=16)
#                         .digest(), "little")
#   numpy.random.default_rng(seed).integers(2**32, size=2)
FIRST = [
    (("a/1.jpg", "noise:3", 0), [2003205651, 3263224059]),
    (("a/1.jpg", "noise:3", 1), [1563733022, 3572440316]),
    (("ä 2.png", "", 0), [4156274244, 104591238]),
]


@pytest.mark.parametrize(("words", "draws"), FIRST)
def test_the_first_draws_are_those_of_the_definition(words, draws):
    assert generator(*words).integers(2**32, size=2).tolist() == draws


def test_words_are_not_run_together():
    """Else the sample ``a1`` under trial 2 would be that of ``a`` under trial 12."""
    draws = {tuple(generator(*words).bytes(8)) for words in
             (("a1", "2"), ("a", "12"), ("a12",), ("", "a12"), ("a12", ""))}  # fmt: skip

    assert len(draws) == 5


def test_what_is_no_unicode_is_a_word_too():
    """Of a file whose name is no UTF-8."""
    assert generator("a\udcff.jpg").bytes(4) != generator("a\udcfe.jpg").bytes(4)


class Noise(Condition):
    """Adds a number of its own to each sample."""

    name = "noise"
    summary = "for tests"
    acts_on = Boundary.SOURCE
    has_chance = True

    def __init__(self, size):
        self.size = size

    @classmethod
    def parse(cls, parameters):
        return cls(int(parameters))

    def parameters(self):
        return {"size": self.size}

    def open(self):
        return lambda value, rng: value + rng.integers(2**32)


def disturbed(sample, condition, trial, chains=1, before=()):
    """What each of several arms gets of one sample after others have gone through."""
    step = Disturbance(condition, trial)
    arms = [Chain((step, steps.Step("infer", f"{n}", nothing))) for n in range(chains)]
    opened = steps.opened(steps.merged(*arms))
    for other in before:
        opened.walk(Context(other, 0, None))
    return opened.walk(Context(sample, 0, None)).answers()


def test_every_stack_gets_the_same_whatever_went_before():
    alone = disturbed("a", Noise(3), 0)

    assert disturbed("a", Noise(3), 0, chains=3, before=["b", "c"]) == alone * 3


def test_another_sample_condition_or_trial_is_another_draw():
    draws = {
        disturbed(sample, Noise(size), trial)[0]
        for sample in "ab" for size in (3, 4) for trial in (0, 1)
    }  # fmt: skip

    assert len(draws) == 8


def test_two_trials_of_what_has_chance_are_two_computations():
    assert Disturbance(Noise(3), 0) != Disturbance(Noise(3), 1)
    assert Disturbance(Noise(3), 1) == Disturbance(Noise(3), 1)


def test_trials_of_what_has_no_chance_are_one():
    class Sure(Noise):
        has_chance = False

    assert Disturbance(Sure(3), 0) == Disturbance(Sure(3), 1)


@pytest.mark.parametrize("place", list(Boundary)[:3])
def test_a_condition_acts_right_behind_its_boundary(place):
    """On the file before the first step, else behind the step that gives the value."""
    named = {Boundary.FRAME: "decode", Boundary.INPUT: "normalize"}
    chain = Chain(tuple(steps.Step(s, s, nothing, gives=b) for b, s in named.items()))

    class There(Noise):
        acts_on = place

    found = [one.stage for one in AppliedCondition(There(3)).disturbed(chain).recipes]

    assert found[list(Boundary).index(place)] == "condition"
    assert [stage for stage in found if stage != "condition"] == ["decode", "normalize"]


def test_what_ends_before_the_place_is_left_as_it_is():
    class OnInput(Noise):
        acts_on = Boundary.INPUT

    chain = Chain((steps.Step("decode", "d", nothing, gives=Boundary.FRAME),))

    assert AppliedCondition(OnInput(3)).disturbed(chain) is chain
