"""What `simulate resume` answers for runs that need little or nothing more."""

import json
import signal
import subprocess
import sys

import pytest
from audits import document

from simulator import cli

FAILS = ("--fail-on", "flip_rate >= 0%")
PAIR = ("--train", "pillow_fp32", "--deploy", "pillow_fp32", "--set", "deploy.color.order=bgr")

KILLED = """
import os, signal, sys
from pathlib import Path
from simulator import cli
from simulator.report import page

last, *arguments = sys.argv[1:]
write = page.write


def killed(folder, out=None):
    if folder == Path(last):
        os.kill(os.getpid(), signal.SIGKILL)
    return write(folder, out)


page.write = killed
sys.exit(cli.main(arguments))
"""


def killed(folder, *arguments):
    """Run a command that is killed where it would write the report of a folder."""
    command = [sys.executable, "-c", KILLED, folder, *arguments]
    return subprocess.run([str(one) for one in command], capture_output=True, text=True)


def status(folder):
    return json.loads((folder / "manifest.json").read_text())["status"]


@pytest.fixture
def given(card, data, cache, tmp_path):
    return [*PAIR, "--model", str(card), "--data", str(data), "--out", str(tmp_path / "run")]


@pytest.mark.parametrize(("rules", "code"), [(FAILS, cli.GATE_FAILED), ((), cli.PASS)])
def test_a_finished_run_exits_as_it_did(given, tmp_path, capsys, rules, code):
    assert cli.main([*given, *rules]) == code
    capsys.readouterr()

    assert cli.main(["resume", str(tmp_path / "run")]) == code
    assert cli.main(["resume", str(tmp_path / "run"), "--json"]) == code

    assert json.loads(capsys.readouterr().out)["gate"]["passed"] is (code == cli.PASS)


def test_an_audit_that_failed_and_its_pairs_exit_as_they_did(finished):
    pairs = finished.folder / "pairs" / "tiny"
    for folder, code in ((finished.folder, 1), (pairs / "bgr", 1), (pairs / "same", 0)):
        assert cli.main(["resume", str(folder)]) == code


@pytest.mark.parametrize("audited", [False, True])
def test_a_run_is_complete_when_all_its_reports_are_there(
    given, card, data, tmp_path, capsys, audited
):
    out = tmp_path / "run"
    folders, asked = [out], [*given, *FAILS]
    if audited:
        asked = ["audit", document(tmp_path, card, data), "--out", out]
        folders = [out / "pairs" / "tiny" / "same", out / "pairs" / "tiny" / "bgr", out]

    assert killed(folders[-2] if audited else out, *asked).returncode == -signal.SIGKILL
    assert (status(out), (out / "report.html").exists()) == ("reporting", False)

    assert cli.main(["resume", str(out)]) == cli.GATE_FAILED

    assert status(out) == "complete"
    assert all((folder / "report.html").is_file() for folder in folders)
    assert not (out / "parts").exists()
    assert f"report: {out / 'report.html'}" in capsys.readouterr().out
