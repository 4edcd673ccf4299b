"""The suite is proved by faults: each broken backend trips exactly one check."""

from __future__ import annotations

import re

import pytest
from broken import MXFP4, OWN, DoesNotSayWhat, GoesOnAnywhere, IgnoresProfiles, LosesABit
from correct import CORRECT, NumpyRuntime, WeightQuantizer, backend
from faults import RAW, SHARED, admits_anything, drifts, fault, leaks, refuses_what_it_admits
from load_faults import AlwaysWaits

from simulator.contract import Evidence, Stage
from simulator.testing import Mark, Workshop, checks_of, loads, prove, proved_stages

QUICK = Evidence.VENDOR_SIMULATOR
"""Evidence by which the suite repeats less; the faults that need repetition do without it."""


def faults():
    """(stage, check, implementation, more options, evidence) of every fault."""
    for stage in proved_stages():
        for check, make in OWN[stage].items():
            yield stage, check, make, {}, QUICK
        for check, broken in (
            ("every_admitted_value_works", refuses_what_it_admits),
            ("what_is_not_admitted_is_refused", admits_anything),
        ):
            yield stage, check, *broken(stage), QUICK
        for check, make in SHARED.items() if stage in RAW else ():
            if any(known.__name__ == check for known in checks_of(stage)):
                evidence = Evidence.NATIVE if make in (drifts, leaks) else QUICK
                yield stage, check, fault(stage, make), {}, evidence
    for stage, (make, options) in MXFP4.items():
        yield stage, "numbers_by_hand", make, options, QUICK
    to_srgb = {"profile": ("to_srgb",)}
    yield Stage.DECODE, "color_profiles_are_obeyed", IgnoresProfiles, to_srgb, QUICK
    yield Stage.RUNTIME, "agrees_with_onnx_reference", DoesNotSayWhat, {}, QUICK
    yield (
        Stage.QUANTIZE,
        "scales_are_as_asked",
        WeightQuantizer,
        {"scales": ("power_of_two",)},
        QUICK,
    )
    cut = {"accumulator": ("int16_pairs",), "overflow": ("saturate",), "rounding": ("half_even",)}
    yield Stage.RUNTIME, "sums_are_as_asked", NumpyRuntime, cut, QUICK
    yield Stage.RUNTIME, "a_text_goes_on", GoesOnAnywhere, {"stateful": (True,)}, QUICK


FAULTS = list(faults())


def alone(folder):
    """A workshop without helpers."""
    return Workshop(folder, ())


def failed(proved):
    return {finding.check: finding.remark for finding in proved if finding.mark is Mark.FAILED}


@pytest.mark.parametrize(
    ("stage", "check", "make", "more", "evidence"),
    FAULTS,
    ids=[f"{stage}-{check}-{make.__name__}" for stage, check, make, *_ in FAULTS],
)
def test_a_fault_trips_its_check_and_no_other(
    tmp_path, monkeypatch, stage, check, make, more, evidence
):
    if make is AlwaysWaits:  # it does so in vain, however long
        monkeypatch.setattr(loads, "PATIENCE", 1)

    found = failed(prove(backend(stage, make, more, evidence), alone(tmp_path)))

    assert set(found) == {check}, found
    assert "\n" not in found[check]


@pytest.mark.parametrize("stage", CORRECT)
def test_the_correct_one_passes_every_check(tmp_path, stage):
    findings = list(prove(backend(stage), alone(tmp_path)))

    assert [f.check for f in findings] == [check.__name__ for check in checks_of(stage)]
    assert {f.mark for f in findings} == {Mark.PASSED}, failed(findings)


def test_no_check_is_without_a_fault():
    tripped = {(stage, check) for stage, check, *_ in FAULTS}

    assert tripped == {
        (stage, check.__name__) for stage in proved_stages() for check in checks_of(stage)
    }


def test_other_bits_in_a_batch_are_told_and_no_fault(tmp_path):
    """Which kernels a library has in batches depends on the processor."""
    found = list(prove(backend(Stage.RUNTIME, LosesABit, {}, QUICK), alone(tmp_path)))

    assert failed(found) == {}
    (told,) = {one.remark for one in found if one.check == "samples_of_a_batch_stay_apart"}
    assert re.fullmatch(
        r"other bits in batches of 4 and 16, by at most 1e-06 of the largest, but none where it "
        r"was declared", told,
    )  # fmt: skip
