"""The suite of experiments: ours pass it, and each broken one trips exactly one check."""

from importlib.util import find_spec

import pytest
from broken_experiments import COMMAND_FAULTS, FAULTS, Correct, CorrectCommand

from simulator.analysis.figures import of_run
from simulator.cli import main
from simulator.command.experiment import EXPERIMENTS, Experiment
from simulator.errors import UserError
from simulator.testing import experiments
from simulator.testing.experiments import COMMANDS, SUITE, prove_experiment
from suites import passes, trips


@pytest.fixture
def few_figures(monkeypatch):
    """Each figure takes a page: of what is broken the outermost are tried, of our own all."""

    def outermost(summary):
        return [figure for figure in of_run(summary) if "." not in figure.path]

    monkeypatch.setattr(experiments, "of_run", outermost)


@pytest.mark.prove
@pytest.mark.parametrize("name", [one.name for one in EXPERIMENTS if one.summary])
def test_our_experiments_pass(name):
    passes(prove_experiment(name), SUITE)


@pytest.mark.parametrize("name", [one.name for one in EXPERIMENTS if not one.summary])
def test_our_commands_pass(name):
    """Each leaves no run."""
    if name in ("finetune", "quantize") and find_spec("onnx2torch") is None:
        pytest.skip("onnx2torch is not installed")
    passes(prove_experiment(name), COMMANDS)


@pytest.mark.parametrize("correct", [Correct, CorrectCommand])
def test_a_correct_experiment_passes(correct, cache):
    passes(prove_experiment(correct))


@pytest.mark.parametrize(
    ("check", "fault"),
    [(check, one) for every in (FAULTS, COMMAND_FAULTS) for check in every for one in every[check]],
)
def test_a_broken_experiment_trips_its_check_and_no_other(check, fault, cache, few_figures):
    trips(prove_experiment(fault), check)


def test_no_check_is_without_a_fault():
    assert list(FAULTS) == SUITE.names
    assert list(COMMAND_FAULTS) == COMMANDS.names


def test_an_experiment_without_a_specimen_cannot_be_proved():
    bare = type("Bare", (Correct,), {"specimen": Experiment.specimen})

    with pytest.raises(UserError, match="'run' has no specimen to try it with; write its specimen"):
        prove_experiment(bare)


def test_the_command_proves_an_experiment(cache, few_figures, monkeypatch, capsys):
    monkeypatch.setitem(EXPERIMENTS._loaded, "run", Correct)

    assert main(["prove", "experiment", "run"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "run: 8 passed, 0 failed, 0 cannot"
