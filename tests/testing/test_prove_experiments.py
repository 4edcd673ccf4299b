"""The suite of experiments: ours pass it, and each broken one trips exactly one check."""

from pathlib import Path

import pytest
from broken_experiments import FAULTS, Correct

from simulator.cli import main
from simulator.command.experiment import EXPERIMENTS, Experiment
from simulator.errors import UserError
from simulator.testing import Mark
from simulator.testing.experiments import EXPERIMENT_CHECKS, prove_experiment

DOCUMENT = Path(__file__).parents[2] / "docs" / "conformance.md"
CHECKS = [check.__name__ for check in EXPERIMENT_CHECKS]


def failed(verdicts):
    return {one.check: one.remark for one in verdicts if one.mark is Mark.FAILED}


@pytest.mark.prove
@pytest.mark.parametrize("name", EXPERIMENTS.names)
def test_our_experiments_pass(name):
    verdicts = prove_experiment(name)

    assert failed(verdicts) == {}
    assert [one.check for one in verdicts] == CHECKS


def test_a_correct_experiment_passes(cache):
    assert failed(prove_experiment(Correct)) == {}


@pytest.mark.parametrize(
    ("check", "fault"), [(check, one) for check, some in FAULTS.items() for one in some]
)
def test_a_broken_experiment_trips_its_check_and_no_other(check, fault, cache):
    found = failed(prove_experiment(fault))

    assert set(found) == {check}, found
    assert "expected" in found[check]
    assert "\n" not in found[check]


def test_no_check_is_without_a_fault_or_undocumented():
    text = DOCUMENT.read_text()

    assert list(FAULTS) == CHECKS
    for check in EXPERIMENT_CHECKS:
        assert (check.__doc__ or "").splitlines()[0].endswith("."), check.__name__
        assert f"`{check.__name__}`" in text, check.__name__


def test_an_experiment_without_a_specimen_cannot_be_proved():
    bare = type("Bare", (Correct,), {"specimen": Experiment.specimen})

    with pytest.raises(UserError, match="'run' has no specimen to try it with; write its specimen"):
        prove_experiment(bare)


def test_the_command_proves_an_experiment(cache, monkeypatch, capsys):
    monkeypatch.setitem(EXPERIMENTS._loaded, "run", Correct)

    assert main(["prove", "experiment", "run"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "run: 7 passed, 0 failed, 0 cannot"
