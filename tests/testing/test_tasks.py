"""The suite of tasks: ours pass it, and each broken one trips exactly one check."""

from __future__ import annotations

import pytest
from task_subjects import SUBJECTS

from simulator.testing import Mark
from simulator.testing.tasks import TASK_CHECKS, prove_task


def failed(subject):
    return {v.check: v.remark for v in prove_task(subject) if v.mark is Mark.FAILED}


@pytest.mark.parametrize("name", SUBJECTS)
def test_our_tasks_pass_every_check(name):
    verdicts = prove_task(SUBJECTS[name])

    assert failed(SUBJECTS[name]) == {}
    assert [v.check for v in verdicts] == [check.__name__ for check in TASK_CHECKS]
