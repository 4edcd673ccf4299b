"""What a fault does to a class."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.data.labels import Labels
from simulator.tasks.classification.answer import Answer, postprocess
from simulator.tasks.classification.task import Classification, Output
from simulator.tasks.impact import Decoded, Due, decoded
from simulator.tasks.settings import Network

TASK = Classification(Output(kind="probabilities"), Network(Labels(tuple("abcdefg"))))
GOLDEN = [0.4, 0.2, 0.1, 0.1, 0.1, 0.06, 0.04]


def answer(values, kind="probabilities"):
    return postprocess(np.array([values]), kind, 0)


def impact(golden, truth=None):
    return TASK.Impact(TASK, TASK.Impact.Options(), golden, truth)


def judged(values, truth=None):
    return impact(answer(GOLDEN), truth).judge(answer(values))


def test_an_equal_answer_is_masked():
    assert judged(GOLDEN) == {
        "sdc": False, "top5_changed": False, "prediction": 0, "margin_loss": 0.0, "score_loss": 0.0,
        "right_to_wrong": None, "wrong_to_right": None,
    }  # fmt: skip


def test_the_margin_of_the_golden_class_becomes_negative_where_another_wins():
    """0.4 - 0.2 before; 0.1 - 0.5 with the fault: a loss of 0.6."""
    row = judged([0.1, 0.5, 0.1, 0.1, 0.1, 0.06, 0.04])
    assert row["sdc"] is True
    assert row["prediction"] == 1
    assert row["margin_loss"] == pytest.approx(0.6)
    assert row["score_loss"] == pytest.approx(0.3)


def test_another_order_of_the_best_five_is_the_same_set():
    row = judged([0.4, 0.1, 0.1, 0.1, 0.2, 0.06, 0.04])
    assert (row["sdc"], row["top5_changed"]) == (False, False)


def test_another_class_among_the_best_five_is_seen_though_the_best_is_the_same():
    row = judged([0.4, 0.2, 0.1, 0.1, 0.04, 0.1, 0.06])
    assert (row["sdc"], row["top5_changed"]) == (False, True)


def test_the_best_five_are_taken_from_logits_where_a_softmax_has_rounded_them_to_zero():
    """exp(-1e4) is 0 for all but the winner; the runners-up still have an order."""
    golden = answer([1e4, 6, 5, 4, 3, 2, 1], "logits")
    faulty = answer([2e4, 1, 5, 4, 3, 2, 6], "logits")
    row = impact(golden).judge(faulty)
    assert (row["sdc"], row["top5_changed"], row["margin_loss"]) == (False, True, 0.0)


@pytest.mark.parametrize(
    ("truth", "expected"), [(0, (True, False)), (1, (False, True)), (2, (False, False))]
)
def test_truth_says_in_which_direction(truth, expected):
    row = judged([0.1, 0.5, 0.1, 0.1, 0.1, 0.06, 0.04], truth)
    assert (row["right_to_wrong"], row["wrong_to_right"]) == expected


def test_five_classes_have_no_best_five():
    row = impact(answer([0.6, 0.1, 0.1, 0.1, 0.1])).judge(answer([0.1] * 5))
    assert row["top5_changed"] is None


def test_one_class_loses_its_score():
    assert impact(answer([0.75])).judge(answer([0.5]))["margin_loss"] == 0.25


def test_a_recorded_answer_has_no_scores_to_compare():
    row = impact(Answer(1, 0.5, 0.25)).judge(answer(GOLDEN))
    assert (row["sdc"], row["top5_changed"], row["margin_loss"]) == (True, None, None)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_outputs_that_are_not_finite_are_detected(value):
    outputs = {"y": np.array([[0.5, value, 0.5]], np.float32)}
    assert decoded(TASK, outputs, TASK.output, None) == Decoded(None, Due.OUTPUT)


def test_outputs_that_the_card_does_not_promise_are_told_apart():
    outputs = {"y": np.array([[0.5, 7.0, 0.5]], np.float32)}
    assert decoded(TASK, outputs, TASK.output, None) == Decoded(None, Due.REFUSED)


def test_a_detected_fault_is_never_a_silent_one():
    """The class changes, and a layer has NaN: DUE, with nothing but the reason in its row."""
    case, other = impact(answer(GOLDEN)), Decoded(answer(GOLDEN[::-1]))
    row = case.row(other, finite=False)
    assert row == {
        **dict.fromkeys(field.name for field in case.schema()),
        "sdc": False, "due": True, "why": "layer",
    }  # fmt: skip
    silent = case.row(other)
    assert (silent["sdc"], silent["due"], silent["why"]) == (True, False, None)
    assert case.row(Decoded(None, Due.OUTPUT))["why"] == "output"
