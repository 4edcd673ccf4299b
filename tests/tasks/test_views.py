"""Changed answers by kind, as people read them."""

import pytest

from simulator.tasks.task import TASKS


@pytest.mark.parametrize(
    ("task", "flips", "expected"),
    [
        (
            "classification",  # of nine three are of samples without a label
            {"count": 9, "right_to_wrong": 3, "wrong_to_right": 1, "wrong_to_wrong": 2},
            [("right→wrong", 3), ("wrong→right", 1), ("wrong→other", 2), ("other", 3)],
        ),
        (
            "classification",
            {"count": 9, "right_to_wrong": None, "wrong_to_right": None, "wrong_to_wrong": None},
            [],
        ),
        (
            "multiple_choice",  # acc_norm has answers of its own
            {"count": 7, "right_to_wrong": 3, "wrong_to_right": 2, "norm_changed": 9},
            [("right→wrong", 3), ("wrong→right", 2), ("other", 2), ("changed by acc_norm", 9)],
        ),
        (
            "detection",
            {"count": 7, "lost": 4, "gained": 2, "moved": 1, "relabelled": 0},
            [("lost", 4), ("gained", 2), ("moved", 1), ("relabelled", 0)],
        ),
        ("transcription", {"count": 12, "transcripts": 3}, [("changed transcripts", 3)]),
    ],
)
def test_kinds_sum_to_the_changed_answers(task, flips, expected):
    assert TASKS[task].view().counts(flips) == expected
