"""A task's own metrics over the inferences of a campaign."""

import pytest

from simulator.faults.figures import metrics
from simulator.tasks.detection import specimen
from simulator.tasks.detection.task import Detection

TASK = specimen.boxes(Detection).task


def test_average_precision_stands_beside_it():
    """
    Two inferences of one object each: found without faults (AP 1); with them, found once and
    detected once, which counts as no answer: recall 1/2, and 51 of 101 points of precision 1.
    """
    truth = TASK.examples()[1][0]
    perfect = TASK.record(TASK.examples()[1][1], truth)
    before, after = metrics(TASK, [perfect] * 2, [perfect, None], [truth] * 2)
    assert (before["AP50"], before["mAP"]) == (1.0, 1.0)
    assert after["AP50"] == pytest.approx(51 / 101)
