"""A small corpus of hostile inputs, the same on every machine; ``tools/fuzz.py`` runs more."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import fuzz
import pytest
import tiny

pytestmark = pytest.mark.prove

COUNTS = {"image": 500, "document": 500, "model": 100}
KILLS = 8
LOT = 50
"""Inputs of one test."""


@pytest.mark.parametrize(
    ("kind", "first"), [(k, at) for k, n in COUNTS.items() for at in range(0, n, LOT)]
)
def test_what_is_hostile_is_read_or_refused(kind, first, cache, tmp_path):
    problems = []
    for seed in range(first, first + LOT):
        folder = tmp_path / str(seed)
        folder.mkdir()
        try:
            fuzz.case(kind, seed, folder)
        except Exception as error:
            problems.append(f"{kind} {seed}: {type(error).__name__}: {str(error)[:300]}")

    assert problems == []


@pytest.mark.parametrize(("name", "whole", "read"), fuzz.documents())
def test_the_documents_are_read_before_they_are_damaged(tmp_path, name, whole, read):
    fuzz.beside(tmp_path)
    place = tmp_path / name
    place.write_bytes(whole)

    assert read(place) is not None


def test_a_run_that_is_killed_at_any_moment_goes_on(cache, tmp_path, card):
    """Each is killed at another moment; none ends with other answers than a whole run."""
    data = tiny.data(tmp_path / "data", each=25)
    place = Path(__file__).with_name("kills.py")

    done = subprocess.run(
        [sys.executable, place, tmp_path, card, data, str(KILLS), "0"],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr[-2000:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == KILLS
    for one in found:
        assert one["killed"] in (0, -signal.SIGKILL), one
        assert one["code"] == (0 if one["begun"] else 2), one
        assert one["same"] is one["begun"], one
    assert any(one["begun"] and one["killed"] for one in found)


@pytest.mark.parametrize(("kind", "seed"), [("document", 880626), ("model", 880896)])
def test_what_the_fuzzer_found(kind, seed, tmp_path):
    """A path of 5,000 characters; a control character in what ONNX's checker says."""
    fuzz.case(kind, seed, tmp_path)
