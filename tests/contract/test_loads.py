"""Loads that cannot be, and folders that cannot be written: one line each."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from simulator.contract import Load, LoadGenerator, Scenario, Served
from simulator.errors import RunError, UserError

USUAL = {"samples": 5, "queries": 64, "seconds": 0, "seed": 1}
SERVER = {**USUAL, "qps": 100.0, "deadline_ns": 10**7}


@pytest.mark.parametrize(
    ("scenario", "fields", "said"),
    [
        (Scenario.SERVER, SERVER | {"qps": None}, "Server: qps: required (samples per second"),
        (Scenario.SERVER, SERVER | {"qps": 0.0}, "qps: samples per second above 0 expected, got 0"),
        (Scenario.SERVER, SERVER | {"qps": -3.0}, "qps: samples per second above 0 expected"),
        (Scenario.SERVER, SERVER | {"qps": float("nan")}, "qps: samples per second above 0"),
        (Scenario.SERVER, SERVER | {"qps": float("inf")}, "qps: samples per second above 0"),
        (Scenario.SERVER, SERVER | {"deadline_ns": None}, "deadline_ns: at least 1 expected"),
        (Scenario.SERVER, SERVER | {"percentile": 1.0}, "percentile: a fraction between 0 and 1"),
        (Scenario.OFFLINE, USUAL | {"samples": 0}, "samples: at least 1 expected, got 0"),
        (Scenario.OFFLINE, USUAL | {"seconds": 60}, "qps: required (expected answers"),
        (Scenario.OFFLINE, USUAL | {"queries": 0}, "queries: at least 1 expected, got 0"),
        (Scenario.SINGLE_STREAM, USUAL | {"seconds": -1}, "seconds: 0 or more expected, got -1"),
        (Scenario.SINGLE_STREAM, USUAL | {"seed": -1}, "seed: 0 or more expected, got -1"),
    ],
)
def test_what_no_load_can_have(scenario, fields, said):
    with pytest.raises(UserError, match=re.escape(said)) as caught:
        Load(scenario, **fields)

    assert "\n" not in str(caught.value)


def test_all_mistakes_are_told_at_once():
    with pytest.raises(UserError) as caught:
        Load(Scenario.SERVER, samples=0, queries=0, seconds=0, seed=0)

    told = str(caught.value)
    assert all(name in told for name in ("samples:", "queries:", "qps:", "deadline_ns:")), told


class Idle(LoadGenerator):
    def _run(self, load, submit, folder):
        return Served(True, (), {}, folder.name)


def test_a_missing_folder_is_made(tmp_path):
    served = Idle({}).run(Load(Scenario.OFFLINE, **USUAL), print, tmp_path / "a" / "b")

    assert (served.version, (tmp_path / "a" / "b").is_dir()) == ("b", True)


@pytest.mark.parametrize("folder", ["file", "file/below", "/proc/nowhere"])
def test_a_folder_that_cannot_be_written(tmp_path, folder):
    (tmp_path / "file").write_text("")

    with pytest.raises(RunError, match=rf"^{re.escape(str(tmp_path / Path(folder)))} cannot be w"):
        Idle({}).run(Load(Scenario.OFFLINE, **USUAL), print, tmp_path / folder)
