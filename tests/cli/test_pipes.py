"""What reads our output may go away, or take nothing: the job and its exit code stay."""

import json
import shlex
import subprocess
import sys
import zipfile

import pytest
import tiny

from simulator import cli

COMMAND = [sys.executable, "-m", "simulator.cli"]
GONE = ["| true", "| head -n 1 >/dev/null", "2>&1 | true"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A card, images, a forged bundle and a finished run."""
    folder = tmp_path_factory.mktemp("pipes")
    tiny.card(folder / "model")
    tiny.data(folder / "data", each=4)
    members = {"audit.yaml": b"abc", "manifest.json": b"{}", "summary.json": b"{}"}
    listed = {"schema": 1, "algorithm": "sha256", "digests": dict.fromkeys(members, "0" * 64)}
    with zipfile.ZipFile(folder / "forged.zip", "w") as packed:
        for name, content in {**members, "digests.json": json.dumps(listed)}.items():
            packed.writestr(name, content)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert cli.main([*RUN, "--out", "done", "--quick"]) == 0
    return folder


def shell(place, words, after):
    """Run a command with a shell's words behind it; return its own exit code, and stderr."""
    line = f"{shlex.join([*COMMAND, *words])} {after}; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], cwd=place, capture_output=True, text=True)
    return done.returncode, done.stderr


RUN = ["--train", "pillow_fp32", "--deploy", "pillow_fp32", "--set", "deploy.color.order=bgr",
       "--model", "model/card.yaml", "--data", "data", "--overwrite"]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "code", "after"),
    [
        (["verify", "forged.zip"], 1, GONE[0]),
        ([*RUN, "--fail-on", "flip_rate > 1%", "--out", "run", "--quick"], 1, GONE[0]),
        ([*RUN, "--json", "--out", "run", "--quick"], 0, GONE[1]),
        (["verify", "data"], 2, GONE[2]),
        (["gate", "done", "--fail-on", "flip_rate > 1%"], 1, GONE[0]),
        (["gate", "done", "--list"], 0, GONE[1]),
        (["profiles", "list"], 0, GONE[1]),
        (["--help"], 0, GONE[0]),
    ],
)
def test_the_exit_code_is_that_without_a_pipe(place, words, code, after):
    found, told = shell(place, words, after)

    assert (found, "Error" in told) == (code, False)


def test_a_job_runs_to_its_end_without_a_reader(place):
    code, _ = shell(place, [*RUN, "--explain-plan", "--out", "whole"], "| true")

    assert code == 0
    assert json.loads((place / "whole" / "manifest.json").read_text())["status"] == "complete"
    assert (place / "whole" / "report.html").is_file()


@pytest.mark.parametrize(
    ("words", "code"), [(["profiles", "list"], 2), (["verify", "forged.zip"], 1)]
)
def test_output_that_cannot_be_written_is_said_and_a_failure_stays_one(place, words, code):
    found, told = shell(place, words, ">/dev/full")

    assert found == code
    assert told == "error: the output cannot be written: No space left on device\n"
