"""The suite of tasks: ours pass it, and each broken one trips exactly one check."""

from __future__ import annotations

import pytest
from broken_tasks import FAULTS
from small_task import Parity
from task_subjects import SUBJECTS

from simulator.errors import UserError
from simulator.profile.postprocess import Postprocess
from simulator.statistics.bootstrap import Resamples
from simulator.tasks.settings import Network
from simulator.tasks.task import TASKS
from simulator.testing.task_outputs import profiles
from simulator.testing.tasks import SUITE, prove_task
from suites import passes, trips

BROKEN = [(check, subject) for check, subjects in FAULTS.items() for subject in subjects]


@pytest.mark.prove
@pytest.mark.parametrize("name", SUBJECTS)
def test_our_tasks_pass_every_check(name):
    passes(prove_task(SUBJECTS[name]), SUITE)


@pytest.mark.parametrize(
    ("check", "subject"), BROKEN, ids=[f"{c}-{type(s.task).__name__}" for c, s in BROKEN]
)
def test_a_fault_trips_its_check_and_no_other(check, subject):
    trips(prove_task(subject), check)


@pytest.mark.parametrize("name", TASKS.names)
def test_an_installed_task_is_proved_by_its_name(name):
    """Each brings a specimen of its own."""
    verdicts = prove_task(name)

    passes(verdicts)
    assert len(verdicts) == len(SUITE.checks) * len(TASKS[name].specimens())


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
    assert (view.lines({**found, "task": "parity", "unit": "sample"}), view.findings(found)) == (
        [],
        [],
    )
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
    assert set(FAULTS) == set(SUITE.names)
