"""The notebook of the documents runs, and prints what it shows."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.prove
def test_every_cell_runs_and_prints_what_is_shown():
    done = subprocess.run(
        [sys.executable, "tools/notebook.py", "--check"], cwd=ROOT, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stdout + done.stderr
