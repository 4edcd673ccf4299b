"""What a fault does to boxes: IVMOD's counts, severity and blobs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_assignment import annotated, found

from simulator.profile.postprocess import Postprocess
from simulator.tasks.detection import specimen
from simulator.tasks.detection.impact import occupied
from simulator.tasks.detection.task import Detection
from simulator.tasks.impact import Decoded, Due, decoded

TASK = specimen.boxes(Detection).task
LABELS = TASK.network.labels.names
SIZE = (10, 20)
A, B, C = (0, 0, 4, 5), (10, 0, 14, 5), (0, 5, 10, 10)
"""20, 20 and 50 of 200 pixels."""


def judged(golden, faulty, truth=None, **options):
    chosen = TASK.Impact.Options(**options)
    return TASK.Impact(TASK, chosen, golden, truth, SIZE).judge(faulty)


def test_equal_boxes_are_masked():
    row = judged(found(A, B), found(A, B))
    assert (row["sdc"], row["strict"]) == (False, False)
    assert (row["delta_fp"], row["delta_fn_n"]) == (0, 0.0)
    assert (row["false_area"], row["missed_area"]) == (0.0, 0.0)


def test_a_lost_and_two_false_boxes():
    """A is found, B is lost, C and a box at the right edge are new: 50 + 30 of 200 pixels."""
    row = judged(found(A, B), found(A, C, (17, 0, 20, 10), scores=[0.9, 0.8, 0.6]))
    assert row["sdc"] is True
    assert (row["tp"], row["fp"], row["fn"]) == (1, 2, 1)
    assert (row["tp_golden"], row["fp_golden"], row["fn_golden"]) == (2, 0, 0)
    assert (row["delta_fp"], row["delta_fn_n"]) == (2, 0.5)
    assert (row["size_golden"], row["size"], row["false_size"]) == (20, pytest.approx(100 / 3), 40)
    assert row["confidence_golden"] == pytest.approx(0.9)
    assert row["confidence"] == pytest.approx(2.3 / 3)
    assert row["false_confidence"] == pytest.approx(0.7)
    assert row["false_area"] == 80 / 200
    assert row["missed_area"] == 20 / 40


def labelled(answer, *classes):
    return replace(answer, classes=np.array(classes))


@pytest.mark.parametrize(
    ("faulty", "split"),
    [
        (labelled(found(A, B), 1, 0), (1, 0, 0)),
        (found((2, 0, 6, 5), B), (0, 1, 0)),  # IoU 1 / 3
        (labelled(found((2, 0, 6, 5), B), 1, 0), (0, 0, 1)),
        (found(A, B, (1, 0, 4, 5)), (0, 0, 1)),  # a second box of a found object
        (found((3.5, 0, 7.5, 5), B), (0, 0, 1)),  # IoU 1 / 15
        (labelled(found(A, (11, 0, 17, 5), C), 1, 0, 0), (1, 1, 1)),
    ],
)
def test_false_objects_are_wrong_labels_shifted_boxes_or_ghosts(faulty, split):
    """Where every object is found without the fault; counted on paper."""
    row = judged(found(A, B), faulty)
    assert tuple(row[f"delta_fp_{kind}"] for kind in ("label", "shifted", "ghost")) == split
    assert row["delta_fp"] == sum(split)


@pytest.mark.parametrize(
    ("options", "delta_fp"),
    [
        ({}, 2),
        ({"classes": "ignored"}, 1),
        ({"classes": {"some": [LABELS[0], LABELS[1]]}}, 1),
        ({"classes": {"some": [LABELS[1], LABELS[2]]}}, 2),
        ({"iou": 0.3}, 1),
        ({"iou": 0.3, "classes": "ignored"}, 0),
    ],
)
def test_which_boxes_are_pairs_is_chosen(options, delta_fp):
    """A is found as another class, and B three quarters of its width aside: IoU 1 / 3."""
    aside = (12, 0, 16, 5)
    assert judged(found(A, B), labelled(found(A, aside), 1, 0), **options)["delta_fp"] == delta_fp


def test_the_fault_free_answer_against_the_truth():
    """A is there and found, C is found where nothing is, B is missed; of a crowd nothing counts."""
    truth = annotated(A, B)
    impact = TASK.Impact(TASK, TASK.Impact.Options(), found(A, C), truth, SIZE)
    blobs = impact.reference()
    assert (blobs.false_area, blobs.missed_area) == (50 / 200, 20 / 70)
    assert TASK.Impact(TASK, TASK.Impact.Options(), found(A, C), None, SIZE).reference() is None


def test_a_swap_keeps_the_counts_and_is_seen_by_the_strict_reading():
    """One false box goes, another comes; or another of two objects is found."""
    swap = judged(found(A, B), found(A, C), annotated(A))
    assert (swap["fp_golden"], swap["fp"]) == (1, 1)
    assert (swap["sdc"], swap["strict"]) == (False, True)
    other = judged(found(A), found(B), annotated(A, B))
    assert (other["sdc"], other["strict"]) == (False, True)


def test_a_false_box_that_moves_a_little_is_the_same_one():
    row = judged(found(A, B), found(A, (10, 0, 14, 4)), annotated(A))
    assert (row["sdc"], row["strict"]) == (False, False)


def test_a_false_box_without_area_is_itself():
    flat = (7, 7, 7, 9)
    assert judged(found(A, flat), found(A, flat), annotated(A))["strict"] is False


def test_a_fault_may_do_good():
    """A false box disappears, and a missed object is found."""
    row = judged(found(A, C), found(A, B), annotated(A, B))
    assert row["sdc"] is True
    assert (row["delta_fp"], row["delta_fn_n"]) == (-1, -1.0)


def test_where_nothing_was_found_no_share_of_it_is_lost():
    row = judged(found(), found(A))
    assert (row["delta_fp"], row["delta_fn_n"], row["missed_area"]) == (1, None, None)
    assert (row["size_golden"], row["confidence_golden"]) == (None, None)
    assert row["false_area"] == 0.1


def test_a_false_box_inside_a_healthy_one_occupies_nothing():
    row = judged(found(C), found(C, (1, 6, 3, 8)))
    assert (row["delta_fp"], row["false_area"], row["missed_area"]) == (1, 0.0, 0.0)


@pytest.mark.parametrize(("reading", "tp"), [("most_pairs", 1), ("alficore", 0)])
def test_the_reading_of_the_assignment_is_an_option(reading, tp):
    """Intervals of 5 that are 1.45 (IoU 0.55) or 1.71 (IoU 0.49) apart; see test_assignment.py."""
    boxes = found((2, 0, 7, 1), (5.16, 0, 10.16, 1))
    truth = annotated((3.45, 0, 8.45, 1), (0.29, 0, 5.29, 1))
    assert judged(boxes, boxes, truth, assignment=reading)["tp"] == tp


def test_the_threshold_is_the_cards_unless_the_campaign_says_otherwise():
    faint = found(A, B, scores=[0.9, 0.4])
    assert judged(found(A), faint)["sdc"] is False
    assert judged(found(A), faint, threshold=0.3)["delta_fp"] == 1


def test_the_printed_example_of_a_blob():
    """
    A box of 3 x 3 of 6 x 5 pixels, of which a fault frees a column and occupies 10 others:
    A_FP = 10 / 30, A_FN = 3 / 9.
    """
    case = TASK.Impact(TASK, TASK.Impact.Options(), found((0, 0, 3, 3)), None, (6, 5))
    blobs = case.blobs(found((1, 0, 3, 3), (0, 4, 5, 6)))
    assert blobs.false_area == 10 / 30
    assert blobs.missed_area == 3 / 9
    assert np.count_nonzero(blobs.occupied) == 9


def test_a_pixel_is_occupied_where_its_center_is():
    """From 0.5 to 2.5: the centers 0.5 and 1.5, not 2.5."""
    mask = occupied(np.array([[0.5, 0.5, 2.5, 1.4]]), (3, 4))
    assert mask.tolist() == [[True, True, False, False], [False] * 4, [False] * 4]
    right = occupied(np.array([[0.6, 0.4, 2.6, 1.6]]), (3, 4))
    assert right.tolist() == [[False, True, True, False]] * 2 + [[False] * 4]
    assert occupied(np.zeros((0, 4)), (3, 4)).sum() == 0


@pytest.mark.parametrize(
    ("name", "value", "due"),
    [
        ("scores", np.nan, Due.OUTPUT),
        ("boxes", np.nan, Due.OUTPUT),
        ("boxes", np.float32(3e38), Due.OUTPUT),  # 32 times as much is no float32
        ("scores", 2.8e31, Due.REFUSED),
    ],
)
def test_what_cannot_be_a_box_or_a_score_is_detected(name, value, due):
    """The first of eight boxes, whose numbers are shares of 32 pixels, with a score of 0.9."""
    case = specimen.boxes(Detection)
    card = case.task.Output.model_validate(
        {**specimen.CARD, "head": {**specimen.CARD["head"], "unit": "image"}}
    )
    task = Detection(card, specimen.NETWORK)
    (outputs,) = case.fresh()
    outputs["scores"].flat[0] = 0.9
    settings = task.settings(Postprocess())
    assert decoded(task, outputs, settings, case.placement).due is None
    outputs[name].flat[0] = value
    assert decoded(task, outputs, settings, case.placement) == Decoded(None, due)
