"""The suite of tasks: ours pass it, and each broken one trips exactly one check."""

from __future__ import annotations

from pathlib import Path

import pytest
from broken_tasks import FAULTS
from small_task import Parity
from task_subjects import SUBJECTS

from simulator.errors import UserError
from simulator.profile.postprocess import Postprocess
from simulator.statistics.bootstrap import Resamples
from simulator.tasks.task import TASKS, Network
from simulator.testing import Mark
from simulator.testing.task_outputs import profiles
from simulator.testing.tasks import TASK_CHECKS, prove_task

DOCUMENT = Path(__file__).parents[2] / "docs" / "conformance.md"
BROKEN = [(check, subject) for check, subjects in FAULTS.items() for subject in subjects]


def failed(verdicts):
    return {v.check: v.remark for v in verdicts if v.mark is Mark.FAILED}


@pytest.mark.prove
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


@pytest.mark.parametrize("name", TASKS.names)
def test_an_installed_task_is_proved_by_its_name(name):
    """Each brings a specimen of its own."""
    verdicts = prove_task(name)

    assert failed(verdicts) == {}
    assert len(verdicts) == len(TASK_CHECKS) * len(TASKS[name].specimens())


def test_a_task_without_a_specimen_cannot_be_proved():
    with pytest.raises(
        UserError, match="'parity' has no specimens to check it with; write its spec"
    ):
        prove_task(Parity)


def test_the_smallest_task_is_worked_out_and_shown_by_default():
    """Two of three right becomes one of three; the table of flips names the columns that differ."""
    task, view = Parity(Parity.Output(), Network()), Parity.view()
    rows = [task.records([truth, after], truth) for truth, after in [(0, 0), (1, 2), (2, 1)]]
    before, after = ([row[side] for row in rows] for side in range(2))
    train, deploy = (task.score(side, [0, 1, 2]) for side in (before, after))
    found = task.compare(train, deploy, Resamples(3, number=50))

    metrics = [found[side]["metric"] for side in ("train", "deploy")]
    assert metrics == [{"accuracy": 1}, {"accuracy": pytest.approx(1 / 3)}]
    assert found["delta"]["accuracy"]["value"] == pytest.approx(-2 / 3)
    assert (found["flips"]["count"], found["flips"]["units"]) == (2, 3)
    assert (view.lines({**found, "task": "parity"}), view.findings(found)) == ([], [])
    assert view.words(task.flip(before[1], after[1])) == (
        "1 of 1", "accuracy 1.0, choice 1", "accuracy 0.0, choice 2",
    )  # fmt: skip


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
