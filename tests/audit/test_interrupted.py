"""Ctrl-C in every command that can be resumed: a line that can be pasted, and goes on."""

import re
import shlex
import signal

import pytest
import tiny
import yaml
from audits import document
from warm import ended

from simulator import cli
from simulator.results.read import read_manifest

PAIR = ["--train", "pillow_fp32", "--deploy", "pillow_fp32", "--set", "deploy.color.order=bgr"]
SUITE = {
    "schema": 1, "name": "trial", "summary": "one axis", "train": "pillow_fp32",
    "columns": {"color": {"bgr": {"color.order": "bgr"}}},
}  # fmt: skip
COMMANDS = {
    "run": PAIR,
    "sweep": ["sweep", "--suite", "suite.yaml"],
    "latency": ["latency", *PAIR, "--queries", "8"],
    "audit": ["audit", "audit.yaml"],
}
"""One of each kind of run: other experiments prove that they go on by their specimens."""


@pytest.fixture
def place(card, tmp_path, monkeypatch):
    """A folder with all that a command needs; one of its folders has a space in its name."""
    monkeypatch.chdir(tmp_path)
    data = tiny.data(tmp_path / "data", each=2)
    (tmp_path / "suite.yaml").write_text(yaml.safe_dump(SUITE))
    document(tmp_path, card, data)
    return card, data


@pytest.mark.parametrize("command", COMMANDS)
def test_ctrl_c_says_how_to_go_on(command, place, tmp_path, capsys):
    card, data = place
    words = [*COMMANDS[command], "--out", "my run"]
    if command != "audit":
        words += ["--model", str(card), "--data", str(data)]

    done = ended(signal.SIGINT, "my run", "**/manifest.json", 1, *words)

    assert (done.returncode, done.stdout) == (cli.USER_ERROR, ""), done.stderr
    (said,) = re.findall(r"(?m)^interrupted; to continue: simulate (.*)$", done.stderr)
    resume, folder = shlex.split(said)
    assert (resume, folder) == ("resume", "my run/colors" if command == "sweep" else "my run")
    assert read_manifest(tmp_path / folder)["status"] != "complete"

    code = cli.main([resume, folder])

    assert code == (cli.GATE_FAILED if command == "audit" else cli.PASS), capsys.readouterr().err
    assert read_manifest(tmp_path / folder)["status"] == "complete"


def test_before_a_run_is_begun_there_is_nothing_to_resume(place, tmp_path):
    done = ended(signal.SIGINT, "data", "**/*.jpg", 1, *PAIR, "--out", "out")

    assert done.returncode == cli.USER_ERROR
    assert done.stderr.splitlines()[-1] == "interrupted; no run was begun"
    assert not (tmp_path / "out").exists()
