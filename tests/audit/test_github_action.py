"""The shell steps of action.yml, run for real, and the three lines of a workflow that uses it."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent.parent
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


@pytest.fixture
def step(tmp_path):
    """A function that runs the step called *name* as GitHub does: in bash -eo pipefail."""

    def run(name, **inputs):
        (found,) = [one for one in ACTION["runs"]["steps"] if one.get("name") == name]
        given = {key: value["default"] for key, value in ACTION["inputs"].items()
                 if "default" in value} | inputs  # fmt: skip
        values = {
            key: given[value.removeprefix("${{ inputs.").removesuffix(" }}")]
            for key, value in found["env"].items()
        }
        path = f"{tmp_path}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", found["run"]],
            cwd=tmp_path, capture_output=True, text=True,
            env={**os.environ, "PATH": path, "GITHUB_ACTION_PATH": str(ROOT),
                 "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"), **values},
        )  # fmt: skip

    return run


def test_a_gate_that_fails_fails_the_step_and_the_summary_says_why(step, tmp_path):
    done = step(
        "Simulate",
        command="--train pillow_fp32 --deploy pillow_fp32 --limit 4 --quick --out run"
        ' --set "deploy.resize=opencv-nearest" --fail-on "samples < 5"',
    )

    assert done.returncode == 1, done.stdout + done.stderr
    lines = (tmp_path / "summary.md").read_text().splitlines()
    assert (lines[0], lines[-1]) == ("```", "```")
    assert any(line.startswith("gate FAILED samples < 5") for line in lines)
    assert (tmp_path / "run" / "report.html").is_file()


def test_words_of_the_command_reach_no_shell(step, tmp_path):
    done = step("Simulate", command='profiles check "$(touch stolen); touch stolen"')

    assert done.returncode == 2
    assert not (tmp_path / "stolen").exists()


def test_the_install_step_asks_pip_for_the_package_beside_the_action(step, tmp_path):
    """With a pip that says what it is asked."""
    asked = tmp_path / "python"
    asked.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    asked.chmod(0o755)

    done = step("Install", extras="openvino,demo")

    assert done.stdout.splitlines()[-3:] == [
        "-c",
        f"{ROOT}/constraints.txt",
        f"{ROOT}[openvino,demo]",
    ]
    assert set(ACTION["inputs"]["extras"]["default"].split(",")) <= set(EXTRAS)


def test_the_image_installs_extras_that_there_are():
    (line,) = [one for one in (ROOT / "Dockerfile").read_text().splitlines() if "ARG" in one]

    assert set(line.partition("=")[2].split(",")) <= set(EXTRAS)
