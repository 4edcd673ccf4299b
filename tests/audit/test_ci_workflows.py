"""The shell steps of the workflows in docs/ci, run for real: an audit of three stacks."""

import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import yaml

from simulator.audit import bundle
from simulator.audit.document import load_audit

ROOT = Path(__file__).parent.parent.parent
CI = ROOT / "docs" / "ci"
NOT_OURS = ("python -m pip install", "gh ")
"""Steps that need the network."""


def github():
    """The shell steps of the workflow, and what they are run for."""
    (job,) = yaml.safe_load((CI / "github.yml").read_text())["jobs"].values()
    return [step["run"] for step in job["steps"] if "run" in step], job["steps"][-1]["with"]["path"]


def gitlab():
    (job,) = yaml.safe_load((CI / "gitlab.yml").read_text()).values()
    return [*job["before_script"], *job["script"]], "\n".join(job["artifacts"]["paths"])


def ours(steps):
    return [step for step in steps if not step.startswith(NOT_OURS)]


@pytest.mark.prove
def test_the_steps_run(tmp_path):
    steps, kept = github()
    checkout = tmp_path / "checkout"  # it has what the steps name, and is not the working tree
    shutil.copytree(CI, checkout / "docs" / "ci")
    summary = tmp_path / "summary.md"
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "GITHUB_STEP_SUMMARY": str(summary)}

    for step in ours(steps):
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", step],
            cwd=checkout, env=environment, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr

    assert all((checkout / one).exists() for one in kept.split())
    assert bundle.verify(checkout / "audit" / "bundle.zip").problems == ()
    root = ET.parse(checkout / "audit" / "junit.xml").getroot()
    assert [suite.get("name") for suite in root] == [
        "built-in.opencv", "built-in.camera", "built-in.edge",
    ]  # fmt: skip
    assert {suite.get("tests") for suite in root} == {"3"}
    assert summary.read_text() == (checkout / "audit" / "audit.md").read_text()


def test_gitlab_runs_the_same_lines():
    (there, kept), (here, same) = gitlab(), github()

    assert len(ours(there)) == 2
    assert set(ours(there)) <= set(ours(here))
    assert kept.split() == same.split()


def test_the_install_step_is_that_of_the_makefile():
    """Its constraints, and extras that there are."""
    import tomllib

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    for workflow in (github, gitlab):
        (install,) = [step for step in workflow()[0] if "pip install" in step]
        assert "-c constraints.txt -e '.[" in install
        assert set(install.partition("[")[2].partition("]")[0].split(",")) <= set(extras)


def test_the_document_that_the_page_shows_can_be_read(tmp_path):
    page = (ROOT / "docs" / "audit.md").read_text()
    example = page.partition("```yaml\n")[2].partition("```")[0]
    (tmp_path / "audit.yaml").write_text(example)
    assert len(load_audit(tmp_path / "audit.yaml").tail_rules) == 1
