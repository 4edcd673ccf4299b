import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from simulator.data.labels import Labels
from simulator.errors import ModelError, SampleError
from simulator.tasks.classification.answer import postprocess
from simulator.tasks.classification.task import Classification, Output
from simulator.tasks.settings import Network

TASK = Classification(Output(kind="logits"), Network(Labels(("red", "green", "blue"))))


def logits(*values, dtype=np.float32, offset=0):
    return postprocess(np.array([values], dtype), "logits", offset)


BY_HAND = {
    "softmax of ln 1, 2, 5": ([0, math.log(2), math.log(5)], "f8", "logits", 0, (2, 5 / 8, 3 / 8)),
    "1 / (1 + e**-1)": ([3, 4], "i1", "logits", 0, (1, 0.7310586, 0.4621172)),
    "taken as they are": ([0.25, 0.125, 0.625], "f8", "probabilities", 0, (2, 0.625, 0.375)),
    "integers keep their unit": ([55, 200], "u1", "probabilities", 0, (1, 200, 145)),
    "background is dropped": ([99, 1, 1 + math.log(3)], "f8", "logits", 1, (1, 3 / 4, 2 / 4)),
    "NaN in the background": ([np.nan, 0, 800], "f8", "logits", 1, (1, 1, 1)),
    "the lowest of equal ones": ([1, 7, 7], "f4", "logits", 0, (1, 1 / (2 + math.exp(-6)), 0)),
    "no overflow": ([-1e308, 1e308], "f8", "logits", 0, (1, 1, 1)),
    "no runner-up": ([-3], "f4", "logits", 0, (0, 1, 1)),
    "logits an ulp apart": ([np.nextafter(0.5, 0), 0.5], "f8", "logits", 0, (1, 0.5, 0)),
}


@pytest.mark.parametrize("case", BY_HAND)
def test_answers_by_hand(case):
    outputs, dtype, kind, offset, expected = BY_HAND[case]
    got = postprocess(np.array([outputs], dtype), kind, offset)

    assert (got.prediction, got.score, got.margin) == pytest.approx(expected, abs=1e-6)


def test_the_five_best_are_listed_the_best_first_and_the_lowest_of_equal_ones_first():
    """Of 9 classes less one of background: 5 is the best; 2, 6 and 7 are equal, then 0 and 1."""
    got = logits(99, 1, 1, 4, -7, 1, 8, 4, 4, dtype=np.int8, offset=1)

    assert (got.prediction, got.best) == (5, (5, 2, 6, 7, 0))


def test_of_fewer_than_five_classes_all_are_listed():
    assert logits(0.0, 2.0, 1.0).best == (1, 2, 0)


@pytest.mark.parametrize(
    ("value", "says"), [(np.nan, "gave NaN"), (np.inf, "infinity"), (-np.inf, "infinity")]
)
@pytest.mark.parametrize("kind", ["logits", "probabilities"])
def test_what_is_not_finite_skips_the_sample(value, says, kind):
    with pytest.raises(SampleError, match=says):
        postprocess(np.array([[0.5, value]], np.float16), kind, 0)


@pytest.mark.parametrize(
    ("outputs", "kind", "offset", "says"),
    [
        (np.zeros((2, 3)), "logits", 0, r"expects an output \(1, C\) or \(C,\), got \(2, 3\)"),
        (np.zeros((1, 3, 1, 1)), "logits", 0, r"got \(1, 3, 1, 1\)"),
        (np.zeros(()), "logits", 0, r"got \(\)"),
        (np.zeros((1, 0)), "logits", 0, "leaves no class"),
        (np.zeros((1, 3)), "logits", 3, "offset 3 leaves no class"),
        (np.zeros((1, 3)), "logits", -1, "offset -1"),
        (np.zeros((1, 3), complex), "logits", 0, "expects numbers, got .* complex128"),
        (np.array([["a", "b"]]), "logits", 0, "expects numbers"),
        (np.array([[-4.0, 13.0]]), "probabilities", 0, "gave -4 to 13; if these are logits"),
    ],
)
def test_a_model_that_is_not_what_its_card_says(outputs, kind, offset, says):
    with pytest.raises(ModelError, match=says):
        postprocess(outputs, kind, offset)


@pytest.mark.parametrize(("label", "right"), [(2, True), (0, False), (None, None)])
def test_an_answer_is_held_against_the_label(label, right):
    record = TASK.record(logits(0.0, 1.0, 2.0), label)

    assert (record["label"], record["prediction"], record["correct"]) == (label, 2, right)


def test_a_label_that_the_model_does_not_know():
    with pytest.raises(ModelError, match="label is class 3, and the model knows 0 to 2"):
        TASK.record(logits(0.0, 1.0, 2.0), 3)


@pytest.mark.parametrize(("label", "listed"), [(4, True), (0, True), (5, False), (None, None)])
def test_top5_says_whether_the_label_is_among_the_five_best(label, listed):
    task = Classification(Output(kind="logits"), Network())
    record = task.record(logits(0.5, 3.0, 2.0, 1.0, 5.0, 0.0), label)

    assert (record["best"], record["top5"]) == ([4, 1, 2, 3, 0], listed)


def test_top5_of_five_classes_cannot_be_wrong_and_is_not_measured():
    task = Classification(Output(kind="logits"), Network())

    assert task.record(logits(1.0, 2.0, 3.0, 4.0, 5.0), 0)["top5"] is None
    assert task.record(task.recorded(3, np.nan, np.nan), 0)["best"] is None


def test_runners_up_in_another_order_are_the_same_answer():
    """How surely is no part of an answer; another class, or another truth of top-5, is one."""
    task = Classification(Output(kind="logits"), Network())
    one, swapped, other = (
        task.records([logits(*values)], 1)[0]
        for values in ([6, 5, 4, 3, 2, 1], [6, 5, 4, 2, 3, 1], [6, 0, 5, 4, 3, 2])
    )

    assert task.same(one, swapped)
    assert not task.same(one, other)


@given(
    hnp.arrays(np.float32, st.integers(1, 20), elements=st.floats(-(2.0**100), 2.0**100, width=32)),
    st.integers(0, 3),
)
def test_agrees_with_argmax_and_stays_a_probability(values, offset):
    if offset >= values.size:
        return
    got = postprocess(values, "logits", offset)

    assert got.prediction == values[offset:].tolist().index(max(values[offset:].tolist()))
    assert 0 <= got.margin <= got.score <= 1
    assert got == postprocess(values[None], "logits", offset)
