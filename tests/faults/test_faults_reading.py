"""What a campaign asks of the task's verdicts: the assignment, and the threshold of boxes."""

import campaigns
import numpy as np
import pytest
import tiny
import tiny_tasks
from PIL import Image

from simulator.data.truth import Boxes
from simulator.errors import ProfileError
from simulator.faults.campaign import load_campaign
from simulator.faults.screen import reading
from simulator.tasks.detection import specimen
from simulator.tasks.detection.boxes import Detections
from simulator.tasks.detection.task import Detection

TASK = specimen.boxes(Detection).task
FIRST = TASK.network.labels.names[0]
NEAR, FAR = 60 / 19, 19.9
"""Intervals of 60 that are so far apart have an IoU of 0.9, and of just over 0.5."""


def wide(*starts):
    return np.array([(start, 0, start + 60, 9) for start in starts], np.float64)


CHAIN = (
    wide(100 - FAR, 100 + NEAR, 100 + 2 * NEAR + FAR),
    wide(100, 100 + NEAR + FAR, 100 + 2 * NEAR + 2 * FAR),
)
"""IoU of 0.5, 0.9, 0.5, 0.9, 0.5: three pairs, or two better ones."""
SQUARE = (wide(100, 100 + 37.96), wide(100 + 17.42, 100 - 20.54))
"""IoU of 0.55 and twice 0.49: one pair, or two that are both none."""


def chosen(folder, **verdict):
    return load_campaign(campaigns.document(folder, verdict=verdict)).options(TASK)


@pytest.mark.parametrize(
    ("assignment", "chain", "square"),
    [("most_pairs", 3, 1), ("most_overlap", 2, 1), ("alficore", 2, 0)],
)
def test_each_reading_of_the_assignment(tmp_path, assignment, chain, square):
    for (boxes, there), wanted in ((CHAIN, chain), (SQUARE, square)):
        count = len(boxes)
        answer = Detections(boxes, np.full(count, 0.9), np.zeros(count, int))
        sizes, none = there - there[:, [0, 1, 0, 1]] * [0, 0, 1, 1], np.zeros(count, bool)
        truth = Boxes(sizes, np.zeros(count, np.int64), none, np.full(count, 540.0), none)
        options = chosen(tmp_path, assignment=assignment)
        row = TASK.Impact(TASK, options, answer, truth, (20, 300)).judge(answer)
        assert (row["tp"], row["tp_golden"]) == (wanted, wanted)


def test_by_default_it_is_the_one_with_most_pairs(tmp_path):
    assert chosen(tmp_path).assignment == "most_pairs"


def test_a_campaign_with_it_is_run_and_says_so(tmp_path):
    """Above a score of 0.9999 there is no box, with a fault or without it."""
    tiny_tasks.card(tmp_path)
    (tmp_path / "data").mkdir()
    picture = tiny_tasks.picture(("red", 16, 32, 16))
    Image.fromarray(picture).save(tmp_path / "data" / "red.png")
    usual, none = (
        campaigns.run(
            tmp_path,
            campaigns.document(tmp_path, targets=["biases"], bits=[31], faults=12, verdict=verdict),
            tmp_path / name,
        ).summary
        for name, verdict in (
            ("usual", {}), ("none", {"threshold": 0.9999, "assignment": "alficore"})
        )
    )  # fmt: skip
    same = {"iou": 0.5, "classes": "each"}
    assert usual.reading == {"assignment": "most_pairs", "threshold": None} | same
    assert none.reading == {"assignment": "alficore", "threshold": 0.9999} | same
    assert usual.stacks["deploy"].sdc.count > 0
    assert none.stacks["deploy"].sdc.count == 0
    assert list(reading(none)) == [
        "Verdicts: assignment alficore, threshold 0.9999, iou 0.5, classes each."
    ]


@pytest.mark.parametrize(
    ("verdict", "message"),
    [
        ({"assignment": "greedy"}, r"mine.yaml:\d+: verdict.assignment: unknown value 'greedy'"),
        ({"asignment": "alficore"}, r"mine.yaml:\d+: verdict.asignment: unknown key.*assignment"),
        ({"threshold": 2.0}, r"mine.yaml:\d+: verdict.threshold: "),
        ({"classes": {"all": ["no such"]}}, r"mine.yaml:\d+: verdict.classes.all: unknown class"),
        ({"classes": {"a": [FIRST], "b": [FIRST]}}, r"verdict.classes: '.*' is in a and in b"),
        ({"classes": "none"}, r"mine.yaml:\d+: verdict.classes: "),
    ],
)
def test_what_the_task_does_not_know_gets_one_line(tmp_path, verdict, message):
    with pytest.raises(ProfileError, match=message) as caught:
        chosen(tmp_path, **verdict)
    assert "\n" not in str(caught.value)


def test_a_task_without_options_says_so(tmp_path):
    tiny.card(tmp_path)
    tiny.data(tmp_path / "data", 1)
    campaign = campaigns.document(tmp_path, verdict={"assignment": "alficore"})
    with pytest.raises(ProfileError, match="verdict: a verdict on classification has no options"):
        campaigns.run(tmp_path, campaign, tmp_path / "run")
    assert not (tmp_path / "run").exists()
