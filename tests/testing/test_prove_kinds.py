"""Suites of conditions, modalities, graph passes, executors: ours pass, each fault trips one.

The example vendor's package, installed for these tests, is a third party's.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import broken_modalities
import numpy as np
import pytest
from broken_conditions import FAULTS as CONDITION_FAULTS
from broken_conditions import Noise
from installing import vendor

from simulator.cli import main
from simulator.conditions.condition import CONDITIONS
from simulator.contract.passes import PASSES, GraphPass
from simulator.errors import UserError
from simulator.modalities.modality import MODALITIES
from simulator.model.passes.graph.change import Seen
from simulator.pipeline.executor import EXECUTORS, SampleResult
from simulator.pipeline.local import LocalExecutor
from simulator.profile import modality
from simulator.testing import conditions, executors, graph_passes, modalities
from simulator.testing.conditions import prove_condition
from simulator.testing.executors import prove_executor
from simulator.testing.graph_passes import prove_graph_pass
from simulator.testing.modalities import prove_modality
from suites import passes, trips

pytestmark = pytest.mark.prove


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """The example vendor's package."""
    with vendor(monkeypatch, tmp_path / "site"):
        yield


UNPROVED = {
    "released": "takes files of the user's: tests/robustness/test_corrupted.py",
    "fgsm": "needs a label: tests/conditions/test_attacks.py",
    "pgd": "likewise",
    "autoattack": "likewise: tests/conditions/test_autoattack.py",
    "square": "likewise",
}
"""Conditions without examples, and why."""


@pytest.mark.parametrize("name", [name for name in CONDITIONS.names if name not in UNPROVED])
def test_our_conditions_pass(name):
    passes(prove_condition(name), conditions.SUITE)


def test_a_correct_condition_passes():
    passes(prove_condition(Noise))


@pytest.mark.parametrize(
    ("check", "fault"),
    [(check, fault) for check, some in CONDITION_FAULTS.items() for fault in some],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_a_broken_condition_trips_its_check_and_no_other(check, fault):
    trips(prove_condition(fault), check)


def test_a_condition_without_examples_cannot_be_proved():
    bare = type("Bare", (Noise,), {"examples": ()})

    with pytest.raises(
        UserError, match="'noise' has no examples to check it with; write its exampl"
    ):
        prove_condition(bare)


@pytest.mark.parametrize("name", MODALITIES.names)
def test_our_modalities_pass(name):
    passes(prove_modality(name), modalities.SUITE)


@pytest.mark.parametrize("check", modalities.SUITE.names)
def test_a_broken_modality_trips_its_check_and_no_other(installed, check, monkeypatch):
    """Each stands in the place of the vendor's own."""
    vectors = __import__("acme_npu.vectors", fromlist=["x"])
    for fault in broken_modalities.faults(vectors)[check]:
        for table in (MODALITIES, modality.SCHEMAS):
            monkeypatch.setitem(table._loaded, fault.name, fault)
        for known in (modality.schema_of, modality.places, modality.extra_specs):
            known.cache_clear()

        trips(prove_modality(fault), check)


def test_a_modality_without_a_specimen_cannot_be_proved(installed):
    vectors = __import__("acme_npu.vectors", fromlist=["x"])
    bare = type("Bare", (vectors.VectorModality,), {"specimen": MODALITIES["image"].__class__
                .__mro__[1].specimen})  # fmt: skip

    with pytest.raises(UserError, match="'vector' has no specimen to test it with; write its spec"):
        prove_modality(bare())


OURS = [one.name for one in PASSES if isinstance(one, GraphPass)]


@pytest.mark.parametrize("name", OURS)
def test_our_graph_passes_pass(name):
    passes(prove_graph_pass(name))


def test_a_pass_of_another_phase_is_no_graph_pass():
    with pytest.raises(UserError, match="flip_weight_bit is a pass of the phase after"):
        prove_graph_pass("flip_weight_bit")


def broken_passes(right):
    """Check → the vendor's pass with a fault."""
    numbers = itertools.count()

    def untold(model, value):
        change = right.apply(model, value)
        extra = {"nowhere": Seen("Relu", "keep", "keep")}
        return replace(change, before={**change.before, **extra}, after={**change.after, **extra})

    def mistyped(model, value):
        change = right.apply(model, value)
        for node in model.graph.node:
            if "acme_relu" in node.name:
                node.op_type = "Concat"
        return change

    def numbered(model, value):
        change = right.apply(model, value)
        for node in model.graph.node:
            node.name = f"{node.name}{next(numbers)}"
        return change

    return {
        "keep_changes_nothing": lambda model, value: right.apply(model, "relu6"),
        "it_changes_a_model": lambda model, value: right.apply(model, "keep"),
        "it_tells_what_it_did": untold,
        "the_model_stays_valid": mistyped,
        "the_same_twice": lambda m, v: right.apply(m, v) if v == "keep" else numbered(m, v),
    }


@pytest.mark.parametrize("check", graph_passes.SUITE.names)
def test_a_broken_graph_pass_trips_its_check_and_no_other(installed, check):
    right = PASSES["acme_relu"]

    trips(prove_graph_pass(replace(right, apply=broken_passes(right)[check])), check)


class Executing(LocalExecutor):
    """Ours, whose results go through one more function."""

    def run(self, plan, items, watch=None):
        return self.change(list(super().run(plan, items, watch)))

    def change(self, found):
        return found


class Guessing(Executing):
    """Answers something else."""

    def change(self, found):
        return [
            replace(one, outcomes=tuple(replace(o, digest="0") for o in one.outcomes))
            for one in found
        ]


class Backwards(Executing):
    """The last sample first."""

    def change(self, found):
        return found[::-1]


class Silent(Executing):
    """Does not say why a sample was skipped."""

    def change(self, found):
        return [SampleResult(one.item, (), "lost") if one.skipped else one for one in found]


class Blind(Executing):
    """Lets nobody watch."""

    def run(self, plan, items, watch=None):
        return super().run(plan, items, None)


class Jumbled(LocalExecutor):
    """Gives results of jobs as they come; the last ones first."""

    def map(self, step, jobs):
        return list(super().map(step, jobs))[::-1]


EXECUTOR_FAULTS = {
    "answers_are_the_local_ones": Guessing,
    "samples_come_in_order": Backwards,
    "a_broken_sample_costs_itself": Silent,
    "every_sample_is_watched": Blind,
    "jobs_read_their_samples_and_come_in_order": Jumbled,
}


@pytest.mark.parametrize("name", EXECUTORS.names)
def test_our_executors_pass(name):
    passes(prove_executor(name))


@pytest.mark.parametrize("check", EXECUTOR_FAULTS)
def test_a_broken_executor_trips_its_check_and_no_other(check):
    trips(prove_executor(EXECUTOR_FAULTS[check]), check)


def test_no_check_is_without_a_fault(installed):
    vectors = __import__("acme_npu.vectors", fromlist=["x"])
    faults = {
        conditions: CONDITION_FAULTS,
        modalities: broken_modalities.faults(vectors),
        graph_passes: broken_passes(PASSES["acme_relu"]),
        executors: EXECUTOR_FAULTS,
    }

    assert [set(some) for some in faults.values()] == [set(of.SUITE.names) for of in faults]


@pytest.mark.parametrize(
    ("arguments", "last"),
    [
        (["prove", "condition", "acme_haze"], "acme_haze: 11 passed, 0 failed, 0 cannot"),
        (["prove", "modality", "vector"], "vector: 14 passed, 0 failed, 0 cannot"),
        (["prove", "task", "acme_wear"], "acme_wear: 29 passed, 0 failed, 0 cannot"),
        (["prove", "graph_pass", "acme_relu"], "acme_relu: 5 passed, 0 failed, 0 cannot"),
        (["prove", "executor", "acme_queue"], "acme_queue: 5 passed, 0 failed, 0 cannot"),
        (["prove", "stage", "denoise"], "denoise: 10 passed, 0 failed, 0 cannot"),
        (["backends", "prove", "acme"], "acme: 14 passed, 0 failed, 0 cannot"),
    ],
)
def test_the_command_proves_what_the_vendor_adds(installed, arguments, last, capsys):
    assert main(arguments) == 0
    assert capsys.readouterr().out.splitlines()[-1] == last


def test_the_command_says_what_failed(monkeypatch, capsys):
    monkeypatch.setitem(CONDITIONS._loaded, "jpeg", CONDITION_FAULTS["something_happens"][0])

    assert main(["prove", "condition", "jpeg"]) == 1
    out = capsys.readouterr().out
    assert (
        "failed  something_happens  noise:1: a change expected, got every sample as it was" in out
    )
    assert out.splitlines()[-1] == "jpeg: 10 passed, 1 failed, 0 cannot"


def test_the_command_refuses_what_there_is_not(capsys):
    assert main(["prove", "condition", "jpg"]) == 2
    assert "error: unknown condition 'jpg'; did you mean 'jpeg'?" in capsys.readouterr().err
    assert main(["prove", "data_format", "data.yaml"]) == 2
    assert "give --model CARD" in capsys.readouterr().err


def test_values_are_compared_by_what_they_hold():
    from simulator.testing.places import content, kind

    one, other = {"a": (np.zeros(2),)}, {"a": (np.ones(2),)}
    assert content(one) != content(other)
    assert kind(one) == kind(other) == {"a": [("float64", (2,))]}
