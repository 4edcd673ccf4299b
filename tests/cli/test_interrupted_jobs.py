"""Ctrl-C in every job, by the real command: one line that says how to go on, and it goes on."""

import json
import shlex
import signal

import pytest
from warm import ended

from simulator import cli
from simulator.command.experiment import EXPERIMENTS
from simulator.report.command import words

pytestmark = pytest.mark.prove

FIRST = {
    "corrupt": "**/[!.]*.jpg", "render": "images/[!.]*.png", "quantize": "state",
    "finetune": "state", "sensitivity": "measured.json",
}  # fmt: skip
"""What a job has written when the signal comes; of others it is the manifest of a run."""


@pytest.mark.parametrize("name", EXPERIMENTS.names)
def test_ctrl_c_is_one_line_and_the_job_goes_on(name, tmp_path):
    (tmp_path / "inputs").mkdir()
    asked = EXPERIMENTS.of(name).specimen(tmp_path / "inputs")
    _, *line = (word for some in words(name, asked) for word in some)
    out = tmp_path / "out"

    done = ended(signal.SIGINT, out, FIRST.get(name, "**/manifest.json"), 1, *line, "--out", out)

    assert (done.returncode, done.stdout) == (cli.USER_ERROR, ""), done.stderr
    assert "Traceback" not in done.stderr
    (said,) = [one for one in done.stderr.splitlines() if "interrupted" in one]
    simulate, *again = shlex.split(said.partition("to continue: ")[2])
    assert simulate == "simulate"
    assert cli.main(again) in (cli.PASS, cli.GATE_FAILED)
    left = [json.loads(one.read_text())["status"] for one in out.rglob("manifest.json")]
    assert {*left} <= {"complete"}
