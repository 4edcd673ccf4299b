"""What a fault does to a mask."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.tasks.segmentation import specimen
from simulator.tasks.segmentation.task import Segmentation

TASK = specimen.logits(Segmentation).task
GOLDEN = np.zeros((4, 5), np.uint8)


def judged(faulty, golden=GOLDEN, truth=None, **options):
    return TASK.Impact(TASK, TASK.Impact.Options(**options), golden, truth, (4, 5)).judge(faulty)


def changed(*places):
    mask = GOLDEN.copy()
    for row, column in places:
        mask[row, column] = 1
    return mask


def test_an_equal_mask_is_masked():
    row = judged(GOLDEN.copy())
    assert (row["sdc"], row["changed"], row["blobs"], row["largest_blob"]) == (False, 0, 0, 0)


def test_pixels_of_a_blob_touch_each_other_diagonally_too():
    """Three on a diagonal, and one alone: 4 of 20 pixels, 3 of them in one blob."""
    row = judged(changed((0, 0), (1, 1), (2, 2), (3, 4)))
    assert (row["changed"], row["blobs"], row["largest_blob"]) == (4, 2, 3)
    assert (row["changed_share"], row["largest_share"]) == (0.2, 0.15)


@pytest.mark.parametrize(("least", "sdc"), [(0.0, True), (0.14, True), (0.15, False)])
def test_a_campaign_says_how_large_a_blob_must_be(least, sdc):
    assert judged(changed((0, 0), (1, 1), (2, 2), (3, 4)), blob=least)["sdc"] is sdc


def test_shares_are_of_the_pixels_with_an_answer():
    golden = GOLDEN.copy()
    golden[:2] = 255
    faulty = golden.copy()
    faulty[3, 0] = 2
    assert judged(faulty, golden)["changed_share"] == 0.1


def test_truth_says_in_which_direction():
    """One changed pixel was right, one becomes right, one is not judged."""
    truth = changed((0, 1))
    truth[3, 3] = 255
    row = judged(changed((0, 0), (0, 1), (3, 3)), truth=truth)
    assert (row["right_to_wrong"], row["wrong_to_right"]) == (1, 1)
