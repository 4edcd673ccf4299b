"""A stage of another package is proved by its own checks and by those that all stages share."""

from dataclasses import replace

import pytest
from installing import denoising

from simulator import registry
from simulator.contract import Backend, Evidence, Offer
from simulator.errors import UserError
from simulator.testing import Mark, checks_of, prove

SHARED = [
    "every_admitted_value_works", "what_is_not_admitted_is_refused", "inputs_are_left_alone",
    "outputs_are_kept", "any_strides_will_do", "instances_do_not_mix", "the_same_every_time",
    "threads_see_the_same", "nothing_leaks",
]  # fmt: skip
QUICK = Evidence.VENDOR_SIMULATOR


@pytest.fixture(autouse=True)
def denoise(tmp_path, monkeypatch):
    with denoising(monkeypatch, tmp_path / "site"):
        yield


def like_acme(make=None, stage="denoise"):
    """Acme's backend with another implementation; slow, so that the suite repeats less."""
    backend = registry.backend("acme_dsp")
    (offer,) = backend.offers
    return replace(
        backend, offers=(replace(offer, stage=stage, make=make or offer.make, evidence=QUICK),)
    )


def failed(backend):
    return {f.check: f.remark for f in prove(backend) if f.mark is Mark.FAILED}


def row_filter():
    return registry.backend("acme_dsp").offers[0].make


def test_it_has_its_own_checks_among_those_of_all():
    names = [check.__name__ for check in checks_of("denoise")]

    assert names == [*SHARED[:2], "a_flat_frame_stays_flat", *SHARED[2:]]


def test_the_correct_one_passes():
    findings = list(prove(registry.backend("acme_dsp")))

    assert [f.check for f in findings] == [check.__name__ for check in checks_of("denoise")]
    assert {f.mark for f in findings} == {Mark.PASSED}
    assert {f.stage for f in findings} == {"denoise"}


def test_a_fault_trips_its_own_check_and_no_other():
    class Darkens(row_filter()):
        def _filtered(self, plane):
            return super()._filtered(plane) // 2

    assert failed(like_acme(Darkens)) == {
        "a_flat_frame_stays_flat": "a flat frame of 200 expected, got other pixels"
    }


def test_a_fault_trips_a_shared_check_and_no_other():
    class Writes(row_filter()):
        def _filtered(self, plane):
            out = super()._filtered(plane)
            if plane.flags.writeable:
                plane[...] = 0
            return out

    assert set(failed(like_acme(Writes))) == {"inputs_are_left_alone"}


def test_a_value_that_is_claimed_and_does_not_work():
    class WantsLess(row_filter()):
        def _filtered(self, plane):
            assert self.options["strength"] < 3, "too strong"
            return super()._filtered(plane)

    found = failed(like_acme(WantsLess))

    assert list(found) == ["every_admitted_value_works"]
    assert "strength=3 is offered but does not work" in found["every_admitted_value_works"]


def test_a_stage_that_is_not_in_the_table_is_refused():
    with pytest.raises(UserError, match="unknown stage 'denoize'; did you mean 'denoise'"):
        list(prove(like_acme(stage="denoize")))


def test_a_check_that_does_not_load_is_the_packages_fault(monkeypatch):
    from simulator.contract.stage import STAGES

    monkeypatch.setitem(
        STAGES._loaded, "denoise", replace(STAGES["denoise"], checks=("acme_dsp:no_such",))
    )
    with pytest.raises(UserError, match="acme_dsp:no_such does not load"):
        list(prove(registry.backend("acme_dsp")))


def test_a_stage_says_how_it_works(monkeypatch):
    """Where a first call takes no frame: the shared checks ask the stage's own ``Work``."""
    from simulator.contract.stage import STAGES
    from simulator.testing.work import work

    monkeypatch.setitem(
        STAGES._loaded,
        "denoise",
        replace(STAGES["denoise"], work="simulator.testing.work:Resizing"),
    )
    offer = Offer("denoise", {}, object)
    subject = type("Subject", (), {"offer": offer, "backend": Backend("b", "s", (offer,))})()

    assert type(work(subject)).__name__ == "Resizing"
