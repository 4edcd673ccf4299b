"""IVMOD over the rows of a campaign."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.analysis.ivmod import ivmod, metrics, severity
from simulator.tasks.detection import specimen
from simulator.tasks.detection.boxes import Detections
from simulator.tasks.detection.task import Detection
from simulator.tasks.impact import Decoded, Due

TASK = specimen.boxes(Detection).task
SIZE = (100, 100)
HERE, THERE = (0, 0, 10, 10), (50, 50, 60, 60)


def found(*boxes):
    n = len(boxes)
    return Detections(np.array(boxes, np.float64).reshape(-1, 4), np.full(n, 0.9), np.zeros(n, int))


def rows():
    """Masked, a false box, a lost one, NaN in a layer, and outputs that were refused."""
    case = TASK.Impact(TASK, TASK.Impact.Options(), found(HERE), None, SIZE)
    same, more, less = (Decoded(found(*boxes)) for boxes in ([HERE], [HERE, THERE], []))
    return [
        case.row(same), case.row(more), case.row(less), case.row(more, finite=False),
        case.row(Decoded(None, Due.REFUSED)),
    ]  # fmt: skip


def test_rates_are_of_all_faults_and_exclude_each_other():
    result = ivmod(rows())
    assert (result.sdc.events, result.due.events) == (2, 1)
    assert (result.refused.events, result.masked.events) == (1, 1)
    assert result.strict.events == 2
    assert {result.sdc.trials, result.due.trials, result.masked.trials} == {5}


def test_severity_is_of_silent_corruptions_only():
    """ΔFP is 1 and 0, ΔFN_n is 0 and 1; a size is known where there is a box: 100 pixels."""
    result = severity(rows(), ["delta_fp", "delta_fn_n", "size", "false_area", "missed_area"])
    assert result["delta_fp"].value == 0.5
    assert result["delta_fn_n"].value == 0.5
    assert (result["size"].value, result["size"].events, result["size"].undefined) == (100.0, 1, 1)
    assert result["false_area"].value == 0.005
    assert result["missed_area"].value == 0.5


def test_no_campaign_has_no_rate():
    with pytest.raises(ValueError, match="at least 1"):
        ivmod([])


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
