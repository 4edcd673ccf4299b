"""The suite of tasks: ours pass it, and each broken one trips exactly one check."""

from __future__ import annotations

from pathlib import Path

import pytest
from broken_tasks import FAULTS
from task_subjects import SUBJECTS

from simulator.profile.postprocess import Postprocess
from simulator.testing import Mark
from simulator.testing.task_outputs import profiles
from simulator.testing.tasks import TASK_CHECKS, prove_task

DOCUMENT = Path(__file__).parents[2] / "docs" / "conformance.md"
BROKEN = [(check, subject) for check, subjects in FAULTS.items() for subject in subjects]


def failed(verdicts):
    return {v.check: v.remark for v in verdicts if v.mark is Mark.FAILED}


@pytest.mark.parametrize("name", SUBJECTS)
def test_our_tasks_pass_every_check(name):
    verdicts = prove_task(SUBJECTS[name])

    assert failed(verdicts) == {}
    assert [v.check for v in verdicts] == [check.__name__ for check in TASK_CHECKS]


@pytest.mark.parametrize(
    ("check", "subject"), BROKEN, ids=[f"{c}-{type(s.task).__name__}" for c, s in BROKEN]
)
def test_a_fault_trips_its_check_and_no_other(check, subject):
    found = failed(prove_task(subject))

    assert set(found) == {check}, found
    assert "expected" in found[check]
    assert "got" in found[check]
    assert "\n" not in found[check]


def test_every_field_of_a_profile_is_tried_alone_and_with_another():
    tried = [words for words, _ in profiles()]
    inside = {
        name: field.annotation.model_fields
        for name, field in Postprocess.model_fields.items()
        if hasattr(field.annotation, "model_fields")
    }
    fields = {f"{name}.{field}" for name, own in inside.items() for field in own}
    fields |= {*Postprocess.model_fields} - {*inside}

    assert {words.split()[0] for words in tried[1:] if "," not in words} == fields
    assert "nms.kind soft_gaussian, nms.sigma 0.125" in tried
    assert "mask_resize.of labels, mask_resize.mode bilinear" not in tried


def test_no_check_is_without_a_fault():
    assert set(FAULTS) == {check.__name__ for check in TASK_CHECKS}


def test_every_check_says_what_it_demands():
    assert all((check.__doc__ or "").splitlines()[0].endswith(".") for check in TASK_CHECKS)


def test_every_check_is_documented():
    text = DOCUMENT.read_text()

    assert [c.__name__ for c in TASK_CHECKS if f"`{c.__name__}`" not in text] == []
