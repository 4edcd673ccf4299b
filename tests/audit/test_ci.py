"""The shell steps of action.yml and of the workflows in docs/ci, run for real."""

import os
import shutil
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import yaml
from audits import verified

from simulator.audit.document import load_audit

ROOT = Path(__file__).parent.parent.parent
CI = ROOT / "docs" / "ci"
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
NOT_OURS = ("python -m pip install", "gh ")
"""Steps of workflows that need the network."""


def shell(step, folder, **values):
    """Run a step as GitHub does: in bash -eo pipefail, with a file for the summary."""
    path = f"{folder}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    given = {"PATH": path, "GITHUB_STEP_SUMMARY": str(folder / "summary.md"), **values}
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step],
        cwd=folder, env={**os.environ, **given}, capture_output=True, text=True,
    )  # fmt: skip


@pytest.fixture
def action(tmp_path):
    """A function that runs the action's step called *name*."""

    def run(name, **inputs):
        (found,) = [one for one in ACTION["runs"]["steps"] if one.get("name") == name]
        given = {key: value["default"] for key, value in ACTION["inputs"].items()
                 if "default" in value} | inputs  # fmt: skip
        values = {
            key: given[value.removeprefix("${{ inputs.").removesuffix(" }}")]
            for key, value in found["env"].items()
        }
        return shell(found["run"], tmp_path, GITHUB_ACTION_PATH=str(ROOT), **values)

    return run


def test_a_gate_that_fails_fails_the_step_and_the_summary_says_why(action, tmp_path):
    done = action(
        "Simulate",
        command="--train pillow_fp32 --deploy pillow_fp32 --limit 4 --quick --out run"
        ' --set "deploy.resize=opencv-nearest" --fail-on "samples < 5"',
    )

    assert done.returncode == 1, done.stdout + done.stderr
    lines = (tmp_path / "summary.md").read_text().splitlines()
    assert (lines[0], lines[-1]) == ("```", "```")
    assert any(line.startswith("gate FAILED samples < 5") for line in lines)
    assert (tmp_path / "run" / "report.html").is_file()


def test_words_of_the_command_reach_no_shell(action, tmp_path):
    done = action("Simulate", command='profiles check "$(touch stolen); touch stolen"')

    assert done.returncode == 2
    assert not (tmp_path / "stolen").exists()


def test_the_install_step_asks_pip_for_the_package_beside_the_action(action, tmp_path):
    """With a pip that says what it is asked."""
    asked = tmp_path / "python"
    asked.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    asked.chmod(0o755)

    done = action("Install", extras="openvino,demo")

    wanted = ["-c", f"{ROOT}/constraints.txt", f"{ROOT}[openvino,demo]"]
    assert done.stdout.splitlines()[-3:] == wanted


def github():
    """The shell steps of the workflow, and which files it keeps."""
    (job,) = yaml.safe_load((CI / "github.yml").read_text())["jobs"].values()
    return [step["run"] for step in job["steps"] if "run" in step], job["steps"][-1]["with"]["path"]


def gitlab():
    (job,) = yaml.safe_load((CI / "gitlab.yml").read_text()).values()
    return [*job["before_script"], *job["script"]], "\n".join(job["artifacts"]["paths"])


def ours(steps):
    return [step for step in steps if not step.startswith(NOT_OURS)]


@pytest.mark.prove
def test_the_steps_of_the_workflow_run(tmp_path):
    steps, kept = github()
    checkout = tmp_path / "checkout"  # it has what the steps name, and is not the working tree
    shutil.copytree(CI, checkout / "docs" / "ci")

    for step in ours(steps):
        done = shell(step, checkout)
        assert done.returncode == 0, done.stdout + done.stderr

    assert all((checkout / one).exists() for one in kept.split())
    assert verified(checkout / "audit" / "bundle.zip").problems == ()
    root = ET.parse(checkout / "audit" / "junit.xml").getroot()
    assert [suite.get("name") for suite in root] == [
        "built-in.opencv", "built-in.camera", "built-in.edge",
    ]  # fmt: skip
    assert {suite.get("tests") for suite in root} == {"3"}
    assert (checkout / "summary.md").read_text() == (checkout / "audit" / "audit.md").read_text()


def test_gitlab_runs_the_same_lines():
    (there, kept), (here, same) = gitlab(), github()

    assert len(ours(there)) == 2
    assert set(ours(there)) <= set(ours(here))
    assert kept.split() == same.split()


def test_what_is_installed_are_extras_that_there_are():
    """By the action, the image and the workflows, which take the Makefile's constraints."""
    (line,) = [one for one in (ROOT / "Dockerfile").read_text().splitlines() if "ARG" in one]
    asked = [ACTION["inputs"]["extras"]["default"], line.partition("=")[2]]
    for workflow in (github, gitlab):
        (install,) = [step for step in workflow()[0] if "pip install" in step]
        assert "-c constraints.txt -e '.[" in install
        asked.append(install.partition("[")[2].partition("]")[0])

    assert {extra for one in asked for extra in one.split(",")} <= set(EXTRAS)


def test_the_document_that_the_page_shows_can_be_read(tmp_path):
    page = (ROOT / "docs" / "audit.md").read_text()
    example = page.partition("```yaml\n")[2].partition("```")[0]
    (tmp_path / "audit.yaml").write_text(example)
    assert len(load_audit(tmp_path / "audit.yaml").tail_rules) == 1
