"""A task's own metrics over the inferences of a campaign."""

import pytest

from simulator.faults.metrics import curves, metrics
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


def test_precision_over_recall_with_and_without():
    """
    Two inferences, an object each: with a fault in one of them a false box comes, with a higher
    score than both. Precision is 1/2 at a recall of 1/2 and 2/3 at 1: interpolated 2/3 everywhere.
    """
    truth, found = TASK.examples()[1]
    label = TASK.network.labels.names[int(truth.classes[0])]
    perfect = TASK.record(found, truth)
    ghost = {
        "boxes": [60.0, 60.0, 70.0, 70.0, *perfect["boxes"]],
        "scores": [1.0, *perfect["scores"]], "classes": [*perfect["classes"] * 2],
    }  # fmt: skip
    drawn = curves(TASK, [perfect] * 2, [perfect, perfect | ghost], [truth] * 2)
    assert list(drawn) == ["all classes", label]
    assert drawn[label].clean == [1.0] * 101
    assert drawn[label].faulty == pytest.approx([2 / 3] * 101)
    lost = curves(TASK, [perfect] * 2, [perfect, None], [truth] * 2)[label].faulty
    assert lost == pytest.approx([1.0] * 51 + [0.0] * 50)
    assert curves(TASK, [perfect], [perfect], [None]) == {}
